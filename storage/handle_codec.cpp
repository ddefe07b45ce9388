#include "storage/handle_codec.h"

#include "storage/unique_fd.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace selvage::storage {
namespace {

// version (1) | export id (4) | handle type (3) | kernel handle (0 to 40) | MAC (16), integers
// big-endian. Three bytes hold every handle_type of Linux, its user flags (0xff0000) included.
constexpr std::uint8_t version = 1;
constexpr std::size_t type_at = 5;
constexpr std::size_t head_bytes = 8;
constexpr std::size_t mac_bytes = 16;
constexpr std::int32_t max_type = 0xffffff;

using Mac = std::array<std::uint8_t, mac_bytes>;
using Octets = std::span<const std::uint8_t>;

static_assert(head_bytes + ObjectId::max_bytes + mac_bytes <= HandleCodec::max_bytes);

void put(std::vector<std::uint8_t>& out, std::uint32_t value, unsigned bytes) {
  while (bytes-- > 0) out.push_back(static_cast<std::uint8_t>(value >> (8 * bytes)));
}

std::uint32_t get(Octets in) {
  std::uint32_t value = 0;
  for (std::uint8_t byte : in) value = value << 8 | byte;
  return value;
}

// BLAKE2b with the key as its key parameter is a MAC (RFC 7693, section 2.9).
Mac mac_of(const HandleKey& key, Octets bytes) {
  static const int initialised = sodium_init();
  static_cast<void>(initialised);
  Mac mac;
  crypto_generichash(mac.data(), mac.size(), bytes.data(), bytes.size(), key.data(), key.size());
  return mac;
}

ErrorCode last_error() {
  return errno_code(errno);
}

Result<HandleKey> read_key(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return last_error();
  HandleKey key;
  if (!S_ISREG(status.st_mode) || status.st_size != static_cast<off_t>(key.size())) {
    return errno_code(EINVAL);
  }
  std::size_t done = 0;
  while (done < key.size()) {
    const ssize_t got = ::pread(fd, key.data() + done, key.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    if (got == 0) return errno_code(EINVAL);
    done += static_cast<std::size_t>(got);
  }
  return key;
}

Result<> write_all(int fd, Octets bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

// Moves `from` to `to` unless that exists (EEXIST), in one step.
Result<> publish(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return last_error();
  // A file system without that flag.
  if (::link(from.c_str(), to.c_str()) != 0) return last_error();
  ::unlink(from.c_str());
  return {};
}

Result<> make_key(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // Mode 0600.
  if (!fd) return last_error();
  const auto finish = [&]() -> Result<> {
    HandleKey key;
    if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
      return last_error();
    }
    if (const auto written = write_all(fd.get(), key); !written) return written;
    if (::fsync(fd.get()) != 0) return last_error();
    return publish(temporary, path);
  };
  const Result<> result = finish();
  if (!result) ::unlink(temporary.c_str());
  return result;
}

Result<> sync_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return last_error();
  return {};
}

Result<UniqueFd> open_key(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return last_error();
  return fd;
}

}  // namespace

Result<HandleKey> load_or_make_handle_key(const std::string& path) {
  Result<UniqueFd> fd = open_key(path);
  if (!fd && fd.error() == errno_code(ENOENT)) {
    const Result<> made = make_key(path);
    // EEXIST: another process was faster, its key counts.
    if (!made && made.error() != errno_code(EEXIST)) return made.error();
    fd = open_key(path);
  }
  if (!fd) return fd.error();
  Result<HandleKey> key = read_key(fd->get());
  if (!key) return key;
  // Also for a key that was found: whoever made it may have been killed before this.
  const Result<> durable = sync_directory_of(path);
  if (!durable && durable.error() != errno_code(EROFS)) return durable.error();
  return key;
}

std::vector<std::uint8_t> HandleCodec::encode(std::uint32_t export_id,
                                              const ObjectId& object) const {
  if (object.type() < 0 || object.type() > max_type) {
    throw std::invalid_argument("a kernel handle type of more than 24 bits");
  }
  const Octets kernel = object.bytes();
  std::vector<std::uint8_t> handle;
  handle.reserve(head_bytes + kernel.size() + mac_bytes);
  put(handle, version, 1);
  put(handle, export_id, 4);
  put(handle, static_cast<std::uint32_t>(object.type()), 3);
  handle.insert(handle.end(), kernel.begin(), kernel.end());
  const Mac mac = mac_of(key_, handle);
  handle.insert(handle.end(), mac.begin(), mac.end());
  return handle;
}

Result<HandleCodec::Decoded> HandleCodec::decode(std::span<const std::uint8_t> handle) const {
  constexpr std::size_t least = head_bytes + mac_bytes;
  if (handle.size() < least || handle.size() > least + ObjectId::max_bytes) {
    return make_error_code(Errc::bad_handle);
  }
  const Octets signed_part = handle.first(handle.size() - mac_bytes);
  const Mac mac = mac_of(key_, signed_part);
  if (sodium_memcmp(mac.data(), handle.last(mac_bytes).data(), mac_bytes) != 0 ||
      signed_part[0] != version) {
    return make_error_code(Errc::bad_handle);
  }
  const auto type = static_cast<std::int32_t>(get(signed_part.subspan(type_at, 3)));
  return Decoded{.export_id = get(signed_part.subspan(1, 4)),
                 .object = ObjectId(type, signed_part.subspan(head_bytes))};
}

}  // namespace selvage::storage
