// The identity of single threads: whom the kernel judges an operation by (DESIGN 7).
//
// Linux keeps fsuid, fsgid, supplementary groups and capabilities per thread; the raw system calls
// are used here, because glibc's setgroups(2) would change all threads. Like knfsd, a client other
// than root acts without the CAP_NFSD_SET of <linux/capability.h>: the capabilities that bypass
// permissions (CAP_CHOWN, CAP_DAC_*, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, ...) and CAP_SYS_RESOURCE
// (quota limits and reserved blocks).
#pragma once

#include "storage/credentials.h"

#include <csignal>

namespace selvage::storage {

/// Puts the calling pool thread under a client's fsuid, fsgid and supplementary groups, and back
/// to the server's on destruction. Not nested; not on worker threads.
///
/// uid 0 keeps the server's capabilities, every other uid loses those named above. The groups stay
/// on the thread afterwards (they do not matter to the server, which has CAP_DAC_OVERRIDE), so that
/// the same client's next call need not set them again.
///
/// An ordinary user's server has no privilege to switch: then it does nothing, and every client is
/// the server's own user. A server that is root, or may switch, never runs an operation under
/// another identity than asked: the constructor throws std::system_error (EACCES) with the server's
/// identity in place again, e.g. for uid or gid 2^32-1, or an id that this user namespace lacks.
/// If the server's own identity cannot be put back, the process ends.
class ScopedIdentity {
 public:
  explicit ScopedIdentity(const Credentials& credentials);
  ~ScopedIdentity();
  ScopedIdentity(const ScopedIdentity&) = delete;
  ScopedIdentity& operator=(const ScopedIdentity&) = delete;

 private:
  bool switched_ = false;
};

/// Puts the calling thread for good under fsuid and fsgid 65534, no groups, and without the
/// capabilities above but CAP_FOWNER (to set a file's times; no right to its data): for threads
/// that only do data operations on open descriptors, so that a write clears set-id bits and counts
/// against quota and reserved blocks (ext4 gives those to fsuid 0 too). Such operations are judged
/// by how the descriptor was opened. What the server's privileges do not allow is left as it is.
void restrict_thread_to_data();

/// The same for a scope, on a pool thread. Never throws.
class ScopedDataIdentity {
 public:
  ScopedDataIdentity();
  ~ScopedDataIdentity();
  ScopedDataIdentity(const ScopedDataIdentity&) = delete;
  ScopedDataIdentity& operator=(const ScopedDataIdentity&) = delete;
};

/// Blocks every signal but the synchronous ones (SIGSEGV, ...) in the calling thread until
/// destroyed: threads started meanwhile inherit that, and signals go to the main thread.
class ScopedSignalBlock {
 public:
  ScopedSignalBlock();
  ~ScopedSignalBlock();
  ScopedSignalBlock(const ScopedSignalBlock&) = delete;
  ScopedSignalBlock& operator=(const ScopedSignalBlock&) = delete;

 private:
  sigset_t old_;
};

}  // namespace selvage::storage
