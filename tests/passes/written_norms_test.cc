// Batch normalization that is written out as arithmetic: found in all its forms, left alone where it is something else, and the same function afterwards.
#include "frontend/onnx/written_norms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/tensor.h"
#include "ir/kernel/interpret.h"
#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Changed restored(Graph& graph) {
  Diags diags;
  onnx::restore_batch_norm(graph, {}, diags);
  return diags.all().empty() ? Changed::kNo : Changed::kYes;
}

#define HONE_NUMBERS ", constant %eps: f32[] = 0.001, constant %one: f32[] = 1, constant %half: f32[] = -0.5"
constexpr std::string_view kInputs = "input %i: f32[N,3], weight %g: f32[3], weight %b: f32[3], weight %m: f32[3], weight %v: f32[3], weight %u: f32[3]" HONE_NUMBERS;
constexpr std::string_view kNormedPictures = "input %i: f32[N,5,5,3], weight %g: f32[3], weight %b: f32[3], weight %m: f32[3], weight %v: f32[3]" HONE_NUMBERS;
constexpr std::string_view kChannelsFirst = "input %i: f32[N,3,5,5], weight %g: f32[3], weight %b: f32[3], weight %m: f32[3], weight %v: f32[3]" HONE_NUMBERS;
#define HONE_R "%x = tanh(%i); %e = add(%v, %eps); %q = sqrt(%e); "
#define HONE_ATTRIBUTES "{epsilon=0.0010000000474974513, momentum=0.99}"
#define HONE_NORM "batch_norm(tanh(i), g, b, m, v)" HONE_ATTRIBUTES

