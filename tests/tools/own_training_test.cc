// Models that carry their training: compiled without a recipe, trained, written back; and plans written as such models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/npy.h"
#include "tests/frontend/training_models.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class OwnTraining : public ::testing::Test {
 protected:
  ToolRun run(const std::string& command) const { return run_well(folder_.path(), command); }

  void write(const TestModel& model) const {
    save_model(model.proto, folder_ / "m.onnx");
    write_npy(folder_ / "x.npy", linear_x());
    write_npy(folder_ / "t.npy", linear_targets());
  }

  /// The values of `field` in the lines of that kind.
  std::vector<double> logged(const std::string& run_dir, const std::string& kind, const std::string& field) const {
    std::vector<double> values;
    std::istringstream text(folder_.read(run_dir + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);)
      if (const Json json = Json::parse(line); json.at("kind") == kind) values.push_back(json.at(field));
    return values;
  }

  /// Losses of a run without shuffling.
  std::vector<double> losses(const std::string& plan, const std::string& data, const std::string& more) const {
    run("hone-run train " + plan + " --train " + data + " --no-shuffle --log-every 1 --run-dir run_of_" + plan + " " + more);
    return logged("run_of_" + plan, "step", "loss");
  }

  TempFolder folder_;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

std::vector<double> tensor_in(const onnx::GraphProto& graph, const std::string& name) {
  for (const onnx::TensorProto& tensor : graph.initializer())
    if (tensor.name() == name) return values_of(tensor_of(tensor, ".", {}));
  ADD_FAILURE() << "no " << name;
  return {};
}

TEST_F(OwnTraining, TrainsWithoutARecipe) {
  write(trained_by("Adam", 2));
  EXPECT_THAT(run("hone-compile m.onnx -o m.hone").err, HasSubstr("2 weights trained (8 parameters)"));
  expect_near(losses("m.hone", "x=x.npy,t=t.npy", "--batch 4 --epochs 4 --out trained.onnx"), by_adam().losses, 5e-6);
  const onnx::ModelProto trained = load_model(folder_ / "trained.onnx");
  expect_near(tensor_in(trained.graph(), "w"), by_adam().w, 5e-6);
  expect_near(tensor_in(trained.graph(), "b"), by_adam().b, 5e-6);
  const onnx::GraphProto& algorithm = trained.training_info(0).algorithm();
  EXPECT_EQ(tensor_in(algorithm, "T"), (std::vector<double>{4}));
  EXPECT_GT(tensor_in(algorithm, "h_b")[0], 0) << "the optimizer's states are in the file, too";
  EXPECT_EQ(trained.training_info(0).update_binding_size(), 7);
}

TEST_F(OwnTraining, GoesOnFromATrainedModel) {
  write(trained_by("Adam", 2));
  run("hone-compile m.onnx -o m.hone");
  const std::vector<double> all = losses("m.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 6");
  run("hone-run train m.hone --train x=x.npy,y=t.npy --no-shuffle --batch 4 --epochs 3 --out half.onnx");
  run("hone-compile half.onnx -o half.hone");
  expect_near(losses("half.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 3"), {all.begin() + 3, all.end()}, 1e-6);
}

TEST_F(OwnTraining, EvaluatesAndPredicts) {
  write(trained_by_descent());
  run("hone-compile m.onnx -o m.hone");
  run("hone-run train m.hone --train x=x.npy,y=t.npy --batch 4 --epochs 4 --out trained.onnx");
  const Json result = Json::parse(run("hone-run eval m.hone --data x=x.npy,y=t.npy --batch 4 --json").out);
  EXPECT_NEAR(result.at("loss").get<double>(), by_descent().losses[0], 5e-6);
  run("hone-run predict m.hone --weights trained.onnx --data x=x.npy --out y.npy");
  const Tensor y = read_npy(folder_ / "y.npy");
  const Trajectory trained = by_descent();
  EXPECT_NEAR(y.at(0), trained.w[0] + 2 * trained.w[2] - trained.w[4] + trained.b[0], 5e-6);
}

/// Three samples and one: the epoch's loss counts each sample once.
TEST_F(OwnTraining, LossesOfBatchesAreWeighedBySamples) {
  write(trained_by_descent());
  run("hone-compile m.onnx -o m.hone");
  const std::vector<double> steps = losses("m.hone", "x=x.npy,y=t.npy", "--batch 3 --epochs 1");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NEAR(logged("run_of_m.hone", "epoch", "loss").at(0), (3 * steps[0] + steps[1]) / 4, 1e-6);
}

