// ONNX Runtime's fused operators (com.microsoft) against the ONNX nodes that they stand for.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

constexpr const char* kDomain = "com.microsoft";

TestModel with_input(std::vector<Extent> shape, const std::vector<std::pair<std::string, Tensor>>& initializers, std::int64_t opset = 20) {
  TestModel model(opset);
  model.input("x", std::move(shape)).output("y");
  for (const auto& [name, value] : initializers) model.initializer(name, value);
  return model;
}

TestNode fused(TestModel& model, const std::string& op, std::vector<std::string> inputs, std::vector<std::string> outputs = {"y"}) {
  TestNode node = model.node(op, std::move(inputs), std::move(outputs));
  node.proto().set_domain(kDomain);
  return node;
}

void expect_same(const TestModel& fused, const TestModel& plain, const Tensor& x) {
  const std::vector<double> got = values_of(fused.y(x)), wanted = values_of(plain.y(x));
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

TEST(Contrib, FusedMatMulTurnsAndScales) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({3, 2})}, {"half", f32({}, {0.5F})}};
  TestModel a = with_input({2, 2}, weights), b = with_input({2, 2}, weights);
  fused(a, "FusedMatMul", {"x", "w"}).set("transB", 1).set("alpha", 0.5);
  b.node("Transpose", {"w"}, {"t"}).set("perm", std::vector<std::int64_t>{1, 0});
  b.node("MatMul", {"x", "t"}, {"h"});
  b.node("Mul", {"h", "half"}, {"y"});
  expect_same(a, b, wavy({2, 2}));
}

TEST(Contrib, GelusTakeABias) {
  for (const auto& [op, form] : {std::pair{"Gelu", "none"}, {"BiasGelu", "none"}, {"FastGelu", "tanh"}}) {
    const bool with_bias = std::string(op) != "Gelu";
    TestModel a = with_input({2, 3}, {{"b", wavy({3})}}), b = with_input({2, 3}, {{"b", wavy({3})}});
    fused(a, op, with_bias ? std::vector<std::string>{"x", "b"} : std::vector<std::string>{"x"});
    b.node("Add", {"x", "b"}, {"sum"});
    b.node("Gelu", {with_bias ? "sum" : "x"}, {"y"}).set("approximate", form);
    expect_same(a, b, wavy({2, 3}));
  }
  TestModel quick = with_input({2}, {});
  fused(quick, "QuickGelu", {"x"}).set("alpha", 2.0);
  EXPECT_NEAR(values_of(quick.y(f32({2}, {1, -1})))[0], 1 / (1 + std::exp(-2.0)), 1e-6);
}

TEST(Contrib, SkipLayerNormalizationNormalizesASum) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"skip", f32({1, 2, 4}, {1, -2, 3, 0, 2, 2, -1, 5})}, {"gamma", wavy({4})}, {"beta", wavy({4})}, {"bias", f32({4}, {1, 0, 2, -1})}};
  TestModel a = with_input({1, 2, 4}, weights), b = with_input({1, 2, 4}, weights);
  fused(a, "SkipLayerNormalization", {"x", "skip", "gamma", "beta", "bias"}, {"z", "", "", "sum"}).set("epsilon", 1e-5);
  a.node("Add", {"z", "sum"}, {"y"});
  b.node("Add", {"x", "skip"}, {"s"});
  b.node("Add", {"s", "bias"}, {"sum"});
  b.node("LayerNormalization", {"sum", "gamma", "beta"}, {"z"}).set("epsilon", 1e-5);
  b.node("Add", {"z", "sum"}, {"y"});
  expect_same(a, b, wavy({1, 2, 4}));
}

TEST(Contrib, SimplifiedLayerNormalizationIsRms) {
  TestModel a = with_input({2, 4}, {{"gamma", wavy({4})}}, 23), b = with_input({2, 4}, {{"gamma", wavy({4})}}, 23);
  a.node("SimplifiedLayerNormalization", {"x", "gamma"}, {"y"}).set("epsilon", 1e-3);
  b.node("RMSNormalization", {"x", "gamma"}, {"y"}).set("epsilon", 1e-3);
  expect_same(a, b, wavy({2, 4}));
}

