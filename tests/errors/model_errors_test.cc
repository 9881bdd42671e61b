// hone-compile and hone-dump on files that are no models, or wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/errors/error_case.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

const std::string kCompile = "hone-compile model.onnx -r train.toml -o plan.hone";

/// Writes `model`, and a recipe that fits if the model does.
auto holding(std::function<TestModel()> model) {
  return [model](const TempFolder& folder) {
    folder.write("model.onnx", model().proto.SerializeAsString());
    write_recipe(folder);
  };
}

auto holding_text(std::string text) {
  return [text](const TempFolder& folder) {
    folder.write("model.onnx", text);
    write_recipe(folder);
  };
}

TestModel of_two_nodes(const std::string& first, const std::string& second) {
  TestModel model;
  model.input("x", {"N", 4}).output("y");
  model.node(first, {"x"}, {"h"}).named("layer/first");
  model.node(second, {"h"}, {"y"}).named("layer/second");
  return model;
}

TestModel unknown_operators() {
  TestModel model = of_two_nodes("RegexFullMatch", "Frobnicate");
  model.node("RegexFullMatch", {"x"}, {"z"}).named("other");
  model.node("Sotfmax", {"z"}, {"out"}).named("typo");
  model.output("out");
  return model;
}

/// Called as the moving average of its other weight would be.
TestModel with_weights_called(const std::string& first, const std::string& second) {
  TestModel model;
  model.input("x", {"N", 4}).initializer(first, wavy({4, 4})).initializer(second, wavy({4})).output("y");
  model.node("MatMul", {"x", first}, {"h"});
  model.node("Add", {"h", second}, {"y"});
  return model;
}

TestModel with_cycle() {
  TestModel model;
  model.input("x", {"N", 4}).output("y");
  model.node("Add", {"x", "b"}, {"a"}).named("first");
  model.node("Relu", {"a"}, {"b"}).named("second");
  model.node("Relu", {"b"}, {"y"}).named("third");
  return model;
}

TestModel with_short_weight() {
  TestModel model = TestModel::of_node("Add", {"N", 4}, {f32({4}, {1, 2, 3, 4})});
  model.proto.mutable_graph()->mutable_initializer(0)->set_dims(0, 5);
  return model;
}

TestModel with_external_weight(const std::string& location) {
  TestModel model = TestModel::of_node("Add", {"N", 4}, {f32({4}, {1, 2, 3, 4})});
  onnx::TensorProto& weight = *model.proto.mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *weight.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
  return model;
}

TestModel with_dynamic_axes() {
  TestModel model;
  model.input("x", {"N", 4}).input("axes", {"K"}, DType::kI64).output("y");
  model.node("Unsqueeze", {"x", "axes"}, {"y"}).named("view");
  return model;
}

TestModel with_inner_dimensions(std::int64_t inner) {
  TestModel model;
  model.input("x", {"N", 4}).output("y").initializer("fc.weight", wavy({inner, 3}));
  model.node("MatMul", {"x", "fc.weight"}, {"y"}).named("fc/MatMul");
  return model;
}

TestModel without_weights() { return TestModel::of_node("Relu", {"N", 4}); }

TestModel with_integer_output() {
  TestModel model = with_inner_dimensions(4);
  model.proto.mutable_graph()->mutable_output(0)->set_name("z");
  model.node("Cast", {"y"}, {"z"}).set("to", 7);
  return model;
}

