// What exporters do to weights, and what becomes of it: small models with one damage each, and the recorded ones.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tests/frontend/test_model.h"
#include "ir/ops/ops.h"

namespace hone::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::string> initializers_of(const onnx::Imported& imported) {
  std::vector<std::string> names;
  for (const auto& tensor : imported.model.graph().initializer()) names.push_back(tensor.name());
  return names;
}

std::string warnings_of(const onnx::Imported& imported) {
  std::string text;
  for (const Diag& warning : imported.warnings) text += to_string(warning) + "\n";
  return text;
}

onnx::ImportOptions tied(std::vector<std::string> patterns) { return {.mend = {.tie = std::move(patterns)}}; }

/// y = (x * scale) * alias, where alias is scale by an Identity node.
TestModel with_alias(const Tensor& scale) {
  TestModel model;
  model.input("x", {"N", scale.element_count()}).initializer("a.scale", scale).output("y");
  model.node("Identity", {"a.scale"}, {"b.scale"}).named("Identity_0");
  model.node("Mul", {"x", "a.scale"}, {"h"});
  model.node("Mul", {"h", "b.scale"}, {"y"});
  return model;
}

TEST(MendAliases, AreWeightsOfTheirOwn) {
  const onnx::Imported imported = with_alias(ones(3)).import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("a.scale", "b.scale"));
  EXPECT_THAT(initializers_of(imported), ElementsAre("a.scale", "b.scale")) << "what is trained goes back under its name";
  EXPECT_EQ(imported.model.graph().node_size(), 2) << "the Identity is gone";
  EXPECT_THAT(warnings_of(imported), HasSubstr("the weight \"a.scale\" also goes by the names \"b.scale\": each of them is trained as a weight of its own"));
  EXPECT_THAT(warnings_of(imported), HasSubstr("tie = [\"a.scale\"]"));
}

TEST(MendAliases, OfDifferentElementsAreApartToo) { EXPECT_EQ(weights_of(with_alias(wavy({3})).import()).size(), 2U) << "copies of one fresh layer"; }

TEST(MendAliases, StayOneWhenTheRecipeTiesThem) {
  for (const std::string name : {"a.scale", "b.scale", "*.scale"}) {
    const onnx::Imported imported = with_alias(ones(3)).import(tied({name}));
    EXPECT_THAT(weights_of(imported), ElementsAre("a.scale")) << name;
    EXPECT_THAT(warnings_of(imported), HasSubstr("they are trained as one")) << name;
  }
}

TEST(MendAliases, AnEmbeddingAndItsHeadStayOne) {
  TestModel model;
  model.input("ids", {"N"}, DType::kI64).initializer("embedding", wavy({5, 3})).output("y");
  model.node("Identity", {"embedding"}, {"head"});
  model.node("Gather", {"embedding", "ids"}, {"h"});
  model.node("Transpose", {"head"}, {"w"});
  model.node("MatMul", {"h", "w"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("embedding"));
}

TEST(MendAliases, OfIntegersAndOfNumbersAreLeftAlone) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("scale", f32({}, {2})).output("y");
  model.node("Identity", {"scale"}, {"same"});
  model.node("Mul", {"x", "same"}, {"y"});
  const onnx::Imported imported = model.import();
  EXPECT_EQ(imported.model.graph().node_size(), 2);
  EXPECT_THAT(imported.warnings, IsEmpty());
}

TEST(MendAliases, ThatAreOutputsAreLeftAlone) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("w", ones(2)).output("y").output("z");
  model.node("Identity", {"w"}, {"z"});
  model.node("Add", {"x", "w"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("w"));
}

/// Two norms, each a Mul by one scale and an Add of one bias, in layers that the nodes' names tell.
TestModel with_merged(const Tensor& scale, const std::string& first, const std::string& second) {
  TestModel model;
  model.input("x", {"N", scale.element_count()}).initializer("ln1.weight", scale).output("y");
  model.node("Mul", {"x", "ln1.weight"}, {"h"}).named("/" + first + "/Mul");
  model.node("Mul", {"h", "ln1.weight"}, {"y"}).named("/" + second + "/Mul");
  return model;
}

