// Which attention becomes one node, and which stays in parts.
#include "passes/fuse_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "ir/ops/formulas.h"
#include "ir/ops/ops.h"
#include "ir/verify.h"
#include "passes/causal_mask.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Takes all heads of up to 128 features.
class Attends final : public Target {
 public:
  std::string_view name() const override { return "attends"; }
  RowChoice choose_row(const Graph&, NodeId) const override { return {"", "no row"}; }
  std::string why_no_attention(const AttentionTypes& types) const override { return types.query[3].is_constant() and types.query[3].value() <= 128 ? "" : "too many features"; }
};

Recipe multiplying_in(std::string precision) {
  Recipe recipe;
  recipe.train.precision = std::move(precision);
  return recipe;
}

/// What statements call by name.
constexpr std::string_view kNumbers = ", constant %zero: f32[] = 0, constant %one: i64[] = 1, constant %quarter: f32[] = 0.25, constant %half: f32[] = 0.5, constant %four: f32[] = 4, constant %less: f32[] = -3, "
                                      "constant %low: f32[] = -1e9, constant %lowest: f32[] = -3e38, constant %never: f32[] = -inf";
constexpr std::string_view kHeads = "input %q: f32[N,2,S,8], input %k: f32[N,2,T,8], input %v: f32[N,2,T,8]";

/// What becomes of y, and the line that is told of it.
struct Fused {
  std::string expression;
  std::string told;
};
Fused fused(std::string_view inputs, std::string_view statements, const Recipe& recipe = multiplying_in("bf16")) {
  Graph graph = small_graph(fmt::format("{}{}", inputs, kNumbers), statements);
  (void)find_safe_softmaxes(graph);
  const std::vector<std::string> lines = fuse_attention(graph, recipe, Attends());
  verify(graph);
  (void)simplify(graph);
  return {expression(graph), lines.empty() ? "" : lines.back()};
}

/// MEAN stands for that of the values over their positions.
std::string with_mean(std::string_view expression) {
  Graph graph = small_graph(kHeads, "%y = reduce_sum(%v) {axes=[2], keep_dims=true}");
  Builder builder(graph);
  const std::string mean = test::expression(graph, mean_over(builder.val(graph.find_input("v")->value), {2}).id());
  std::string text(expression);
  if (const std::size_t at = text.find("MEAN"); at != std::string::npos) text.replace(at, 4, mean);
  return text;
}

