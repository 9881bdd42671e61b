// Modules that are called several times, in the files of PyTorch's TorchScript exporter: what is one parameter, and what only looks like one.
#include <gmock/gmock.h>

#include "base/module_names.h"
#include "tests/frontend/test_model.h"

namespace hone::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Names = std::vector<std::string>;

/// A chain of products, each by a name of one matrix that was folded for it, in nodes of these names.
TestModel products_in(const Names& nodes, const Tensor& matrix = wavy({3, 3})) {
  TestModel model;
  model.input("x", {"N", 3}).initializer("onnx::MatMul_0", matrix).output("y");
  for (std::size_t i = 1; i < nodes.size(); ++i) model.node("Identity", {"onnx::MatMul_0"}, {"onnx::MatMul_" + std::to_string(i)});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string x = i == 0 ? "x" : "h" + std::to_string(i);
    model.node("MatMul", {x, "onnx::MatMul_" + std::to_string(i)}, {i + 1 == nodes.size() ? "y" : "h" + std::to_string(i + 1)}).named(nodes[i]);
  }
  return model;
}

TEST(ModuleCalls, ReadOneWeight) {
  const onnx::Imported imported = products_in({"/enc/fc/MatMul", "/enc/fc_1/MatMul", "/enc/fc_2/MatMul"}).import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("onnx::MatMul_0"));
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_THAT(to_string(imported.warnings[0]),
              HasSubstr(R"(also goes by the names "onnx::MatMul_1", "onnx::MatMul_2": they are trained as one, as one layer reads them in several calls)"));
}

TEST(ModuleCalls, OfContainersReadOneWeight) {
  EXPECT_THAT(weights_of(products_in({"/enc/enc.0/MatMul", "/enc/enc.0_1/MatMul"}).import()), UnorderedElementsAre("onnx::MatMul_0"));
}

TEST(ModuleCalls, OfTheWholeModelReadOneWeight) {
  EXPECT_THAT(weights_of(products_in({"/MatMul", "/MatMul_1"}).import()), UnorderedElementsAre("onnx::MatMul_0"));
}

TEST(ModuleCalls, OfCopiesOfALayerReadWeightsOfTheirOwn) {
  const onnx::Imported imported = products_in({"/layers.0/fc/MatMul", "/layers.1/fc/MatMul", "/layers.0/fc_1/MatMul", "/layers.1/fc_1/MatMul"}).import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("onnx::MatMul_0", "onnx::MatMul_1")) << "each is called twice";
  std::map<std::string, std::string> reads;
  for (const auto& node : imported.model.graph().node())
    if (node.op_type() == "Identity") reads[node.output(0)] = node.input(0);
  EXPECT_EQ(reads, (std::map<std::string, std::string>{{"onnx::MatMul_2", "onnx::MatMul_0"}, {"onnx::MatMul_3", "onnx::MatMul_1"}}));
}

TEST(ModuleCalls, AreNotToldByOldExporters) { EXPECT_EQ(weights_of(products_in({"MatMul_3", "MatMul_4"}).import()).size(), 2U); }

TEST(ModuleCalls, OfMatricesOfEqualElementsAreNoEvidence) {
  EXPECT_EQ(weights_of(products_in({"/fc/MatMul", "/fc_1/MatMul"}, f32({3, 3}, std::vector<float>(9, 0.0F))).import()).size(), 2U);
}

TEST(ModuleCalls, AreApartWhereTheRecipeNamesBoth) {
  const onnx::ImportOptions both = {.mend = {.train_only = {"onnx::MatMul_0", "onnx::MatMul_1"}}};
  EXPECT_EQ(weights_of(products_in({"/fc/MatMul", "/fc_1/MatMul"}).import(both)).size(), 2U);
}

/// Two products by matrices of these names, each with a cast and a fresh bias behind it, where the second bias goes by another name.
TestModel with_biases(const std::string& first, const std::string& second) {
  TestModel model;
  model.input("x", {"N", 3})
      .initializer("onnx::MatMul_0", wavy({3, 3}))
      .initializer("onnx::MatMul_9", f32({3, 3}, {9, 8, 7, 6, 5, 4, 3, 2, 1}))
      .initializer("onnx::Add_1", f32({3}, {0, 0, 0}))
      .output("y");
  model.node("Identity", {"onnx::MatMul_0"}, {"onnx::MatMul_2"});
  model.node("Identity", {"onnx::Add_1"}, {"onnx::Add_3"});
  model.node("MatMul", {"x", first}, {"p"}).named("/MatMul");
  model.node("Cast", {"p"}, {"q"}).set("to", 1).named("/Cast");
  model.node("Add", {"q", "onnx::Add_1"}, {"h"}).named("/Add");
  model.node("MatMul", {"h", second}, {"r"}).named("/MatMul_1");
  model.node("Cast", {"r"}, {"s"}).set("to", 1).named("/Cast_1");
  model.node("Add", {"s", "onnx::Add_3"}, {"y"}).named("/Add_1");
  return model;
}