TEST(MendMerged, EqualElementsAreReadApartByEachLayer) {
  const onnx::Imported imported = with_merged(ones(3), "ln1", "ln2").import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("ln1.weight", "ln2.weight")) << "named as the layer's own weight would be";
  EXPECT_THAT(warnings_of(imported), HasSubstr("is read by 2 layers: it is trained apart for each, as \"ln2.weight\" too"));
}

TEST(MendMerged, TheLayerOfTheNameKeepsIt) {
  const onnx::Imported imported = with_merged(ones(3), "ln0", "ln1").import();
  EXPECT_EQ(imported.model.graph().node(1).input(1), "ln1.weight");
  EXPECT_EQ(imported.model.graph().node(0).input(1), "ln0.weight");
}

TEST(MendMerged, DifferentElementsStayShared) { EXPECT_THAT(weights_of(with_merged(wavy({3}), "ln1", "ln2").import()), ElementsAre("ln1.weight")); }

TEST(MendMerged, ALayerCalledTwiceKeepsOneWeight) { EXPECT_THAT(weights_of(with_merged(ones(3), "ln1", "ln1").import()), ElementsAre("ln1.weight")); }

TEST(MendMerged, StaysOneWhenTheRecipeTiesIt) { EXPECT_THAT(weights_of(with_merged(ones(3), "ln1", "ln2").import(tied({"ln1.*"}))), ElementsAre("ln1.weight")); }

TEST(MendMerged, BiasesOfProductsAndNormsAreApart) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("w", wavy({2, 2})).initializer("v", wavy({2, 2})).initializer("zero", f32({2}, {0, 0})).output("y");
  model.node("Gemm", {"x", "w", "zero"}, {"h"}).named("first");
  model.node("Gemm", {"h", "v", "zero"}, {"y"}).named("second");
  EXPECT_THAT(weights_of(model.import()), UnorderedElementsAre("w", "v", "zero", "zero@second"));
}

TEST(MendMerged, APatternThatMatchesNothingIsAnError) {
  try {
    with_merged(ones(3), "ln1", "ln2").import(tied({"ln1.wieght"}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.tie: \"ln1.wieght\" matches no weight of the model"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"ln1.weight\"?"));
  }
}

/// An embedding [5,3] and a head [3,5] that is its transpose, if `same`.
TestModel with_equal_heads(bool same) {
  const Tensor table = wavy({5, 3});
  std::vector<float> head(15);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 3; ++j) head[j * 5 + i] = static_cast<float>(table.at(static_cast<std::int64_t>(i * 3 + j))) + (same or i + j != 3 ? 0.0F : 1.0F);
  TestModel model;
  model.input("ids", {"N"}, DType::kI64).initializer("table", table).initializer("head", f32({3, 5}, head)).output("y");
  model.node("Gather", {"table", "ids"}, {"h"});
  model.node("MatMul", {"h", "head"}, {"y"});
  return model;
}

TEST(MendTies, AnEmbeddingAndItsTransposedCopyAreOne) {
  const onnx::Imported imported = with_equal_heads(true).import();
  EXPECT_THAT(weights_of(imported), ElementsAre("table"));
  EXPECT_THAT(warnings_of(imported), HasSubstr("the weight \"head\" is the transpose of \"table\": they are trained as one"));
  EXPECT_THAT(warnings_of(imported), HasSubstr("name both in model.train_only"));
  EXPECT_THAT(with_equal_heads(false).import().warnings, IsEmpty());
  EXPECT_EQ(weights_of(with_equal_heads(true).import({.mend = {.train_only = {"table", "head"}}})).size(), 2U) << "the recipe says that they are two";
}

