// The kernels of small recorded models assemble for every kind of GPU; what ptxas refuses is refused in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/ptxas.h"
#include "base/check.h"
#include "tests/golden/ptx.h"

namespace hone::test {
namespace {

TEST(Ptx, ReleasesOfPtxasAreRead) {
  EXPECT_EQ(ptxas_release("ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.88\n"), 1300);
  EXPECT_EQ(ptxas_release("release 11.8, V11.8.89"), 1108);
  for (const char* text : {"", "release ", "release x", "release 13", "release 13.", "release 99999.1", "release -1.0"}) EXPECT_EQ(ptxas_release(text), 0) << text;
}

TEST(Ptx, AssemblesForEveryGpu) { expect_assembles("keras_fashion_mlp", Spills::kNone); }

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
