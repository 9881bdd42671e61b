#include "runtime/device/code_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
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
LoadedCode::LoadedCode(std::span<const std::byte> object) { add(object); }

void LoadedCode::add(std::span<const std::byte> object) {
  const int file = memory_file(object);
  void* handle = dlopen(fmt::format("/proc/self/fd/{}", file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return objects_.push_back({handle, file});
  const std::string why = printable(dlerror());
  close(file);
  not_loadable(why);
}

LoadedCode::~LoadedCode() {
  for (const Object& object : objects_) {
    dlclose(object.handle);
    close(object.file);
  }
}

LoadedCode::LoadedCode(LoadedCode&& other) noexcept : objects_(std::exchange(other.objects_, {})) {}

LoadedCode& LoadedCode::operator=(LoadedCode&& other) noexcept {
  std::swap(objects_, other.objects_);
  return *this;
}

void* LoadedCode::symbol(const std::string& name) const {
  for (const Object& object : objects_)
    if (void* found = dlsym(object.handle, name.c_str()); found != nullptr) return found;
  return nullptr;
}

KernelFunction LoadedCode::find(const std::string& name) const { return reinterpret_cast<KernelFunction>(symbol(name)); }
BlockFunction LoadedCode::find_in_blocks(const std::string& name) const { return reinterpret_cast<BlockFunction>(symbol(name)); }
const void* LoadedCode::find_constant(const std::string& name) const { return symbol(name); }

LoadedCode load_code(const plan::Program& program) {
  std::map<CpuLevel, const std::vector<std::byte>*, std::greater<>> usable;
  std::vector<std::string_view> levels;
  for (const auto& [name, object] : program.code) {
    levels.push_back(name);
    const std::optional<CpuLevel> level = cpu_level_from_name(name);
    if (level and *level <= host_cpu_level()) usable.emplace(*level, &object);
  }
  LoadedCode code;
  if (levels.empty()) return code;
  for (const auto& [level, object] : usable) {
    code.add(*object);
    if (level != CpuLevel::kV4Amx) return code;  // it may have only what gains from it
  }
  if (not usable.empty()) return code;
  throw Error(
      Code::kPlanMismatch,
      fmt::format("the plan has code for {}, but this processor is {}", printable(fmt::format("{}", fmt::join(levels, ", "))), to_string(host_cpu_level())), {},
      {"compile the model on this machine, or for its level"});
}

}  // namespace hone