TEST_F(OwnTraining, ARecipeMaySayWhatIsLeftToSay) {
  write(trained_by_descent());
  run("hone-compile m.onnx --set data.batch_size=4 --set train.epochs=4 -o m.hone");
  expect_near(losses("m.hone", "x=x.npy,y=t.npy", ""), by_descent().losses, 5e-6);
  const ToolRun refused = run_tool(folder_.path(), "hone-run train m.hone --train x=x.npy,y=t.npy --set optimizer.learning_rate=1");
  EXPECT_EQ(refused.exit, 5);
  EXPECT_THAT(refused.err, HasSubstr("trains as its model says itself"));
}

TEST_F(OwnTraining, ARecipeWithALossWins) {
  write(trained_by("Adam", 2));
  const ToolRun compiled = run("hone-compile m.onnx --set loss.kind=mse --set optimizer.kind=sgd --set optimizer.learning_rate=0.1 -o m.hone");
  EXPECT_THAT(compiled.err, HasSubstr("is kept and not used"));
  expect_near(losses("m.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 4"), by_descent().losses, 5e-6);
}

TEST_F(OwnTraining, MayBeLeftAside) {
  write(trained_by_descent());
  run("hone-compile m.onnx --no-training-info -o m.hone");
  const ToolRun refused = run_tool(folder_.path(), "hone-run train m.hone --train x=x.npy,y=t.npy");
  EXPECT_EQ(refused.exit, 10);
}

/// Nothing would be exchanged.
TEST_F(OwnTraining, IsForOneDevice) {
  write(trained_by_descent());
  run("hone-compile m.onnx -o m.hone");
  for (const char* flags : {" --virtual 2", " --shards 2", " --virtual 2 --shard-optimizer"}) {
    const ToolRun refused = run_tool(folder_.path(), std::string("hone-run train m.hone --train x=x.npy,y=t.npy") + flags);
    EXPECT_EQ(refused.exit, 10) << flags;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("a model that says itself how it is trained exchanges nothing"), HasSubstr("train it on one device"))) << flags;
  }
}

TEST_F(OwnTraining, CheckReportsIt) {
  TestModel model = trained_by_descent();
  write(model);
  EXPECT_THAT(run("hone-compile m.onnx --check").out, HasSubstr("2 weights are trained, 0 are not reached by a gradient; 0 problems, 0 warnings"));
  model.proto.mutable_training_info(0)->mutable_update_binding(0)->set_key("ww");
  write(model);
  const ToolRun checked = run_tool(folder_.path(), "hone-compile m.onnx --check");
  EXPECT_EQ(checked.exit, 3);
  EXPECT_THAT(checked.out, HasSubstr("there is no initializer \"ww\""));
}

/// A trained file does not draw its weights afresh.
TEST_F(OwnTraining, InitializationIsForTheFirstTimeOnly) {
  TestModel model = trained_by_descent(), graph;
  onnx::TrainingInfoProto& info = *model.proto.mutable_training_info(0);
  graph.output("first").node("RandomNormal", {}, {"first"}).set("shape", std::vector<std::int64_t>{3, 2});
  *info.mutable_initialization() = graph.proto.graph();
  onnx::StringStringEntryProto& binding = *info.add_initialization_binding();
  binding.set_key("w");
  binding.set_value("first");
  write(model);
  run("hone-compile m.onnx -o m.hone");
  const std::vector<double> all = losses("m.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 4");
  EXPECT_GT(std::abs(all[0] - by_descent().losses[0]), 1e-3);
  run("hone-run train m.hone --train x=x.npy,y=t.npy --no-shuffle --batch 4 --epochs 2 --out half.onnx");
  run("hone-compile half.onnx -o half.hone");
  expect_near(losses("half.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 2"), {all.begin() + 2, all.end()}, 1e-6);
  run("hone-compile m.onnx --set model.initialize=keep -o kept.hone");
  expect_near(losses("kept.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 4"), by_descent().losses, 5e-6);
}

// --- hone-dump --as onnx ---

