# Takes the debug information out of what goes into the package, and leaves the USDT probes in:
# llvm-strip, which CPack would take, drops their notes.
file(GLOB programs "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/sbin/*"
     "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/usr/sbin/*")
foreach(program ${programs})
  execute_process(COMMAND strip --strip-unneeded --keep-section=.note.stapsdt ${program}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
