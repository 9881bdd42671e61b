// Which activations lie channels last: what the pass makes of small graphs, and that no value changes.
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor.h"
#include "ir/kernel/interpret.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

/// The pass, and what takes away the transposes that meet.
Changed laid_out(Graph& graph) {
  const Changed changed = choose_layout(graph);
  while (simplify(graph) == Changed::kYes) {}
  (void)eliminate_common_subexpressions(graph);
  (void)eliminate_dead_code(graph);
  return changed;
}

// A window of 1x1 and one of 2x2; the first three attributes in the order of printing.
constexpr std::string_view kPictures = "input %x: f32[N,4,6,6], weight %w: f32[4,4,1,1], weight %v: f32[4,4,1,1], input %s: f32[4,1,1], input %m: f32[6,6]";
#define HONE_CONV "{dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[1,1]}"
#define HONE_LAST "{channels_last=true, dilations=[1,1], groups=1, pads_begin=[0,0], pads_end=[0,0], strides=[1,1]}"
#define HONE_IN "transpose(x){perm=[0,2,3,1]}"
#define HONE_TWO "%a = conv(%x, %w) " HONE_CONV "; "
#define HONE_AFTER "; %y = conv(%b, %v) " HONE_CONV

TEST(Layout, AChainOfConvolutionsIsTransposedAtItsEndsOnly) {
  const PassCase cases[] = {
      {"two convolutions", kPictures, HONE_TWO "%y = conv(%a, %v) " HONE_CONV,
       "transpose(conv(conv(" HONE_IN ", w)" HONE_LAST ", v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"elementwise ops between", kPictures, HONE_TWO "%r = tanh(%a); %b = mul(%r, %a)" HONE_AFTER,
       "transpose(conv(mul(tanh(conv(" HONE_IN ", w)" HONE_LAST "), conv(" HONE_IN ", w)" HONE_LAST "), v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"a number for each channel", kPictures, HONE_TWO "%b = mul(%a, %s)" HONE_AFTER,
       "transpose(conv(mul(conv(" HONE_IN ", w)" HONE_LAST ", reshape(s){shape=[1,1,1,4]}), v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"a number for each position", kPictures, HONE_TWO "%b = mul(%a, %m)" HONE_AFTER,
       "transpose(conv(mul(conv(" HONE_IN ", w)" HONE_LAST ", reshape(m){shape=[1,6,6,1]}), v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"concatenation of channels", "input %x: f32[N,2,6,6], weight %w: f32[2,2,1,1], weight %v: f32[4,4,1,1]",
       "%a = conv(%x, %w) " HONE_CONV "; %b = concat(%a, %a) {axis=1}" HONE_AFTER,
       "transpose(conv(concat(conv(" HONE_IN ", w)" HONE_LAST ", conv(" HONE_IN ", w)" HONE_LAST "){axis=3}, v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"a slice", kPictures, HONE_TWO "%b = slice(%a) {starts=[0,0,1,2], sizes=[N,4,5,4], steps=[1,1,1,1]}" HONE_AFTER,
       "transpose(conv(slice(conv(" HONE_IN ", w)" HONE_LAST "){sizes=[N,5,4,4], starts=[0,1,2,0], steps=[1,1,1,1]}, v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"a sum over space, which leaves nothing to transpose", kPictures, HONE_TWO "%b = conv(%a, %v) " HONE_CONV "; %y = reduce_sum(%b) {axes=[2,3]}",
       "reshape(reduce_sum(conv(conv(" HONE_IN ", w)" HONE_LAST ", v)" HONE_LAST "){axes=[1,2], keep_dims=true}){shape=[N,4]}"},
      {"an image of one channel", "input %x: f32[N,1,6,6], weight %w: f32[4,1,1,1], weight %v: f32[4,4,1,1]", HONE_TWO "%y = conv(%a, %v) " HONE_CONV,
       "transpose(conv(conv(reshape(x){shape=[N,6,6,1]}, w)" HONE_LAST ", v)" HONE_LAST "){perm=[0,3,1,2]}"},
      {"an exporter's own transposes", "input %x: f32[N,6,6,4], weight %w: f32[4,4,1,1]",
       "%t = transpose(%x) {perm=[0,3,1,2]}; %a = conv(%t, %w) " HONE_CONV "; %r = tanh(%a); %y = transpose(%r) {perm=[0,2,3,1]}",
       "tanh(conv(x, w)" HONE_LAST ")"},
      {"one axis", "input %x: f32[N,4,6], weight %w: f32[4,4,1]",
       "%a = conv(%x, %w) {strides=[1], dilations=[1], pads_begin=[0], pads_end=[0], groups=1}; %y = conv(%a, %w) {strides=[1], dilations=[1], pads_begin=[0], "
       "pads_end=[0], groups=1}",
       "transpose(conv(conv(transpose(x){perm=[0,2,1]}, w){channels_last=true, dilations=[1], groups=1, pads_begin=[0], pads_end=[0], strides=[1]}, w)"
       "{channels_last=true, dilations=[1], groups=1, pads_begin=[0], pads_end=[0], strides=[1]}){perm=[0,2,1]}"},
  };
  for (const PassCase& c : cases) expect_pass(laid_out, c);
}