TEST(Contrib, FusedConvAddsAndActivates) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({2, 2, 1})}, {"b", wavy({2})}, {"z", wavy({1, 2, 3})}};
  TestModel a = with_input({1, 2, 3}, weights), b = with_input({1, 2, 3}, weights);
  fused(a, "FusedConv", {"x", "w", "b", "z"}).set("activation", "LeakyRelu").set("activation_params", std::vector<float>{0.25F});
  b.node("Conv", {"x", "w", "b"}, {"c"});
  b.node("Add", {"c", "z"}, {"s"});
  b.node("LeakyRelu", {"s"}, {"y"}).set("alpha", 0.25);
  expect_same(a, b, wavy({1, 2, 3}));
}

TEST(Contrib, FusedGemmActivates) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({3, 2})}, {"c", wavy({3})}};
  TestModel a = with_input({2, 2}, weights), b = with_input({2, 2}, weights);
  fused(a, "FusedGemm", {"x", "w", "c"}).set("transB", 1).set("activation", "Tanh");
  b.node("Gemm", {"x", "w", "c"}, {"h"}).set("transB", 1);
  b.node("Tanh", {"h"}, {"y"});
  expect_same(a, b, wavy({2, 2}));
}

/// x[1,3,4] attends to itself with two heads.
TEST(Contrib, AttentionIsOneOfPackedHeads) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({4, 12})}, {"b", wavy({12})}, {"mask", i64({1, 3}, {1, 1, 0})}, {"widths", ints({4, 4, 4})}, {"unseen", f32({1, 1, 1, 3}, {0, 0, -10000})}};
  const Tensor x = f32({1, 3, 4}, {0.1F, -0.2F, 0.3F, 0.05F, 0.2F, 0.1F, -0.1F, 0, -0.3F, 0.2F, 0.1F, 0.15F});
  TestModel packed = with_input({1, 3, 4}, weights, 23), apart = packed, plain = packed;
  fused(packed, "Attention", {"x", "w", "b", "mask"}).set("num_heads", 2);
  for (TestModel* model : {&apart, &plain}) {
    model->node("MatMul", {"x", "w"}, {"p"});
    model->node("Add", {"p", "b"}, {"pb"});
    model->node("Split", {model == &plain ? "pb" : "p", "widths"}, {"q", "k", "v"}).set("axis", -1);
  }
  fused(apart, "MultiHeadAttention", {"q", "k", "v", "b", "mask"}).set("num_heads", 2);
  plain.node("Attention", {"q", "k", "v", "unseen"}, {"y"}).set("q_num_heads", 2).set("kv_num_heads", 2);
  expect_same(packed, plain, x);
  expect_same(apart, plain, x);
}

/// Where each sample's keys end, and where they end and begin.
TEST(Contrib, AttentionTakesLengthsForAMask) {
  const Tensor x = f32({2, 3, 2}, {0.1F, -0.2F, 0.3F, 0.05F, 0.2F, 0.1F, -0.1F, 0, -0.3F, 0.2F, 0.1F, 0.15F});
  for (const auto& [bounds, mask] : {std::pair{std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{1, 0, 0, 1, 1, 0}}, {{3, 2, 1, 0}, {0, 1, 1, 1, 1, 0}}}) {
    const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({2, 6})}, {"bounds", i64({static_cast<std::int64_t>(bounds.size())}, bounds)}, {"mask", i64({2, 3}, mask)}};
    TestModel lengths = with_input({2, 3, 2}, weights), raw = lengths;
    fused(lengths, "Attention", {"x", "w", "", "bounds"}).set("num_heads", 1);
    fused(raw, "Attention", {"x", "w", "", "mask"}).set("num_heads", 1);
    expect_same(lengths, raw, x);
  }
  TestModel packed = with_input({2, 3, 2}, {{"w", wavy({2, 6})}, {"bounds", i64({8}, {1, 2, 0, 3, 6, 0, 3, 6})}});
  fused(packed, "Attention", {"x", "w", "", "bounds"}).set("num_heads", 1);
  EXPECT_THAT(problem_of(packed, Code::kUnknownOp), HasSubstr("one length a sample, or ends and begins, and not 8 numbers for 2 samples"));
}