TEST(MendTies, AnyOtherTransposeIsWorthAWarning) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("v", f32({2, 2}, {1, 2, 3, 4})).initializer("w", f32({2, 2}, {1, 3, 2, 4})).output("y");
  model.node("MatMul", {"x", "v"}, {"h"});
  model.node("MatMul", {"h", "w"}, {"y"});
  EXPECT_EQ(weights_of(model.import()).size(), 2U);
  EXPECT_THAT(warnings_of(model.import()), HasSubstr("the weight \"w\" is the transpose of \"v\": they look like one"));
}

TEST(MendTies, TheRecipeMakesItOne) {
  const onnx::Imported imported = with_equal_heads(true).import(tied({"head"}));
  EXPECT_THAT(weights_of(imported), ElementsAre("table"));
  EXPECT_THAT(initializers_of(imported), ElementsAre("table"));
  EXPECT_EQ(imported.model.graph().node(0).op_type(), "Transpose");
  EXPECT_EQ(imported.model.graph().node(0).output(0), "head");
  EXPECT_THAT(warnings_of(imported), Not(HasSubstr("ties nothing")));
  const onnx::Imported apart = with_equal_heads(false).import(tied({"head"}));
  EXPECT_EQ(weights_of(apart).size(), 2U) << "they are not equal";
  EXPECT_THAT(warnings_of(apart), HasSubstr("model.tie: \"head\" ties nothing"));
}

TEST(MendTies, EqualWeightsBecomeOneToo) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("v", wavy({2, 2})).initializer("w", wavy({2, 2})).output("y");
  model.node("MatMul", {"x", "v"}, {"h"});
  model.node("MatMul", {"h", "w"}, {"y"});
  EXPECT_EQ(weights_of(model.import()).size(), 2U);
  EXPECT_THAT(model.import().warnings, IsEmpty());
  EXPECT_THAT(weights_of(model.import(tied({"w"}))), ElementsAre("v"));
}

TEST(MendFilled, ConstantOfShapeIsAWeightOnRequest) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("shape", ints({2, 3})).initializer("many", ints({3})).output("y");
  model.node("ConstantOfShape", {"shape"}, {"w"}).set("value", f32({1}, {0.5F}));
  model.node("ConstantOfShape", {"many"}, {"mask"});
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("Where", {"mask_is_zero", "h", "mask"}, {"y"});
  model.initializer("mask_is_zero", Tensor::zeros(DType::kBool, {3}));
  EXPECT_THAT(weights_of(model.import()), IsEmpty());
  const onnx::Imported filled = model.import({.mend = {.fill_weights = true}});
  EXPECT_THAT(weights_of(filled), ElementsAre("w")) << "and not the mask";
  EXPECT_THAT(values_of(*filled.graph.find_input("w")->data), ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(initializers_of(filled), UnorderedElementsAre("shape", "many", "mask_is_zero", "w"));
}

TEST(MendFolded, ConvolutionsThatSwallowedTheirNormAreNamed) {
  const auto conv = [](const std::string& weight, const std::string& bias) {
    TestModel model;
    model.input("x", {"N", 2, 4, 4}).initializer(weight, wavy({2, 2, 1, 1})).initializer(bias, wavy({2})).output("y");
    model.node("Conv", {"x", weight, bias}, {"y"}).named("stem/conv");
    return warnings_of(model.import());
  };
  EXPECT_THAT(conv("onnx::Conv_90", "stem.bias"), Not(HasSubstr("batch normalization"))) << "a weight that is normalized itself";
  EXPECT_THAT(conv("onnx::Conv_90", "onnx::Conv_91"), HasSubstr("batch normalization is folded into 1 convolution: \"stem/conv\"; they train as plain ones"));
  EXPECT_THAT(conv("conv.weight", "conv.weight_bias"), HasSubstr("is folded"));
  EXPECT_THAT(conv("stem/conv/w", "stem/bn1/bias"), HasSubstr("is folded"));
  EXPECT_EQ(conv("conv.weight", "conv.bias"), "");
}

