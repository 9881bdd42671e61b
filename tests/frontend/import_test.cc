// What import makes of a whole file: its values, names, sizes, order, roles. Operators are tested in import_ops_test.cc and by ONNX's own cases.
#include "frontend/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "formats/onnx_external.h"
#include "tests/frontend/test_model.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Role role_of(const Graph& graph, const std::string& name) {
  const Input* input = graph.find_input(name);
  EXPECT_NE(input, nullptr) << name;
  return input == nullptr ? Role::kState : input->role;
}

TEST(Import, KeepsNamesOfInputsWeightsAndResults) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("w", wavy({2, 3})).output("y");
  model.node("MatMul", {"x", "w"}, {"product"});
  model.node("Relu", {"product"}, {"y"});
  const onnx::Imported imported = model.import();
  const Graph& graph = imported.graph;
  EXPECT_EQ(graph.value(graph.nodes()[0].results[0]).name, "product");
  EXPECT_EQ(graph.outputs()[0].name, "y");
  EXPECT_EQ(graph.value(graph.outputs()[0].value).name, "y");
  EXPECT_EQ(role_of(graph, "x"), Role::kInput);
  EXPECT_EQ(role_of(graph, "w"), Role::kWeight);
  EXPECT_THAT(imported.warnings, IsEmpty());
  EXPECT_EQ(imported.model.SerializeAsString(), model.proto.SerializeAsString());
}

TEST(Import, SortsNodes) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Neg", {"b"}, {"y"});
  model.node("Exp", {"a"}, {"b"});
  model.node("Relu", {"x"}, {"a"});
  EXPECT_EQ(ops_of(model.import().graph), "relu exp neg");
}

TEST(Import, KeepsTheFilesOrderWhereItIsOne) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Exp", {"x"}, {"b"});
  model.node("Relu", {"x"}, {"a"});
  model.node("Sub", {"a", "b"}, {"y"});
  EXPECT_EQ(ops_of(model.import().graph), "exp relu sub");
}

TEST(Import, LeavesOutNodesThatNoOutputNeeds) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("NoSuchOperator", {"x"}, {"unused"});
  model.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(ops_of(model.import().graph), "relu");
}

TEST(Import, TakesInputsThatAreInitializersTooAsInitializers) {
  TestModel model;
  model.proto.set_ir_version(3);
  model.input("x", {"N", 2}).input("w", {2, 3}).initializer("w", wavy({2, 3})).output("y");
  model.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_EQ(role_of(model.import().graph, "w"), Role::kWeight);
  EXPECT_EQ(model.import().graph.inputs().size(), 2U);
}

TEST(Import, TellsWeightsFromConstants) {
  TestModel model;
  model.input("x", {"N", 2}).output("y");
  model.initializer("w", wavy({2, 1})).initializer("bias", f32({1}, {3})).initializer("half", f32({1}, {0.5})).initializer("epsilon", f32({}, {1e-5F}));
  model.initializer("shape", ints({-1})).initializer("added", f32({1}, {7})).initializer("w2", f32({1, 1}, {2}));
  model.node("Gemm", {"x", "w", "bias"}, {"a"});
  model.node("Mul", {"a", "half"}, {"b"});
  model.node("Add", {"b", "epsilon"}, {"c"});
  model.node("MatMul", {"c", "w2"}, {"d"});
  model.initializer("cast", f32({1}, {7}));
  model.node("Add", {"added", "d"}, {"f"});
  model.node("MatMul", {"f", "w2"}, {"g"});
  model.node("Cast", {"g"}, {"h"}).set("to", 1);
  model.node("Add", {"h", "cast"}, {"e"});
  model.node("Reshape", {"e", "shape"}, {"y"});
  const Graph graph = model.import().graph;
  EXPECT_EQ(role_of(graph, "w"), Role::kWeight);
  EXPECT_EQ(role_of(graph, "bias"), Role::kWeight) << "a bias of one unit";
  EXPECT_EQ(role_of(graph, "added"), Role::kWeight) << "a bias of one unit, added to a product";
  EXPECT_EQ(role_of(graph, "cast"), Role::kWeight) << "the same behind a cast";
  EXPECT_EQ(role_of(graph, "w2"), Role::kWeight);
  EXPECT_EQ(role_of(graph, "half"), Role::kConstant);
  EXPECT_EQ(role_of(graph, "epsilon"), Role::kConstant);
  EXPECT_EQ(role_of(graph, "shape"), Role::kConstant);
}