const PassCase kForms[] = {
    {"as it stands in books", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)", HONE_NORM},
    {"one scale and one shift, as Keras writes it on JAX", kInputs,
     HONE_R "%r = div(%one, %q); %s = mul(%r, %g); %n = neg(%m); %o = mul(%n, %s); %t = add(%o, %b); %f = mul(%x, %s); %y = add(%f, %t)", HONE_NORM},
    {"a shift by a difference", kInputs, HONE_R "%r = div(%one, %q); %s = mul(%g, %r); %o = mul(%m, %s); %t = sub(%b, %o); %f = mul(%s, %x); %y = add(%t, %f)", HONE_NORM},
    {"the scale beside the deviation, as Flax writes it", kInputs, HONE_R "%c = sub(%x, %m); %r = div(%one, %q); %s = mul(%r, %g); %f = mul(%c, %s); %y = add(%f, %b)", HONE_NORM},
    {"scaled before the mean is there", kInputs, HONE_R "%r = div(%one, %q); %s = mul(%r, %g); %f = mul(%x, %s); %o = mul(%m, %s); %p = sub(%f, %o); %y = add(%p, %b)", HONE_NORM},
    {"a power", kInputs, "%x = tanh(%i); %e = add(%eps, %v); %r = pow(%e, %half); %c = sub(%x, %m); %d = mul(%c, %r); %f = mul(%d, %g); %y = add(%f, %b)", HONE_NORM},
    {"the other way round", kInputs, HONE_R "%c = sub(%m, %x); %n = neg(%c); %d = div(%n, %q); %f = mul(%g, %d); %y = add(%b, %f)", HONE_NORM},
    {"without a shift", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %y = mul(%d, %g)", "batch_norm(tanh(i), g, broadcast_to(0){shape=[3]}, m, v)" HONE_ATTRIBUTES},
    {"without a scale", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %y = add(%d, %b)", "batch_norm(tanh(i), broadcast_to(1){shape=[3]}, b, m, v)" HONE_ATTRIBUTES},
    {"behind a bias", kInputs, HONE_R "%w = add(%x, %u); %r = div(%one, %q); %s = mul(%r, %g); %o = mul(%m, %s); %t = sub(%b, %o); %f = mul(%w, %s); %y = add(%f, %t)",
     "batch_norm(add(tanh(i), u), g, b, m, v)" HONE_ATTRIBUTES},
    {"before a residual sum", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %h = add(%f, %b); %y = add(%h, %x)", "add(" HONE_NORM ", tanh(i))"},
    {"scaled and shifted once more", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %h = mul(%d, %u); %f = mul(%h, %g); %y = add(%f, %b)",
     "add(mul(batch_norm(tanh(i), u, broadcast_to(0){shape=[3]}, m, v)" HONE_ATTRIBUTES ", g), b)"},
    {"channels last", kNormedPictures, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)",
     "transpose(batch_norm(transpose(tanh(i)){perm=[0,3,1,2]}, g, b, m, v)" HONE_ATTRIBUTES "){perm=[0,2,3,1]}"},
    {"channels first", kChannelsFirst,
     HONE_R "%k = reshape(%m) {shape=[1,3,1,1]}; %c = sub(%x, %k); %l = reshape(%q) {shape=[3,1,1]}; %d = div(%c, %l); %h = reshape(%g) {shape=[3,1,1]}; %f = mul(%d, %h); %j = reshape(%b) {shape=[1,3,1,1]}; %y = add(%f, %j)",
     HONE_NORM},
};

TEST(WrittenNorms, AreFoundInAllTheirForms) {
  for (const PassCase& c : kForms) expect_pass(restored, c);
}

TEST(WrittenNorms, AreTheSameFunction) {
  for (const PassCase& c : kForms) {
    Graph graph = small_graph(c.inputs, c.statements);
    Feeds feeds;
    double number = 0;
    for (const Input& input : graph.inputs()) {
      if (input.role == Role::kConstant) continue;
      std::vector<std::int64_t> shape;
      for (const Dim& extent : graph.type(input.value).shape) shape.push_back(extent.is_constant() ? extent.value() : 2);
      std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
      for (double& value : values) value = std::sin(number += 0.7) + (input.name == "v" ? 1.5 : 0);
      feeds.emplace(input.name, Tensor::of<double>(shape, std::span<const double>(values)));
    }
    const Tensor before = interpret(graph, feeds, Precision::kDouble)["y"];
    ASSERT_EQ(restored(graph), Changed::kYes);
    (void)expand(graph);
    const Tensor after = interpret(graph, feeds, Precision::kDouble)["y"];
    for (std::int64_t i = 0; i < before.element_count(); ++i) ASSERT_NEAR(after.at(i), before.at(i), 1e-12) << c.says << ", element " << i;
  }
}

TEST(WrittenNorms, WhatIsSomethingElseStays) {
  const PassCase cases[] = {
      {"data that are standardized", kInputs, HONE_R "%c = sub(%x, %m); %y = div(%c, %q)", ""},
      {"a variance that is worked out", kInputs, "%x = tanh(%i); %a = mul(%x, %x); %w = reduce_sum(%a) {axes=[0]}; %e = add(%w, %eps); %q = sqrt(%e); %c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)", ""},
      {"a mean that is added", kInputs, HONE_R "%c = add(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)", ""},
      {"the mean as a scale, too", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %m); %y = add(%f, %b)", ""},
      {"no root", kInputs, HONE_R "%c = sub(%x, %m); %d = div(%c, %e); %f = mul(%d, %g); %y = add(%f, %b)", ""},
      {"a variance of two layers' product", kInputs, "%x = tanh(%i); %w = mul(%v, %u); %e = add(%w, %eps); %q = sqrt(%e); %c = sub(%x, %m); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)", ""},
      {"statistics along another axis", "input %i: f32[N,3,3], weight %g: f32[3], weight %b: f32[3], weight %m: f32[3], weight %v: f32[3]" HONE_NUMBERS,
       HONE_R "%k = reshape(%m) {shape=[3,1]}; %c = sub(%x, %k); %d = div(%c, %q); %f = mul(%d, %g); %y = add(%f, %b)", ""},
  };
  for (const PassCase& c : cases) expect_pass(restored, c);
}

TEST(WrittenNorms, AreTold) {
  Graph graph = small_graph(kInputs, kForms[0].statements);
  Diags diags;
  onnx::restore_batch_norm(graph, {.file = "flax.onnx"}, diags);
  ASSERT_EQ(diags.all().size(), 1u);
  EXPECT_THAT(diags.all()[0].message, AllOf(HasSubstr("in 1 place,"), HasSubstr("\"m\", \"v\" are its means and variances")));
}

}  // namespace
}  // namespace hone::test