/// The standard's operator has its caches in front of the positions.
TEST(Contrib, RotaryEmbeddingIsTheStandardsWithOtherOperands) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"cos", wavy({5, 2})}, {"sin", f32({5, 2}, {0, 0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F})},
                                                               {"from", i64({1}, {2})}, {"places", i64({1, 3}, {2, 3, 4})}};
  const Tensor x = wavy({1, 3, 8});
  for (const int interleaved : {0, 1}) {
    TestModel ours = with_input({1, 3, 8}, weights, 23), from = ours, plain = ours;
    fused(ours, "RotaryEmbedding", {"x", "places", "cos", "sin"}).set("interleaved", interleaved);
    fused(from, "RotaryEmbedding", {"x", "from", "cos", "sin"}).set("interleaved", interleaved).set("num_heads", 2);
    plain.node("RotaryEmbedding", {"x", "cos", "sin", "places"}, {"y"}).set("num_heads", 2).set("interleaved", interleaved);
    expect_same(ours, plain, x);
    expect_same(from, plain, x);
  }
}

TEST(Contrib, AttentionMayHaveNarrowerValues) {
  const std::vector<std::pair<std::string, Tensor>> weights = {{"w", wavy({4, 10})}, {"widths", ints({4, 4, 2})}};
  TestModel packed = with_input({1, 2, 4}, weights, 23), plain = packed;
  fused(packed, "Attention", {"x", "w"}).set("num_heads", 2).set("qkv_hidden_sizes", std::vector<std::int64_t>{4, 4, 2});
  plain.node("MatMul", {"x", "w"}, {"p"});
  plain.node("Split", {"p", "widths"}, {"q", "k", "v"}).set("axis", -1);
  plain.node("Attention", {"q", "k", "v"}, {"y"}).set("q_num_heads", 2).set("kv_num_heads", 2);
  expect_same(packed, plain, f32({1, 2, 4}, {0.1F, -0.2F, 0.3F, 0.05F, 0.2F, 0.1F, -0.1F, 0}));
}

TEST(Contrib, AttentionRefusesWidthsThatDoNotFit) {
  for (const std::vector<std::int64_t>& widths : {std::vector<std::int64_t>{4, 4, 4}, {4, 6, 0}, {4, 6}, {2, 4, 4}}) {
    TestModel model = with_input({1, 2, 4}, {{"w", wavy({4, 10})}});
    fused(model, "Attention", {"x", "w"}).set("num_heads", 2).set("qkv_hidden_sizes", widths);
    EXPECT_EQ(problems_of(model).size(), 1U);
  }
}

TEST(Contrib, AnUnknownOneNamesThoseThatAreKnown) {
  TestModel model = with_input({2}, {});
  fused(model, "NhwcMaxPool", {"x"});
  const std::string problem = problem_of(model, Code::kUnknownOp);
  EXPECT_THAT(problem, HasSubstr("of this domain Hone knows \"Attention\", \"BiasGelu\""));
  EXPECT_THAT(problem, HasSubstr("take the model as it was exported"));
}

TEST(Contrib, ALayoutOfOneProcessorIsRefusedWithAWayOut) {
  TestModel model = with_input({2}, {});
  model.node("ReorderInput", {"x"}, {"y"}).proto().set_domain("com.microsoft.nchwc");
  EXPECT_THAT(problem_of(model, Code::kUnknownOp), HasSubstr("ORT_ENABLE_EXTENDED or lower"));
}

TEST(Contrib, ClassicalMachineLearningIsRefusedWithAWayOut) {
  TestModel model = with_input({2}, {});
  model.node("ZipMap", {"x"}, {"y"}).proto().set_domain("ai.onnx.ml");
  const std::string problem = problem_of(model, Code::kUnknownOp);
  EXPECT_THAT(problem, HasSubstr("operator ZipMap of domain \"ai.onnx.ml\" is not supported"));
  EXPECT_THAT(problem, HasSubstr("onnx.utils.extract_model"));
}

}  // namespace
}  // namespace hone::test
