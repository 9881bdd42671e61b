// The kernels of small recorded models assemble for every kind of GPU; what ptxas refuses is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "backends/cuda/registers.h"
#include "base/check.h"
#include "runtime/device/sum_kernel.h"
#include "tests/golden/ptx.h"

namespace hone::test {
namespace {

TEST(Ptx, ReleasesOfPtxasAreRead) {
  EXPECT_EQ(ptxas_release("ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\n"), 1300);
  EXPECT_EQ(ptxas_release("release 11.8, V11.8.89"), 1108);
  for (const char* text : {"", "release ", "release x", "release 13", "release 13.", "release 99999.1", "release -1.0"}) EXPECT_EQ(ptxas_release(text), 0) << text;
}

TEST(Ptx, AssemblesForEveryGpuWithoutSpills) { expect_assembles_without_spills("keras_fashion_mlp"); }

TEST(Ptx, SpillsAreRead) {
  const std::string report = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'exp_1' for 'sm_90'
ptxas info    : Function properties for exp_1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers
ptxas info    : Compiling entry function 'conv_2' for 'sm_90'
ptxas info    : Function properties for conv_2
    16 bytes stack frame, 24 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 16 bytes cumulative stack size
)";
  EXPECT_THAT(spilling_kernels(report), ::testing::ElementsAre("conv_2"));
  EXPECT_THAT(spilling_kernels(""), ::testing::IsEmpty());
}

TEST(Ptx, KernelsThatAreNamedAskForRegisters) {
  const std::string ptx = ".version 7.8\n.visible .entry a_1(\n\t.param .u64 p\n)\n.maxntid 256, 1, 1\n{\n\tret;\n}\n.visible .entry a_10(\n)\n.maxntid 64, 1, 1\n{\n\tret;\n}\n";
  EXPECT_EQ(with_blocks_at_a_time(ptx, {}), ptx);
  std::string expected = ptx;
  expected.insert(expected.find("\n{"), "\n.minnctapersm 2");
  EXPECT_EQ(with_blocks_at_a_time(ptx, {{"a_1", 2}, {"a", 1}, {"a_100", 1}}), expected);
  EXPECT_EQ(with_blocks_at_a_time("", {{"a", 1}}), "");
}

/// What adds up the gradients of replicas that share a GPU.
TEST(Ptx, SumsOverReplicasAssembleForEveryGpu) {
  const std::optional<std::string> ptxas = find_ptxas();
  if (not ptxas) GTEST_SKIP() << "no ptxas on PATH or in /usr/local/cuda: NVIDIA's CUDA toolkit has it";
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32, DType::kI64})
    for (const int terms : {2, 7}) {
      const std::string ptx = cuda::sum_ptx(dtype, terms, dtype == DType::kF32 ? terms : 1);
      for (const char* gpu : {"sm_80", "sm_100"}) EXPECT_THAT(assemble(*ptxas, ptx, gpu).report, ::testing::AllOf(::testing::HasSubstr(cuda::kSumKernel), ::testing::HasSubstr(" 0 bytes spill stores"))) << gpu << "\n" << ptx;
    }
}

TEST(Ptx, SaysWhatPtxasRefuses) {
  const std::optional<std::string> ptxas = find_ptxas();
  if (not ptxas) GTEST_SKIP() << "no ptxas on PATH or in /usr/local/cuda: NVIDIA's CUDA toolkit has it";
  try {
    (void)assemble(*ptxas, ".version 7.8\n.target sm_80\n.address_size 64\n.entry f() { add.f32 x; }\n", "sm_90");
    FAIL() << "nonsense assembles";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("sm_90"), ::testing::HasSubstr("line 4")));
  }
}

}  // namespace
}  // namespace hone::test
