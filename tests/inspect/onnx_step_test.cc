// hone-dump PLAN --as onnx --stage train_step: read back by our own importer and interpreted, it must do what the plan does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/onnx_file.h"
#include "frontend/onnx/export_step.h"
#include "inspect/forms.h"
#include "ir/kernel/interpret.h"
#include "ir/parse.h"
#include "passes/passes.h"
#include "runtime/session.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

onnx::ModelProto stage_of(const Contents& plan, const std::string& stage) {
  std::vector<std::string> notes;
  const std::string bytes = onnx_form(plan, {.stage = stage}, notes);
  return parse_model(std::as_bytes(std::span(bytes)), "step.onnx");
}

/// Values for a feed of a batch of `batch` samples; integers are classes.
Tensor values_for(const plan::Feed& feed, std::int64_t batch, const std::string& batch_symbol) {
  std::vector<std::int64_t> shape;
  for (const Dim& extent : feed.shape) shape.push_back(extent.evaluate({{batch_symbol, batch}}));
  std::vector<double> values(static_cast<std::size_t>(checked_element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = is_float(feed.dtype) ? std::sin(0.37 * static_cast<double>(1 + i % 101)) : static_cast<double>(i % 3);
  return Tensor::of<double>(shape, std::span<const double>(values)).cast(feed.dtype);
}

void expect_close(const Tensor& found, const Tensor& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  double largest = 1e-3, apart = 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    ASSERT_TRUE(std::isfinite(found.at(i))) << what << " " << i;
    largest = std::max(largest, std::abs(expected.at(i)));
    apart = std::max(apart, std::abs(found.at(i) - expected.at(i)));
  }
  EXPECT_LE(apart, tolerance * largest) << what;
}

/// Takes what need not be fed out of the initializers: a number that is one would be a constant to our importer.
Feeds take_defaults(onnx::ModelProto& model) {
  std::set<std::string> inputs;
  for (const onnx::ValueInfoProto& input : model.graph().input()) inputs.insert(input.name());
  Feeds defaults;
  google::protobuf::RepeatedPtrField<onnx::TensorProto> constants;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (inputs.contains(tensor.name())) defaults.emplace(tensor.name(), tensor_of(tensor, ".", {}));
    else *constants.Add() = tensor;
  }
  *model.mutable_graph()->mutable_initializer() = constants;
  return defaults;
}

/// The plan in the folder: its step and the step's ONNX form leave the same loss, weights and states, also when the form goes on from what it gave.
void expect_same_step(const TempFolder& folder, const std::string& name, double tolerance = 1e-4, const std::string& device = "cpu") {
  const Contents contents = load_contents(folder / name);
  const plan::Plan& plan = *contents.plan;
  onnx::ModelProto model = stage_of(contents, plan::kTrainStep);
  Feeds fed = take_defaults(model);
  onnx::Imported step = onnx::import_model(model, "step.onnx", ".");
  (void)expand(step.graph);
  Session session(plan, {.device = device, .threads = 1});
  std::vector<std::string> data;
  for (const plan::Feed& feed : session.entry(plan::kTrainStep).feeds)
    if (plan::is_data(feed)) fed.emplace(feed.name, values_for(feed, 3, plan.batch_symbol)), data.push_back(feed.name);
  fed.insert_or_assign("learning_rate", Tensor::scalar(0.125));  // not the recipe's
  data.emplace_back("learning_rate");
  std::vector<std::pair<std::string, TensorView>> feeds;
  for (const std::string& name : data) feeds.emplace_back(name, fed.at(name));
  Interpreter interpreter(step.graph);
  for (int i = 0; i < 2; ++i) {
    session.run(plan::kTrainStep, feeds);
    const GraphResults results = interpreter.run(fed);
    const double loss = session.result_tensor(plan::kLossSum).at(0) / session.result_tensor(plan::kTargetCount).at(0);
    EXPECT_NEAR(results["loss"].at(0), loss, 1e-5 * std::abs(loss)) << name << " step " << i;
    std::size_t compared = 0;
    for (const NamedTensor& output : results.outputs) {
      if (not output.name.starts_with(onnx::kNewPrefix)) continue;
      const std::string state = output.name.substr(std::string_view(onnx::kNewPrefix).size());
      expect_close(output.value, session.read(state), tolerance, name + ": " + state);
      fed.insert_or_assign(state, session.read(state));  // small differences must not grow
      ++compared;
    }
    EXPECT_GE(compared, 4U);
  }
}

