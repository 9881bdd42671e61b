// What mixed precision makes of small graphs, and what it leaves alone.
#include "passes/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/ops.h"
#include "ir/print.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Recipe recipe_with(std::string precision, std::vector<std::string> keep_f32 = {}) {
  Recipe recipe;
  recipe.train.precision = std::move(precision);
  recipe.train.keep_f32 = std::move(keep_f32);
  return recipe;
}

Changed lowered(Graph& graph) {
  const Changed changed = lower_precision(graph, recipe_with("bf16"));
  (void)eliminate_common_subexpressions(graph);
  (void)eliminate_dead_code(graph);
  return changed;
}

constexpr std::string_view kOperands = "input %x: f32[N,4], weight %w: f32[4,4], weight %v: f32[4,4], weight %b: f32[4]";
#define HONE_X "cast(x){to=bf16}"
#define HONE_W "cast(w){to=bf16}"
#define HONE_V "cast(v){to=bf16}"

TEST(LowerPrecision, ProductsReadNarrowOperands) {
  const PassCase cases[] = {
      {"a product that leaves the step is f32", kOperands, "%y = matmul(%x, %w)", "matmul(" HONE_X ", " HONE_W "){to=f32}"},
      {"so is one that a bias is added to on the way out", kOperands, "%1 = matmul(%x, %w); %y = add(%1, %b)", "add(matmul(" HONE_X ", " HONE_W "){to=f32}, b)"},
      {"a product and its bias are rounded as one", kOperands, "%1 = matmul(%x, %w); %2 = add(%1, %b); %y = tanh(%2)",
       "tanh(cast(cast(add(matmul(" HONE_X ", " HONE_W "){to=f32}, b)){to=bf16}){to=f32})"},
      {"so they are where the bias is moved, and what is moved behind it stays narrow", kOperands,
       "%1 = matmul(%w, %x); %2 = reshape(%b) {shape=[4,1]}; %3 = add(%2, %1); %4 = transpose(%3) {perm=[1,0]}; %y = matmul(%4, %v)",
       "matmul(transpose(cast(add(reshape(b){shape=[4,1]}, matmul(" HONE_W ", " HONE_X "){to=f32})){to=bf16}){perm=[1,0]}, " HONE_V "){to=f32}"},
      {"a product that others read, too, is rounded for all", kOperands, "%1 = matmul(%x, %w); %2 = add(%1, %b); %3 = tanh(%1); %4 = tanh(%2); %y = mul(%3, %4)",
       "mul(tanh(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}), tanh(add(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}, b)))"},
      {"what is fed is no bias", "input %x: f32[N,4], weight %w: f32[4,4], input %mask: f32[4]", "%1 = matmul(%x, %w); %2 = add(%1, %mask); %y = tanh(%2)",
       "tanh(add(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}, mask))"},
      {"nor is a weight of the product's own shape", "input %x: f32[4,4], weight %w: f32[4,4], weight %v: f32[4,4]", "%1 = matmul(%x, %w); %2 = add(%1, %v); %y = tanh(%2)",
       "tanh(add(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}, v))"},
      {"what others read is narrow", kOperands, "%1 = matmul(%x, %w); %y = tanh(%1)", "tanh(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32})"},
      {"a product of a product is rounded once", kOperands, "%1 = matmul(%x, %w); %y = matmul(%1, %v)",
       "matmul(matmul(" HONE_X ", " HONE_W "){to=bf16}, " HONE_V "){to=f32}"},
      {"what is moved between products stays narrow", kOperands, "%1 = matmul(%x, %w); %2 = transpose(%1) {perm=[1,0]}; %y = matmul(%v, %2)",
       "matmul(" HONE_V ", transpose(matmul(" HONE_X ", " HONE_W "){to=bf16}){perm=[1,0]}){to=f32}"},
      {"so is a part of it", kOperands, "%1 = matmul(%x, %w); %2 = slice(%1) {starts=[0,1], sizes=[N,2], steps=[1,1]}; %y = matmul(%2, %2) {ta=true}",
       "matmul(slice(matmul(" HONE_X ", " HONE_W "){to=bf16}){sizes=[N,2], starts=[0,1], steps=[1,1]}, slice(matmul(" HONE_X ", " HONE_W
       "){to=bf16}){sizes=[N,2], starts=[0,1], steps=[1,1]}){ta=true, to=f32}"},
      {"parts that are put together are rounded before", kOperands, "%1 = tanh(%x); %2 = matmul(%x, %w); %3 = concat(%1, %2) {axis=0}; %y = matmul(%3, %v)",
       "matmul(concat(cast(tanh(x)){to=bf16}, matmul(" HONE_X ", " HONE_W "){to=bf16}), " HONE_V "){to=f32}"},
      {"what is moved and read by others is moved narrow", kOperands, "%1 = matmul(%x, %w); %2 = transpose(%1) {perm=[1,0]}; %y = tanh(%2)",
       "tanh(cast(transpose(matmul(" HONE_X ", " HONE_W "){to=bf16}){perm=[1,0]}){to=f32})"},
      {"what is moved is rounded before", kOperands, "%1 = tanh(%x); %2 = reshape(%1) {shape=[4,N]}; %y = matmul(%w, %2)",
       "matmul(" HONE_W ", reshape(cast(tanh(x)){to=bf16}){shape=[4,N]}){to=f32}"},
      {"a part of something large is rounded behind", kOperands, "%1 = slice(%x) {starts=[0,0], sizes=[1,4], steps=[1,1]}; %y = matmul(%1, %w)",
       "matmul(cast(slice(x){sizes=[1,4], starts=[0,0], steps=[1,1]}){to=bf16}, " HONE_W "){to=f32}"},
      {"softmax between products is f32", kOperands, "%1 = matmul(%x, %w); %2 = exp(%1); %3 = reduce_sum(%2) {axes=[1], keep_dims=true}; %4 = div(%2, %3); %y = matmul(%4, %v)",
       "matmul(cast(div(exp(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}), reduce_sum(exp(cast(matmul(" HONE_X ", " HONE_W
       "){to=bf16}){to=f32})){axes=[1], keep_dims=true})){to=bf16}, " HONE_V "){to=f32}"},
  };
  for (const PassCase& c : cases) expect_pass(lowered, c);
}

