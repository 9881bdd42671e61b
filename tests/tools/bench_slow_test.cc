// What must hold of the code of every network of hone-bench.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

TEST(HoneBench, NoKernelCallsLibm) {
  const TempFolder folder;
  std::istringstream list(run_well(folder.path(), "hone-bench --list").out);
  int networks = 0;
  for (std::string line; std::getline(list, line); ++networks) {
    const std::string name = line.substr(0, line.find(' '));
    run_well(folder.path(), "hone-bench --workload " + name + " --threads 1 --seconds 0.01 --warmup 0 --json --keep " + name);
    const std::string assembly = run_well(folder.path(), "hone-compile " + name + "/model.onnx --recipe " + name + "/train.toml --emit asm").out;
    std::set<std::string> called;
    std::istringstream words(assembly);
    for (std::string word, callee; words >> word;) {
      if ((word == "call" || word == "callq") && words >> callee) called.insert(callee);
    }
    called.erase("memset@PLT");  // how LLVM writes zeros
    EXPECT_THAT(called, testing::IsEmpty()) << name;
    EXPECT_NE(assembly.find("vfmadd"), std::string::npos) << "this is the code of " << name;
  }
  EXPECT_GE(networks, 11);
}

}  // namespace
}  // namespace hone::test
