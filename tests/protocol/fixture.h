// What every protocol test stands on: a server in this process, exporting four directories of a
// scratch folder, and clients with several identities.
#pragma once

#include "tests/support/fault_device.h"
#include "tests/support/nfs3_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_server.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

/// The two arms of a result of libnfs's.
#define RESULT_UNION(name) name##3res_u
#define RESOK(answer, name) ((answer)->RESULT_UNION(name).resok)
#define RESFAIL(answer, name) ((answer)->RESULT_UNION(name).resfail)
#define EXPECT_STATUS(expected, answer) EXPECT_EQ((answer).status(), expected)
#define ASSERT_OK(answer) ASSERT_EQ((answer).status(), NFS3_OK)

namespace selvage::tests {

/// The attributes that follow; a test failure and zeroes if they do not.
inline fattr3 attributes(const post_op_attr& attributes) {
  const fattr3* found = attributes_of(attributes);
  EXPECT_NE(found, nullptr) << "post-operation attributes are missing";
  return found != nullptr ? *found : fattr3{};
}

/// The same for wcc_data, which must not claim attributes from before.
inline fattr3 after(const wcc_data& wcc) {
  EXPECT_EQ(wcc.before.attributes_follow, 0u);
  return attributes(wcc.after);
}

/// One well-formed call of a procedure.
struct Sample {
  std::string name;
  std::uint32_t procedure = 0;
  Bytes arguments;
  bool modifies = false;
};

/// Every procedure but NULL once, on a directory `directory`, a regular file `file` and a symlink
/// `symlink`. Names that are made start with `prefix`; what is removed is "gone" and "gonedir".
std::vector<Sample> samples(const Bytes& directory, const Bytes& file, const Bytes& symlink,
                            const std::string& prefix);

/// nfsstat3 of any NFSv3 results.
std::uint32_t status_of(const RpcReply& reply);

class ProtocolTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t alice_uid = 1001, bob_uid = 1002, team_gid = 2001;

  ProtocolTest();
  ~ProtocolTest() override;

  std::uint16_t port() const { return server_->port(); }
  /// Of an export, or below one: as MNT wants it, and as the server's own file system has it.
  std::string path(const std::string& relative) const { return folder_ / relative; }
  const std::string& state_folder() const { return server_->state_dir(); }

  /// A new connection.
  std::unique_ptr<Nfs3Client> client(Identity identity = {}) const {
    return std::make_unique<Nfs3Client>(port(), std::move(identity));
  }

  /// As SIGTERM and a new start would, with the same exports, state and port. The clients below
  /// connect anew.
  void restart_server();

  storage::TempDir folder_;
  storage::FaultScript faults_;
  /// Exports below folder_: "rw" and "other" (squash=none), "ro" (the same, access=ro, with "file",
  /// "symlink"), "near" (for 127.0.0.2 only), "root" (squash=root), "all" (squash=all).
  std::unique_ptr<TestServer> server_;
  Bytes top_;  ///< The root of "rw".
  /// Root; two users of different groups, alice also in team_gid.
  std::unique_ptr<Nfs3Client> root_, alice_, bob_;

 private:
  void connect();
};

}  // namespace selvage::tests
