// The .hir text form: what print writes, parse_graph reads back; what is wrong is explained with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ir/ops/ops.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace hone {
namespace {

using testing::HasSubstr;

const Dim kBatch = Dim::symbol("N");

void expect_unchanged(const std::string& text) { EXPECT_EQ(print(parse_graph(text)), text); }

std::string parse_error_of(std::string_view text) {
  try {
    parse_graph(text, "bad.hir");
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

/// The error for one statement in a graph of %x: f32[N,4] and %i: i64[N].
std::string statement_error(const std::string& statement) { return parse_error_of("graph g(input %x: f32[N,4], input %i: i64[N]) {\n" + statement + "\n}\n"); }

TEST(Text, WholeTrainingStep) {
  expect_unchanged(R"(graph main(
  input %image: f32[N,784],
  input %label: i64[N] in [0, 10),
  weight %fc1.weight: f32[784,10] = elided,
  state %step: f64[] = 0 "the step",
  constant %0: f32[] = 0.1) {
  %h: f32[N,10] = matmul(%image, %fc1.weight)  // at "fc1/MatMul" of "fc1"
  // loss
  %1: bool[N,10] = one_hot(%label) {shape=[N,10]}
  %2: f32[N,10] = cast(%1) {to=f32}
  %3: f32[N,10] = sub(%h, %2)
  // backward
  %4: f32[784,10] = matmul(%image, %3) {ta=true}  // at "fc1/MatMul" from "gradient of"
  // all_reduce
  %5: f32[784,10] = all_reduce(%4)
  // update
  %6: f32[784,10] = mul(%5, %0)
  %7: f32[784,10] = sub(%fc1.weight, %6)  // from "update of \"w\""
  output "logits" %h
  alias %fc1.weight <- %7
}
)");
}

TEST(Text, NoInputsNoNodes) { expect_unchanged("graph empty() {\n}\n"); }

TEST(Text, NamesThatNeedQuotes) {
  expect_unchanged(R"(graph "a b\n\x01"(
  input %"onnx::x-0": f32[N],
  input %"7": f32[N] "seven",
  input %/model/x: f32[N]) {
  %"\"": f32[N] = add(%"onnx::x-0", %"7")
  output "" %"\""
}
)");
}

TEST(Text, NamesMayBeginAsCommentsAndBlanksDo) {
  for (const std::string& name : {std::string("// not a comment"), std::string("  two blanks"), std::string("\\n"), std::string(100'000, '-')})
    expect_unchanged("graph main(\n  input %\"" + name + "\": f32[]) {\n  output \"" + name + "\" %\"" + name + "\"\n}\n");
}

TEST(Text, SmallTypes) {
  expect_unchanged(R"(graph g(
  input %x: f8e4m3fn[N],
  constant %a: f8e4m3fn[3] = [448, -0.001953125, nan],
  constant %b: f8e8m0[2] = [0.5, 1.7014118e+38],
  constant %c: f4e2m1[2] = [6, -0.5],
  constant %d: i4[2] = [-8, 7],
  constant %e: u2[4] = [0, 1, 2, 3]) {
  %y: f32[N] = cast(%x) {to=f32}
  %z: f8e5m2[N] = cast(%y) {saturate=true, to=f8e5m2}
}
)");
  EXPECT_THAT(parse_error_of("graph g(constant %c: i4[1] = [8]) {}"), HasSubstr("8"));
  EXPECT_THAT(parse_error_of("graph g(constant %c: u2[1] = [-1]) {}"), HasSubstr("-1"));
}

TEST(Text, NumbersReadBackBitForBit) {
  Graph graph;
  Builder b(graph);
  const std::vector<float> values = {0.1F, -0.0F, 1e-45F, std::numeric_limits<float>::max(), -std::numeric_limits<float>::infinity(), 1.0F / 3};
  const std::vector<double> doubles = {0.1, 5e-324, 1.0 / 3};
  const std::vector<std::int64_t> longs = {INT64_MIN, INT64_MAX};
  const std::vector<std::uint64_t> unsigned_longs = {UINT64_MAX};
  b.input(Role::kWeight, "f", {DType::kF32, {6}}, Tensor::of<float>({6}, values));
  b.input(Role::kWeight, "d", {DType::kF64, {3}}, Tensor::of<double>({3}, doubles));
  b.input(Role::kState, "l", {DType::kI64, {2}}, Tensor::of<std::int64_t>({2}, longs));
  b.input(Role::kState, "u", {DType::kU64, {1, 1}}, Tensor::of<std::uint64_t>({1, 1}, unsigned_longs));
  b.input(Role::kConstant, "h", {DType::kF16, {6}}, Tensor::of<float>({6}, values).cast(DType::kF16));
  b.input(Role::kConstant, "empty", {DType::kF32, {0}}, Tensor::zeros(DType::kF32, {0}));
  const Graph read = parse_graph(print(graph));
  EXPECT_EQ(print(read), print(graph));
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const Tensor &before = *graph.inputs()[i].data, &after = *read.inputs()[i].data;
    EXPECT_TRUE(std::ranges::equal(before.bytes(), after.bytes())) << graph.inputs()[i].name;
  }
}

TEST(Text, NanReadsBackAsNan) {
  const Graph graph = parse_graph("graph g(constant %c: f32[2] = [nan, -nan]) {\n}\n");
  EXPECT_TRUE(std::isnan(graph.inputs()[0].data->at(0)));
  EXPECT_TRUE(std::isnan(graph.inputs()[0].data->at(1)));
}

TEST(Text, MoreThan64ElementsAreElided) {
  Graph graph;
  Builder b(graph);
  b.input(Role::kWeight, "small", {DType::kF32, {64}}, Tensor::zeros(DType::kF32, {64}));
  b.input(Role::kWeight, "large", {DType::kF32, {65}}, Tensor::zeros(DType::kF32, {65}));
  const Graph read = parse_graph(print(graph));
  EXPECT_TRUE(read.inputs()[0].data);
  EXPECT_FALSE(read.inputs()[1].data);
  EXPECT_THAT(print(read), HasSubstr("weight %large: f32[65] = elided"));
}

TEST(Text, AmbiguousNamesBecomeNumbers) {
  Graph graph;
  Builder b(graph);
  const Val x = b.input(Role::kInput, "x", {DType::kF32, {kBatch}});
  const Val y = op::exp(x), z = op::exp(y);
  b.set_name(y, "same");
  b.set_name(z, "same");
  b.output("z", z);
  EXPECT_EQ(print(graph), "graph \"\"(\n  input %x: f32[N]) {\n  %0: f32[N] = exp(%x)\n  %1: f32[N] = exp(%0)\n  output \"z\" %1\n}\n");
  expect_unchanged(print(graph));
}

TEST(Text, EquationsAreNotedOnce) {
  const std::string text = R"(graph g(
  input %x: f32[N],
  input %y: f32[4*M]) {
  %0: f32[N] = add(%x, %y)
  equation 4*M = N
  output "z" %0
}
)";
  expect_unchanged(text);
  EXPECT_EQ(parse_graph(text).equations().size(), 1);
}

