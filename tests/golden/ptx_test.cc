// The kernels of small recorded models assemble for every kind of GPU; what ptxas refuses is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "base/check.h"
#include "tests/golden/ptx.h"

namespace hone::test {
namespace {

TEST(Ptx, AssemblesForEveryGpu) { expect_assembles("keras_fashion_mlp"); }

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