TEST(ModuleCalls, HaveTheBiasOfTheirWeight) {
  EXPECT_THAT(weights_of(with_biases("onnx::MatMul_0", "onnx::MatMul_2").import()), testing::Not(testing::Contains("onnx::Add_3")));
  EXPECT_THAT(weights_of(with_biases("onnx::MatMul_0", "onnx::MatMul_9").import()), testing::Contains("onnx::Add_3"));
}

TEST(ModuleCalls, HaveOneNamedBias) {
  const auto biased = [](const std::string& second_bias) {
    TestModel model;
    model.input("x", {"N", 3})
        .initializer("onnx::MatMul_0", wavy({3, 3}))
        .initializer("fc.bias", wavy({3}))
        .initializer("fc_1.bias", f32({3}, {7, 8, 9}))
        .output("y");
    model.node("Identity", {"onnx::MatMul_0"}, {"onnx::MatMul_1"});
    model.node("MatMul", {"x", "onnx::MatMul_0"}, {"p"}).named("/fc/MatMul");
    model.node("Add", {"fc.bias", "p"}, {"h"}).named("/fc/Add");
    model.node("MatMul", {"h", "onnx::MatMul_1"}, {"q"}).named("/fc_1/MatMul");
    model.node("Add", {second_bias, "q"}, {"y"}).named("/fc_1/Add");
    return weights_of(model.import());
  };
  EXPECT_THAT(biased("fc.bias"), testing::Not(testing::Contains("onnx::MatMul_1")));
  EXPECT_THAT(biased("fc_1.bias"), testing::Contains("onnx::MatMul_1")) << "a module of that name, that began as a copy";
}

TEST(ModuleCalls, OfFreshScalesAreToldByTheirNames) {
  const auto slopes = [](const std::string& first, const std::string& second) {
    TestModel model;
    model.input("x", {"N", 3}).initializer("onnx::PRelu_0", ones(3)).output("y");
    model.node("Identity", {"onnx::PRelu_0"}, {"onnx::PRelu_1"});
    model.node("PRelu", {"x", "onnx::PRelu_0"}, {"h"}).named(first);
    model.node("PRelu", {"h", "onnx::PRelu_1"}, {"y"}).named(second);
    return weights_of(model.import()).size();
  };
  EXPECT_EQ(slopes("/act/PRelu", "/act_1/PRelu"), 1U);
  EXPECT_EQ(slopes("/act_1/PRelu", "/act_2/PRelu"), 2U) << "there is no act: the numbers are names";
  EXPECT_EQ(slopes("/a/act/PRelu", "/b/act/PRelu"), 2U);
  EXPECT_EQ(slopes("/PRelu", "/PRelu_1"), 2U);
}

TEST(ModuleCalls, AreFoundWhereNoNameIsLeft) {
  TestModel model;
  model.input("x", {"N", 3})
      .initializer("onnx::MatMul_0", wavy({3, 3}))
      .initializer("onnx::MatMul_1", wavy({3, 3}))
      .initializer("onnx::MatMul_2", wavy({3, 3}))
      .output("y");
  model.proto.set_producer_name("pytorch");
  model.node("MatMul", {"x", "onnx::MatMul_0"}, {"h"}).named("/fc/MatMul");
  model.node("MatMul", {"h", "onnx::MatMul_1"}, {"g"}).named("/fc_1/MatMul");
  model.node("MatMul", {"g", "onnx::MatMul_2"}, {"y"}).named("/other/MatMul");
  const onnx::Imported imported = model.import();
  EXPECT_THAT(weights_of(imported), UnorderedElementsAre("onnx::MatMul_0", "onnx::MatMul_2"));
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_THAT(to_string(imported.warnings[0]), HasSubstr(R"(the weight "onnx::MatMul_1" is "onnx::MatMul_0": they are trained as one)"));
}

TEST(ModuleCalls, ReadAWeightAndTheTransposeOfItThatWasFolded) {
  const auto transposed_in = [](const std::string& node) {
    TestModel model;
    model.input("x", {"N", 2}).initializer("enc.fc.weight", f32({2, 2}, {1, 2, 3, 4})).initializer("onnx::MatMul_1", f32({2, 2}, {1, 3, 2, 4})).output("y");
    model.node("Gemm", {"x", "enc.fc.weight"}, {"h"}).set("transB", 1).named("/enc/fc/Gemm");
    model.node("MatMul", {"h", "onnx::MatMul_1"}, {"y"}).named(node);
    return weights_of(model.import()).size();
  };
  EXPECT_EQ(transposed_in("/enc/fc_1/MatMul"), 1U) << "vectors first, then sequences";
  EXPECT_EQ(transposed_in("/enc/MatMul"), 1U) << "a tied decoder";
  EXPECT_EQ(transposed_in("/MatMul"), 1U);
  EXPECT_EQ(transposed_in("/dec/fc/MatMul"), 2U);
  EXPECT_EQ(transposed_in("MatMul_7"), 2U);
}