TEST(Text, AttributesOfEveryKind) {
  expect_unchanged(R"(graph g(
  input %x: f32[N,3,32]) {
  %0: f32[3,N,32] = transpose(%x) {perm=[1,0,2]}
  %1: f32[3*N,32] = reshape(%0) {shape=[3*N,32]}
  %2: f32[3*N] = reduce_sum(%1) {axes=[1]}
  %3: f64[3*N] = cast(%2) {to=f64}
  %4: i64[3*N] = argmax(%1) {axis=1}
  %5: f32[3*N,32] = exp(%1) {row="onednn \"eltwise\""}
  output "a" %3
  output "b" %4
}
)");
}

TEST(Text, AbsentOperandsAndManyResults) {
  expect_unchanged(R"(graph g(
  input %dw: f32[4],
  input %rate: f64[],
  input %step: f64[],
  weight %w: f32[4] = elided,
  state %v: f32[4] = elided,
  state %momentum: f32[4] = elided) {
  // update
  %0: f32[4], %1: f32[4], %2: f32[4] = rmsprop(%w, %dw, %rate, %step, %v, -, %momentum) {momentum=0.9}
  alias %w <- %0
  alias %v <- %1
  alias %momentum <- %2
}
)");
}

TEST(Text, TypesAndPlacesMayBeLeftOut) {
  const Graph graph = parse_graph("graph g(input %x: f32[N,4]) {  // a comment\n  // another one\n  %y = exp(%x)  // at most 5\n}\n", "t.hir");
  EXPECT_EQ(to_string(graph.type(graph.node(NodeId(0)).results[0])), "f32[N,4]");
  EXPECT_EQ(graph.node(NodeId(0)).loc.file, "t.hir");
  EXPECT_EQ(graph.node(NodeId(0)).loc.line, 3);
  EXPECT_EQ(graph.node(NodeId(0)).loc.node, "");
}

TEST(Text, ErrorsNameFileAndLine) { EXPECT_THAT(statement_error("%y = "), HasSubstr("error[HN-0111]: expected an op, found \"}\"\n  in bad.hir:3")); }

TEST(Text, ErrorsProposeNearNames) {
  EXPECT_THAT(statement_error("%y = matmull(%x, %x)"), HasSubstr("did you mean \"matmul\"?"));
  EXPECT_THAT(statement_error("%y = transpose(%x) {prm=[1,0]}"), HasSubstr("did you mean \"perm\"?"));
  EXPECT_THAT(statement_error("%output_0 = exp(%x)\n%z = exp(%output_1)"), HasSubstr("did you mean \"output_0\"?"));
  EXPECT_THAT(parse_error_of("graph g(input %x: f23[N]) {}"), HasSubstr("did you mean \"f32\"?"));
}

