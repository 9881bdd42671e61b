// Fusion: what becomes one kernel, what may not, and that the schedule follows.
#include "backends/fuse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "tests/backends/scheduled_case.h"

namespace hone {
namespace {

/// The groups in the order in which they run, each as its ops, joined by +; "" for reshapes, which are no work.
std::string group_names(const Graph& graph) {
  const Fusion fusion = fuse(graph);
  std::string text;
  for (const Group& group : fusion.groups) {
    std::string ops;
    for (const NodeId member : group.members) ops += (ops.empty() ? "" : "+") + std::string(fusion.graph.node(member).op->name);
    if (ops != "reshape") text += (text.empty() ? "" : " ") + ops;
  }
  verify(fusion.graph);
  return text;
}

std::string groups_of(const std::string& body) { return group_names(parse_graph("graph g(input %x: f32[N,8], input %b: f32[8]) {\n" + body + "}\n", "test")); }

TEST(Fuse, AChainIsOneKernel) {
  EXPECT_EQ(groups_of("%1: f32[N,8] = add(%x, %b)\n%2: f32[N,8] = relu(%1)\n%3: f32[N,8] = exp(%2)\noutput \"y\" %3\n"), "add+relu+exp");
}

TEST(Fuse, AReductionTakesWhatFeedsItAndWhatFollowsPerRow) {
  EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N] = reduce_sum(%1) {axes=[1]}\n%3: f32[N] = log(%2)\noutput \"y\" %3\n"), "exp+reduce_sum+log");
}

constexpr const char* kSoftmax =
    "%1: f32[N,1] = reduce_max(%x) {axes=[1], keep_dims=true}\n%2: f32[N,8] = sub(%x, %1)\n%3: f32[N,8] = exp(%2)\n"
    "%4: f32[N,1] = reduce_sum(%3) {axes=[1], keep_dims=true}\n%5: f32[N,8] = div(%3, %4)\noutput \"y\" %5\n";

TEST(Fuse, SoftmaxIsOneKernelOfThreePhases) {
  EXPECT_EQ(groups_of(kSoftmax), "reduce_max+sub+exp+reduce_sum+div");
  const Graph graph = parse_graph(std::string("graph g(input %x: f32[N,8], input %b: f32[8]) {\n") + kSoftmax + "}\n", "test");
  KernelSet kernels;
  EXPECT_EQ(scheduled(graph, kernels, {}).steps.size(), 1U);
  ASSERT_EQ(kernels.kernels().size(), 1U);
  EXPECT_EQ(kernels.kernels()[0].phases.size(), 3U) << print(kernels.kernels()[0]);
}

TEST(Fuse, RowsMaySeeEachOtherThroughReshapes) {
  EXPECT_EQ(groups_of("%1: f32[N] = reduce_max(%x) {axes=[1]}\n%2: f32[N,1] = reshape(%1) {shape=[N,1]}\n%3: f32[N,8] = sub(%x, %2)\noutput \"y\" %3\n"),
            "reduce_max+sub");
}

TEST(Fuse, ANodeThatSomebodyWaitsForRunsBeforeHim) {
  // %1 and %3 are one kernel, which must run before the matmul that reads %1.
  EXPECT_EQ(
      groups_of(
          "%1: f32[N,8] = exp(%x)\n%2: f32[8,8] = matmul(%1, %1) {ta=true, row=\"onednn.matmul\"}\n%3: f32[N,8] = neg(%1)\noutput \"a\" %2\noutput \"b\" %3\n"),
      "exp+neg matmul");
}

TEST(Fuse, NobodyWaitsForHimself) {
  // The matmul needs %1 and is needed by %3.
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[8,8]) {\n%1: f32[8,8] = exp(%x)\n%2: f32[8,8] = matmul(%1, %1) {row=\"onednn.matmul\"}\n"
                                    "%3: f32[8,8] = sub(%1, %2)\noutput \"y\" %3\n}\n",
                                    "test")),
            "exp matmul sub");
}

TEST(Fuse, WhatWouldBeWorkedOutAgainStaysApart) { EXPECT_EQ(groups_of("%1: f32[8] = exp(%b)\n%2: f32[N,8] = add(%x, %1)\noutput \"y\" %2\n"), "exp add"); }