/// Trains as `recipe` says, then as the dumped model says.
class RoundTrip : public OwnTraining, public ::testing::WithParamInterface<const char*> {};

TEST_P(RoundTrip, ADumpedPlanTrainsToTheSameLosses) {
  write_conv_net(folder_);
  std::string settings;
  std::istringstream words(GetParam());
  for (std::string word; words >> word;) settings += " --set " + word;
  run("hone-compile conv.onnx" + settings + " --set loss.kind=softmax_cross_entropy --set metrics.list=[\"accuracy\"] -o conv.hone");
  const std::vector<double> expected = losses("conv.hone", "x=x.npy,y=y.npy", "--batch 8 --epochs 2");
  run("hone-dump conv.hone --as onnx > own.onnx");
  run("hone-compile own.onnx -o own.hone");
  expect_near(losses("own.hone", "x=x.npy,y=y.npy", "--batch 8 --epochs 2"), expected, 2e-4);
  expect_near(logged("run_of_own.hone", "epoch", "accuracy"), logged("run_of_conv.hone", "epoch", "accuracy"), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RoundTrip,
                         ::testing::Values("optimizer.kind=sgd optimizer.learning_rate=0.05", "optimizer.kind=sgd optimizer.momentum=0.9 optimizer.nesterov=true optimizer.learning_rate=0.05",
                                           "optimizer.kind=adam", "optimizer.kind=nadam train.convention=keras", "optimizer.kind=rmsprop optimizer.centered=true",
                                           "optimizer.kind=adagrad model.batch_norm=frozen loss.label_smoothing=0.1",
                                           "optimizer.kind=sgd model.dropout.after=[\"batch_norm\"] model.dropout.rate=0.5"));

/// What the model's graph computes is not computed twice.
TEST_F(OwnTraining, ADumpedPlanRefersToTheModelsValues) {
  write_mlp_plan(folder_);
  run("hone-dump mlp.hone --as onnx > own.onnx");
  const onnx::ModelProto model = load_model(folder_ / "own.onnx");
  ASSERT_EQ(model.training_info_size(), 1);
  int gradients = 0;
  for (const onnx::NodeProto& node : model.training_info(0).algorithm().node()) {
    EXPECT_NE(node.op_type(), "MatMul") << node.name();
    gradients += node.op_type() == "Gradient";
  }
  EXPECT_EQ(gradients, 1);
  EXPECT_EQ(model.training_info(0).update_binding_size(), 4 * 3 + 1) << "four weights with two moments each, and the step";
}

TEST_F(OwnTraining, ADumpedModelKeepsItsOwnTraining) {
  write(trained_by("Adam", 2));
  run("hone-compile m.onnx -o m.hone");
  run("hone-dump m.hone --as onnx > again.onnx");
  const ToolRun refused = run_tool(folder_.path(), "hone-compile again.onnx --set schedule.kind=cosine -o again.hone");
  EXPECT_EQ(refused.exit, 5);
  EXPECT_THAT(refused.err, HasSubstr("the recipe sets schedule.kind, but has no loss, and the model says itself how it is trained"));
  run("hone-compile again.onnx -o again.hone");
  expect_near(losses("again.hone", "x=x.npy,y=t.npy", "--batch 4 --epochs 4"), by_adam().losses, 5e-6);
}

TEST_F(OwnTraining, DumpSaysWhatOnnxHasNoPlaceFor) {
  write_mlp(folder_);
  run("hone-compile mlp.onnx -r train.toml --set schedule.kind=cosine -o mlp.hone");
  EXPECT_THAT(run("hone-dump mlp.hone --as onnx > own.onnx").err, HasSubstr("the learning rate's schedule"));
  run("hone-compile mlp.onnx -r train.toml --set metrics.list=[\"accuracy\",\"recall\"] --set train.gradient_accumulation_steps=2 --set train.ema_decay=0.9 --set train.precision=bf16 -o mlp.hone");
  EXPECT_THAT(run("hone-dump mlp.hone --as onnx > own.onnx").err,
              HasSubstr("ONNX has no place for train.gradient_accumulation_steps, train.ema_decay, train.precision, metrics that are no means: left out\n"));
  const ToolRun refused = run_tool(folder_.path(), "hone-dump mlp.onnx --as onnx");
  EXPECT_EQ(refused.exit, 2);
}

}  // namespace
}  // namespace hone::test
