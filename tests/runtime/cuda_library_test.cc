// What can be known of the cuda driver without a GPU: which code a GPU gets, that the driver library has what is asked of it, and what is said where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/device/cuda_device.h"
#include "runtime/device/cuda_library.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

plan::Program program_with(const std::vector<std::string>& levels) {
  plan::Program program;
  for (const std::string& level : levels) program.code.emplace_back(level, std::vector<std::byte>());
  return program;
}

std::string chosen(const std::vector<std::string>& levels, int capability) {
  const plan::Program program = program_with(levels);
  const auto* code = choose_gpu_code(program, capability);
  return code == nullptr ? "none" : code->first;
}

TEST(CudaCode, IsMachineCodeForJustThatGpuOrTheHighestPtxNotAboveIt) {
  const std::vector<std::string> levels = {"sm_80", "sm_80.cubin", "sm_90", "sm_90.cubin"};
  EXPECT_EQ(chosen(levels, 80), "sm_80.cubin");
  EXPECT_EQ(chosen(levels, 86), "sm_80");
  EXPECT_EQ(chosen(levels, 90), "sm_90.cubin");
  EXPECT_EQ(chosen(levels, 100), "sm_90");
  EXPECT_EQ(chosen(levels, 120), "sm_90");
  EXPECT_EQ(chosen(levels, 75), "none");
  EXPECT_EQ(chosen({}, 90), "none");
  EXPECT_EQ(chosen({"sm_", "sm_x", "sm_9x", "x86-64-v3", "sm_86"}, 90), "sm_86");
}

TEST(CudaLibrary, OneThatIsNotThereIsNamed) {
  std::string why;
  EXPECT_EQ(cuda::open_library("libcuda_of_nobody.so.1", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("libcuda_of_nobody.so.1"));
}

TEST(CudaLibrary, OneThatLacksAFunctionIsRefused) {
  std::string why;
  EXPECT_EQ(cuda::open_library("libm.so.6", &why), nullptr);
  EXPECT_THAT(why, HasSubstr("libm.so.6 has no cuInit"));
}

/// The toolkit's stand-in has all names of the driver library, and does nothing.
TEST(CudaLibrary, HasAllFunctionsUnderTheNamesThatAreAskedFor) {
  std::string stub;
  for (const char* file : {"/usr/local/cuda/lib64/stubs/libcuda.so", "/usr/local/cuda/lib/stubs/libcuda.so"})
    if (std::filesystem::exists(file)) stub = file;
  if (stub.empty()) GTEST_SKIP() << "no CUDA toolkit in /usr/local/cuda, which has a stand-in for the driver library";
  std::string why;
  const std::unique_ptr<cuda::Library> library = cuda::open_library(stub, &why);
  ASSERT_NE(library, nullptr) << why;
  EXPECT_NE(library->init(0), 0) << "the stand-in refuses to work";
}

TEST(CudaLibrary, WithoutGpusItIsSaidWhy) {
  std::string why;
  const std::vector<cuda::Gpu> gpus = cuda::gpus(&why);
  EXPECT_EQ(gpus.empty(), not why.empty()) << why;
}

TEST(CudaLibrary, CompanionsHaveAVersionOrAReason) {
  const std::vector<cuda::Companion> companions = cuda::companions();
  ASSERT_EQ(companions.size(), 3U);
  for (const cuda::Companion& companion : companions) EXPECT_NE(companion.version.empty(), companion.reason.empty()) << companion.name;
}

}  // namespace
}  // namespace hone