TEST(Fuse, MovesAreIndices) {
  EXPECT_EQ(groups_of("%1: f32[8,N] = transpose(%x) {perm=[1,0]}\n%2: f32[2,N] = slice(%1) {starts=[1,0], sizes=[2,N], steps=[1,1]}\n%3: f32[2,N] = "
                      "neg(%2)\noutput \"y\" %3\n"),
            "transpose+slice+neg");
}

/// Each is read at two places, so that one kernel would have 2^12 of the first.
TEST(Fuse, ALongChainOfWhatIsReadAtTwoPlacesIsCut) {
  std::string chain = "%0: f32[4] = exp(%x)\n";
  for (int i = 1, size = 4; i <= 12; ++i) chain += fmt::format("%{}: f32[{}] = concat(%{}, %{}) {{axis=0}}\n", i, size *= 2, i - 1, i - 1);
  KernelSet kernels;
  const plan::Entry entry = scheduled(parse_graph("graph g(input %x: f32[4]) {\n" + chain + "output \"y\" %12\n}\n", "test"), kernels, {});
  EXPECT_LT(entry.steps.size(), 8U) << "hardly anything is fused";
  for (const Kernel& kernel : kernels.kernels()) EXPECT_LT(kernel.exprs.size(), 1000U) << print(kernel);
}

TEST(Fuse, WhatIsReadSeveralTimesIsTransposedOnce) {
  const auto spread = [](const std::string& permutation, const std::string& made, const std::string& copies) {
    return group_names(parse_graph("graph g(input %x: f32[N,64,25]) {\n%1: " + made + " = transpose(%x) {perm=" + permutation + "}\n%2: " + copies + " = broadcast_to(%1) {shape=" + copies.substr(3) + "}\n%3: " + copies + " = exp(%2)\noutput \"y\" %3\n}\n", "test"));
  };
  EXPECT_EQ(spread("[0,2,1]", "f32[N,25,64]", "f32[4,N,25,64]"), "transpose broadcast_to+exp");
  EXPECT_EQ(spread("[1,0,2]", "f32[64,N,25]", "f32[4,64,N,25]"), "transpose+broadcast_to+exp") << "neighbours stay neighbours";
  EXPECT_EQ(spread("[0,2,1]", "f32[N,25,64]", "f32[1,N,25,64]"), "transpose+broadcast_to+exp") << "each is read once";
}

TEST(Fuse, AProductReadsThroughViewsThatLeaveItsFactorsContiguous) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %q: f32[N,64,4,32], input %k: f32[N,4,64,32]) {\n%1: f32[N,4,64,32] = transpose(%q) {perm=[0,2,1,3]}\n"
                                    "%2: f32[N,4,64,64] = matmul(%1, %k) {tb=true}\noutput \"y\" %2\n}\n", "test")),
            "transpose+matmul");
  EXPECT_EQ(group_names(parse_graph("graph g(input %a: f32[N,64], input %b: f32[64,128]) {\n%1: f32[64,64] = slice(%b) {starts=[0,0], sizes=[64,64], steps=[1,2]}\n"
                                    "%2: f32[N,64] = matmul(%a, %1)\noutput \"y\" %2\n}\n", "test")),
            "slice matmul");
  EXPECT_EQ(group_names(parse_graph("graph g(input %a: f32[N,64], input %b: f32[64,64]) {\n%1: f32[N,64] = exp(%a)\n%2: f32[N,64] = matmul(%1, %b)\noutput \"y\" %2\n}\n", "test")),
            "exp matmul")
      << "an element of %a is a factor of 64 sums";
}

TEST(Fuse, AProductTakesWhatFollowsItAnElement) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %a: f32[N,64], input %b: f32[64,32], input %c: f32[32]) {\n%1: f32[N,32] = matmul(%a, %b)\n%2: f32[N,32] = add(%1, %c)\n"
                                    "%3: f32[N,32] = relu(%2)\noutput \"y\" %3\n}\n", "test")),
            "matmul+add+relu");
}