TEST(Text, WrongStatements) {
  const std::pair<const char*, const char*> kCases[] = {
      {"%y = exp(%z)", "\"z\" is not defined before this place"},
      {"%y = exp(%x)\n%y = exp(%x)", "\"y\" is defined twice"},
      {"%y = exp()", "exp: operand 0 (x) is missing"},
      {"%y = exp(-)", "exp: operand 0 (x) is missing"},
      {"%y = exp(%x, %x)", "exp takes 1 operands, found 2"},
      {"%y: f32[N] = exp(%x)", "exp gives f32[N,4], but the text says f32[N]"},
      {"%y, %z = exp(%x)", "exp has 1 results, found 2"},
      {"%y = transpose(%x) {perm=1}", "expected \"[\", found \"1}\""},
      {"%y = transpose(%x) {perm=[a]}", "expected an integer for perm, found \"a\""},
      {"%y = exp(%x) {ta=true}", "exp has no attribute \"ta\""},
      {"%y = exp(%x", "expected \",\" or \")\" after an operand, found \"}\""},
      {"%y = add(%x, %i)", "add: "},
      {"output \"o %x", "a text in quotes does not end on its line"},
      {"output \"\\q\" %x", "a backslash in quotes"},
      {"alias %x <- %i", "an alias of f32[N,4] cannot be replaced by i64[N]"},
      {"equation N + = M", "is not a size"},
      {"what", "expected a node (%name = ...)"},
      {"output \"o\" %x\noutput \"o\" %i", "V7: two outputs are named \"o\""},
      {"alias %x <- %x", "V8: an alias of what is neither a weight nor a state"},
  };
  for (const auto& [statement, message] : kCases) EXPECT_THAT(statement_error(statement), HasSubstr(message)) << statement;
}

TEST(Text, WrongInputs) {
  const std::pair<const char*, const char*> kCases[] = {
      {"graph g(", "expected \"input\", \"weight\", \"state\" or \"constant\", found the end of the text"},
      {"graph g(input x: f32[]) {}", "expected \"%\", found \"x: f32[]) {}\""},
      {"graph g(constant %c: f32[3] = [1, 2]) {}", "f32[3] needs 3 numbers, found 2"},
      {"graph g(constant %c: u8[] = 256) {}", "expected a number of type u8, found \"256\""},
      {"graph g(constant %c: i64[] = 1.5) {}", "expected a number of type i64, found \"1.5\""},
      {"graph g(constant %c: f32[N] = [1]) {}", "data of an input whose shape [N] is no number"},
      {"graph g(constant %c: f32[1000000000000] = [1]) {}", "needs 1000000000000 numbers, found 1"},
      {"graph g(input %x: f32[N], input %x: f32[N]) {}", "\"x\" is defined twice"},
      {"graph g(input %x: f32[N] in [0, 10)) {}", "V6: bounds of input \"x\", which is f32[N]"},
      {"graph g() {} graph h() {}", "expected nothing after the graph's end"},
      {"graph g(input %x: f32[((((1))))", "expected \",\" or \"]\" after a size"},
      {"", "expected \"graph\", found the end of the text"},
  };
  for (const auto& [text, message] : kCases) EXPECT_THAT(parse_error_of(text), HasSubstr(message)) << text;
}

TEST(Text, EveryPrefixIsAnErrorOrAGraph) {
  const std::string text = R"(graph main(
  input %image: f32[N,784] in [0, 10),
  constant %0: f32[2] = [1, 0.5] "c") {
  %h: f32[N,784], %"q\x20" = add(%image, %0) {ta=true}  // at "fc1/MatMul"
  output "logits" %h
  alias %image <- %h
}
)";
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_NE(parse_error_of(text.substr(0, size)), "no error") << size;
}

/// Whatever the text, the answer is a graph or an Error: never a mistake of Hone, never a crash.
TEST(Text, DamagedTextIsAnError) {
  const std::string text = R"(graph main(
  input %x: f32[N,3,8,8],
  input %label: i64[N] in [0, 10),
  weight %w: f32[4,3,3,3] = elided,
  constant %0: f32[2] = [1, 0.5] "c") {
  %y = conv(%x, %w) {dilations=[1,1], groups=1, pads_begin=[1,1], pads_end=[1,1], strides=[2,2]}  // at "conv"
  %p = transpose(%y) {perm=[0,2,3,1]}
  %r = reshape(%p) {shape=[16*N,4]}
  %s = reduce_sum(%r) {axes=[1], keep_dims=true}
  %c = concat(%r, %s) {axis=1}
  %m = softmax(%c) {axis=1}
  %i = argmax(%m) {axis=1}
  %g = gather(%r, %i) {axis=0}
  output "logits" %g
  equation N = M + 1
}
)";
  ASSERT_EQ(parse_error_of(text), "no error");
  std::uint32_t random = 1;
  const auto below = [&random](std::size_t limit) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % limit;
  };
  constexpr std::string_view kPieces[] = {"",   "-",  "9", "0", "[", "]", "(", ")", "{", "}", ",", "%", "\"", "=", "N", "1e9", "999999999999",
                                          "//", "\n", "x", " "};
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (std::size_t k = 0; k < 1 + below(3); ++k) damaged.replace(below(damaged.size()), below(3), kPieces[below(std::size(kPieces))]);
    try {
      parse_graph(damaged);
    } catch (const Error&) {  // as it should be
    } catch (const std::exception& error) { FAIL() << error.what() << "\n" << damaged; }
  }
}

}  // namespace
}  // namespace hone
