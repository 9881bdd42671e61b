#include "runtime/device/cuda_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

#include "base/text.h"

namespace hone::cuda {
namespace {

/// The first of the files that can be opened; null, and what the loader says of the last.
void* open_first(std::initializer_list<const char*> files, std::string* why) {
  for (const char* file : files) {
    if (void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* message = dlerror();
    *why = message == nullptr ? file : printable(message);
  }
  return nullptr;
}

struct Loaded {
  std::unique_ptr<Library> library;
  std::string why;
};

Loaded load() {
  Loaded loaded;
  loaded.library = open_library("libcuda.so.1", &loaded.why);
  if (loaded.library == nullptr) {
    loaded.why = "there is no NVIDIA driver: " + loaded.why;
    return loaded;
  }
  int version = 0;
  const Result error = loaded.library->init(0);
  if (error != 0) loaded.why = "the NVIDIA driver does not start: " + loaded.library->text(error);
  else if (loaded.library->driver_version(&version) != 0 or version < kOldestDriver)
    loaded.why = fmt::format("the NVIDIA driver is for CUDA {}.{}, and 11.8 is the oldest that will do", version / 1000, version % 1000 / 10);
  if (not loaded.why.empty()) loaded.library.reset();
  return loaded;
}

Companion companion(std::string name, std::initializer_list<const char*> files, const char* function, std::size_t oldest, std::string (*version_of)(void* function, std::size_t* number)) {
  Companion found{.name = std::move(name), .version = {}, .reason = {}};
  void* handle = open_first(files, &found.reason);
  if (handle == nullptr) return found;
  found.reason.clear();
  void* symbol = dlsym(handle, function);
  std::size_t number = 0;
  const std::string version = symbol == nullptr ? "" : version_of(symbol, &number);
  if (symbol == nullptr) found.reason = fmt::format("it has no {}", function);
  else if (number < oldest) found.reason = fmt::format("{} is too old", version);
  else found.version = version;
  return found;
}

std::string version_text(std::size_t number) { return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100); }

std::string returned_version(void* function, std::size_t* number) {
  *number = reinterpret_cast<std::size_t (*)()>(function)();
  return version_text(*number);
}

std::string written_version(void* function, std::size_t* number) {
  int version = 0;
  if (reinterpret_cast<int (*)(int*)>(function)(&version) == 0) *number = static_cast<std::size_t>(version);
  return version_text(*number);
}

}  // namespace

std::string Library::text(Result error) const {
  const char *name = nullptr, *words = nullptr;
  if (error_name(error, &name) != 0 or name == nullptr) name = "unknown error";
  if (error_string(error, &words) != 0 or words == nullptr) words = "";
  return fmt::format("{} ({}): {}", name, error, words);
}

std::unique_ptr<Library> open_library(const std::string& file, std::string* why) {
  void* handle = open_first({file.c_str()}, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
#define HONE_CUDA_FUNCTION(symbol, name, arguments)                                        \
  library->name = reinterpret_cast<decltype(library->name)>(dlsym(handle, #symbol));       \
  if (library->name == nullptr) return *why = file + " has no " #symbol, nullptr;
  HONE_CUDA_FUNCTIONS(HONE_CUDA_FUNCTION)
#undef HONE_CUDA_FUNCTION
  return library;
}

const Library* library(std::string* why) {
  static const Loaded loaded = load();
  if (loaded.library == nullptr and why != nullptr) *why = loaded.why;
  return loaded.library.get();
}

std::vector<Gpu> gpus(std::string* why) {
  const Library* cuda = library(why);
  std::vector<Gpu> found;
  int count = 0;
  if (cuda == nullptr) return found;
  if (const Result error = cuda->device_count(&count); error != 0 and why != nullptr) *why = cuda->text(error);
  for (int i = 0; i < count; ++i) {
    DeviceNumber device = 0;
    char name[256] = "";
    Gpu gpu;
    std::size_t memory = 0;
    const bool answers = cuda->device_get(&device, i) == 0 and cuda->device_name(name, sizeof(name), device) == 0 and cuda->device_attribute(&gpu.major, kComputeMajor, device) == 0 and
                         cuda->device_attribute(&gpu.minor, kComputeMinor, device) == 0 and cuda->device_memory(&memory, device) == 0;
    gpu.name = answers ? printable(name) : "a GPU that does not answer";
    gpu.memory = memory;
    found.push_back(std::move(gpu));
  }
  if (found.empty() and why != nullptr and why->empty()) *why = "the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  return found;
}

std::vector<Companion> companions() {
  return {companion("cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLtGetVersion", 120000, returned_version),
          companion("cuDNN", {"libcudnn.so.9"}, "cudnnGetVersion", 90000, returned_version),
          companion("NCCL", {"libnccl.so.2"}, "ncclGetVersion", 21800, written_version)};
}

}  // namespace hone::cuda
