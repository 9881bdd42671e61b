// What is made of the record that PyTorch's exporter (torch.export) leaves in a file: small models with the metadata as it writes them.
#include <gmock/gmock.h>

#include "frontend/onnx/exported_program.h"
#include "ir/kernel/interpret.h"
#include "passes/gradients_of.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tensor_values.h"

namespace hone::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr const char* kKindKey = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr const char* kFoldedKey = "pkg.onnxscript.optimizer.folded_from";

template <typename Proto>
void set_metadata(Proto& proto, const std::string& key, const std::string& value) {
  auto& entry = *proto.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

/// A model with a record: `parameters`, `buffers` are names in the module.
struct RecordedModel : TestModel {
  RecordedModel(const std::vector<std::string>& parameters, const std::vector<std::string>& buffers = {}) {
    std::string text = "\n# inputs\n";
    for (const std::string& name : parameters) text += fx_name(name) + ": PARAMETER target='" + name + "'\n";
    for (const std::string& name : buffers) text += "b_" + name + ": BUFFER target='" + name + "' persistent=True\n";
    set_metadata(*proto.mutable_graph(), "pkg.torch.export.ExportedProgram.graph_signature", text + "x: USER_INPUT\n\n# outputs\ny: USER_OUTPUT\n");
  }
  static std::string fx_name(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return "p_" + name;
  }
  RecordedModel& recorded(const std::string& name, const Tensor& value, const std::string& key, const std::string& text) {
    initializer(name, value);
    auto& info = *proto.mutable_graph()->add_value_info();
    info.set_name(name);
    set_metadata(info, key, text);
    return *this;
  }
  RecordedModel& parameter(const std::string& name, const Tensor& value) { return recorded(name, value, kKindKey, "PARAMETER"); }
  /// The call that the last node was.
  void call(const std::string& arguments) { set_metadata(last().proto(), "pkg.torch.onnx.fx_node", "%linear : [num_users=1] = call_function[target=aten.linear](args = (" + arguments + "), kwargs = {})"); }
};

std::vector<std::string> trained(const onnx::Imported& imported) {
  std::vector<std::string> names;
  for (const Input& input : imported.graph.inputs())
    if (input.role == Role::kWeight) names.push_back(input.name);
  return names;
}

std::string warnings(const onnx::Imported& imported) {
  std::string text;
  for (const Diag& warning : imported.warnings) text += to_string(warning) + "\n";
  return text;
}

/// y = x * scale + table.
RecordedModel scaled_and_shifted(const std::string& kind) {
  RecordedModel model({"scale"}, {"table"});
  model.input("x", {"N", 2}).output("y");
  model.parameter("scale", f32({}, {2})).recorded("table", f32({2}, {1, 2}), kKindKey, kind);
  model.node("Mul", {"x", "scale"}, {"h"});
  model.node("Add", {"h", "table"}, {"y"});
  return model;
}

TEST(ExportedProgram, BuffersAreConstantsAndScalarParametersWeights) {
  const onnx::Imported imported = scaled_and_shifted("BUFFER").import();
  EXPECT_THAT(trained(imported), ElementsAre("scale"));
  EXPECT_THAT(warnings(imported), HasSubstr("by the exporter's account this is no parameter of the model: \"table\"; not trained"));
  EXPECT_THAT(trained(scaled_and_shifted("CONSTANT_TENSOR").import()), ElementsAre("scale"));
  EXPECT_THAT(trained(scaled_and_shifted("something new").import()), UnorderedElementsAre("scale", "table")) << "what is not understood says nothing";
}

TEST(ExportedProgram, WhatTheRecipeNamesIsAWeight) {
  const onnx::Imported imported = scaled_and_shifted("BUFFER").import({.mend = {.train_only = {"table"}}});
  EXPECT_THAT(trained(imported), UnorderedElementsAre("scale", "table"));
  EXPECT_THAT(imported.warnings, IsEmpty());
}

/// y = x + c, where c was folded from `from`.
std::vector<std::string> trained_if_folded_from(const std::string& from) {
  RecordedModel model({"fc.weight", "cls"}, {"pe"});
  model.input("x", {"N", 2}).output("y");
  model.recorded("c", f32({2}, {1, 2}), kFoldedKey, from);
  model.node("Add", {"x", "c"}, {"y"});
  return trained(model.import());
}

TEST(ExportedProgram, WhatWasFoldedIsAWeightIfAParameterIsInIt) {
  EXPECT_THAT(trained_if_folded_from("['val_1', 'zeros']"), IsEmpty());
  EXPECT_THAT(trained_if_folded_from("['pe', 'val_1']"), IsEmpty());
  EXPECT_THAT(trained_if_folded_from("['cls', 'val_1']"), ElementsAre("c"));
  EXPECT_THAT(trained_if_folded_from("[\"fc.weight\"]"), ElementsAre("c"));
  EXPECT_THAT(trained_if_folded_from("['fc.weight_bias', 'val_1']"), ElementsAre("c")) << "made out of parameters by an optimizer, not recorded";
  EXPECT_THAT(trained_if_folded_from("['old.name']"), ElementsAre("c"));
  EXPECT_THAT(trained_if_folded_from("['unfinished"), IsEmpty());
  EXPECT_THAT(trained_if_folded_from(""), ElementsAre("c"));
}

/// Two linear layers whose weights were equal, so that the file has one; `second` is what the second one's call took.
RecordedModel merged(const std::string& second, const std::string& name = "a.weight", const Tensor& weight = wavy({2, 2})) {
  RecordedModel model({"a.weight", "a.bias", "b.weight", "b.bias"});
  model.input("x", {"N", 2}).output("y");
  if (name == "a.weight") model.parameter(name, weight);
  else model.recorded(name, weight, kFoldedKey, "['a.weight']");
  model.parameter("a.bias", f32({2}, {1, 2})).parameter("b.bias", f32({2}, {3, 4}));
  model.node("Gemm", {"x", name, "a.bias"}, {"h"}).set("transB", name == "a.weight" ? 1 : 0);
  model.call("%x, %p_a_weight, %p_a_bias");
  model.node("Gemm", {"h", name, "b.bias"}, {"y"}).set("transB", name == "a.weight" ? 1 : 0);
  model.call(second);
  return model;
}

/// What the two nodes of batch normalizations in a model that was never trained read, which one initializer of ones and one of zeros are; with the calls' buffers.
std::vector<std::string> operands_of_norms(const std::string& first, const std::string& second) {
  RecordedModel model({"a.weight", "a.bias"}, {"a_mean", "a_var", "b_mean", "b_var"});
  model.input("x", {"N", 2}).output("y");
  model.parameter("a.weight", f32({2}, {1, 1})).parameter("a.bias", f32({2}, {0, 0}));
  model.node("BatchNormalization", {"x", "a.weight", "a.bias", "a.bias", "a.weight"}, {"h"});
  model.call("%x, %p_a_weight, %p_a_bias, " + first);
  model.node("BatchNormalization", {"h", "a.weight", "a.bias", "a.bias", "a.weight"}, {"y"});
  model.call("%h, %p_a_weight, %p_a_bias, " + second);
  const onnx::Imported imported = model.import();
  std::vector<std::string> names;
  for (const Node& node : imported.graph.nodes())
    for (std::size_t i = 1; i < node.operands.size(); ++i) names.push_back(imported.graph.input_of(node.operands[i])->name);
  EXPECT_THAT(warnings(imported), HasSubstr("in \"a.weight\", \"a.bias\": they are kept apart"));
  return names;
}

/// Else gammas and betas would count as statistics, and not be trained. A layer that is called twice keeps its statistics.
TEST(ExportedProgram, StatisticsThatWereMergedAreApart) {
  EXPECT_THAT(operands_of_norms("%b_a_mean, %b_a_var", "%b_b_mean, %b_b_var"), ElementsAre("a.weight", "a.bias", "a_mean", "a_var", "a.weight", "a.bias", "b_mean", "b_var"));
  EXPECT_THAT(operands_of_norms("%b_a_mean, %b_a_var", "%b_a_mean, %b_a_var"), ElementsAre("a.weight", "a.bias", "a_mean", "a_var", "a.weight", "a.bias", "a_mean", "a_var"));
}

TEST(ExportedProgram, EqualParametersThatWereMergedAreApart) {
  const onnx::Imported imported = merged("%h, %p_b_weight, %p_b_bias").import();
  EXPECT_THAT(trained(imported), UnorderedElementsAre("a.weight", "a.bias", "b.weight", "b.bias")) << "under the names that they had";
  EXPECT_THAT(warnings(imported), HasSubstr("\"a.weight\" stood for several parameters each that were equal when exported: they are trained apart, as \"b.weight\" too"));
  EXPECT_EQ(imported.model.graph().node(1).input(1), "b.weight");
  EXPECT_THAT(trained(merged("%h, %p_b_weight, %p_b_bias", "val_9").import()), UnorderedElementsAre("val_9", "val_9@b.weight", "a.bias", "b.bias"));
}

TEST(ExportedProgram, TiedParametersStayOne) {
  EXPECT_THAT(trained(merged("%h, %p_a_weight, %p_b_bias").import()), UnorderedElementsAre("a.weight", "a.bias", "b.bias"));
  EXPECT_THAT(trained(merged("%h, %permute, %p_b_bias").import()), UnorderedElementsAre("a.weight", "a.bias", "b.bias")) << "b.bias is in the file: nothing was merged";
  EXPECT_THAT(trained(merged("%h").import()), UnorderedElementsAre("a.weight", "a.bias", "b.bias")) << "the call says nothing";
  EXPECT_THAT(trained(merged("%h, %p_b_weight, %p_b_bias").import({.mend = {.tie = {"a.weight"}}})), UnorderedElementsAre("a.weight", "a.bias", "b.bias"));
}

TEST(ExportedProgram, ACopyFoldedOutOfAWeightIsOneWithIt) {
  RecordedModel model({"w"});
  model.input("x", {"N", 2}).output("y");
  model.parameter("w", f32({2, 2}, {1, 2, 3, 4})).recorded("val_1", f32({2, 2}, {1, 3, 2, 4}), kFoldedKey, "['w']");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("MatMul", {"h", "val_1"}, {"y"});
  EXPECT_THAT(trained(model.import()), ElementsAre("w"));
}

/// y = x w, and what was folded out of w as `value` is added; `name` is the exporter's for it.
RecordedModel with_folded(const std::string& name, const Tensor& w, const Tensor& value) {
  RecordedModel model({"w"});
  model.input("x", {"N", w.shape()[0]}).output("y");
  model.parameter("w", w).recorded(name, value, kFoldedKey, "['val_1', 'w']");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("Add", {"h", name}, {"y"});
  return model;
}

TEST(ExportedProgram, ViewsOfAParameterAreMadeOfItAgain) {
  const Tensor w = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::pair<const char*, Tensor> views[] = {{"slice_1", f32({3}, {4, 5, 6})},         {"view", f32({2, 1, 3}, {1, 2, 3, 4, 5, 6})},    {"permute_2", f32({3, 1, 1, 2, 1}, {1, 4, 2, 5, 3, 6})}, {"select_1", f32({2, 1}, {2, 5})},
                                                  {"flip", f32({2, 3}, {6, 5, 4, 3, 2, 1})}, {"expand", f32({2, 3}, {3, 3, 3, 3, 3, 3})},     {"neg", f32({3}, {-1, -2, -3})},                          {"index", f32({3}, {6, 1, 6})}};
  for (const auto& [name, value] : views) {
    const RecordedModel model = with_folded(name, w, value);
    const onnx::Imported imported = model.import();
    EXPECT_THAT(trained(imported), ElementsAre("w")) << name;
    EXPECT_THAT(warnings(imported), HasSubstr(std::string("these are views of weights: \"") + name + "\" (of \"w\")"));
    EXPECT_THAT(trained(model.import({.mend = {.train_only = {"w", name}}})), UnorderedElementsAre("w", name)) << "the recipe says that they are two";
  }
}

TEST(ExportedProgram, AViewMovesWithItsParameter) {
  const onnx::Imported imported = with_folded("select_1", f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({2, 1}, {2, 5})).import();
  EXPECT_THAT(elements(interpret(imported.graph, {{"x", f32({2, 2}, {1, 0, 0, 1})}, {"w", f32({2, 3}, {10, 20, 30, 40, 50, 60})}})["y"]), ElementsAre(30, 40, 50, 90, 100, 110));
}

TEST(ExportedProgram, ElementsOfLargeViewsAreFoundThoughTheyRepeat) {
  std::vector<float> values, columns;
  for (int i = 0; i < 40; ++i)
    for (int j = 0; j < 8; ++j) {
      values.push_back(static_cast<float>((i * 8 + j) % 301));  // some twice
      if (j >= 4) columns.push_back(values.back());
    }
  EXPECT_THAT(trained(with_folded("slice_1", f32({40, 8}, values), f32({40, 4, 1, 1}, columns)).import()), ElementsAre("w"));
}

TEST(ExportedProgram, WhatIsNoViewTrainsApartAndIsNamed) {
  const Tensor w = f32({2, 2}, {1, 2, 3, 4}), ones = f32({2, 2}, {1, 1, 1, 1});
  const std::tuple<const char*, Tensor, Tensor> cases[] = {{"pow_1", w, f32({2, 2}, {1, 4, 9, 16})}, {"pow_2", ones, ones}, {"permute", ones, ones}, {"cat", w, f32({2, 2}, {1, 2, 7, 8})}};
  for (const auto& [name, parameter, value] : cases) {
    const onnx::Imported imported = with_folded(name, parameter, value).import();
    EXPECT_THAT(trained(imported), UnorderedElementsAre("w", name));
    EXPECT_THAT(warnings(imported), testing::AllOf(HasSubstr("they are trained apart"), HasSubstr("optimize=False"))) << name;
  }
  EXPECT_THAT(trained(with_folded("unsqueeze", ones, f32({2, 1, 2}, {1, 1, 1, 1})).import()), ElementsAre("w")) << "equal elements in their order";
}

TEST(ExportedProgram, PartsOfAParameterThatTheFileHasNowhere) {
  const auto import = [](const std::string& first, const Tensor& a, const std::string& second, const Tensor& b) {
    RecordedModel model({"w"});
    model.input("x", {"N", 2}).output("y");
    model.recorded(first, a, kFoldedKey, "['w']").recorded(second, b, kFoldedKey, "['w']");
    model.node("Mul", {"x", first}, {"h"});
    model.node("Add", {"h", second}, {"y"});
    return model.import();
  };
  const onnx::Imported apart = import("select", f32({2}, {1, 2}), "select_1", f32({2}, {3, 4}));
  EXPECT_THAT(trained(apart), UnorderedElementsAre("select", "select_1"));
  EXPECT_THAT(warnings(apart), Not(HasSubstr("account"))) << "each element is in one of them";
  EXPECT_THAT(trained(import("slice_1", f32({2, 2}, {1, 2, 3, 4}), "select", f32({2}, {3, 4}))), ElementsAre("slice_1"));
  EXPECT_THAT(warnings(import("slice_1", f32({2}, {1, 2}), "slice_2", f32({2}, {2, 3}))), HasSubstr("they are trained apart"));
  EXPECT_THAT(warnings(import("exp", f32({2}, {1, 2}), "slice_2", f32({2}, {5, 6}))), HasSubstr("these were computed from parameters: \"exp\" (of \"w\"); what is trained are the results"));
}

TEST(ExportedProgram, ANormalizationWithoutAScaleHasNone) {
  for (const bool has_own : {false, true}) {
    RecordedModel model({"a.weight", "a.bias"});
    model.input("x", {"N", 3, 5}).output("y");
    model.parameter("a.weight", ones(3)).parameter("a.bias", f32({3}, {0, 0, 0}));
    model.node("InstanceNormalization", {"x", "a.weight", "a.bias"}, {"h"});
    model.call("%x, %p_a_weight, %p_a_bias");
    model.node("Relu", {"h"}, {"g"});
    model.node("InstanceNormalization", {"g", "a.weight", "a.bias"}, {"y"});
    model.call(has_own ? "%g, %view, %view_1" : "%g, None, None");
    const onnx::Imported imported = model.import();
    EXPECT_EQ(trained(imported).size(), has_own ? 4U : 2U);
    EXPECT_EQ(warnings(imported).find("is trained apart for each") != std::string::npos, has_own);
  }
}

/// A layer without a bias, whose call took one.
RecordedModel without_bias(const std::string& op, const Tensor& weight) {
  RecordedModel model({"fc.weight", "fc.bias"});
  model.input("x", op == "Gemm" ? std::vector<Extent>{"N", 2} : std::vector<Extent>{"N", 2, 4}).output("y");
  model.parameter("fc.weight", weight);
  model.node(op, {"x", "fc.weight"}, {"y"});
  model.call("%x, %p_fc_weight, %p_fc_bias");
  return model;
}

TEST(ExportedProgram, ZeroBiasesThatWereLeftOutComeBack) {
  for (const auto& [op, weight] : {std::pair{"Gemm", wavy({2, 3})}, {"Conv", wavy({3, 2, 1})}, {"ConvTranspose", wavy({2, 3, 1})}}) {
    const onnx::Imported imported = without_bias(op, weight).import();
    EXPECT_THAT(trained(imported), ElementsAre("fc.weight", "fc.bias")) << op;
    EXPECT_THAT(warnings(imported), HasSubstr("the exporter left out 1 bias that was zero, by its own record: \"fc.bias\"")) << op;
    const auto& bias = imported.model.graph().initializer(1);
    EXPECT_EQ(bias.dims(0), 3) << op;
  }
}

/// By its place in the call, whatever it is called; one that another node reads, too, is in the file.
TEST(ExportedProgram, ZeroBiasesOfAnyNameComeBack) {
  for (const bool is_read : {false, true}) {
    RecordedModel model({"w", "b", "shift"});
    model.input("x", {"N", 2}).output("y");
    model.parameter("w", wavy({2, 3}));
    if (is_read) model.parameter("b", f32({3}, {0, 0, 0}));
    model.node("Gemm", {"x", "w"}, {is_read ? "h" : "y"});
    model.call("%x, %p_w, %p_b");
    if (is_read) {
      model.node("Add", {"h", "b"}, {"y"});
      model.call("%h, %p_b");
    }
    const onnx::Imported imported = model.import();
    EXPECT_THAT(trained(imported), ElementsAre("w", "b"));
    EXPECT_EQ(imported.model.graph().node(0).input(2), "b");
  }
}

TEST(ExportedProgram, EqualParametersOfOneNumberAreApart) {
  RecordedModel model({"gates.0", "gates.1"});
  model.input("x", {"N", 2}).output("y");
  model.parameter("gates.0", f32({}, {0.5F}));
  model.node("Mul", {"x", "gates.0"}, {"h"});
  model.call("%x, %p_gates_0");
  model.node("Mul", {"h", "gates.0"}, {"y"});
  model.call("%h, %p_gates_1");
  EXPECT_THAT(trained(model.import()), UnorderedElementsAre("gates.0", "gates.1"));
}

/// What two cross-attentions, in modules a and b, make of their biases, which are equal: each is split, by a node of which nothing is recorded, for a call of the module.
struct SplitBiases : RecordedModel {
  explicit SplitBiases(bool as_one) : RecordedModel({"a.bias", "b.bias"}) {
    input("x", {"N", 2}).output("y");
    parameter("a.bias", f32({4}, {1, 1, 1, 1}));
    node("Split", {"a.bias"}, {"a0", "a1"}).set("axis", 0);
    if (not as_one) node("Split", {"a.bias"}, {"b0", "b1"}).set("axis", 0);
    adds("a", "x", "a0", "h0");
    adds("a", "h0", "a1", "h1");
    adds("b", "h1", as_one ? "a0" : "b0", "h2");
    adds("b", "h2", as_one ? "a1" : "b1", "y");
  }
  void adds(const std::string& module, const std::string& to, const std::string& what, const std::string& sum) {
    node("Add", {to, what}, {sum});
    set_metadata(last().proto(), "pkg.torch.onnx.name_scopes", "['', '" + module + "', 'linear']");
    call("%" + to + ", %getitem");
  }
};

TEST(ExportedProgram, ParametersThatUnrecordedNodesReadAreThoseOfTheModuleBehind) {
  for (const bool as_one : {false, true}) {
    const SplitBiases model(as_one);
    const onnx::Imported imported = model.import();
    EXPECT_THAT(trained(imported), UnorderedElementsAre("a.bias", "b.bias")) << as_one;
    const GraphResults results = interpret(build_gradient_function(imported.graph, {}, {.of = "y", .wrt = {"a.bias", "b.bias"}}), {{"x", f32({3, 2}, {1, 2, 3, 4, 5, 6})}});
    EXPECT_EQ(elements(results["a.bias_grad"]), (std::vector<double>{3, 3, 3, 3})) << as_one;
    EXPECT_EQ(elements(results["b.bias_grad"]), (std::vector<double>{3, 3, 3, 3})) << as_one;
  }
}

/// dy / dw where y is a sum over what `node` makes of h = x w and g = x w, which other calls made; `arguments` are the call's.
std::vector<double> gradient_behind(const std::string& op_type, const std::vector<std::string>& operands, const std::string& arguments) {
  RecordedModel model({"w"});
  model.input("x", {1, 2}).output("y");
  model.parameter("w", f32({2, 1}, {1, 2}));
  for (const char* name : {"h", "g"}) {
    model.node("MatMul", {"x", "w"}, {name});
    set_metadata(model.last().proto(), "pkg.torch.onnx.fx_node", std::string("%") + name + " : [num_users=1] = call_function[target=aten.mm](args = (%x, %p_w), kwargs = {})");
  }
  model.node(op_type, operands, {"y"});
  set_metadata(model.last().proto(), "pkg.torch.onnx.fx_node", "%y : [num_users=1] = call_function[target=aten.f](args = (" + arguments + "), kwargs = {})");
  return elements(interpret(build_gradient_function(model.import().graph, {}, {.of = "y", .wrt = {"w"}}), {{"x", f32({1, 2}, {1, 1})}})["w_grad"]);
}

/// h and g are 3.
TEST(ExportedProgram, WhatWasDetachedGetsNoGradient) {
  using Slopes = std::vector<double>;
  EXPECT_EQ(gradient_behind("Mul", {"h", "g"}, "%h, %g"), (Slopes{6, 6}));
  EXPECT_EQ(gradient_behind("Mul", {"h", "g"}, "%h, %detach"), (Slopes{3, 3}));
  EXPECT_EQ(gradient_behind("Sub", {"h", "g"}, "%detach_1, %g"), (Slopes{-1, -1}));
  EXPECT_EQ(gradient_behind("Sub", {"h", "h"}, "%h, %detach"), (Slopes{1, 1})) << "the same value, as it is and detached";
  EXPECT_EQ(gradient_behind("Mul", {"h", "g"}, "%clone, %detach"), (Slopes{3, 3})) << "told by the place";
  EXPECT_THROW(gradient_behind("Identity", {"g"}, "%h, %detach"), Error) << "a part of the call, which takes what has no name: nothing depends on w";
  EXPECT_EQ(gradient_behind("Identity", {"h"}, "%h, %detach"), (Slopes{1, 1}));
  EXPECT_EQ(gradient_behind("Identity", {"g"}, "%clone, %detach"), (Slopes{1, 1})) << "either could be it";
}

/// As in PyTorch: an embedding's padding row is looked up and not learned.
TEST(ExportedProgram, PaddingRowsGetNoGradient) {
  using onnx::padding_row_of;
  const auto call = [](const std::string& arguments) { return "%e : [num_users=1] = call_function[target=torch.ops.aten.embedding.default](args = (" + arguments + "), kwargs = {})"; };
  EXPECT_EQ(padding_row_of(call("%p_w, %tokens, 3")), 3);
  EXPECT_EQ(padding_row_of(call("%p_w, %tokens, 0, True")), 0);
  for (const char* arguments : {"%p_w, %tokens", "%p_w, %tokens, -1", "%p_w, %tokens, True", "%p_w, %tokens, ", "", "%p_w, %tokens, 99999999999999999999"})
    EXPECT_EQ(padding_row_of(call(arguments)), std::nullopt) << arguments;
  EXPECT_EQ(padding_row_of("target=torch.ops.aten.embedding.default](args = ("), std::nullopt);
  EXPECT_EQ(padding_row_of("target=torch.ops.aten.index.Tensor](args = (%p_w, %tokens, 3), kwargs = {})"), std::nullopt);

  RecordedModel model({"w"});
  model.input("tokens", {4}, DType::kI64).output("y");
  model.parameter("w", f32({3, 2}, {1, 2, 3, 4, 5, 6}));
  model.node("Gather", {"w", "tokens"}, {"y"});
  set_metadata(model.last().proto(), "pkg.torch.onnx.fx_node", call("%p_w, %tokens, 1"));
  const GraphResults results = interpret(build_gradient_function(model.import().graph, {}, {.of = "y", .wrt = {"w"}}), {{"tokens", i64({4}, {1, 0, 1, 2})}});
  EXPECT_EQ(elements(results["y"]), (std::vector<double>{3, 4, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(elements(results["w_grad"]), (std::vector<double>{1, 1, 0, 0, 1, 1}));
}

TEST(ExportedProgram, WithoutARecordNothingChanges) {
  RecordedModel model({});
  model.input("x", {"N", 2}).output("y");
  model.recorded("c", f32({2}, {1, 2}), kKindKey, "BUFFER").recorded("d", f32({2}, {1, 2}), kFoldedKey, "['zeros']");
  model.node("Add", {"x", "c"}, {"h"});
  model.node("Mul", {"h", "d"}, {"y"});
  EXPECT_THAT(trained(model.import()), UnorderedElementsAre("c", "d"));
}

TEST(ExportedProgram, HostileRecordsDoNoHarm) {
  for (const std::string& text : {std::string("p: PARAMETER target='"), std::string("'''': PARAMETER target="), std::string(100000, '\''), std::string("a: PARAMETER target=''\n"),
                                  std::string("p_w: PARAMETER target='x'\n")}) {
    TestModel model;
    set_metadata(*model.proto.mutable_graph(), "pkg.torch.export.ExportedProgram.graph_signature", text);
    model.input("x", {"N", 2}).initializer("w", wavy({2, 2})).output("y");
    model.node("Gemm", {"x", "w"}, {"y"});
    set_metadata(model.last().proto(), "pkg.torch.onnx.fx_node", "%%%p_w, %p_bias, %");
    EXPECT_THAT(trained(model.import()), Not(IsEmpty())) << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace hone::test
