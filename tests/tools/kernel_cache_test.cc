// hone-compile --kernel-cache: the same plan, from code that an earlier run made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

TEST(KernelCache, HoldsWhatTheNextPlanIsMadeOf) {
  const TempFolder folder, cache;
  write_conv_net(folder);
  const std::string compile = "hone-compile conv.onnx -r train.toml --kernel-cache " + cache.path();
  run_well(folder.path(), compile + " -o first.hone");
  const std::vector<std::string> names = cache.names();
  EXPECT_GT(names.size(), 5u);
  run_well(folder.path(), compile + " -o second.hone");
  EXPECT_EQ(cache.names(), names);
  EXPECT_EQ(folder.read("first.hone"), folder.read("second.hone"));
  run_well(folder.path(), "HONE_KERNEL_CACHE= hone-compile conv.onnx -r train.toml -o third.hone");
  EXPECT_EQ(folder.read("first.hone"), folder.read("third.hone"));
}

TEST(KernelCache, MustBeAFolderThatCanBeMade) {
  const TempFolder folder;
  write_conv_net(folder);
  const ToolRun run = run_tool(folder.path(), "hone-compile conv.onnx -r train.toml --kernel-cache conv.onnx/cache -o plan.hone");
  EXPECT_EQ(run.exit, 7);
  EXPECT_THAT(run.err, HasSubstr("cannot make the folder conv.onnx"));
}

}  // namespace
}  // namespace hone::test
