#include "runtime/device/code_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/device/cpu.h"

namespace hone {
namespace {

[[noreturn]] void not_loadable(const std::string& why) {
  throw Error(Code::kPlanMismatch, fmt::format("the plan's machine code cannot be loaded: {}", why), {}, {"compile the model again on this machine"});
}

/// An anonymous file in memory, to be closed by the caller.
int memory_file(std::span<const std::byte> content) {
  const int file = memfd_create("hone-kernels", MFD_CLOEXEC);
  if (file < 0) not_loadable(std::strerror(errno));
  while (not content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 and errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      close(file);
      not_loadable(std::strerror(error));
    }
    content = content.subspan(static_cast<std::size_t>(written));
  }
  return file;
}

}  // namespace

// Not base/files.h: this file has no name, and dlopen wants one.
LoadedCode::LoadedCode(std::span<const std::byte> object) : file_(memory_file(object)) {
  handle_ = dlopen(fmt::format("/proc/self/fd/{}", file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  const std::string why = printable(dlerror());
  close(file_);
  not_loadable(why);
}

LoadedCode::~LoadedCode() {
  if (handle_ == nullptr) return;
  dlclose(handle_);
  close(file_);
}

LoadedCode::LoadedCode(LoadedCode&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), file_(std::exchange(other.file_, -1)) {}

LoadedCode& LoadedCode::operator=(LoadedCode&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  return *this;
}

KernelFunction LoadedCode::find(const std::string& symbol) const {
  return handle_ == nullptr ? nullptr : reinterpret_cast<KernelFunction>(dlsym(handle_, symbol.c_str()));
}

BlockFunction LoadedCode::find_in_blocks(const std::string& symbol) const {
  return handle_ == nullptr ? nullptr : reinterpret_cast<BlockFunction>(dlsym(handle_, symbol.c_str()));
}

const void* LoadedCode::find_constant(const std::string& symbol) const { return handle_ == nullptr ? nullptr : dlsym(handle_, symbol.c_str()); }

LoadedCode load_code(const plan::Program& program) {
  const std::pair<std::string, std::vector<std::byte>>* best = nullptr;
  std::optional<CpuLevel> best_level;
  std::vector<std::string_view> levels;
  for (const auto& code : program.code) {
    levels.push_back(code.first);
    const std::optional<CpuLevel> level = cpu_level_from_name(code.first);
    if (level and *level <= host_cpu_level() and (not best_level or *level > *best_level)) best = &code, best_level = level;
  }
  if (best != nullptr) return LoadedCode(best->second);
  if (levels.empty()) return {};
  throw Error(
      Code::kPlanMismatch,
      fmt::format("the plan has code for {}, but this processor is {}", printable(fmt::format("{}", fmt::join(levels, ", "))), to_string(host_cpu_level())), {},
      {"compile the model on this machine, or for its level"});
}

}  // namespace hone