TEST(MendFolded, KerasLeavesAProductAndASum) {
  TestModel model;
  model.input("x", {"N", 2, 4, 4}).initializer("w", wavy({2, 2, 1, 1})).initializer("scale", wavy({1, 2, 1, 1})).initializer("shift", wavy({1, 2, 1, 1})).output("y");
  model.node("Conv", {"x", "w"}, {"h"}).named("conv");
  model.node("Mul", {"h", "scale"}, {"s"});
  model.node("Add", {"s", "shift"}, {"y"});
  EXPECT_THAT(warnings_of(model.import()), HasSubstr("folded into 1 convolution: \"conv\""));
}

TEST(Mend, OldFilesListNewWeightsAsInputsToo) {
  TestModel model = with_alias(ones(3));
  model.proto.set_ir_version(3);
  const onnx::Imported imported = model.import();
  EXPECT_EQ(imported.model.graph().input(imported.model.graph().input_size() - 1).name(), "b.scale");
}

/// Recorded models: the weights that their frameworks train, and no others.
TEST(Mend, GivesAFreshPyTorchModelItsWeightsBack) {
  const std::string path = std::string(HONE_SHARED_DIR) + "/models/torch_fresh_init/model.onnx";
  if (not std::filesystem::exists(path)) GTEST_SKIP() << "the recorded models of ../shared/models are not here";
  const onnx::ModelProto before = load_model(path);
  onnx::ModelProto after = before;
  Diags diags;
  onnx::mend_weights(after, "model.onnx", ".", {}, diags);
  EXPECT_EQ(after.graph().initializer_size(), before.graph().initializer_size() + 10);
  EXPECT_TRUE(std::none_of(after.graph().node().begin(), after.graph().node().end(), [](const auto& node) { return node.op_type() == "Identity"; }));
}

/// Layer scales that were folded to [C,1,1], and merged: x scale scale2, or where `shape` is no vector one weight.
TEST(MendMerged, ScalesOfChannelsAreVectorsToo) {
  const auto weights = [](std::vector<std::int64_t> shape) {
    TestModel model;
    model.input("x", {"N", 3, 3, 4}).initializer("view", f32(shape, std::vector<float>(static_cast<std::size_t>(shape[0] * shape[1]), 0.5F))).output("y");
    model.node("Mul", {"x", "view"}, {"h"}).named("/block.0/ls/Mul");
    model.node("Mul", {"h", "view"}, {"y"}).named("/block.1/ls/Mul");
    return weights_of(model.import()).size();
  };
  EXPECT_EQ(weights({3, 1, 1}), 2U);
  EXPECT_EQ(weights({1, 3, 1}), 2U);
  EXPECT_EQ(weights({3, 3, 1}), 1U) << "a matrix is no scale";
}

// --- What a gradient would reach and nobody learns ---