TEST(Import, GivesUnknownExtentsSymbolsOfTheirOwn) {
  TestModel model;
  model.input("a", {"", 2}).input("b", {"", 3}).output("y").output("z");
  model.node("Relu", {"a"}, {"y"});
  model.node("Relu", {"b"}, {"z"});
  EXPECT_EQ(model.type("y"), "f32[a_dim0,2]");
  EXPECT_EQ(model.type("z"), "f32[b_dim0,3]");
}

TEST(Import, TakesTheSameNameAsTheSameSize) {
  TestModel model;
  model.input("a", {"N"}).input("b", {"N"}).output("y");
  model.node("Add", {"a", "b"}, {"y"});
  const Graph graph = model.import().graph;
  EXPECT_THAT(graph.equations(), IsEmpty());
  EXPECT_EQ(model.type(), "f32[N]");
}

TEST(Import, UnifiesSizesThatMustBeEqual) {
  TestModel model;
  model.input("a", {"unk__83", 4}).input("b", {"N", "M"}).output("y");
  model.initializer("shape", ints({-1, 2, 2}));
  model.node("Add", {"a", "b"}, {"sum"});
  model.node("Reshape", {"sum", "shape"}, {"y"});
  const onnx::Imported imported = model.import();
  EXPECT_EQ(to_string(imported.graph.type(imported.graph.find_input("b")->value)), "f32[unk__83,4]");
  EXPECT_EQ(model.type(), "f32[unk__83,2,2]");
  EXPECT_THAT(imported.graph.equations(), IsEmpty());
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_EQ(imported.warnings[0].message, "the size M can only be 4: the model's nodes take nothing else");
}

TEST(Import, PrefersNamesOfTheFile) {
  TestModel model;
  model.input("a", {""}).input("b", {"batch"}).output("y");
  model.node("Add", {"a", "b"}, {"y"});
  EXPECT_EQ(model.type(), "f32[batch]");
}

TEST(Import, SolvesForASizeThatAFixedReshapeDetermines) {
  TestModel model = TestModel::of_node("Reshape", {"N", 28, 28}, {ints({1, 784})});
  EXPECT_EQ(model.import().graph.type(model.import().graph.find_input("x")->value).shape[0].text(), "1");
}

TEST(Import, FixesSizes) {
  TestModel model = TestModel::of_node("Relu", {"N", "T"});
  const Graph graph = model.import({.dims = {{"T", 128}}}).graph;
  EXPECT_EQ(to_string(graph.type(graph.find_output("y")->value)), "f32[N,128]");
}

TEST(Import, KeepsNamesApartThatDifferInOddCharacters) {
  TestModel model;
  model.input("a", {"batch size"}).input("b", {"batch-size"}).output("y").output("z");
  model.node("Relu", {"a"}, {"y"});
  model.node("Relu", {"b"}, {"z"});
  EXPECT_NE(model.type("y"), model.type("z"));
}

/// x [N,3,4] reshaped to what `op_type` makes of its first two sizes, and 4: tf2onnx writes einsum so.
std::string type_reduced(const std::string& op_type) {
  TestModel model;
  model.input("x", {"N", 3, 4}).initializer("first", ints({0, 1})).initializer("four", ints({-1})).initializer("axes", ints({0})).output("y");
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "first"}, {"sizes"});
  const bool has_axes_operand = op_type == "ReduceSum";
  const TestNode node = model.node(op_type, has_axes_operand ? std::vector<std::string>{"sizes", "axes"} : std::vector<std::string>{"sizes"}, {"size"});
  if (not has_axes_operand) TestNode(node).set("axes", std::vector<std::int64_t>{0});
  model.node("Concat", {"four", "size"}, {"target"}).set("axis", 0);
  model.node("Reshape", {"x", "target"}, {"y"});
  return model.type();
}

TEST(Import, FoldsReductionsOfSizes) {
  EXPECT_EQ(type_reduced("ReduceProd"), "f32[4,3*N]");
  EXPECT_EQ(type_reduced("ReduceSum"), "f32[(12*N) floordiv (N + 3),N + 3]");
  EXPECT_EQ(type_reduced("ReduceMax"), "f32[(12*N) floordiv (max(3, N)),max(3, N)]");
  EXPECT_EQ(type_reduced("ReduceMin"), "f32[(12*N) floordiv (min(3, N)),min(3, N)]");
}