TEST(FuseAttention, TakesWhatExportersWrite) {
  struct Case {
    std::string_view says, inputs, statements, becomes;
  };
  const std::string with_mask = fmt::format("{}, input %m: f32[N,1,1,T]", kHeads), with_matrix = fmt::format("{}, input %m: f32[S,T]", kHeads), with_condition = fmt::format("{}, input %c: bool[N,1,1,T]", kHeads);
  const Case cases[] = {
      {"keys that are read transposed", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v)", "fused_attention(q, k, v){scale=1}"},
      {"keys that were transposed, and a scale", kHeads, "%t = transpose(%k) {perm=[0,1,3,2]}; %1 = matmul(%q, %t); %2 = mul(%1, %quarter); %3 = softmax(%2) {axis=3}; %y = matmul(%3, %v)",
       "fused_attention(q, k, v){scale=0.25}"},
      {"scores that are divided", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = div(%1, %four); %3 = softmax(%2) {axis=3}; %y = matmul(%3, %v)", "fused_attention(q, k, v){scale=0.25}"},
      {"a mask that is added", with_mask, "%1 = matmul(%q, %k) {tb=true}; %2 = mul(%1, %quarter); %3 = add(%2, %m); %4 = softmax(%3) {axis=3}; %y = matmul(%4, %v)",
       "where(less_equal(reduce_max(m){axes=[3], keep_dims=true}, -1000000000), where(equal(reduce_max(m){axes=[3], keep_dims=true}, -inf), nan, MEAN), fused_attention(q, k, v, maximum(m, -1.0000000150474662e+30)){scale=0.25})"},
      {"a mask of fewer axes, and a guard against NaN", with_matrix,
       "%1 = matmul(%q, %k) {tb=true}; %3 = add(%m, %1); %4 = softmax(%3) {axis=3}; %5 = equal(%4, %4); %6 = logical_not(%5); %7 = where(%6, %zero, %4); %y = matmul(%7, %v)",
       "where(less_equal(reduce_max(reshape(m){shape=[1,1,S,T]}){axes=[3], keep_dims=true}, -1000000000), where(equal(reduce_max(reshape(m){shape=[1,1,S,T]}){axes=[3], keep_dims=true}, -inf), 0, MEAN), fused_attention(q, k, v, maximum(reshape(m){shape=[1,1,S,T]}, -1.0000000150474662e+30)){scale=1})"},
      {"scores that a condition leaves out", with_condition, "%1 = matmul(%q, %k) {tb=true}; %3 = where(%c, %1, %low); %4 = softmax(%3) {axis=3}; %y = matmul(%4, %v)",
       "where(less_equal(reduce_max(where(c, 0, -1000000000)){axes=[3], keep_dims=true}, -1000000000), where(equal(reduce_max(where(c, 0, -1000000000)){axes=[3], keep_dims=true}, -inf), nan, MEAN), fused_attention(q, k, v, maximum(where(c, 0, -1000000000), -1.0000000150474662e+30)){scale=1})"},
      {"values that are read transposed", "input %q: f32[N,2,S,8], input %k: f32[N,2,T,8], input %v: f32[N,2,8,T]", "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v) {tb=true}",
       "fused_attention(q, k, transpose(v){perm=[0,1,3,2]}){scale=1}"},
      {"one head without an axis of its own", "input %q: f32[N,S,8], input %k: f32[N,T,8], input %v: f32[N,T,8]", "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=2}; %y = matmul(%2, %v)",
       "reshape(fused_attention(reshape(q){shape=[N,1,S,8]}, reshape(k){shape=[N,1,T,8]}, reshape(v){shape=[N,1,T,8]}){scale=1}){shape=[N,S,8]}"},
      {"attention of the model's own", kHeads, "%y, %s, %w = attention(%q, %k, %v) {scale=0.25}", "fused_attention(q, k, v){scale=0.25}"},
  };
  for (const Case& one : cases) {
    const Fused found = fused(one.inputs, one.statements);
    EXPECT_EQ(found.expression, with_mean(one.becomes)) << one.says;
    EXPECT_THAT(found.told, HasSubstr("is one node")) << one.says;
  }
}

TEST(FuseAttention, LeavesWhatIsNotAttention) {
  struct Case {
    std::string_view says, inputs, statements, why;
  };
  const std::string with_weight = fmt::format("{}, weight %m: f32[S,T]", kHeads), with_two = fmt::format("{}, input %m: f32[S,T], input %n: f32[S,T]", kHeads);
  const Case cases[] = {
      {"weights that are dropped out", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %3 = mul(%2, %1); %y = matmul(%3, %v)", "something else than a product with values reads the weights"},
      {"weights that somebody else reads", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %3 = matmul(%2, %v); %4 = reduce_sum(%2) {axes=[3], keep_dims=true}; %y = add(%3, %4)",
       "something else than a product with values reads the weights"},
      {"scores that somebody else reads", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %3 = matmul(%2, %v); %4 = reduce_sum(%1) {axes=[3], keep_dims=true}; %y = add(%3, %4)",
       "something else reads the scores"},
      {"a softmax over queries", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=2}; %y = matmul(%2, %v)", "something else than a product with values"},
      {"capped scores", kHeads, "%1 = matmul(%q, %k) {tb=true}; %2 = tanh(%1); %3 = softmax(%2) {axis=3}; %y = matmul(%3, %v)", "tanh stands between"},
      {"a mask that is trained", with_weight, "%1 = matmul(%q, %k) {tb=true}; %2 = add(%1, %m); %3 = softmax(%2) {axis=3}; %y = matmul(%3, %v)", "its mask has a gradient"},
      {"two masks", with_two, "%1 = matmul(%q, %k) {tb=true}; %2 = add(%1, %m); %3 = add(%2, %n); %4 = softmax(%3) {axis=3}; %y = matmul(%4, %v)", "add stands between"},
      {"a mask that is scaled", with_two, "%1 = matmul(%q, %k) {tb=true}; %2 = add(%1, %m); %3 = mul(%2, %half); %4 = softmax(%3) {axis=3}; %y = matmul(%4, %v)", "its mask is scaled"},
      {"queries that share keys", "input %q: f32[N,4,S,8], input %k: f32[N,1,T,8], input %v: f32[N,1,T,8]", "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v)", "not the same batches and heads"},
      {"more features than the target's row takes", "input %q: f32[N,2,S,256], input %k: f32[N,2,T,256], input %v: f32[N,2,T,256]", "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v)",
       "too many features"},
      {"f64", "input %q: f64[N,2,S,8], input %k: f64[N,2,T,8], input %v: f64[N,2,T,8]", "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v)", "mixed precision is for f32"},
      {"attention with capped scores", kHeads, "%y, %s, %w = attention(%q, %k, %v) {scale=0.25, softcap=2}", "its scores are capped"},
  };
  for (const Case& one : cases) {
    const Fused found = fused(one.inputs, one.statements);
    EXPECT_THAT(found.expression, Not(HasSubstr("fused_attention"))) << one.says;
    EXPECT_THAT(found.told, HasSubstr(std::string(one.why))) << one.says;
  }
}

TEST(FuseAttention, IsForNarrowProductsAlone) {
  constexpr std::string_view kPlain = "%1 = matmul(%q, %k) {tb=true}; %2 = softmax(%1) {axis=3}; %y = matmul(%2, %v)";
  for (const char* precision : {"f32", "tf32"}) EXPECT_THAT(fused(kHeads, kPlain, multiplying_in(precision)).expression, StartsWith("matmul(")) << precision;
  EXPECT_THAT(fused(kHeads, kPlain, multiplying_in("f16")).expression, StartsWith("fused_attention("));
}

/// The mask of "%c = ..." as triangles.
std::string triangles(std::string_view statements) {
  const Graph graph = small_graph(fmt::format("input %x: f32[T,T]{}", kNumbers), statements);
  const std::optional<Triangles> found = triangles_of(graph, graph.find_output("y")->value);
  return found ? fmt::format("{} {}", found->lower, found->upper) : "no";
}

TEST(CausalMask, FollowsFromPositionsAndConstants) {
  constexpr std::string_view kPositions = "%i = iota() {axis=0, shape=[T,1]}; %j = iota() {axis=1, shape=[1,T]}; ";
  const auto of_positions = [&](std::string_view rest) { return triangles(std::string(kPositions) + std::string(rest)); };
  EXPECT_EQ(of_positions("%y = less_equal(%j, %i)"), "1 0");
  EXPECT_EQ(of_positions("%y = greater_equal(%i, %j)"), "1 0");
  EXPECT_EQ(of_positions("%y = greater(%j, %i)"), "0 1");
  EXPECT_EQ(of_positions("%1 = add(%i, %one); %y = less(%j, %1)"), "1 0");
  EXPECT_EQ(of_positions("%y = less(%j, %i)"), "no") << "the diagonal is left out";
  EXPECT_EQ(of_positions("%1 = add(%i, %one); %y = less_equal(%j, %1)"), "no") << "the next key, too";
  EXPECT_EQ(of_positions("%1 = less_equal(%j, %i); %2 = where(%1, %zero, %never); %y = reshape(%2) {shape=[1,1,T,T]}"), "0 -inf");
  EXPECT_EQ(of_positions("%1 = less_equal(%j, %i); %2 = logical_not(%1); %y = cast(%2) {to=f32}"), "0 1");
  EXPECT_EQ(triangles("%j = iota() {axis=0, shape=[T]}; %i = reshape(%j) {shape=[T,1]}; %y = less_equal(%j, %i)"), "1 0") << "rows from columns";
  EXPECT_EQ(triangles("%y = less_equal(%x, %zero)"), "no") << "it is fed";
  EXPECT_EQ(triangles("%j = iota() {axis=0, shape=[T]}; %i = reshape(%j) {shape=[T,1]}; %1 = less_equal(%j, %i); %y = transpose(%1) {perm=[1,0]}"), "no");
}

TEST(CausalMask, IsACornerOfATriangleOfOnes) {
  for (const bool is_lower : {true, false}) {
    std::vector<float> elements;
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) elements.push_back((j <= i) == is_lower ? 1.0F : 0.0F);
    elements[1] = is_lower ? 0.0F : 1.0F;
    Graph graph;
    Builder builder(graph);
    const Dim extent = min(Dim(8), Dim::symbol("T"));
    const Val ones = builder.constant(Tensor::of<float>({1, 1, 8, 8}, std::span<const float>(elements)));
    const Val corner = op::slice(ones, {kStarts = Shape{0, 0, 0, 0}, kSizes = Shape{1, 1, extent, extent}, kSteps = Ints{1, 1, 1, 1}});
    const Val mask = op::equal(corner, builder.scalar(0));
    const std::optional<Triangles> found = triangles_of(graph, mask.id());
    if (is_lower) EXPECT_TRUE(found and found->lower == 0 and found->upper == 1);
    else EXPECT_TRUE(found and found->lower == 1 and found->upper == 0);
    const Val shifted = op::slice(ones, {kStarts = Shape{0, 0, 1, 0}, kSizes = Shape{1, 1, 4, 4}, kSteps = Ints{1, 1, 1, 1}});
    EXPECT_FALSE(triangles_of(graph, shifted.id())) << "not from the first row on";
  }
}

TEST(FuseAttention, ACausalMaskIsAnAttribute) {
  constexpr std::string_view kPositions = "%i = iota() {axis=0, shape=[S,1]}; %j = iota() {axis=1, shape=[1,T]}; ";
  const auto of = [&](std::string_view masked) {
    return fused(kHeads, fmt::format("{}%1 = matmul(%q, %k) {{tb=true}}; {}; %4 = softmax(%3) {{axis=3}}; %y = matmul(%4, %v)", kPositions, masked)).expression;
  };
  EXPECT_EQ(of("%c = less_equal(%j, %i); %3 = where(%c, %1, %never)"), "fused_attention(q, k, v){causal=true, scale=1}");
  EXPECT_EQ(of("%c = greater(%j, %i); %3 = where(%c, %never, %1)"), "fused_attention(q, k, v){causal=true, scale=1}");
  EXPECT_EQ(of("%c = less_equal(%j, %i); %m = where(%c, %zero, %lowest); %3 = add(%1, %m)"), "fused_attention(q, k, v){causal=true, scale=1}");
  EXPECT_THAT(of("%c = less_equal(%j, %i); %m = where(%c, %zero, %less); %3 = add(%1, %m)"), HasSubstr("fused_attention(q, k, v, ")) << "what is seen less is seen";
}

}  // namespace
}  // namespace hone::test