const ErrorCase kCases[] = {
    {"MissingFile", kCompile, 7, {"HN-0401", "model.onnx", "No such file"}, write_recipe},
    {"MissingFileNamesItsNeighbour", "hone-compile mpl.onnx -o plan.hone", 7, {"HN-0401", "mpl.onnx", "mlp.onnx"}, write_mlp},
    {"Folder", "hone-compile . -o plan.hone", 7, {"HN-0401", "folder"}},
    {"EmptyFile", kCompile, 3, {"HN-0101", "model.onnx is not an ONNX file", "empty"}, holding_text("")},
    {"Text", kCompile, 3, {"HN-0101", "model.onnx is not an ONNX file", "text"}, holding_text("a model that is only words\n")},
    {"Zip", kCompile, 3, {"HN-0101", "zip"}, holding_text(std::string("PK\3\4\24\0\0\0\0\0", 10) + std::string(100, '\0'))},
    {"Pickle", kCompile, 3, {"HN-0101", "model.onnx is not an ONNX file"}, holding_text(std::string("\x80\x02}q\0X\5\0\0\0state", 16))},
    {"RandomBytes", kCompile, 3, {"HN-0101", "model.onnx"}, holding_text("\xff\xfe\xfd\xfc\x13\x37\xff\xff\xff\xff")},
    {"Plan", "hone-compile mlp.hone -o plan.hone", 3, {"HN-0101", "mlp.hone is not an ONNX file", "a plan of Hone's", "hone-run"}, write_mlp_plan},
    {"UnknownOperatorsAllAtOnce",
     kCompile,
     3,
     {"HN-0102", "operator RegexFullMatch is not supported (2 nodes)", "at node \"layer/first\" of layer \"layer\" in model.onnx", "also at \"other\"",
      "operator Frobnicate", "ONNX has no such operator", "operator Sotfmax", "did you mean \"Softmax\"?"},
     holding(unknown_operators)},
    {"WeightCalledAsAnAverage", kCompile + " --set train.ema_decay=0.9", 5, {"HN-0204", "\"w/ema\"", "moving average", "another name"}, holding([] { return with_weights_called("w", "w/ema"); })},
    {"WeightCalledAsASumOfGradients", kCompile + " --set train.gradient_accumulation_steps=2", 5, {"HN-0204", "\"w/accumulated\"", "sum of gradients", "another name"}, holding([] { return with_weights_called("w", "w/accumulated"); })},
    {"MissingValue", kCompile, 3, {"HN-0106", "input 0 is \"imgae\", which nothing produces", "in model.onnx", "did you mean \"image\"?"}, holding([] {
       TestModel model;
       model.input("image", {"N"}).output("y").node("Relu", {"imgae"}, {"y"});
       return model;
     })},
    {"Cycle", kCompile, 3, {"HN-0106", "\"first\" reads \"second\" reads \"first\"", "in model.onnx"}, holding(with_cycle)},
    {"NoOutput", kCompile, 3, {"HN-0106", "no outputs"}, holding([] {
       TestModel model = without_weights();
       model.proto.mutable_graph()->clear_output();
       return model;
     })},
    {"NoNodes", kCompile, 3, {"HN-0101", "without nodes"}, holding([] {
       TestModel model = without_weights();
       model.proto.mutable_graph()->clear_node();
       return model;
     })},
    {"WeightOfAnotherShape",
     kCompile,
     3,
     {"HN-0107", "MatMul: inner dimensions differ: 4 and 5", "at node \"fc/MatMul\" of layer \"fc\" in model.onnx", "\"fc.weight\" is a weight of the model"},
     holding([] { return with_inner_dimensions(5); })},
    {"WeightWhoseDataDoNotFit", kCompile, 3, {"HN-0105", "\"b\"", "[5]"}, holding(with_short_weight)},
    {"OpsetTooOld", kCompile, 3, {"HN-0103", "opset 0 is too old", "onnx.version_converter"}, holding([] { return TestModel::of_node("Relu", {"N"}, {}, 0); })},
    {"OpsetOfTheFuture", kCompile, 3, {"HN-0103", "opset 99 is newer", "export the model with opset"}, holding([] {
       return TestModel::of_node("Relu", {"N"}, {}, 99);
     })},
    {"DynamicAxes", kCompile, 3, {"HN-0110", "at node \"view\"", "must be known when compiling", "--bind"}, holding(with_dynamic_axes)},
    {"ExternalDataOutsideTheFolder", kCompile, 3, {"HN-0105", "../secret.bin"}, holding([] { return with_external_weight("../secret.bin"); })},
    {"ExternalDataAtAnAbsolutePath", kCompile, 3, {"HN-0105", "/etc/passwd"}, holding([] { return with_external_weight("/etc/passwd"); })},
    {"ExternalDataMissing", kCompile, 3, {"HN-0105", "initializer \"b\"", "weights.bin", "keep them in one folder"}, holding([] {
       return with_external_weight("weights.bin");
     })},
    {"NothingToTrain", kCompile, 3, {"HN-0114"}, holding(without_weights)},
    {"LossOfIntegers", kCompile, 5, {"HN-0204", "\"z\"", "i64", "floats"}, holding(with_integer_output)},
    {"NoSamplesInABatch", "hone-compile mlp.onnx -o plan.hone --dim N=0", 3, {"HN-0107", "\"x\" is f32[0,4]", "a batch of it has 0 samples", "a number from 1 on"}, write_mlp},
    {"SizeThatIsNotThere", "hone-compile mlp.onnx -o plan.hone --dim M=3", 2, {"no size \"M\"", "N"}, write_mlp},
    {"HirThatDoesNotParse",
     "hone-opt wrong.hir",
     3,
     {"HN-0111", "wrong.hir:1"},
     [](const TempFolder& folder) { folder.write("wrong.hir", "grpah main {}\n"); }},
    {"DumpOfText", "hone-dump model.onnx", 3, {"HN-0101", "not an ONNX file"}, holding_text("words")},
    {"DumpOfAnUnknownKind", "hone-dump model.pt", 2, {"HN-0001", "model.pt", ".onnx"}, [](const TempFolder& folder) { folder.write("model.pt", ""); }},
};

HONE_ERROR_CASES(ModelErrors, kCases);

TEST(TruncatedModel, IsRefusedWhereverItEnds) {
  const TempFolder folder;
  write_mlp(folder);
  const std::string whole = folder.read("mlp.onnx");
  for (const std::size_t length : {std::size_t{1}, std::size_t{7}, std::size_t{100}, whole.size() / 2, whole.size() - 20, whole.size() - 1}) {
    folder.write("cut.onnx", whole.substr(0, length));
    const ToolRun run = run_tool(folder.path(), "hone-compile cut.onnx -r train.toml -o cut.hone");
    EXPECT_EQ(run.exit, 3) << length << " bytes\n" << run.err;
    EXPECT_THAT(run.err, HasSubstr("cut.onnx"));
    EXPECT_FALSE(std::filesystem::exists(folder / "cut.hone"));
  }
}

TEST(DamagedModel, NeverCrashesTheCompiler) {
  const TempFolder folder;
  write_mlp(folder);
  const std::string whole = folder.read("mlp.onnx");
  for (std::size_t at = 0; at < whole.size(); at += whole.size() / 12) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5a);
    folder.write("damaged.onnx", damaged);
    const ToolRun run = run_tool(folder.path(), "hone-compile damaged.onnx --emit imported");
    EXPECT_TRUE(run.exit == 0 or run.exit == 3) << "byte " << at << ": exit " << run.exit << "\n" << run.err;
  }
}

}  // namespace
}  // namespace hone::test