/// The plan of a classifier that descends along its gradient, as `name` in the folder.
void compile_descent(const TempFolder& folder, const TestModel& model, const std::string& name, const std::string& flags) {
  save_model(model.proto, folder / "model.onnx");
  folder.write("train.toml", "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\n");
  run_well(folder.path(), "hone-compile model.onnx -r train.toml " + flags + " -o " + name);
}

TEST(OnnxStep, TrainsAsThePlanDoes) {
  TempFolder folder;
  write_mlp_plan(folder);
  expect_same_step(folder, "mlp.hone");
  write_ids_plan(folder);
  expect_same_step(folder, "ids.hone");
}

TEST(OnnxStep, ConvolvesPoolsAndNormalizesAsThePlanDoes) {
  TempFolder folder;
  write_conv_plan(folder);
  run_well(folder.path(), "hone-compile conv.onnx -r train.toml --set optimizer.kind=sgd --levels x86-64-v3 -o sgd.hone");
  expect_same_step(folder, "sgd.hone");
}

/// The same elements are dropped.
TEST(OnnxStep, DrawsTheSameRandomNumbers) {
  TempFolder folder;
  write_mlp(folder);
  folder.write("train.toml",
               "[model.dropout]\nafter = [\"*\"]\nrate = 0.4\n[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"sgd\"\nmomentum = 0.9\n[train]\nseed = 7\n");
  run_well(folder.path(), "hone-compile mlp.onnx -r train.toml --levels x86-64-v3 -o dropout.hone");
  expect_same_step(folder, "dropout.hone");
}

/// Convolutions whose gradients need output pads, groups, strides beside dilations, and windows that leave elements over; padded pooling; a loop forwards and backwards.
TEST(OnnxStep, OfUnevenConvolutionsAndOfALoop) {
  TestModel model;
  model.input("x", {"N", 4, 9, 10})
      .initializer("w", wavy({6, 2, 3, 2}))
      .initializer("depthwise", wavy({6, 1, 2, 2}))
      .initializer("wx", wavy({1, 3 * 2, 6}))
      .initializer("wh", wavy({1, 3 * 2, 2}))
      .initializer("back", wavy({2, 3}));
  model.node("Conv", {"x", "w"}, {"c"}).set("group", 2).set("strides", std::vector<std::int64_t>{2, 3}).set("dilations", std::vector<std::int64_t>{1, 2}).set("pads", std::vector<std::int64_t>{1, 0, 0, 2});
  model.node("Tanh", {"c"}, {"t"});
  model.node("Conv", {"t", "depthwise"}, {"d"}).set("group", 6).set("pads", std::vector<std::int64_t>{0, 1, 1, 0});
  model.node("MaxPool", {"d"}, {"m"}).set("kernel_shape", std::vector<std::int64_t>{3, 2}).set("strides", std::vector<std::int64_t>{2, 1}).set("pads", std::vector<std::int64_t>{1, 0, 0, 1});
  model.node("AveragePool", {"d"}, {"a"}).set("kernel_shape", std::vector<std::int64_t>{2, 2}).set("strides", std::vector<std::int64_t>{2, 1}).set("pads", std::vector<std::int64_t>{0, 0, 1, 1});
  model.node("Add", {"m", "a"}, {"p"});
  model.node("ReduceMean", {"p"}, {"r"}).set("axes", std::vector<std::int64_t>{3}).set("keepdims", 0);  // [N,6,2]
  model.node("Transpose", {"r"}, {"series"}).set("perm", std::vector<std::int64_t>{2, 0, 1});
  model.node("GRU", {"series", "wx", "wh"}, {"", "last"}).set("hidden_size", 2).set("linear_before_reset", 1);
  model.node("Squeeze", {"last"}, {"h"});
  model.node("MatMul", {"h", "back"}, {"y"});
  model.output("y");
  TempFolder folder;
  compile_descent(folder, model, "uneven.hone", "--levels x86-64-v3");
  expect_same_step(folder, "uneven.hone");
}

