#include "tests/protocol/fixture.h"

#include <sys/stat.h>

#include <fstream>

namespace selvage::tests {

ProtocolTest::ProtocolTest() {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms{0755});
  const std::vector<std::pair<std::string, std::string>> options = {
      {"rw", "squash=none"},           {"other", "squash=none"},
      {"ro", "access=ro,squash=none"}, {"near", "clients=127.0.0.2,squash=none"},
      {"root", "squash=root"},         {"all", "squash=all,anonuid=3000,anongid=3001"},
  };
  std::vector<std::string> exports;
  for (const auto& [name, keys] : options) {
    std::filesystem::create_directory(path(name));
    std::filesystem::permissions(path(name), std::filesystem::perms{0755});
    exports.push_back(path(name) + ":" + keys);
  }
  std::ofstream(path("ro/file")) << "read only\n";
  std::filesystem::create_symlink("target", path("ro/symlink"));

  server::ServerHooks hooks;
  hooks.wrap_device = faults_.wrapper();
  server_ = std::make_unique<TestServer>(exports, hooks);
  connect();
  top_ = root_->root(path("rw"));
}

ProtocolTest::~ProtocolTest() = default;

void ProtocolTest::connect() {
  root_ = client();
  alice_ = client(Identity{alice_uid, alice_uid, {team_gid}, false});
  bob_ = client(Identity{bob_uid, bob_uid, {}, false});
}

void ProtocolTest::restart_server() {
  server_->restart();
  connect();
}

std::uint32_t status_of(const RpcReply& reply) {
  if (reply.results.size() < 4) {
    ADD_FAILURE() << "no results";
    return 0xffffffff;
  }
  std::uint32_t status = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    status = status << 8 | static_cast<std::uint8_t>(reply.results[i]);
  }
  return status;
}

std::vector<Sample> samples(const Bytes& directory, const Bytes& file, const Bytes& symlink,
                            const std::string& prefix) {
  const Bytes no_attributes = XdrWriter{}.u32(0).u32(0).u32(0).u32(0).u32(0).u32(0).bytes();
  const Bytes mode = XdrWriter{}.u32(1).u32(0640).u32(0).u32(0).u32(0).u32(0).u32(0).bytes();
  const auto in = [&](const std::string& name) {
    return XdrWriter{}.opaque(directory).opaque(name).bytes();
  };
  const Bytes on_directory = XdrWriter{}.opaque(directory).bytes();
  const Bytes on_file = XdrWriter{}.opaque(file).bytes();
  const Bytes unchecked = XdrWriter{}.u32(UNCHECKED).bytes();
  const Bytes fifo = XdrWriter{}.u32(NF3FIFO).bytes();
  return {
      {"GETATTR", 1, on_directory, false},
      {"SETATTR", 2, on_file + mode + XdrWriter{}.u32(0).bytes(), true},
      {"LOOKUP", 3, in("file"), false},
      {"ACCESS", 4, on_directory + XdrWriter{}.u32(0x3f).bytes(), false},
      {"READLINK", 5, XdrWriter{}.opaque(symlink).bytes(), false},
      {"READ", 6, on_file + XdrWriter{}.u64(0).u32(100).bytes(), false},
      {"WRITE", 7, write_arguments(file, 0, 4, FILE_SYNC, "data"), true},
      {"CREATE", 8, in(prefix + "created") + unchecked + no_attributes, true},
      {"MKDIR", 9, in(prefix + "directory") + no_attributes, true},
      {"SYMLINK", 10, in(prefix + "link") + no_attributes + XdrWriter{}.opaque("target").bytes(),
       true},
      {"MKNOD", 11, in(prefix + "fifo") + fifo + no_attributes, true},
      {"REMOVE", 12, in("missing"), true},
      {"RMDIR", 13, in("missing"), true},
      {"RENAME", 14, in("missing") + in(prefix + "renamed"), true},
      {"LINK", 15, on_file + in(prefix + "hard"), true},
      {"READDIR", 16, on_directory + XdrWriter{}.u64(0).u64(0).u32(8192).bytes(), false},
      {"READDIRPLUS", 17, on_directory + XdrWriter{}.u64(0).u64(0).u32(8192).u32(8192).bytes(),
       false},
      {"FSSTAT", 18, on_directory, false},
      {"FSINFO", 19, on_directory, false},
      {"PATHCONF", 20, on_directory, false},
      {"COMMIT", 21, on_file + XdrWriter{}.u64(0).u32(0).bytes(), false},
  };
}

}  // namespace selvage::tests
