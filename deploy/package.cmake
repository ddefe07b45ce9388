# `cpack -G DEB` in a build directory of the release preset: one package, installed below /usr.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME selvage)
set(CPACK_PACKAGE_VENDOR selvage)
set(CPACK_PACKAGE_CONTACT "selvage <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/deploy/strip.cmake)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/package)

# The components of a package are those installed anyhow, and what has its place outside of /usr.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL Unspecified package)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus, bpftrace")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/deploy/debian/conffiles ${CMAKE_SOURCE_DIR}/deploy/debian/postinst
  ${CMAKE_SOURCE_DIR}/deploy/debian/prerm ${CMAKE_SOURCE_DIR}/deploy/debian/postrm)

set(deploy ${CMAKE_SOURCE_DIR}/deploy)
file(GLOB units CONFIGURE_DEPENDS ${deploy}/systemd/*.service ${deploy}/systemd/*.socket)
file(GLOB sysusers CONFIGURE_DEPENDS ${deploy}/systemd/sysusers.d/*.conf)
file(GLOB tmpfiles CONFIGURE_DEPENDS ${deploy}/systemd/tmpfiles.d/*.conf)
file(GLOB sections8 CONFIGURE_DEPENDS ${deploy}/man/*.8)
file(GLOB sections5 CONFIGURE_DEPENDS ${deploy}/man/*.5)
file(GLOB scripts CONFIGURE_DEPENDS ${deploy}/bpftrace/*.bt)
install(FILES ${units} DESTINATION lib/systemd/system)
install(FILES ${sysusers} DESTINATION lib/sysusers.d)
install(FILES ${tmpfiles} DESTINATION lib/tmpfiles.d)
install(FILES ${sections8} DESTINATION share/man/man8)
install(FILES ${sections5} DESTINATION share/man/man5)
install(FILES ${deploy}/selvage.conf.example ${CMAKE_SOURCE_DIR}/LICENSE
        DESTINATION share/doc/selvage)
install(FILES ${deploy}/completion/selvagectl DESTINATION share/bash-completion/completions)
install(FILES ${deploy}/grafana/selvage.json ${deploy}/grafana/prometheus.yml
        DESTINATION share/selvage/grafana)
install(PROGRAMS ${scripts} DESTINATION share/selvage/bpftrace)
# Of a package alone: `cmake --install` touches nothing outside of its prefix.
install(FILES ${deploy}/selvage.conf.example RENAME selvage.conf DESTINATION /etc/selvage
        COMPONENT package EXCLUDE_FROM_ALL)
# What is packed is what was built: cpack builds nothing, least of all tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