/// As convolutions of slices, of which three samples leave one empty. The index formula, which is what an operation without a form is written as, would take memory for each product.
TEST(OnnxStep, OfWeightGradientsPartByPart) {
  TestModel model;
  model.input("x", {"N", 16, 12, 12}).initializer("w", wavy({16, 16, 3, 3})).initializer("out", wavy({16, 3}));
  model.node("Conv", {"x", "w"}, {"c"}).set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  model.node("Relu", {"c"}, {"r"});
  model.node("ReduceMean", {"r"}, {"m"}).set("axes", std::vector<std::int64_t>{2, 3}).set("keepdims", 0);
  model.node("MatMul", {"m", "out"}, {"y"});
  model.output("y");
  TempFolder folder;
  compile_descent(folder, model, "parts.hone", "--levels x86-64-v3 --set optimizer.momentum=0.9");
  EXPECT_THAT(run_well(folder.path(), "hone-dump parts.hone --stage train_step").out, HasSubstr("conv_weight_grad_parts"));
  expect_same_step(folder, "parts.hone");
  int convolutions = 0;
  const onnx::ModelProto step = stage_of(load_contents(folder / "parts.hone"), plan::kTrainStep);
  for (const onnx::FunctionProto& function : step.functions())
    for (const onnx::NodeProto& node : function.node()) convolutions += node.op_type() == "Conv" ? 1 : 0;
  EXPECT_EQ(convolutions, 1 + 4) << "forward, and a part each";
}

/// What is a library's call on a GPU is what its body says; each direction has the same zeros for biases that there are not, which are held once.
TEST(OnnxStep, OfARecurrentLayerThatIsACall) {
  TestModel model;
  model.input("x", {"N", 5, 6}).initializer("w", wavy({2, 128, 6})).initializer("r", wavy({2, 128, 32})).initializer("out", wavy({32, 3}));
  model.node("Transpose", {"x"}, {"steps"}).set("perm", std::vector<std::int64_t>{1, 0, 2});
  model.node("LSTM", {"steps", "w", "r"}, {"", "last"}).set("hidden_size", 32).set("direction", "bidirectional");
  model.node("ReduceMean", {"last"}, {"h"}).set("axes", std::vector<std::int64_t>{0}).set("keepdims", 0);
  model.node("MatMul", {"h", "out"}, {"y"});
  model.output("y");
  TempFolder folder;
  compile_descent(folder, model, "both.hone", "--target sim");
  EXPECT_THAT(run_well(folder.path(), "hone-dump both.hone --stage train_step").out, HasSubstr("row=\"cudnn.recurrent_grad\""));
  expect_same_step(folder, "both.hone", 1e-4, "sim");
  EXPECT_FALSE(stage_of(load_contents(folder / "both.hone"), "training").graph().node().empty());
}

