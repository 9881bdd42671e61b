#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <string_view>

#include "backends/llvm/link.h"
#include "base/check.h"

LLD_HAS_DRIVER(elf)

namespace hone {

namespace {

constinit std::mutex link_mutex;  // lld keeps its state in globals

[[noreturn]] void fail(const char* call) { internal_error(__FILE__, __LINE__, std::string(call) + " failed while linking kernels: " + std::strerror(errno)); }

/// A file descriptor, which lld reaches as /proc/self/fd/N.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { shut(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }
  void shut() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }
  void write(std::string_view bytes) const {
    while (not bytes.empty()) {
      const ssize_t count = ::write(number_, bytes.data(), bytes.size());
      if (count < 0 and errno != EINTR) fail("write");
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  /// All bytes up to the end of the file; of a pipe: until its last writer has closed it.
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes;
    for (std::size_t size = 0;;) {
      bytes.resize(size + 65536);
      const ssize_t count = ::read(number_, bytes.data() + size, bytes.size() - size);
      if (count < 0 and errno != EINTR) fail("read");
      if (count > 0) size += static_cast<std::size_t>(count);
      if (count == 0) {
        bytes.resize(size);
        return bytes;
      }
    }
  }

 private:
  int number_;
};

void run_lld(std::span<const std::string> inputs, const std::string& output) {
  std::vector<const char*> arguments = {"ld.lld", "-shared", "-o", output.c_str(), "--threads=1", "--build-id=none", "--hash-style=gnu"};
  for (const std::string& input : inputs) arguments.push_back(input.c_str());
  constexpr lld::DriverDef kDrivers[] = {{lld::Gnu, &lld::elf::link}};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const std::lock_guard lock(link_mutex);
  const lld::Result result = lld::lldMain(arguments, stream, stream, kDrivers);
  HONE_CHECK(result.retCode == 0 and result.canRunAgain, "lld failed: " + messages);
}

}  // namespace

std::vector<std::byte> link_shared_object(std::span<const std::string> objects) {
  std::deque<Descriptor> inputs;
  std::vector<std::string> paths;
  for (const std::string& object : objects) {
    inputs.emplace_back(memfd_create("hone", MFD_CLOEXEC)).write(object);
    paths.push_back(inputs.back().path());
  }
  int ends[2];  // lld would put a temporary file beside a regular output; into a pipe it writes at once
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe2");
  const Descriptor from_lld(ends[0]);
  std::future<std::vector<std::byte>> shared_object = std::async(std::launch::async, [&from_lld] { return from_lld.read(); });
  Descriptor to_caller(ends[1]);  // closed before the future waits for the reader, on every path
  run_lld(paths, to_caller.path());
  to_caller.shut();
  return shared_object.get();
}

}  // namespace hone