TEST(Import, FoldsShapeArithmetic) {
  TestModel model;
  model.input("x", {"N", "C", 4, 6}).output("y");
  model.initializer("first", i64({}, {0})).initializer("last", ints({-1})).initializer("axes", ints({0}));
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "first"}, {"n"});
  model.node("Unsqueeze", {"n", "axes"}, {"n1"});
  model.node("Concat", {"n1", "last"}, {"target"}).set("axis", 0);
  model.node("Reshape", {"x", "target"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,24*C]");
}

TEST(Import, FoldsSizesScaledAsFloats) {
  TestModel model;
  model.input("x", {"N", 5}).output("y");
  model.initializer("scale", f32({}, {2.5}))
      .initializer("one", i64({}, {1}))
      .initializer("axes", ints({0}))
      .initializer("start", ints({0}))
      .initializer("along", ints({1}));
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"extent"});
  model.node("Cast", {"extent"}, {"as_float"}).set("to", 1);
  model.node("Div", {"as_float", "scale"}, {"scaled"});
  model.node("Floor", {"scaled"}, {"whole"});
  model.node("Cast", {"whole"}, {"as_int"}).set("to", 7);
  model.node("Unsqueeze", {"as_int", "axes"}, {"end"});
  model.node("Slice", {"x", "start", "end", "along"}, {"y"});
  EXPECT_EQ(model.type(), "f32[N,2]");
}

TEST(Import, ReadsAllFormsOfConstant) {
  TestModel model;
  model.output("a").output("b").output("c").output("d").output("e");
  model.node("Constant", {}, {"a"}).set("value", f32({2, 1}, {1, 2}));
  model.node("Constant", {}, {"b"}).set("value_float", 1.5);
  model.node("Constant", {}, {"c"}).set("value_floats", std::vector<float>{1, 2, 3});
  model.node("Constant", {}, {"d"}).set("value_int", 7);
  model.node("Constant", {}, {"e"}).set("value_ints", std::vector<std::int64_t>{4, 5});
  const GraphResults results = model.run({});
  EXPECT_EQ(results["a"].shape(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_THAT(values_of(results["b"]), ElementsAre(1.5));
  EXPECT_THAT(values_of(results["c"]), ElementsAre(1, 2, 3));
  EXPECT_EQ(results["d"].dtype(), DType::kI64);
  EXPECT_THAT(values_of(results["d"]), ElementsAre(7));
  EXPECT_THAT(values_of(results["e"]), ElementsAre(4, 5));
}

TEST(Import, ResolvesIdentityWithoutANode) {
  TestModel model;
  model.input("x", {"N", 2}).initializer("w", wavy({2, 2})).output("y");
  model.node("Identity", {"w"}, {"alias"});
  model.node("MatMul", {"x", "alias"}, {"product"});
  model.node("Identity", {"product"}, {"y"});
  const onnx::Imported imported = model.import();
  EXPECT_EQ(ops_of(imported.graph), "matmul");
  EXPECT_EQ(imported.graph.outputs()[0].name, "y");
}

TEST(Import, ReadsTheLayerFromMetadataAndNames) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  auto& metadata = *model.node("Relu", {"x"}, {"a"}).named("node_relu").proto().add_metadata_props();
  metadata.set_key("pkg.torch.onnx.name_scopes");
  metadata.set_value("['', 'encoder', 'encoder.0', 'relu']");
  auto& space = *model.node("Relu", {"a"}, {"b"}).named("node_relu_1").proto().add_metadata_props();
  space.set_key("namespace");
  space.set_value(": mod.Model/decoder: mod.Decoder/decoder.1: torch.nn.ReLU/relu: aten.relu");
  model.node("Relu", {"b"}, {"c"}).named("/encoder/layer.0/attention/Relu");
  model.node("Relu", {"c"}, {"y"});
  const onnx::Imported imported = model.import();
  const auto& nodes = imported.graph.nodes();
  EXPECT_EQ(nodes[0].loc.layer, "encoder.0");
  EXPECT_EQ(nodes[0].loc.node, "node_relu");
  EXPECT_EQ(nodes[0].loc.file, "test.onnx");
  EXPECT_EQ(nodes[1].loc.layer, "decoder.1");
  EXPECT_EQ(nodes[2].loc.layer, "encoder/layer.0/attention");
  EXPECT_EQ(nodes[3].loc.node, "y");
  EXPECT_EQ(nodes[3].loc.layer, "");
}

TEST(Import, TellsNodesOfOneNameApart) {
  TestModel model;
  model.input("x", {"N"}).output("y");
  model.node("Relu", {"x"}, {"a"}).named("act");
  model.node("Relu", {"a"}, {"y"}).named("act");
  EXPECT_EQ(model.import().graph.nodes()[1].loc.node, "act (makes y)");
}

TEST(Import, BoundsInputsThatIndex) {
  TestModel model;
  model.input("ids", {"N"}, DType::kI64).initializer("table", wavy({10, 3})).output("y");
  model.node("Gather", {"table", "ids"}, {"y"});
  const onnx::Imported imported = model.import();
  const auto& bounds = imported.graph.find_input("ids")->bounds;
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->first, Dim(-10));
  EXPECT_EQ(bounds->second, Dim(10));
}

