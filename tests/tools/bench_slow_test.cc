// What must hold of the code of every network of hone-bench.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What assembly calls, or jumps to instead of calling it and returning. Labels that begin with .L are the function's own, and so is what a table says.
std::set<std::string> called_by(const std::string& assembly) {
  std::set<std::string> called;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string instruction, target;
    if (not line.starts_with('\t') or not(words >> instruction >> target)) continue;
    const bool jumps = instruction.starts_with('j') and not target.starts_with(".L") and not target.starts_with("*%");
    if (jumps or instruction.starts_with("call")) called.insert(target);
  }
  return called;
}

TEST(CalledBy, SeesCallsAndJumpsOutOfTheFunction) {
  const std::string code = "map:   # @map\n\tjmp\t.LBB0_1\n\tjmpq\t*%rax\n\tcallq\texpf@PLT\n\tje\ttanhf@PLT # TAILCALL\n\tjmp\terff@PLT  # TAILCALL\n\tcallq\t*%rcx\n\tvaddps\t%ymm0, %ymm1, %ymm2\n";
  EXPECT_THAT(called_by(code), ElementsAre("*%rcx", "erff@PLT", "expf@PLT", "tanhf@PLT"));
}

TEST(HoneBench, NoKernelCallsLibm) {
  const TempFolder folder;
  std::istringstream list(run_well(folder.path(), "hone-bench --list").out);
  int networks = 0;
  for (std::string line; std::getline(list, line); ++networks) {
    const std::string name = line.substr(0, line.find(' '));
    run_well(folder.path(), "hone-bench --workload " + name + " --threads 1 --seconds 0.01 --warmup 0 --json --keep " + name);
    const std::string both = run_well(folder.path(), "hone-compile " + name + "/model.onnx --recipe " + name + "/train.toml --levels x86-64-v3,x86-64-v4 --emit asm").out;
    const std::size_t second = both.find("# code for x86-64-v4");
    ASSERT_NE(second, std::string::npos);
    for (const std::string& assembly : {both.substr(0, second), both.substr(second)}) {
      std::set<std::string> called = called_by(assembly);
      for (const char* of_memory : {"memset@PLT", "memcpy@PLT"}) called.erase(of_memory);  // how LLVM writes zeros, and rows of sums that nothing else is done to
      EXPECT_THAT(called, IsEmpty()) << name << ": " << assembly.substr(0, assembly.find('\n'));
    }
    EXPECT_THAT(both.substr(0, second), HasSubstr("vfmadd")) << "this is the code of " << name;
    EXPECT_THAT(both.substr(second), AllOf(HasSubstr("vfmadd"), HasSubstr("%zmm"))) << "this is the code of " << name;
  }
  EXPECT_GE(networks, 11);
}

}  // namespace
}  // namespace hone::test
