// hone-compile --precision-report, as a user sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PrecisionReport, TrainsAndSaysWhatNeedsF32) {
  const TempFolder folder;
  write_mlp(folder);
  const std::string report = "hone-compile mlp.onnx -r train.toml --set train.precision=bf16 --precision-report";
  const ToolRun run = run_well(folder.path(), report + " --train x=x.npy,y=y.npy --steps 8 --tolerance 0.1");
  EXPECT_THAT(run.out, AllOf(HasSubstr("f32 ends with a loss of "), HasSubstr("nothing needs f32")));
  EXPECT_THAT(run_tool(folder.path(), report).err, HasSubstr("--precision-report trains, and has no data"));
  EXPECT_THAT(run_tool(folder.path(), "hone-compile mlp.onnx -r train.toml --precision-report --train x=x.npy,y=y.npy").err, HasSubstr("train.precision is f32 itself"));
  // Nothing is near enough: each choice is tried, and the exit code says so.
  const ToolRun far = run_tool(folder.path(), report + " --train x=x.npy,y=y.npy --steps 8 --tolerance 1e-9");
  EXPECT_EQ(far.exit, 8);
  EXPECT_THAT(far.out, AllOf(HasSubstr("with one node in f32 (train.keep_f32), the best first:"), HasSubstr("no choice of nodes")));
}

}  // namespace
}  // namespace hone::test