TEST(Layout, LeavesChannelsFirstWhereNothingIsGained) {
  const PassCase cases[] = {
      {"no convolution", "input %x: f32[N,6,6,4]", "%t = transpose(%x) {perm=[0,3,1,2]}; %y = tanh(%t)"},
      {"a convolution by itself", "input %x: f32[N,4,6,6], weight %w: f32[4,4,1,1]", "%y = conv(%x, %w) " HONE_CONV},
      {"convolutions between ops that need the order", kPictures,
       "%f = reshape(%x) {shape=[N,4,36,1]}; %a = conv(%f, %w) " HONE_CONV "; %g = reshape(%a) {shape=[N,4,12,3]}; %y = conv(%g, %v) " HONE_CONV},
      {"images of one element", "input %x: f32[N,4,1,1], weight %w: f32[4,4,1,1]", "%y = conv(%x, %w) " HONE_CONV},
      {"what lies channels last already", "input %x: f32[N,6,6,4], weight %w: f32[4,4,1,1]", "%a = conv(%x, %w) " HONE_LAST "; %y = conv(%a, %w) " HONE_LAST},
  };
  for (const PassCase& c : cases) expect_pass(laid_out, c);
}

TEST(Layout, ChangesNoValue) {
  constexpr std::string_view kPool = "{kernel=[2,2], strides=[2,2], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0], spatial=";
  const std::string pool(kPool);
  const std::string statements = "%t = transpose(%x) {perm=[0,2,1,3]}; %a = conv(%t, %w) " HONE_CONV "; %p, %k = max_pool(%a) " + pool +
                                 "[3,3]}; %b = conv(%p, %v) " HONE_CONV "; %q = avg_pool(%b) " + pool + "[1,1]}; %g = max_pool_grad(%b, %k) " + pool +
                                 "[6,6]}; %h = conv_input_grad(%g, %w) {strides=[1,1], dilations=[1,1], pads_begin=[0,0], "
                                 "pads_end=[0,0], groups=1, spatial=[6,6]}; %i = reduce_max(%h) {axes=[1,3]}; %j = broadcast_to(%s) {shape=[2,4,6,6]}; %l = "
                                 "add(%h, %j); %e = pad(%q) {starts=[0,0,2,3], "
                                 "sizes=[2,4,6,6], steps=[1,1,1,1]}; %o = add(%l, %e); %u = reduce_sum(%o) {axes=[0], keep_dims=true}; %z = mul(%u, %o); %c = "
                                 "add(%z, %i2); %y = add(%c, %a)";
  std::string with_view = statements;
  with_view.replace(with_view.find("; %j ="), 1, "; %i2 = reshape(%i) {shape=[2,1,6,1]};");
  Graph graph = small_graph("input %x: f32[2,6,4,6], weight %w: f32[4,4,1,1], weight %v: f32[4,4,1,1], input %s: f32[4,1,1]", with_view);
  Feeds feeds;
  double number = 0;
  for (const Input& input : graph.inputs()) {
    const std::vector<std::int64_t> shape = constant_shape(graph.type(input.value).shape);
    std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
    for (double& value : values) value = std::sin(number += 0.7);
    feeds.emplace(input.name, Tensor::of<double>(shape, std::span<const double>(values)));
  }
  const Tensor before = interpret(graph, feeds, Precision::kDouble)["y"];
  ASSERT_EQ(laid_out(graph), Changed::kYes);
  const Tensor after = interpret(graph, feeds, Precision::kDouble)["y"];
  for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_NEAR(after.at(i), before.at(i), 1e-12) << i;
}

TEST(Layout, SaysWhatDecides) {
  const Graph gains = small_graph(kPictures, HONE_TWO "%y = conv(%a, %v) " HONE_CONV), loses = small_graph(kPictures, "%y = conv(%x, %w) " HONE_CONV);
  ASSERT_EQ(explain_layout(gains).size(), 1u);
  EXPECT_TRUE(explain_layout(gains)[0].starts_with("channels last")) << explain_layout(gains)[0];
  ASSERT_EQ(explain_layout(loses).size(), 1u);
  EXPECT_TRUE(explain_layout(loses)[0].starts_with("channels first")) << explain_layout(loses)[0];
}

}  // namespace
}  // namespace hone::test