TEST(Fuse, WhoMakesThePartsOfAConcatPutsThemThere) {
  const std::string halves = "%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = neg(%x)\n";
  EXPECT_EQ(groups_of(halves + "%3: f32[N,16] = concat(%1, %2) {axis=1}\noutput \"y\" %3\n"), "exp+neg+concat");
  EXPECT_EQ(groups_of(halves + "%3: f32[N,8] = add(%1, %b)\n%4: f32[N,16] = concat(%2, %3) {axis=1}\noutput \"e\" %1\noutput \"y\" %4\n"), "exp+neg+add+concat");
  EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N,4] = slice(%x) {starts=[0,0], sizes=[N,4], steps=[1,1]}\n%3: f32[N,12] = concat(%1, %2) {axis=1}\noutput \"y\" %3\n"),
            "exp slice concat")
      << "of several shapes";
}

TEST(Fuse, PartsMayBeReshapedOnTheWay) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[N,2,4]) {\n%1: f32[N,4,2] = transpose(%x) {perm=[0,2,1]}\n%2: f32[N,8] = reshape(%1) {shape=[N,8]}\n"
      "%3: f32[N,4,2] = neg(%1)\n%4: f32[N,8] = reshape(%3) {shape=[N,8]}\n%5: f32[N,16] = concat(%2, %4) {axis=1}\noutput \"y\" %5\n}\n",
      "test");
  EXPECT_EQ(group_names(graph), "transpose+neg+concat");
  KernelSet kernels;
  (void)scheduled(graph, kernels, {});
  ASSERT_EQ(kernels.kernels().size(), 1U);
  const std::string text = print(kernels.kernels()[0]);
  EXPECT_NE(text.find("y1[i0, i1 * 2 + i2] = x0[i0, i2, i1]"), std::string::npos) << text;
  EXPECT_NE(text.find("y1[i0, i1 * 2 + i2 + 8] = -x0[i0, i2, i1]"), std::string::npos) << text;
}

TEST(Fuse, AProductIsStoredAsItIsTransposed) {
  constexpr const char* kGraph =
      "graph g(input %a: f32[N,4,64,32], input %b: f32[N,4,32,32]) {\n%1: f32[N,4,64,32] = matmul(%a, %b)\n%2: f32[N,64,4,32] = transpose(%1) {perm=[0,2,1,3]}\n"
      "output \"y\" %2\n}\n";
  const Graph graph = parse_graph(kGraph, "test");
  EXPECT_EQ(group_names(graph), "matmul+transpose");
  KernelSet kernels;
  (void)scheduled(graph, kernels, {});
  ASSERT_EQ(kernels.kernels().size(), 1U);
  EXPECT_NE(print(kernels.kernels()[0]).find("y2[i0, i2, i1, i3] = t0"), std::string::npos) << print(kernels.kernels()[0]);
  EXPECT_EQ(groups_of("%1: f32[N,8] = relu(%x)\n%2: f32[N] = reduce_sum(%1) {axes=[1]}\n%3: f32[8,N] = transpose(%1) {perm=[1,0]}\noutput \"s\" %2\noutput \"y\" %3\n"),
            "relu+reduce_sum transpose")
      << "of rows nothing is transposed";
}

TEST(Fuse, WhatIsReadOfAStoredProductIsLeftToItsReaders) {
  constexpr const char* kGraph =
      "graph g(input %x: f32[N,64], input %w: f32[64,64], input %g: f32[64]) {\n%1: f32[N,64] = matmul(%x, %w)\n%2: f32[N,64] = mul(%1, %g)\n%3: f32[N,64] = mul(%1, %x)\n"
      "%4: f32[N] = reduce_sum(%2) {axes=[1]}\n%5: f32[N] = reduce_max(%3) {axes=[1]}\noutput \"s\" %4\noutput \"m\" %5\n}\n";
  EXPECT_EQ(group_names(parse_graph(kGraph, "test")), "matmul mul+mul+reduce_sum+reduce_max") << "one tensor in memory instead of two, which is read once";
}

TEST(Fuse, WhatAKernelReadsStandsBeforeWhatItWrites) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[N,8], input %b: f32[8]) {\n%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = add(%1, %b)\noutput \"a\" %1\noutput \"b\" %2\n}\n", "test");
  const plan::Entry entry = scheduled(graph);
  ASSERT_EQ(entry.steps.size(), 1U);
  const auto& step = std::get<plan::KernelStep>(entry.steps[0].what);
  EXPECT_EQ(step.buffers.size(), 4U);
  EXPECT_EQ(step.read_only, 2U);
}

