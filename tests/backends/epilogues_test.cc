// Which pairs of a product and a kernel a library may do in one call, and what becomes of the schedule.
#include "backends/epilogues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/recompute.h"
#include "backends/schedule.h"
#include "ir/parse.h"

namespace hone {
namespace {

using plan::LibraryStep;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kProductOfRows = "%y: f32[N,8] = matmul(%x, %w) {row=\"cublaslt.matmul\"}\n";

struct Paired {
  plan::Entry entry;
  StepNodes nodes;
  std::vector<std::string> lines;
};

Paired paired(const std::string& body) {
  const std::string inputs = "input %x: f32[N,4], input %w: f32[4,8], input %b: f32[8], input %dy: f32[N,8], input %rows: f32[N,1], input %w3: f32[2,4,8], input %x3: f32[2,N,4], input %xh: bf16[N,4], input %wh: bf16[4,8]";
  const Graph graph = parse_graph("graph g(" + inputs + ") {\n" + body + "}\n", "test");
  KernelSet kernels;
  PersistentSet persistents;
  const PassChoice passes;
  const DescribeFeed describe = [](const Graph& g, const Input& input) {
    plan::Feed feed;
    feed.name = input.name;
    feed.dtype = g.type(input.value).dtype;
    feed.shape = g.type(input.value).shape;
    return feed;
  };
  ScheduledEntry made = schedule(fuse_and_recompute(graph, passes), kernels, persistents, passes, describe);
  Paired result{.entry = std::move(made.entry), .nodes = std::move(made.nodes), .lines = {}};
  result.lines = pair_epilogues(result.entry, kernels, &result.nodes);
  EXPECT_EQ(result.nodes.size(), result.entry.steps.size());
  return result;
}

const LibraryStep* joined(const plan::Entry& entry) {
  for (const plan::Step& step : entry.steps)
    if (const auto* library = std::get_if<LibraryStep>(&step.what); library != nullptr and library->epilogue) return library;
  return nullptr;
}

TEST(Epilogues, ABiasAndItsReluAreTheProducts) {
  for (const bool relu : {false, true}) {
    const Paired made = paired(std::string(kProductOfRows) + "%s: f32[N,8] = add(%b, %y)\n" + (relu ? "%z: f32[N,8] = relu(%s)\noutput \"z\" %z\n" : "output \"z\" %s\n"));
    ASSERT_THAT(made.entry.steps, SizeIs(1));
    EXPECT_THAT(made.nodes[0], SizeIs(relu ? 3 : 2)) << "the step is of all of them";
    const LibraryStep* library = joined(made.entry);
    ASSERT_NE(library, nullptr);
    const LibraryStep::Epilogue& epilogue = *library->epilogue;
    EXPECT_EQ(epilogue.row, "cublaslt.matmul_bias");
    EXPECT_EQ(epilogue.attributes.at("relu")[0], Dim(relu ? 1 : 0));
    ASSERT_THAT(epilogue.operands, SizeIs(3));
    EXPECT_EQ(made.entry.buffers[static_cast<std::size_t>(epilogue.operands[2])].index, 2U) << "the third feed is the bias";
    EXPECT_THAT(epilogue.results, ElementsAre(made.entry.results[0].buffer));
    ASSERT_THAT(made.lines, SizeIs(1));
    EXPECT_THAT(made.lines[0], HasSubstr("or both as cublaslt.matmul_bias"));
    EXPECT_EQ(made.entry.buffers[library->results[0]].last_step, 0U) << "what is handed on lives during the step";
  }
}

/// The sum is rounded when it is stored: a relu before or behind that is the same.
TEST(Epilogues, ARoundingOfTheSumIsTheStores) {
  const std::string product = "%y: f32[N,8] = matmul(%xh, %wh) {row=\"cublaslt.matmul\", to=f32}\n%s: f32[N,8] = add(%y, %b)\n";
  EXPECT_THAT(paired(product + "%h: bf16[N,8] = cast(%s) {to=bf16}\n%z: bf16[N,8] = relu(%h)\noutput \"z\" %z\n").lines, SizeIs(1));
  EXPECT_THAT(paired(product + "%h: f16[N,8] = cast(%s) {to=f16}\n%f: f32[N,8] = cast(%h) {to=f32}\n%z: f32[N,8] = relu(%f)\noutput \"z\" %z\n").lines, IsEmpty()) << "rounded, and stored as it is";
}

TEST(Epilogues, WhatIsNoBiasStaysAKernel) {
  const std::pair<const char*, const char*> cases[] = {
      {"another vector", "%z: f32[N,8] = add(%y, %rows)\noutput \"z\" %z\n"},
      {"another operation", "%z: f32[N,8] = mul(%y, %b)\noutput \"z\" %z\n"},
      {"a matrix", "%z: f32[N,8] = add(%y, %dy)\noutput \"z\" %z\n"},
      {"more than that", "%s: f32[N,8] = add(%y, %b)\n%z: f32[N,8] = exp(%s)\noutput \"z\" %z\n"},
      {"the product is wanted as it is", "%z: f32[N,8] = add(%y, %b)\noutput \"z\" %z\noutput \"y\" %y\n"},
      {"relu is not all", "%s: f32[N,8] = add(%y, %b)\n%z: f32[N,8] = relu(%s)\noutput \"z\" %z\noutput \"s\" %s\n"},
  };
  for (const auto& [why, rest] : cases) EXPECT_THAT(paired(kProductOfRows + std::string(rest)).lines, IsEmpty()) << why;
}

TEST(Epilogues, BatchesOfMatricesHaveNone) {
  EXPECT_THAT(paired("%y: f32[2,N,8] = matmul(%x3, %w3) {row=\"cublaslt.matmul\"}\n%z: f32[2,N,8] = add(%y, %b)\noutput \"z\" %z\n").lines, IsEmpty());
  EXPECT_THAT(paired("%y: f32[2,N,8] = matmul(%x3, %w) {row=\"cublaslt.matmul\"}\n%z: f32[2,N,8] = add(%y, %b)\noutput \"z\" %z\n").lines, SizeIs(1)) << "rows of one matrix";
}

TEST(Epilogues, AnotherLibrarysProductHasNone) { EXPECT_THAT(paired("%y: f32[N,8] = matmul(%x, %w) {row=\"onednn.matmul\"}\n%z: f32[N,8] = add(%y, %b)\noutput \"z\" %z\n").lines, IsEmpty()); }

/// Whichever of the two factors is dy, and whichever comes first.
TEST(Epilogues, TheGradientOfABiasIsSummedByTheProduct) {
  const std::string sum = "%db: f32[8] = reduce_sum(%dy) {axes=[0]}\n";
  const std::string of_second = "%dw: f32[4,8] = matmul(%x, %dy) {ta=true, row=\"cublaslt.matmul\"}\n", of_first = "%dw: f32[8,4] = matmul(%dy, %x) {ta=true, row=\"cublaslt.matmul\"}\n";
  const std::string outputs = "output \"db\" %db\noutput \"dw\" %dw\n";
  for (const auto& [body, of] : {std::pair(sum + of_second, 1), std::pair(of_second + sum, 1), std::pair(sum + of_first, 0)}) {
    const Paired made = paired(body + outputs);
    ASSERT_THAT(made.entry.steps, SizeIs(1)) << body;
    const LibraryStep* library = joined(made.entry);
    ASSERT_NE(library, nullptr) << body;
    EXPECT_EQ(library->epilogue->row, "cublaslt.matmul_bias_grad");
    EXPECT_EQ(library->epilogue->attributes.at("of")[0], Dim(of));
    EXPECT_EQ(library->epilogue->operands, library->operands);
    EXPECT_THAT(library->epilogue->results, ElementsAre(library->results[0], made.entry.results[0].buffer));
  }
}

TEST(Epilogues, AnotherSumStaysAKernel) {
  const std::string product = "%dw: f32[4,8] = matmul(%x, %dy) {ta=true, row=\"cublaslt.matmul\"}\noutput \"dw\" %dw\n";
  const std::pair<const char*, const char*> cases[] = {
      {"of the rows", "%s: f32[N] = reduce_sum(%dy) {axes=[1]}\noutput \"s\" %s\n"},
      {"of something else", "%s: f32[4] = reduce_sum(%x) {axes=[0]}\noutput \"s\" %s\n"},
      {"of squares", "%q: f32[N,8] = mul(%dy, %dy)\n%s: f32[8] = reduce_sum(%q) {axes=[0]}\noutput \"s\" %s\n"},
      {"the largest", "%s: f32[8] = reduce_max(%dy) {axes=[0]}\noutput \"s\" %s\n"},
      {"with more behind it", "%t: f32[8] = reduce_sum(%dy) {axes=[0]}\n%s: f32[8] = exp(%t)\noutput \"s\" %s\n"},
  };
  for (const auto& [why, sum] : cases) {
    const Paired made = paired(product + sum);
    const bool is_of_x = std::string_view(why) == "of something else";  // which is a bias's gradient of x's columns
    EXPECT_THAT(made.lines, SizeIs(is_of_x ? 1 : 0)) << why;
  }
}

}  // namespace
}  // namespace hone