TEST(OnnxStep, ShowsAKernelAsAFunction) {
  TempFolder folder;
  write_mlp_plan(folder);
  const Contents contents = load_contents(folder / "mlp.hone");
  const onnx::ModelProto model = stage_of(contents, plan::kTrainStep);
  std::vector<std::string> functions, calls;
  for (const onnx::FunctionProto& function : model.functions()) functions.push_back(function.name());
  for (const onnx::NodeProto& node : model.graph().node())
    if (node.domain() == onnx::kFunctionDomain) calls.push_back(node.op_type());
  std::size_t fused = 0;
  for (const plan::Step& step : contents.plan->programs[0].find(plan::kTrainStep)->steps) {
    const auto* kernel = std::get_if<plan::KernelStep>(&step.what);
    if (kernel == nullptr or kernel->symbol.find("_more") == std::string::npos) continue;  // "relu_and_2_more"
    ++fused;
    EXPECT_THAT(functions, Contains(StartsWith(kernel->symbol)));
    EXPECT_THAT(calls, Contains(StartsWith(kernel->symbol)));
  }
  EXPECT_GT(fused, 0U);
}

TEST(OnnxStep, OtherStagesAreModelsToo) {
  TempFolder folder;
  write_mlp_plan(folder);
  const Contents contents = load_contents(folder / "mlp.hone");
  for (const char* stage : {plan::kEvalStep, plan::kPredict}) {
    onnx::Imported model = onnx::import_model(stage_of(contents, stage), "stage.onnx", ".");
    (void)expand(model.graph);
    Session session(*contents.plan, {.device = "cpu", .threads = 1});
    Feeds fed;
    for (const plan::Feed& feed : session.entry(stage).feeds) fed.emplace(feed.name, values_for(feed, 3, contents.plan->batch_symbol));
    const std::vector<std::pair<std::string, TensorView>> feeds(fed.begin(), fed.end());
    session.run(stage, feeds);
    const GraphResults results = interpret(model.graph, fed);
    for (const plan::Result& result : session.entry(stage).results) expect_close(results[result.name], session.result_tensor(result.name), 1e-5, result.name);
  }
}

/// Groups that could only run while they wait for each other are written node by node, and numbers of nodes that are not there are left aside.
TEST(OnnxStep, TakesAnyGroups) {
  const Graph graph = parse_graph(R"(
    graph step(input %x: f32[N,2]) {
      %a: f32[N,2] = exp(%x)
      %b: f32[N,2] = tanh(%a)
      %c: f32[N,2] = neg(%b)
      %d: f32[N,2] = sqrt(%a)
      %e: f32[N,2] = add(%c, %d)
      output "e" %e
    })",
                                  "groups");
  const Feeds feeds = {{"x", wavy({3, 2})}};
  const Tensor expected = interpret(graph, feeds)["e"];
  const auto ids = [](std::initializer_list<std::size_t> numbers) {
    std::vector<NodeId> nodes;
    for (const std::size_t number : numbers) nodes.emplace_back(number);
    return nodes;
  };
  const std::vector<std::vector<onnx::NodeGroup>> all = {
      {},
      {{"whole", "", ids({0, 1, 2, 3, 4})}},
      {{"around", "", ids({0, 2, 4})}, {"within", "", ids({1, 3})}},  // b is made from a, and c from b
      {{"twice", "", ids({0, 1})}, {"again", "", ids({0, 3})}},
      {{"nowhere", "", ids({99, 4, 4})}, {"empty", "", {}}},
  };
  for (const std::vector<onnx::NodeGroup>& groups : all) {
    onnx::Imported read = onnx::import_model(onnx::export_step(graph.clone(), groups), "groups.onnx", ".");
    (void)expand(read.graph);
    expect_close(interpret(read.graph, feeds)["e"], expected, 1e-6, groups.empty() ? "none" : groups[0].name);
  }
}

TEST(OnnxStep, SaysWhatCannotBeWritten) {
  const Graph graph = parse_graph("graph g(input %x: f32[4,4]) {\n  %y: f32[4,4] = cofactors(%x)\n  output \"y\" %y\n}", "cofactors");
  try {
    (void)onnx::export_step(graph.clone());
    FAIL() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.diags()[0].code, Code::kUnknownOp);
    EXPECT_THAT(error.what(), HasSubstr("cofactors"));
  }
}

}  // namespace
}  // namespace hone::test
