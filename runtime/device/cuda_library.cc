#include "runtime/device/cuda_library.h"

#include <fmt/format.h>

#include "base/text.h"
#include "runtime/device/cublaslt.h"
#include "runtime/device/cudnn.h"
#include "runtime/device/nccl.h"
#include "runtime/device/shared_library.h"

namespace hone::cuda {
namespace {

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

Gpu gpu_of(const Library& cuda, int number) {
  Gpu gpu;
  DeviceNumber device = 0;
  char name[256] = "";
  std::size_t memory = 0;
  int mode = 0;
  Result error = cuda.device_get(&device, number);
  const auto ask = [&](const auto& question) { error = error == 0 ? question() : error; };
  ask([&] { return cuda.device_name(name, sizeof(name), device); });
  ask([&] { return cuda.device_attribute(&gpu.major, kComputeMajor, device); });
  ask([&] { return cuda.device_attribute(&gpu.minor, kComputeMinor, device); });
  ask([&] { return cuda.device_attribute(&mode, kComputeMode, device); });
  ask([&] { return cuda.device_memory(&memory, device); });
  gpu.name = *name == '\0' ? "a GPU" : printable(name);
  gpu.memory = memory;
  if (error != 0) gpu.why_not = "it does not answer: " + cuda.text(error);
  else if (10 * gpu.major + gpu.minor < kOldestGpu) gpu.why_not = fmt::format("plans have code for sm_{} and later, and it is an sm_{}{}", kOldestGpu, gpu.major, gpu.minor);
  else if (mode == kProhibited) gpu.why_not = "its compute mode forbids all use; nvidia-smi --compute-mode 0 allows it again";
  return gpu;
}

template <typename Library>
Companion companion(std::string name, const Library* (*library)(std::string* why)) {
  Companion found{.name = std::move(name)};
  if (const Library* there = library(&found.reason)) found.version = there->version(), found.reason.clear();
  return found;
}

}  // namespace

std::string Library::text(Result error) const {
  const char *name = nullptr, *words = nullptr;
  if (error_name(error, &name) != 0 or name == nullptr) name = "unknown error";
  if (error_string(error, &words) != 0 or words == nullptr) words = "";
  return fmt::format("{} ({}): {}", name, error, words);
}

std::unique_ptr<Library> open_library(const std::string& file, std::string* why) {
  const char* const files[] = {file.c_str()};
  void* const handle = open_shared_library(files, why);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<Library>();
#define HONE_CUDA_FUNCTION(symbol, name, arguments)                                                     \
  library->name = reinterpret_cast<decltype(library->name)>(find_function(handle, file, #symbol, why)); \
  if (library->name == nullptr) return nullptr;
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
  return cuda == nullptr ? std::vector<Gpu>() : gpus(*cuda, why);
}

std::vector<Gpu> gpus(const Library& cuda, std::string* why) {
  std::vector<Gpu> found;
  int count = 0;
  if (const Result error = cuda.device_count(&count); error != 0 and why != nullptr) *why = cuda.text(error);
  for (int i = 0; i < count; ++i) found.push_back(gpu_of(cuda, i));
  if (found.empty() and why != nullptr and why->empty()) *why = "the NVIDIA driver sees no GPU (CUDA_VISIBLE_DEVICES may hide it)";
  return found;
}

std::vector<Companion> companions() {
  return {companion("cuBLASLt", cublaslt::library), companion("cuDNN", cudnn::library), companion("NCCL", nccl::library)};
}

}  // namespace hone::cuda