TEST(MendOneHot, ValuesAreNoWeight) {
  TestModel model;
  model.input("x", {"N"}, DType::kI64).initializer("depth", i64({}, {3})).initializer("values", f32({2}, {0, 1})).initializer("w", wavy({3, 2})).output("y");
  model.node("OneHot", {"x", "depth", "values"}, {"h"});
  model.node("MatMul", {"h", "w"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("w"));
  EXPECT_THAT(weights_of(model.import({.mend = {.train_only = {"values"}}})), ElementsAre("values", "w"));
  model.node("Mul", {"values", "values"}, {"squares"});
  model.output("squares");
  EXPECT_THAT(weights_of(model.import()), ElementsAre("values", "w")) << "somebody computes with them";
}

TEST(MendQuantized, ScalesAreNoWeightsAndAWarningSaysWhatIsNotTrained) {
  TestModel model;
  model.input("x", {"N", 3}).initializer("w", wavy({3, 2})).initializer("scale", f32({2}, {0.5F, 0.25F})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("QuantizeLinear", {"h", "scale"}, {"q"}).named("quantize").set("axis", 1);
  model.node("DequantizeLinear", {"q", "scale"}, {"y"}).set("axis", 1);
  EXPECT_THAT(weights_of(model.import()), ElementsAre("w"));
  EXPECT_THAT(warnings_of(model.import()), HasSubstr("the model is quantized, by 1 node: \"quantize\"; no gradient passes what is rounded"));
  EXPECT_THAT(weights_of(model.import({.mend = {.train_only = {"scale"}}})), ElementsAre("w", "scale"));
}

TEST(MendDropout, ExportedForInferenceIsNamedWhereTheModelIsTrained) {
  TestModel model(11);
  model.input("x", {"N", 3}).initializer("w", wavy({3, 2})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"}).named("dense");
  model.node("Dropout", {"h"}, {"y"}).named("drop").set("ratio", 0.4F);
  EXPECT_THAT(warnings_of(model.import({.mend = {.trains = true}})), HasSubstr("1 Dropout node was exported for inference, where it does nothing, and nothing is dropped in training: \"drop\""));
  EXPECT_THAT(warnings_of(model.import({.mend = {.trains = true}})), HasSubstr("[model.dropout] after = [\"dense\"], rate = 0.4"));
  EXPECT_THAT(warnings_of(model.import()), Not(HasSubstr("Dropout"))) << "predictions do without";
  TestModel training;
  training.input("x", {"N", 3}).initializer("w", wavy({3, 2})).initializer("rate", f32({}, {0.4F})).initializer("training", Tensor::scalar(true)).output("y");
  training.node("MatMul", {"x", "w"}, {"h"});
  training.node("Dropout", {"h", "rate", "training"}, {"y"});
  EXPECT_THAT(warnings_of(training.import({.mend = {.trains = true}})), Not(HasSubstr("Dropout")));
}

TEST(MendScalars, OfPyTorchAreParametersByTheirNames) {
  const auto scaled_by = [](const std::string& name, const Tensor& scale, const std::string& node) {
    TestModel model;
    model.proto.set_producer_name("pytorch");
    model.input("x", {"N", 3}).initializer("w", wavy({3, 3})).initializer(name, scale).output("y");
    model.node("MatMul", {"x", "w"}, {"h"}).named(node);
    model.node("Mul", {"h", name}, {"y"});
    return weights_of(model.import());
  };
  const Tensor number = f32({}, {2}), gate = f32({1}, {2});
  EXPECT_THAT(scaled_by("logit_scale", number, "/MatMul"), ElementsAre("w", "logit_scale"));
  EXPECT_THAT(scaled_by("gate", gate, "/MatMul"), ElementsAre("w", "gate"));
  for (const std::string name : {"/Constant_output_0", "onnx::Mul_7", "27"}) EXPECT_THAT(scaled_by(name, gate, "/MatMul"), ElementsAre("w")) << name << " is no parameter's name";
  EXPECT_THAT(scaled_by("val_56", number, "node_MatMul_5"), ElementsAre("w")) << "of the newer exporter, whose record a tool lost";
}

TEST(MendQuantized, FloatsAreNoWorry) { EXPECT_THAT(warnings_of(with_alias(ones(3)).import()), testing::Not(HasSubstr("quantized"))); }

// --- Weights in Constant nodes ---

/// x * w + b, ReLU, * v, where w and b are nodes.
TestModel with_constants(const char* producer = "stranger") {
  TestModel model;
  model.proto.set_producer_name(producer);
  model.input("x", {"N", 3}).initializer("v", wavy({4, 2})).output("y");
  model.node("Constant", {}, {"w"}).set("value", wavy({3, 4}));
  model.node("Constant", {}, {"b"}).set("value", wavy({4}));
  model.node("Constant", {}, {"limit"}).set("value", wavy({4}));
  model.node("MatMul", {"x", "w"}, {"p"});
  model.node("Add", {"p", "b"}, {"s"});
  model.node("Min", {"s", "limit"}, {"h"});
  model.node("MatMul", {"h", "v"}, {"y"});
  return model;
}

TEST(LiftConstants, MakesWeightsOfThoseThatLayersRead) {
  const onnx::Imported imported = with_constants().import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("v", "w", "b"));
  EXPECT_THAT(warnings_of(imported), HasSubstr("the file holds weights in Constant nodes, where layers read them: \"w\", \"b\"; they are initializers from now on, and trained"));
  EXPECT_EQ(imported.model.graph().initializer_size(), 3);
  const Tensor x = wavy({2, 3});
  EXPECT_EQ(values_of(interpret(imported.graph, {{"x", x}})["y"]), values_of(with_constants("pytorch").y(x)));
}

/// y = cond ? x w : x v, with w in a Constant of the graph and v in one of the branch that reads it.
TestModel constants_of_branches() {
  TestModel model;
  model.input("x", {"N", 2}).input("cond", {}, DType::kBool).output("y");
  model.node("Constant", {}, {"w"}).set("value", wavy({2, 3}));
  onnx::NodeProto& branches = model.node("If", {"cond"}, {"y"}).proto();
  BodyGraph then(branches, "then_branch");
  then.output("then_y").node("MatMul", {"x", "w"}, {"then_y"});
  BodyGraph otherwise(branches, "else_branch");
  otherwise.output("else_y").node("Constant", {}, {"v"}).set("value", wavy({2, 3}));
  otherwise.node("MatMul", {"x", "v"}, {"else_y"});
  return model;
}

TEST(LiftConstants, MakesWeightsOfThoseThatLayersInBodiesRead) {
  const onnx::Imported imported = constants_of_branches().import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("w", "v"));
  EXPECT_THAT(warnings_of(imported), HasSubstr("the file holds weights in Constant nodes, where layers read them: \"w\", \"v\""));
  const Tensor x = f32({1, 2}, {1, 0}), yes = Tensor::scalar(true);
  EXPECT_THAT(values_of(constants_of_branches().run({{"x", x}, {"cond", yes}})["y"]), ElementsAre(0.5, -1, 1.5));
}

TEST(LiftConstants, LeavesThoseOfExportersThatKnowParameters) {
  const onnx::Imported imported = with_constants("pytorch").import();
  EXPECT_THAT(weights_of(imported), ElementsAre("v"));
  EXPECT_THAT(warnings_of(imported), Not(HasSubstr("Constant")));
}

TEST(LiftConstants, MakesAWeightOfAnEmbeddingAndNoneOfALookedUpConstant) {
  TestModel model;
  model.input("i", {"N"}, DType::kI64).initializer("second", ints({1})).output("y");
  model.node("Constant", {}, {"table"}).set("value", wavy({5, 3}));
  model.node("Constant", {}, {"settings"}).set("value", wavy({2, 3}));
  model.node("Gather", {"table", "i"}, {"e"});
  model.node("Gather", {"settings", "second"}, {"s"});
  model.node("Mul", {"e", "s"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("table"));
}

TEST(LiftConstants, SurvivesAGatherWithoutIndices) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Constant", {}, {"table"}).set("value", wavy({5, 3}));
  model.node("Gather", {"table"}, {"y"});
  EXPECT_FALSE(problems_of(model).empty());
}

// --- Masks ---

TestModel with_mask(std::vector<float> mask, const char* op_type = "Add") {
  TestModel model;
  const auto extent = static_cast<std::int64_t>(mask.size());
  model.input("x", {"N", 3}).initializer("w", wavy({3, extent})).initializer("mask", f32({1, extent}, std::move(mask))).output("y");
  model.node("MatMul", {"x", "w"}, {"s"});
  model.node(op_type, {"s", "mask"}, {"y"});
  return model;
}

TEST(Masks, ThatAreAddedAreNoWeights) {
  const float infinity = std::numeric_limits<float>::infinity(), least = std::numeric_limits<float>::lowest();
  for (const float low : {-infinity, least, -1e9F, -10000.0F, -100.0F}) {
    const onnx::Imported imported = with_mask({0, low, 0, low}).import();
    EXPECT_THAT(weights_of(imported), ElementsAre("w")) << low;
    EXPECT_THAT(warnings_of(imported), HasSubstr("\"mask\" has infinite elements, or 0 and one large negative number, as masks have; not trained")) << low;
  }
}

/// PyTorch's older exporter slices the mask of the longest sequence, and Swin's gets an axis.
TEST(Masks, AreSeenBehindWhatMovesThem) {
  TestModel model;
  model.input("x", {"N", 3, 3}).initializer("w", wavy({3, 3})).initializer("mask", f32({4, 4}, {0, -1e9F, -1e9F, -1e9F, 0, 0, -1e9F, -1e9F, 0, 0, 0, -1e9F, 0, 0, 0, 0})).output("y");
  model.initializer("starts", i64({2}, {0, 0})).initializer("ends", i64({2}, {3, 3})).initializer("front", i64({1}, {0}));
  model.node("Slice", {"mask", "starts", "ends"}, {"part"});
  model.node("Unsqueeze", {"part", "front"}, {"moved"});
  model.node("MatMul", {"x", "w"}, {"s"});
  model.node("Add", {"s", "moved"}, {"y"});
  EXPECT_THAT(weights_of(model.import()), ElementsAre("w"));
  model.node("Mul", {"moved", "moved"}, {"z"});
  model.output("z");
  EXPECT_THAT(weights_of(model.import()), testing::UnorderedElementsAre("w", "mask")) << "read by what is no mask's reader";
}

/// A convolution of one channel.
TestModel with_window(std::vector<float> window, bool with_bias = false) {
  TestModel model;
  const auto extent = static_cast<std::int64_t>(window.size());
  model.input("x", {"N", 1, 8}).initializer("window", f32({1, 1, extent}, std::move(window))).output("y");
  if (with_bias) model.initializer("b", f32({1}, {0}));
  model.node("Conv", with_bias ? std::vector<std::string>{"x", "window", "b"} : std::vector<std::string>{"x", "window"}, {"y"});
  return model;
}

TEST(WindowsOfOnes, AreNoWeights) {
  const onnx::Imported imported = with_window({1, 1, 1}).import();
  EXPECT_THAT(weights_of(imported), IsEmpty());
  EXPECT_THAT(warnings_of(imported), HasSubstr("\"window\" is all ones, and a convolution adds up each window with it, as average pooling does; not trained"));
}

TEST(WindowsOfOnes, AreNotWhatMayBeLearned) {
  EXPECT_THAT(weights_of(with_window({1, 0.5F, 1}).import()), ElementsAre("window"));
  EXPECT_THAT(weights_of(with_window({0.25F, 0.25F, 0.25F}).import()), ElementsAre("window"));
  EXPECT_THAT(weights_of(with_window({1, 1, 1}, true).import()), Contains("window"));
}

TEST(Masks, AreNotWhatMayBeLearned) {
  for (const std::vector<float>& bias : {std::vector<float>{0, 0, 0, 0}, {0, -1, 0, -1}, {0, -1000, 0.5F, 0}, {-1000, -1000, -1000, -1000}, {0, 1000, 0, 1000}})
    EXPECT_THAT(weights_of(with_mask(bias).import()), UnorderedElementsAre("w", "mask"));
  EXPECT_THAT(weights_of(with_mask({0, -1000, 0, -1000}, "Mul").import()), UnorderedElementsAre("w", "mask")) << "it scales";
  EXPECT_THAT(weights_of(with_mask({0, -1000, 0, -1000}).import({.mend = {.train_only = {"w", "mask"}}})), UnorderedElementsAre("w", "mask"));
}

}  // namespace
}  // namespace hone::test