TEST(Import, ReadsExternalWeights) {
  const TempFolder folder;
  TestModel model = TestModel::of_node("Add", {"N", 3}, {f32({3}, {1, 2, 3})});
  onnx::TensorProto& tensor = *model.proto.mutable_graph()->mutable_initializer(0);
  folder.write("weights.bin", tensor.raw_data());
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& location = *tensor.add_external_data();
  location.set_key("location");
  location.set_value("weights.bin");
  folder.write("model.onnx", model.proto.SerializeAsString());
  const Graph graph = onnx::import_model(folder / "model.onnx").graph;
  EXPECT_THAT(values_of(*graph.find_input("b")->data), ElementsAre(1, 2, 3));
}

TEST(Import, IgnoresOpsetsOfDomainsThatNoNodeUses) {
  TestModel model = TestModel::of_node("Relu", {"N"});
  auto& other = *model.proto.add_opset_import();
  other.set_domain("ai.onnx.ml");
  other.set_version(3);
  EXPECT_EQ(model.type(), "f32[N]");
}

TEST(Import, NotesOutputsThatAreDeclaredWrongly) {
  TestModel model = TestModel::of_node("Flatten", {"N", 2, 3});
  auto& tensor = *model.proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_of_dtype(DType::kF32));
  tensor.mutable_shape()->add_dim()->set_dim_param("other");
  tensor.mutable_shape()->add_dim()->set_dim_value(7);
  const onnx::Imported imported = model.import();
  ASSERT_EQ(imported.warnings.size(), 1U);
  EXPECT_THAT(imported.warnings[0].message, HasSubstr("output \"y\" is f32[N,6], and the file declares it as FLOAT[other,7]"));
}

TEST(ImportKnownContents, ThatOverflowAreNoSizes) {
  // T5's buckets of distances: a logarithm of 0 becomes the smallest integer, to which numbers are added.
  TestModel model;
  model.input("x", {"N", 2}).initializer("least", ints({INT64_MIN, 3})).initializer("more", ints({-16, 16})).initializer("fewer", ints({16, 16})).output("y");
  model.node("Add", {"least", "more"}, {"wrapped"});
  model.node("Min", {"wrapped", "fewer"}, {"buckets"});
  model.node("Cast", {"buckets"}, {"values"}).set("to", static_cast<std::int64_t>(onnx::TensorProto::FLOAT));
  model.node("Mul", {"x", "values"}, {"y"});
  EXPECT_EQ(values_of(model.y(f32({1, 2}, {0, 1})))[1], 16.0);
}

/// What is not trained must be in the model that comes out, wherever that is written.
TEST(Import, TakesExternalConstantsIntoTheModel) {
  const TempFolder folder;
  TestModel model;
  model.input("x", {"N", 2}).initializer("w", f32({2, 2}, {1, 2, 3, 4})).initializer("target", ints({-1, 4})).output("y");
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("Reshape", {"h", "target"}, {"y"});
  std::string bytes;
  for (onnx::TensorProto& tensor : *model.proto.mutable_graph()->mutable_initializer()) {
    const std::string data = tensor.raw_data();
    set_external(&tensor, "weights.bin", bytes.size(), data.size());
    bytes += data;
  }
  folder.write("weights.bin", bytes);
  const onnx::Imported imported = onnx::import_model(model.proto, "test.onnx", folder.path(), {});
  const auto& initializers = imported.model.graph().initializer();
  EXPECT_TRUE(is_external(initializers[0])) << "the weight, which may be large, and which training replaces";
  ASSERT_FALSE(is_external(initializers[1]));
  EXPECT_EQ(values_of(tensor_of(initializers[1], "nowhere", {})), (std::vector<double>{-1, 4}));
}

}  // namespace
}  // namespace hone::test