/// One whose library rounds matrix products to their factors' type, as a GPU's does convolutions.
class RoundingTarget final : public Target {
 public:
  std::string_view name() const override { return "rounding"; }
  RowChoice choose_row(const Graph&, NodeId) const override { return {}; }
  bool gives_wide_sums(const OpDef& product) const override { return product != op::matmul; }
};

TEST(LowerPrecision, ABiasIsAddedToWhatTheTargetsLibraryGives) {
  const auto pass = [](Graph& graph) {
    const RoundingTarget target;
    const Changed changed = lower_precision(graph, recipe_with("bf16"), &target);
    (void)eliminate_dead_code(graph);
    return changed;
  };
  expect_pass(pass, {"rounded before the bias", kOperands, "%1 = matmul(%x, %w); %2 = add(%1, %b); %y = tanh(%2)", "tanh(add(cast(matmul(" HONE_X ", " HONE_W "){to=bf16}){to=f32}, b))"});
}

TEST(LowerPrecision, Tf32IsTheDevicesToRound) {
  const PassCase cases[] = {
      {"a product", kOperands, "%1 = matmul(%x, %w) {tb=true}; %y = tanh(%1)", "tanh(matmul(x, w){tb=true, tf32=true})"},
      {"marked already", kOperands, "%y = matmul(%x, %w) {tf32=true}", ""},
      {"no product", kOperands, "%y = tanh(%x)", ""},
      {"f64", "input %x: f64[N,4], weight %w: f64[4,4]", "%y = matmul(%x, %w)", ""},
  };
  for (const PassCase& c : cases) expect_pass([](Graph& graph) { return lower_precision(graph, recipe_with("tf32")); }, c);
}

TEST(LowerPrecision, OtherNodesKeepTheirTypes) {
  const PassCase cases[] = {
      {"no product", kOperands, "%1 = tanh(%x); %y = reduce_sum(%1) {axes=[1]}", ""},
      {"f64", "input %x: f64[N,4], weight %w: f64[4,4]", "%y = matmul(%x, %w)", ""},
      {"integers", "input %x: i32[N,4], input %w: i32[4,4]", "%y = matmul(%x, %w)", ""},
      {"the model's own bf16", "input %x: bf16[N,4], weight %w: bf16[4,4]", "%y = matmul(%x, %w)", ""},
  };
  for (const PassCase& c : cases) expect_pass([](Graph& graph) { return lower_precision(graph, recipe_with("bf16")); }, c);
}

TEST(LowerPrecision, InF32NothingChanges) {
  expect_pass([](Graph& graph) { return lower_precision(graph, recipe_with("f32", {"*"})); }, {"f32", kOperands, "%1 = matmul(%x, %w); %2 = tanh(%1); %y = matmul(%2, %v)", ""});
}