TEST(Fuse, SumsOverTheSameRowsAreTakenTogether) {
  EXPECT_EQ(groups_of("%1: f32[N] = reduce_sum(%x) {axes=[1]}\n%2: f32[N] = reduce_max(%x) {axes=[1]}\noutput \"a\" %1\noutput \"b\" %2\n"),
            "reduce_sum+reduce_max");
  EXPECT_EQ(groups_of("%1: f32[N] = reduce_sum(%x) {axes=[1]}\n%2: f32[8] = reduce_sum(%x) {axes=[0]}\noutput \"a\" %1\noutput \"b\" %2\n"),
            "reduce_sum reduce_sum");
  EXPECT_EQ(groups_of("%1: f32[N,8] = mul(%x, %x)\n%2: f32[N] = reduce_sum(%1) {axes=[1]}\n%3: f32[N] = reduce_sum(%x) {axes=[1]}\noutput \"a\" %2\noutput \"b\" %3\n"), "mul+reduce_sum+reduce_sum")
      << "of what is worked out of the same tensor";
}

TEST(Fuse, FewLongRowsAreNotWalkedTwiceInOneKernel) {
  const std::string body = "%1: f32[4,1] = reduce_max(%x) {axes=[1], keep_dims=true}\n%2: f32[4,N] = sub(%x, %1)\noutput \"y\" %2\n";
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[4,N]) {\n" + body + "}\n", "test")), "reduce_max sub");
}

TEST(Fuse, IndependentNodesStayApart) { EXPECT_EQ(groups_of("%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = neg(%x)\noutput \"a\" %1\noutput \"b\" %2\n"), "exp neg"); }

TEST(Fuse, AMemberThatIsReadOutsideIsStoredToo) {
  const Graph graph =
      parse_graph("graph g(input %x: f32[N,8]) {\n%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = neg(%1)\noutput \"a\" %1\noutput \"b\" %2\n}\n", "test");
  KernelSet kernels;
  const plan::Entry entry = scheduled(graph, kernels, {});
  ASSERT_EQ(entry.steps.size(), 1U);
  ASSERT_EQ(kernels.kernels().size(), 1U);
  EXPECT_EQ(print(kernels.kernels()[0]).find("y1[") != std::string::npos and print(kernels.kernels()[0]).find("y2[") != std::string::npos, true)
      << print(kernels.kernels()[0]);
}

TEST(Fuse, AResultThatNobodyReadsIsNotStored) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[N,8,16]) {\n%1: f32[N,4,16], %2: i32[N,4,16] = max_pool(%x) {kernel=[2], strides=[2], dilations=[1], pads_begin=[0], pads_end=[0], spatial=[4], "
      "channels_last=true}\noutput \"y\" %1\n}\n",
      "test");
  KernelSet kernels;
  EXPECT_EQ(scheduled(graph, kernels, {}).steps.size(), 1U);
  ASSERT_EQ(kernels.kernels().size(), 1U);
  EXPECT_EQ(kernels.kernels()[0].buffers.size(), 2U) << print(kernels.kernels()[0]);
}

TEST(Fuse, AStateIsUpdatedInPlaceByTheKernelThatReadsIt) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[4] = mul(%x, %w)\n%2: f32[4] = sub(%w, %1)\noutput \"y\" %1\nalias %w <- %2\n}\n",
      "test");
  const plan::Entry entry = scheduled(graph);
  EXPECT_EQ(entry.steps.size(), 1U) << "no copy at the end";
}

constexpr const char* kUpdateBehindItsProduct =
    "graph g(input %x: f32[N,8], input %d: f32[N,4], weight %w: f32[8,4] = elided) {\n%1: f32[N,8] = matmul(%d, %w) {tb=true}\n%2: f32[8,4] = matmul(%x, %d) {ta=true}\n"
    "%3: f32[N,8] = exp(%1)\n%4: f32[N,8] = reduce_max(%3) {axes=[1], keep_dims=true}\n// update\n%5: f32[8,4] = sub(%w, %2)\noutput \"y\" %3\nalias %w <- %5\n}\n";

