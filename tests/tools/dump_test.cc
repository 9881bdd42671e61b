// hone-dump of every kind of file, and what hone-run is linked with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Dump : public ::testing::Test {
 protected:
  Dump() {
    write_conv_plan(folder_);
    run_well(folder_.path(), "hone-compile conv.onnx --emit imported:conv.hir");
  }
  std::string dump(const std::string& arguments) const { return run_well(folder_.path(), "hone-dump " + arguments).out; }
  TempFolder folder_;
};

TEST_F(Dump, OfAModelIsItsGraph) { EXPECT_EQ(dump("conv.onnx"), folder_.read("conv.hir")); }

TEST_F(Dump, OfAHirFileIsTheSameText) { EXPECT_EQ(dump("conv.hir"), folder_.read("conv.hir")); }

TEST_F(Dump, OfAPlanSaysWhatIsInIt) {
  const std::string text = dump("conv.hone");
  EXPECT_THAT(text, StartsWith("plan of \"conv.onnx\""));
  EXPECT_THAT(text, HasSubstr("program cpu:"));
  for (const std::string entry : {"train_step", "eval_step", "predict"}) EXPECT_THAT(text, ContainsRegex("entry " + entry + ": [0-9]+ feeds"));
  EXPECT_THAT(text, ContainsRegex("weight \\[64,3\\] dense/kernel  trained"));
  EXPECT_THAT(text, ContainsRegex("state +\\[64,3\\] dense/kernel/m"));
  EXPECT_THAT(text, HasSubstr("\"batch_size\": 4"));
}

TEST_F(Dump, OfAPlanShowsEachStage) {
  EXPECT_EQ(dump("conv.hone --stage imported"), folder_.read("conv.hir"));
  EXPECT_THAT(dump("conv.hone --stage train_step"), HasSubstr("// backward"));
  EXPECT_THAT(dump("conv.hone --stage kernels"), StartsWith("kernel "));
}

TEST_F(Dump, AsDotIsAGraphOfGraphviz) {
  for (const std::string file : {"conv.onnx", "conv.hir", "conv.hone"}) {
    const std::string text = dump(file + " --as dot");
    EXPECT_THAT(text, StartsWith("digraph ")) << file;
    EXPECT_THAT(text, ContainsRegex("n[0-9]+ -> ")) << file;
    EXPECT_THAT(text, HasSubstr("dense/kernel")) << file;
    EXPECT_EQ(text.substr(text.size() - 2), "}\n") << file;
  }
}

/// Keras's table: conv 4*9+4, batch_norm 2*4 learned and 2*4 running, dense 64*3+3.
TEST_F(Dump, SummaryIsLaidOutAsKerasDoes) {
  for (const std::string file : {"conv.onnx", "conv.hir", "conv.hone"}) {
    const std::string text = dump(file + " --summary");
    EXPECT_THAT(text, StartsWith("Model: \"conv\"")) << file;
    EXPECT_THAT(text, ContainsRegex("Layer \\(type\\) +Output Shape +Param #"));
    EXPECT_THAT(text, ContainsRegex("image \\(input\\) +\\(None, 1, 8, 8\\) +0"));
    EXPECT_THAT(text, ContainsRegex("conv \\(conv\\) +\\(None, 4, 8, 8\\) +36"));
    EXPECT_THAT(text, ContainsRegex("batch_norm \\(batch_norm\\) +\\(None, 4, 8, 8\\) +16"));
    EXPECT_THAT(text, ContainsRegex("dense \\(matmul\\) +\\(None, 3\\) +192"));
    EXPECT_THAT(text, HasSubstr("\nTotal params: 251\nTrainable params: 243\nNon-trainable params: 8\n")) << file;
  }
}

TEST_F(Dump, TrainingGraphsPictureColorsItsParts) {
  EXPECT_THAT(dump("conv.hone --as dot --stage train_step"), HasSubstr("all_reduce"));
  EXPECT_THAT(dump("conv.hone --as dot --stage predict"), Not(HasSubstr("all_reduce")));
}

/// Standard output of a program of the system.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (pipe != nullptr)
    if (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe.get()); count > 0) text.append(buffer.data(), count);
    else break;
  return text;
}

TEST(HoneRun, LoadsNoCompilerLibrary) {
  const std::string libraries = output_of("ldd " HONE_BIN_DIR "/hone-run");
  ASSERT_THAT(libraries, HasSubstr("libc.so"));
  for (const std::string library : {"LLVM", "lld", "clang", "MLIR"}) EXPECT_THAT(libraries, Not(HasSubstr(library)));
  EXPECT_THAT(output_of("ldd " HONE_BIN_DIR "/hone-compile"), HasSubstr("LLVM")) << "the test looks for the right name";
}

TEST(HoneRun, HoldsNoCodeOfTheCompiler) {
  const std::string symbols = output_of("nm -C --defined-only " HONE_BIN_DIR "/hone-run 2>&1");
  if (symbols.find("hone::plan::load") == std::string::npos) GTEST_SKIP() << "this build has no symbols to look at, or there is no nm";
  const std::string compiler = output_of("nm -C --defined-only " HONE_BIN_DIR "/hone-compile 2>&1");
  for (const std::string name : {"hone::Graph::", "hone::Builder::", "hone::onnx::import_model", "hone::compile(", "hone::emit_", "llvm::"}) {
    EXPECT_THAT(symbols, Not(HasSubstr(name)));
    if (name != "llvm::") EXPECT_THAT(compiler, HasSubstr(name)) << "the test looks for the right name";
  }
}

}  // namespace
}  // namespace hone::test