/// A forward product of tanh(x), and a backward pass that reads tanh(x) in another product and by itself.
Graph forward_and_backward() {
  Graph graph;
  Builder builder(graph);
  const Val x = builder.input(Role::kInput, "x", {DType::kF32, {Dim::symbol("N"), 4}}), w = builder.input(Role::kWeight, "w", {DType::kF32, {4, 4}}, Tensor::of<float>({4, 4}, std::vector<float>(16)));
  Val kept, product;
  {
    const Builder::Scope forward(builder, Loc{.node = "hidden"}, Part::kForward);
    kept = op::tanh(x);
  }
  {
    const Builder::Scope forward(builder, Loc{.node = "dense"}, Part::kForward);
    product = op::matmul(kept, w);
    builder.output("forward", product);
  }
  const Builder::Scope backward(builder, Loc{.node = "dense", .derived = "gradient of"}, Part::kBackward);
  builder.output("y", op::matmul(kept, product, {kTransA = true}));
  builder.output("z", 1.0 - square(kept));
  return graph;
}

TEST(LowerPrecision, TheLargestElementIsSoughtAmongThoseThatTheForwardPassSaw) {
  Graph graph = small_graph(kOperands, "%1 = tanh(%x); %2 = matmul(%1, %w); %3 = reduce_max(%1) {axes=[1]}; %y = reduce_sum(%2) {axes=[0,1]}; %z = reduce_sum(%3) {axes=[0]}");
  Builder builder(graph);
  const auto tanh = std::ranges::find_if(graph.nodes(), [](const Node& node) { return *node.op == op::tanh; }), most = std::ranges::find_if(graph.nodes(), [](const Node& node) { return *node.op == op::reduce_max; });
  const ValueId seen = tanh->results[0], wrt[] = {seen};
  builder.output("dz", builder.val(differentiate(graph, most->results[0], wrt)[0]));
  (void)expand(graph);
  EXPECT_EQ(lowered(graph), Changed::kYes);
  EXPECT_THAT(expression(graph, graph.find_output("dz")->value), AllOf(HasSubstr("equal(tanh(x), reshape(reduce_max(tanh(x))"), Not(HasSubstr("bf16"))));
}

/// The largest is a product's factor, too, and is reshaped before it is compared.
TEST(LowerPrecision, TheLargestElementIsSoughtUnroundedBehindMoves) {
  Graph graph = small_graph("input %x: f32[N,4,8], weight %w: f32[8,3]", "%1 = tanh(%x); %2 = reduce_max(%1) {axes=[1]}; %3 = matmul(%2, %w); %y = reduce_sum(%3) {axes=[0,1]}");
  Builder builder(graph);
  const auto tanh = std::ranges::find_if(graph.nodes(), [](const Node& node) { return *node.op == op::tanh; });
  const ValueId wrt[] = {tanh->results[0]};
  builder.output("d", builder.val(differentiate(graph, graph.find_output("y")->value, wrt)[0]));
  (void)expand(graph);
  EXPECT_EQ(lowered(graph), Changed::kYes);
  EXPECT_THAT(expression(graph, graph.find_output("d")->value), HasSubstr("equal(tanh(x), reshape(reduce_max(tanh(x))"));
}

TEST(LowerPrecision, TheBackwardPassReadsWhatIsKept) {
  Graph graph = forward_and_backward();
  EXPECT_EQ(lowered(graph), Changed::kYes);
  EXPECT_EQ(expression(graph, graph.find_output("z")->value), "sub(1, mul(cast(cast(tanh(x)){to=bf16}){to=f32}, cast(cast(tanh(x)){to=bf16}){to=f32}))");
}

TEST(LowerPrecision, NodesThatAreNamedStayWithTheirGradients) {
  Graph graph = forward_and_backward();
  EXPECT_EQ(lower_precision(graph, recipe_with("bf16", {"den*"})), Changed::kNo);
  const std::vector<std::string> lines = explain_precision(graph, recipe_with("bf16", {"den*"}));
  EXPECT_THAT(lines.front(), HasSubstr("f32: train.keep_f32 names it"));
}

TEST(LowerPrecision, SaysWhyEachProductRunsInWhat) {
  Graph graph = forward_and_backward();
  (void)lowered(graph);
  const std::vector<std::string> lines = explain_precision(graph, recipe_with("bf16"));
  EXPECT_THAT(lines.front(), HasSubstr("bf16 operands, f32 result: its terms' errors average out"));
  EXPECT_TRUE(explain_precision(graph, recipe_with("f32")).empty());
}

TEST(LowerPrecision, ModelsWithoutAnythingNarrowAreRefused) {
  const Graph graph = small_graph("input %x: f64[N,4], weight %w: f64[4,4]", "%y = matmul(%x, %w)");
  EXPECT_NO_THROW(require_narrow(graph, recipe_with("f32")));
  try {
    require_narrow(graph, recipe_with("bf16"));
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr("its operands are f64"));
  }
}

}  // namespace
}  // namespace hone::test