TEST(Fuse, AnUpdateRunsAsSoonAsItsGradientIsThereAndTheOldWeightIsNoLongerRead) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[N,8], weight %a: f32[8,8] = elided, weight %b: f32[8,8] = elided) {\n// backward\n"
                                    "%1: f32[8,8] = matmul(%x, %x) {ta=true, row=\"onednn.matmul\"}\n%2: f32[N,8] = matmul(%x, %a) {row=\"onednn.matmul\"}\n"
                                    "%3: f32[8,8] = matmul(%2, %2) {ta=true, row=\"onednn.matmul\"}\n// update\n%4: f32[8,8] = sub(%a, %1)\n%5: f32[8,8] = sub(%b, %3)\n"
                                    "alias %a <- %4\nalias %b <- %5\n}\n", "test")),
            "matmul matmul sub matmul sub");
}

TEST(Fuse, AnExchangeBeginsAsSoonAsItsGradientIsThereAndUpdatesStayAtTheEnd) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[N,8], weight %a: f32[8,8] = elided, weight %b: f32[8,8] = elided) {\n// backward\n"
                                    "%1: f32[8,8] = matmul(%x, %x) {ta=true, row=\"onednn.matmul\"}\n%2: f32[N,8] = matmul(%x, %a) {row=\"onednn.matmul\"}\n"
                                    "%3: f32[8,8] = matmul(%2, %2) {ta=true, row=\"onednn.matmul\"}\n// all_reduce\n%4: f32[8,8] = all_reduce(%1) {bucket=2}\n%5: f32[8,8] = all_reduce(%3) {bucket=3}\n"
                                    "// update\n%6: f32[8,8] = sub(%a, %4)\n%7: f32[8,8] = sub(%b, %5)\nalias %a <- %6\nalias %b <- %7\n}\n", "test")),
            "matmul all_reduce matmul matmul all_reduce sub sub");
}

/// What it is a view of may have other readers than the exchange, which want it as it was.
TEST(Schedule, WhatOthersReadIsExchangedAsACopy) {
  for (const bool is_read_by_others : {true, false}) {
    const std::string other = is_read_by_others ? "%1" : "%0";
    KernelSet kernels;
    const plan::Entry entry = scheduled(parse_graph("graph g(input %x: f32[N,8]) {\n// backward\n%0: f32[8,8] = matmul(%x, %x) {ta=true, row=\"onednn.matmul\"}\n%1: f32[8,8] = matmul(%0, %0) {row=\"onednn.matmul\"}\n%2: f32[64] = reshape(%1) {shape=[64]}\n"
                                                    "// all_reduce\n%3: f32[64] = all_reduce(%2) {bucket=2}\n// backward\n%4: f32[8,8] = matmul(" + other + ", %0) {row=\"onednn.matmul\"}\noutput \"a\" %3\noutput \"b\" %4\n}\n", "test"), kernels, {}, Exchange::kAll);
    EXPECT_EQ(std::ranges::count_if(entry.steps, [](const plan::Step& step) { return std::holds_alternative<plan::CopyStep>(step.what); }), is_read_by_others ? 1 : 0);
  }
}

TEST(Fuse, ExchangesKeepTheirOrder) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[N,8]) {\n// backward\n"
                                    "%1: f32[8,8] = matmul(%x, %x) {ta=true, row=\"onednn.matmul\"}\n%2: f32[8,8] = matmul(%1, %1) {ta=true, row=\"onednn.matmul\"}\n"
                                    "// all_reduce\n%3: f32[8,8] = all_reduce(%2) {bucket=2}\n%4: f32[8,8] = all_reduce(%1) {bucket=3}\noutput \"a\" %3\noutput \"b\" %4\n}\n", "test")),
            "matmul matmul all_reduce all_reduce");
}

TEST(Fuse, TheUpdateOfAWeightIsOneKernelWithItsGradient) {
  EXPECT_EQ(group_names(parse_graph("graph g(input %x: f32[N,512], input %d: f32[N,1024], weight %w: f32[512,1024] = elided) {\n// backward\n"
                                    "%1: f32[512,1024] = matmul(%x, %d) {ta=true}\n// update\n%2: f32[512,1024] = sub(%w, %1)\nalias %w <- %2\n}\n",
                                    "test")),
            "matmul+sub");
}

TEST(Fuse, AStateThatIsReadLaterIsCopiedAtTheEnd) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[4] = sub(%w, %x)\n%2: f32[] = reduce_sum(%w) {axes=[0]}\noutput \"y\" %2\nalias "
      "%w <- %1\n}\n",
      "test");
  const plan::Entry entry = scheduled(graph);
  ASSERT_EQ(entry.steps.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<plan::CopyStep>(entry.steps.back().what));
}