/// A fresh scale that two nodes of these names read.
TestModel scales_in(const std::string& weight, const Names& nodes) {
  TestModel model;
  model.input("x", {"N", 3}).initializer(weight, ones(3)).output("y");
  model.node("Mul", {"x", weight}, {"h"}).named(nodes[0]);
  model.node("Mul", {"h", weight}, {"y"}).named(nodes[1]);
  return model;
}

TEST(ModuleCalls, ReadAFreshScaleTogether) {
  EXPECT_THAT(scales_in("norm.weight", {"/norm/Mul", "/norm_1/Mul"}).import().warnings, IsEmpty());
  EXPECT_EQ(weights_of(scales_in("enc.0.weight", {"/enc/enc.0/Mul", "/enc/enc.0_1/Mul"}).import()).size(), 1U);
  EXPECT_EQ(weights_of(scales_in("mha.out.weight", {"/mha/Mul", "/mha_1/Mul"}).import()).size(), 1U) << "of a module whose parameter another one reads";
}

TEST(ModuleCalls, AreOtherModulesWhereTheNumberIsTheirName) {
  EXPECT_EQ(weights_of(scales_in("ln_1.weight", {"/ln_1/Mul", "/ln_2/Mul"}).import()).size(), 2U);
  TestModel named = scales_in("norm.weight", {"/norm/Mul", "/norm_1/Mul"});
  named.initializer("norm_1.bias", wavy({3})).output("z");
  named.node("Add", {"y", "norm_1.bias"}, {"z"});
  EXPECT_THAT(weights_of(named.import()), UnorderedElementsAre("norm.weight", "norm_1.weight", "norm_1.bias"));
  TestModel elsewhere = scales_in("norm.weight", {"/norm/Mul", "/norm_1/Mul"});
  elsewhere.initializer("fc.bias", f32({3}, {4, 5, 6})).initializer("fc_1.bias", wavy({3})).output("z");
  elsewhere.node("Add", {"y", "fc.bias"}, {"u"}).named("/fc/Add");
  elsewhere.node("Add", {"u", "fc_1.bias"}, {"z"}).named("/fc_1/Add");
  EXPECT_EQ(weights_of(elsewhere.import()).size(), 4U) << "numbers are names in this model";
}

TEST(ModuleCalls, ShareWhatAnExporterThatNamesWhatItMergedDidNotName) {
  TestModel model = scales_in("n.weight", {"/n/Mul", "/m/Mul"});
  model.initializer("a", ones(3)).output("z");
  model.node("Identity", {"a"}, {"b"});
  model.node("Mul", {"y", "a"}, {"u"}).named("/a/Mul");
  model.node("Mul", {"u", "b"}, {"z"}).named("/b/Mul");
  EXPECT_THAT(weights_of(model.import()), UnorderedElementsAre("n.weight", "m.weight", "a", "b"));
  model.proto.set_producer_name("pytorch");
  EXPECT_THAT(weights_of(model.import()), UnorderedElementsAre("n.weight", "a", "b"));
}

TEST(ModuleCalls, AreKnownByTheirNames) {
  EXPECT_EQ(without_calls("enc_3/fc_1_2"), "enc/fc");
  EXPECT_EQ(without_calls("layers.0/fc_a"), "layers.0/fc_a");
  EXPECT_EQ(without_calls("_1/_"), "_1/_");
  EXPECT_EQ(module_name("enc/enc.0/enc.0.fc_1"), "enc.0.fc_1");
  EXPECT_EQ(module_name(""), "");
  EXPECT_TRUE(is_further_call("enc.fc_1", "enc.fc"));
  EXPECT_TRUE(is_further_call("ln_1_1", "ln_1"));
  EXPECT_FALSE(is_further_call("enc.fc", "enc.fc")) << "the first";
  EXPECT_FALSE(is_further_call("ln_2", "ln_1"));
  EXPECT_FALSE(is_further_call("fc1", "fc"));
  EXPECT_FALSE(is_further_call("enc.fc_1", "fc"));
  EXPECT_EQ(ancestor_like("enc.mha.out.bias", "enc.mha_1"), "enc.mha");
  EXPECT_EQ(ancestor_like("weight", "enc"), "");
}

}  // namespace
}  // namespace hone::test