TEST(Fuse, AStateThatItsUpdateReadsThroughAViewIsCopiedAtTheEnd) {
  const Graph graph = parse_graph(
      "graph g(input %a: f32[4], input %b: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[1,4] = reshape(%w) {shape=[1,4]}\n%2: f32[1,1] = slice(%1) {sizes=[1,1], starts=[0,0], steps=[1,1]}\n"
      "%3: f32[] = reduce_sum(%b) {axes=[0]}\n%4: f32[] = reshape(%2)\n%5: f32[] = mul(%4, %4)\n%6: f32[] = add(%3, %5)\n%7: bool[] = is_finite(%6)\n%8: f32[4] = where(%7, %a, %w)\n"
      "%9: f32[] = acosh(%4)\noutput \"y\" %9\nalias %w <- %8\n}\n",
      "test");
  const plan::Entry entry = scheduled(graph);
  const auto* update = std::get_if<plan::CopyStep>(&entry.steps.back().what);
  ASSERT_NE(update, nullptr) << "the kernel would read what it has written";
  EXPECT_EQ(entry.buffers[update->to].storage, plan::Buffer::Storage::kPersistent);
}

TEST(Fuse, WhatAStateWasBeforeTheStepIsCopiedBeforeItIsOverwritten) {
  const Graph graph = parse_graph(
      "graph g(input %x: f32[4], weight %w: f32[4] = [1, 2, 3, 4]) {\n%1: f32[4] = sub(%w, %x)\n%2: f32[2,2] = reshape(%w) {shape=[2,2]}\noutput \"y\" "
      "%2\nalias %w <- %1\n}\n",
      "test");
  const plan::Entry entry = scheduled(graph);
  ASSERT_EQ(entry.steps.size(), 3U) << "the kernel, then two copies";
  EXPECT_EQ(std::get<plan::CopyStep>(entry.steps[1].what).to, entry.results[0].buffer);
  EXPECT_EQ(entry.buffers[std::get<plan::CopyStep>(entry.steps[2].what).to].storage, plan::Buffer::Storage::kPersistent);
}

TEST(Fuse, StatesThatChangePlacesAreCopiedFirst) {
  const Graph graph = parse_graph("graph g(state %a: f32[2] = [1, 2], state %b: f32[2] = [3, 4]) {\nalias %a <- %b\nalias %b <- %a\n}\n", "test");
  const plan::Entry entry = scheduled(graph);
  ASSERT_EQ(entry.steps.size(), 4U);
  for (const std::size_t i : {0, 1}) EXPECT_EQ(entry.buffers[std::get<plan::CopyStep>(entry.steps[i].what).to].storage, plan::Buffer::Storage::kArena);
}

TEST(Fuse, ACheapValueIsWorkedOutAgainInTheBackwardPass) {
  const Fusion fusion = fuse_and_recompute(
      parse_graph("graph g(input %x: f32[8,8]) {\n%1: f32[8,8] = neg(%x)\n%2: f32[8,8] = exp(%1)\n%3: f32[8,8] = matmul(%2, %2) {row=\"onednn.matmul\"}\n"
                  "// backward\n%4: f32[8,8] = mul(%3, %1)\noutput \"y\" %4\n}\n",
                  "test"),
      {});
  ASSERT_EQ(fusion.recomputed.size(), 1U);
  EXPECT_TRUE(fusion.recomputed[0].starts_with("neg ")) << fusion.recomputed[0];
  EXPECT_EQ(fusion.graph.node_count(), 5U);
  EXPECT_EQ(fusion.groups.size(), 3U);
}

TEST(Fuse, WithoutItEachNodeIsAKernel) {
  const Graph graph = parse_graph("graph g(input %x: f32[N,8]) {\n%1: f32[N,8] = exp(%x)\n%2: f32[N,8] = relu(%1)\noutput \"y\" %2\n}\n", "test");
  EXPECT_EQ(scheduled(graph).steps.size(), 1U);
  EXPECT_EQ(scheduled(graph, PassChoice("none")).steps.size(), 2U);
}

}  // namespace
}  // namespace hone
