// hone-run from end to end on a small convolutional net: what training writes, and that train, eval, predict and call agree with each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/safetensors.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string kTrain = "hone-run train conv.hone --train x=x.npy,y=y.npy";

class Tools : public ::testing::Test {
 protected:
  Tools() { write_conv_plan(folder_); }
  ToolRun run(const std::string& command) const { return run_well(folder_.path(), command); }

  std::vector<Json> lines_of(const std::string& name) const {
    std::vector<Json> lines;
    std::istringstream text(folder_.read(name));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }
  std::vector<Json> of_kind(const std::string& name, const std::string& kind) const {
    std::vector<Json> lines = lines_of(name);
    std::erase_if(lines, [&](const Json& line) { return line.at("kind") != kind; });
    return lines;
  }
  onnx::ModelProto model(const std::string& name) const { return load_model(folder_ / name); }

  TempFolder folder_;
};

/// Mean softmax cross-entropy and share of hits, computed here.
std::pair<double, double> loss_and_accuracy(const Tensor& logits, const Tensor& classes) {
  double loss = 0, hits = 0;
  const std::int64_t count = classes.element_count(), width = logits.shape()[1];
  for (std::int64_t i = 0; i < count; ++i) {
    double sum = 0;
    std::int64_t best = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      sum += std::exp(logits.at(i * width + k));
      if (logits.at(i * width + k) > logits.at(i * width + best)) best = k;
    }
    loss += std::log(sum) - logits.at(i * width + classes.int_at(i));
    hits += best == classes.int_at(i) ? 1 : 0;
  }
  return {loss / static_cast<double>(count), hits / static_cast<double>(count)};
}

TEST_F(Tools, TrainingLearnsTheTask) {
  const ToolRun training = run(kTrain + " --epochs 15 --out trained.onnx");
  EXPECT_THAT(training.err, HasSubstr("Epoch 1/15\n"));
  EXPECT_THAT(training.err, ContainsRegex("13/13 \\[=+\\] - .*loss: [0-9.e-]+ - accuracy: "));
  EXPECT_THAT(training.err, HasSubstr("the trained model is trained.onnx"));
  EXPECT_EQ(training.out, "");
  const Json result = Json::parse(run("hone-run eval conv.hone --weights trained.onnx --data x=x.npy,y=y.npy --json").out);
  EXPECT_GE(result.at("accuracy").get<double>(), 0.9);
}

TEST_F(Tools, PredictCallAndEvalAgree) {
  run(kTrain + " --epochs 2 --out trained.onnx");
  const std::string with = " conv.hone --weights trained.onnx ";
  run("hone-run predict" + with + "--data x=x.npy --out batches.npz --batch 7");
  run("hone-run predict" + with + "--data x=x.npy --out array.npy --batch 50");
  run("hone-run call" + with + "--in image=x.npy --out call.npz");
  const Tensor batches = read_npz(folder_ / "batches.npz", "logits"), array = read_npy(folder_ / "array.npy"), call = read_npz(folder_ / "call.npz", "logits");
  ASSERT_EQ(call.shape(), (std::vector<std::int64_t>{50, 3}));
  ASSERT_EQ(batches.shape(), call.shape());
  ASSERT_EQ(array.shape(), call.shape());
  for (std::int64_t i = 0; i < call.element_count(); ++i) {
    EXPECT_NEAR(batches.at(i), call.at(i), 1e-5);
    EXPECT_NEAR(array.at(i), call.at(i), 1e-5);
  }
  const Json result = Json::parse(run("hone-run eval" + with + "--data x=x.npy,y=y.npy --json").out);
  const auto [loss, accuracy] = loss_and_accuracy(call, read_npy(folder_ / "y.npy"));
  EXPECT_NEAR(result.at("loss").get<double>(), loss, 1e-5);
  EXPECT_NEAR(result.at("accuracy").get<double>(), accuracy, 1e-6);
}

TEST_F(Tools, AModelWithoutInputsIsCalledWithNone) {
  TestModel model;
  model.output("y").node("Constant", {}, {"c"}).set("value", f32({2}, {1, -2}));
  model.node("Relu", {"c"}, {"y"});
  folder_.write("fixed.onnx", model.proto.SerializeAsString());
  run("hone-compile fixed.onnx -o fixed.hone");
  run("hone-run call fixed.hone --out fixed.npz");
  EXPECT_THAT(values_of(read_npz(folder_ / "fixed.npz", "y")), ElementsAre(1, 0));
  EXPECT_THAT(run_tool(folder_.path(), "hone-run call conv.hone --out call.npz").err, HasSubstr("nothing feeds the input \"image\""));
}

TEST_F(Tools, ValidationIsWhatEvalGivesAfterwards) {
  run(kTrain + " --valid x=x.npy[0:20],y=y.npy[0:20] --epochs 2 --out run/trained.onnx --run-dir run");
  const std::vector<Json> epochs = of_kind("run/metrics.jsonl", "epoch");
  ASSERT_EQ(epochs.size(), 2u);
  const Json result = Json::parse(run("hone-run eval conv.hone --weights run/trained.onnx --data x=x.npy[0:20],y=y.npy[0:20] --json").out);
  EXPECT_NEAR(epochs[1].at("val_loss").get<double>(), result.at("loss").get<double>(), 1e-6);
  EXPECT_NEAR(epochs[1].at("val_accuracy").get<double>(), result.at("accuracy").get<double>(), 1e-6);
}

TEST_F(Tools, TrainingTwiceGivesTheSameBytes) {
  for (const std::string name : {"a", "b"}) run(kTrain + " --epochs 3 --seed 5 --out " + name + ".onnx");
  run(kTrain + " --epochs 3 --seed 6 --out c.onnx");
  EXPECT_EQ(folder_.read("a.onnx"), folder_.read("b.onnx"));
  EXPECT_NE(folder_.read("a.onnx"), folder_.read("c.onnx")) << "another seed, another order";
}

TEST_F(Tools, RowsOfProbabilitiesTrainAsTheirClassesDo) {
  const Tensor classes = read_npy(folder_ / "y.npy");
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < classes.element_count(); ++i)
    for (std::int64_t c = 0; c < 3; ++c) rows.push_back(classes.int_at(i) == c ? 1 : 0);
  write_npy(folder_ / "onehot.npy", Tensor::of<std::int64_t>({classes.element_count(), 3}, rows).cast(DType::kU8));
  run("hone-compile conv.onnx -r train.toml --set loss.targets=probabilities -o soft.hone");
  run(kTrain + " --valid x=x.npy,y=y.npy --epochs 3 --out a.onnx --run-dir a");
  run("hone-run train soft.hone --train x=x.npy,y=onehot.npy --valid x=x.npy,y=onehot.npy --epochs 3 --out b.onnx --run-dir b");
  const std::vector<Json> of_classes = of_kind("a/metrics.jsonl", "epoch"), of_rows = of_kind("b/metrics.jsonl", "epoch");
  ASSERT_EQ(of_classes.size(), 3u);
  ASSERT_EQ(of_rows.size(), 3u);
  for (std::size_t epoch = 0; epoch < 3; ++epoch)
    for (const char* value : {"loss", "accuracy", "val_loss", "val_accuracy"}) EXPECT_NEAR(of_rows[epoch].at(value).get<double>(), of_classes[epoch].at(value).get<double>(), 1e-5) << value;
}

TEST_F(Tools, ABatchWhoseTargetsAreAllIgnoredLeavesTheWeightsFinite) {
  std::vector<std::int64_t> targets;
  const Tensor classes = read_npy(folder_ / "y.npy");
  for (std::int64_t i = 0; i < 12; ++i) targets.push_back(i >= 4 and i < 8 ? -1 : classes.int_at(i));
  write_integers(folder_, "some.npy", targets);
  run("hone-compile conv.onnx -r train.toml --set loss.ignore_index=-1 -o ignoring.hone");
  run("hone-run train ignoring.hone --train x=x.npy[0:12],y=some.npy --no-shuffle --epochs 2 --out trained.onnx --run-dir run");
  for (const Json& epoch : of_kind("run/metrics.jsonl", "epoch")) EXPECT_TRUE(epoch.at("loss").is_number());
  const std::string none = "hone-run train ignoring.hone --train x=x.npy[4:8],y=some.npy[4:8] --epochs 1";
  EXPECT_THAT(run(none).err, HasSubstr("note: no target of epoch 1 counted"));
  const onnx::ModelProto trained = model("trained.onnx");
  for (const auto& initializer : trained.graph().initializer()) {
    const Tensor weight = tensor_of(initializer, ".", {});
    for (std::int64_t k = 0; is_float(weight.dtype()) and k < weight.element_count(); ++k) ASSERT_TRUE(std::isfinite(weight.at(k))) << initializer.name();
  }
}

TEST_F(Tools, ThreadsDoNotChangeTheResult) {
  for (const std::string threads : {"1", "2"}) run(kTrain + " --epochs 2 --threads " + threads + " --out t" + threads + ".onnx");
  const onnx::ModelProto one = model("t1.onnx"), two = model("t2.onnx");
  for (int i = 0; i < one.graph().initializer_size(); ++i) {
    const Tensor a = tensor_of(one.graph().initializer(i), ".", {}), b = tensor_of(two.graph().initializer(i), ".", {});
    for (std::int64_t k = 0; is_float(a.dtype()) and k < a.element_count(); ++k) EXPECT_NEAR(a.at(k), b.at(k), 1e-4);
  }
}

/// 10 samples in batches of 4: the last batch has 2, and the epoch's mean counts each sample once.
TEST_F(Tools, LastBatchMayBeSmaller) {
  run("hone-run train conv.hone --train x=x.npy[0:10],y=y.npy[0:10] --no-shuffle --log-every 1 --run-dir run");
  const std::vector<Json> steps = of_kind("run/metrics.jsonl", "step"), epochs = of_kind("run/metrics.jsonl", "epoch");
  ASSERT_EQ(steps.size(), 3u);
  ASSERT_EQ(epochs.size(), 1u);
  const auto loss = [&](std::size_t i) { return steps[i].at("loss").get<double>(); };
  EXPECT_NEAR(epochs[0].at("loss").get<double>(), (4 * loss(0) + 4 * loss(1) + 2 * loss(2)) / 10, 1e-6);
}

TEST_F(Tools, MetricsLinesHaveTheDocumentedFields) {
  run(kTrain + " --valid x=x.npy,y=y.npy --epochs 2 --log-every 5 --log-grad-norms --run-dir run");
  const std::vector<Json> steps = of_kind("run/metrics.jsonl", "step"), epochs = of_kind("run/metrics.jsonl", "epoch");
  ASSERT_EQ(steps.size(), 5u) << "13 steps an epoch, every fifth of 26";
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].at("step"), 5 * (i + 1));
    EXPECT_EQ(steps[i].at("epoch"), i < 2 ? 1 : 2);
    for (const char* field : {"loss", "learning_rate", "samples_per_s"}) EXPECT_TRUE(steps[i].at(field).is_number()) << field;
    const Json& norms = steps[i].at("grad_norms");
    for (const char* weight : {"conv/kernel", "batch_norm/gamma", "dense/kernel", "dense/bias"})
      EXPECT_GT(norms.value(weight, -1.0), 0) << weight << " in " << norms;
  }
  ASSERT_EQ(epochs.size(), 2u);
  for (const Json& epoch : epochs)
    for (const char* field : {"epoch", "loss", "accuracy", "val_loss", "val_accuracy", "seconds"}) EXPECT_TRUE(epoch.at(field).is_number()) << field;
  EXPECT_THAT(folder_.read("run/metrics.csv"), ContainsRegex("^epoch,loss,accuracy,val_loss,val_accuracy,learning_rate,seconds\n1,"));
  EXPECT_EQ(Json::parse(folder_.read("run/recipe.json")).at("optimizer").at("kind"), "adam");
}

/// What came in goes out again: every name, node, attribute and version; only data of learned and running tensors differ.
TEST_F(Tools, TrainedModelIsTheOneThatCameIn) {
  run(kTrain + " --epochs 2 --out trained.onnx");
  onnx::ModelProto before = model("conv.onnx"), after = model("trained.onnx");
  std::vector<std::string> changed;
  ASSERT_EQ(before.graph().initializer_size(), after.graph().initializer_size());
  for (int i = 0; i < before.graph().initializer_size(); ++i) {
    auto& old = *before.mutable_graph()->mutable_initializer(i);
    auto& trained = *after.mutable_graph()->mutable_initializer(i);
    EXPECT_EQ(old.name(), trained.name());
    const Tensor a = tensor_of(old, ".", {}), b = tensor_of(trained, ".", {});
    ASSERT_EQ(a.shape(), b.shape()) << old.name();
    ASSERT_EQ(a.dtype(), b.dtype()) << old.name();
    if (not std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin())) changed.push_back(old.name());
    store_tensor(&old, a);
    store_tensor(&trained, a);
  }
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString()) << "something else than data differs";
  std::erase(changed, "conv/bias");  // batch normalization takes it away again: only rounding moves it
  const std::vector<std::string> learned = {"conv/kernel",  "batch_norm/gamma", "batch_norm/beta", "batch_norm/moving_mean", "batch_norm/moving_variance",
                                            "dense/kernel", "dense/bias"};
  EXPECT_THAT(changed, testing::UnorderedElementsAreArray(learned));
}

/// Patterns may overlap.
TEST_F(Tools, FrozenWeightsStayAsTheyAre) {
  run("hone-compile conv.onnx -r train.toml -o frozen.hone --set model.freeze=[\"conv/*\",\"*/kernel\"]");
  run("hone-run train frozen.hone --train x=x.npy,y=y.npy --out trained.onnx");
  const onnx::ModelProto before = model("conv.onnx"), after = model("trained.onnx");
  for (int i = 0; i < before.graph().initializer_size(); ++i) {
    const std::string& name = before.graph().initializer(i).name();
    const Tensor a = tensor_of(before.graph().initializer(i), ".", {}), b = tensor_of(after.graph().initializer(i), ".", {});
    const bool same = std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin());
    if (name.starts_with("conv/") or name.ends_with("/kernel")) EXPECT_TRUE(same) << name;
    if (name == "dense/bias" or name == "batch_norm/gamma") EXPECT_FALSE(same) << name;
  }
}

TEST_F(Tools, TrainedModelHasTheMovingAverages) {
  run("hone-compile conv.onnx -r train.toml -o ema.hone --set train.ema_decay=0.9");
  const ToolRun training = run("hone-run train ema.hone --train x=x.npy,y=y.npy --epochs 2 --out trained.onnx --run-dir run");
  EXPECT_THAT(training.err, HasSubstr("Its weights are the moving averages"));
  const std::string checkpoint = folder_ / "run/checkpoint-000026/";
  const Tensor average = read_safetensors(checkpoint + "optimizer.safetensors", "dense/kernel/ema"), last = read_safetensors(checkpoint + "model.safetensors", "dense/kernel");
  const onnx::ModelProto trained = model("trained.onnx");
  for (const onnx::TensorProto& proto : trained.graph().initializer()) {
    if (proto.name() != "dense/kernel") continue;
    const Tensor written = tensor_of(proto, ".", {});
    EXPECT_THAT(values_of(written), testing::ContainerEq(values_of(average)));
    EXPECT_THAT(values_of(written), Not(testing::ContainerEq(values_of(last))));
    return;
  }
  FAIL() << "no dense/kernel";
}

TEST_F(Tools, HistogramsAreWrittenWhenAskedFor) {
  const auto events = [&](const std::string& name, const std::string& more) {
    run(kTrain + " --epochs 1 --run-dir " + name + more);
    std::string all;
    for (const std::string& file : list_folder(folder_ / name + "/train")) all += folder_.read(name + "/train/" + file);
    return all;
  };
  const std::string with = events("with", " --log-histograms");
  for (const char* weight : {"weights/conv/kernel", "weights/batch_norm/gamma", "weights/dense/bias"}) EXPECT_THAT(with, HasSubstr(weight));
  EXPECT_THAT(events("without", ""), Not(HasSubstr("weights/")));
}

TEST_F(Tools, TrainingGoesOnFromATrainedModel) {
  run(kTrain + " --epochs 3 --out first.onnx");
  const auto loss = [&](const std::string& weights) {
    return Json::parse(run("hone-run eval conv.hone --data x=x.npy,y=y.npy --json" + weights).out).at("loss").get<double>();
  };
  run(kTrain + " --weights first.onnx --epochs 3 --out second.onnx");
  EXPECT_LT(loss(" --weights first.onnx"), loss(""));
  EXPECT_LT(loss(" --weights second.onnx"), loss(" --weights first.onnx"));
}

TEST_F(Tools, StepsEndTheRunEarly) {
  const ToolRun training = run(kTrain + " --epochs 9 --steps 20 --json --quiet");
  EXPECT_EQ(training.err, "");
  const Json result = Json::parse(training.out);
  EXPECT_EQ(result.at("steps"), 20);
  EXPECT_EQ(result.at("epochs"), 2);
}

TEST_F(Tools, DryRunLeavesNothing) {
  const std::vector<std::string> before = folder_.names();
  const ToolRun training = run(kTrain + " --dry-run --out trained.onnx --run-dir run/of/today");
  EXPECT_THAT(training.err, HasSubstr("Dry run: one step, one evaluation, one save and one resume went well"));
  EXPECT_EQ(folder_.names(), before);
}

TEST_F(Tools, SetChangesWhatMayStillChange) {
  run(kTrain + " --set optimizer.learning_rate=0 --out same.onnx --epochs 1");
  const Tensor before = tensor_of(model("conv.onnx").graph().initializer(0), ".", {}), after = tensor_of(model("same.onnx").graph().initializer(0), ".", {});
  EXPECT_TRUE(std::equal(before.bytes().begin(), before.bytes().end(), after.bytes().begin()));
}

TEST_F(Tools, NumbersOfTheOptimizerMayChangeWhenRunning) {
  const auto compile = [&](const std::string& name, const std::string& numbers) {
    folder_.write(name + ".toml", "[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n" + numbers);
    run("hone-compile conv.onnx -r " + name + ".toml -o " + name + ".hone");
  };
  compile("a", "beta1 = 0.5\nweight_decay = 0.1\nclip_norm = 0.25\n[train]\nema_decay = 0.5\ngradient_accumulation_steps = 2\n");
  compile("b", "epsilon = 1e-3\nweight_decay = 0.2\nclip_norm = 5\n[train]\nema_decay = 0.9\ngradient_accumulation_steps = 3\n");
  const std::string like_a = " --set optimizer.beta1=0.5 --set optimizer.epsilon=1e-8 --set optimizer.weight_decay=0.1 --set optimizer.clip_norm=0.25 --set train.ema_decay=0.5 --set train.gradient_accumulation_steps=2";
  const auto train = [&](const std::string& plan, const std::string& more) {
    run("hone-run train " + plan + ".hone --train x=x.npy,y=y.npy --steps 4 --out out.onnx" + more);
    return folder_.read("out.onnx");
  };
  const std::string wanted = train("a", "");
  EXPECT_EQ(train("b", like_a), wanted);
  EXPECT_NE(train("b", ""), wanted);
  EXPECT_NE(train("b", like_a + " --set optimizer.weight_decay=0"), wanted);
}

/// A flag that is given several times is lines of its variable; one whose value may be left out is switched on by 1.
TEST_F(Tools, VariablesSayWhatFlagsSay) {
  const auto bytes = [&](const std::string& before, const std::string& flags) {
    run(before + kTrain + " --steps 3 --out out.onnx" + flags);
    return folder_.read("out.onnx");
  };
  EXPECT_EQ(bytes("HONE_SET=optimizer.learning_rate=0.5\ndata.batch_size=7 ", ""), bytes("", " --set optimizer.learning_rate=0.5 --set data.batch_size=7"));
  EXPECT_EQ(run("HONE_WHY=1 hone-compile conv.onnx -r train.toml").out, run("hone-compile conv.onnx -r train.toml --why").out);
}

TEST_F(Tools, PixelsThatWereScaledBeforeAreNoted) {
  const std::string scaled = " --steps 1 --set data.scale.image=0.00392156862745098";
  EXPECT_THAT(run(kTrain + scaled).err, Not(HasSubstr("are they scaled already?")));  // they go up to 1.1
  const Tensor pixels = read_npy(folder_ / "x.npy");
  write_npy(folder_ / "half.npy", Tensor::make(DType::kF32, pixels.shape(), [&](std::span<std::byte> bytes) {
              auto* to = reinterpret_cast<float*>(bytes.data());
              for (std::int64_t i = 0; i < pixels.element_count(); ++i) to[i] = static_cast<float>(pixels.at(i) / 2);
            }));
  const std::string train = "hone-run train conv.hone --train x=half.npy,y=y.npy --steps 1";
  EXPECT_THAT(run(train + " --set data.scale.image=0.00392156862745098").err, HasSubstr("are they scaled already? --set data.scale.image=1 leaves them as they are"));
  EXPECT_THAT(run(train + " --set data.scale.image=0.5").err, Not(HasSubstr("are they scaled already?")));
}

TEST_F(Tools, TargetsThatTheLossIsNotMadeForAreNoted) {
  run("hone-compile conv.onnx -r train.toml --set loss.kind=bce_with_logits --set metrics.list=[] -o bce.hone");
  const auto said = [&](const std::vector<double>& row) {
    std::vector<double> rows;
    for (int i = 0; i < 50; ++i) rows.insert(rows.end(), row.begin(), row.end());
    write_npy(folder_ / "t.npy", Tensor::of<double>({50, 3}, std::span<const double>(rows)).cast(DType::kF32));
    return run("hone-run train bce.hone --train x=x.npy,y=t.npy --steps 1").err;
  };
  EXPECT_THAT(said({-1, 1, 1}), HasSubstr("note: t.npy holds -1, and the loss bce_with_logits is made for targets of 0 to 1; (y + 1) / 2 makes -1 and 1 that"));
  EXPECT_THAT(said({0, 1, 2}), HasSubstr("holds 2, and the loss bce_with_logits is made for targets of 0 to 1; numbers of classes"));
  EXPECT_THAT(said({0, 0.5, 1}), Not(HasSubstr("is made for targets")));
  run("hone-compile conv.onnx -r train.toml --set loss.kind=poisson --set metrics.list=[] -o bce.hone");
  EXPECT_THAT(said({-1, 1, 1}), HasSubstr("note: t.npy holds -1, and the loss poisson is made for targets of 0 or more\n"));
  EXPECT_THAT(said({0, 1, 1000}), Not(HasSubstr("is made for targets")));
}

TEST_F(Tools, ARecipeThatDoesNotTrainIsNoted) {
  folder_.write("numbers.toml", "[train]\nepochs = 3\n");
  EXPECT_THAT(run("hone-compile conv.onnx -r numbers.toml -o numbers.hone").err, HasSubstr("note: numbers.toml has no [loss] and no [optimizer]: the plan can predict and be called, and not be trained"));
  EXPECT_THAT(run("hone-compile conv.onnx --set train.epochs=3 -o numbers.hone").err, HasSubstr("note: the recipe has no [loss] and no [optimizer]"));
  EXPECT_THAT(run("hone-compile conv.onnx -o predict.hone").err, Not(HasSubstr("[loss]")));
}

TEST_F(Tools, ReportsAreJsonLinesWhenAskedFor) {
  EXPECT_THAT(run(kTrain + " --steps 1").err, HasSubstr("Memory: "));
  EXPECT_THAT(run("hone-run devices").out, ContainsRegex("cpu +"));
  const std::string devices = run("hone-run devices --json").out;
  EXPECT_EQ(Json::parse(devices.substr(0, devices.find('\n'))).at("device"), "cpu");
  const Json bench = Json::parse(run("hone-run bench conv.hone --steps 3 --batch 8 --json").out);
  EXPECT_EQ(bench.at("steps_timed"), 3);
  for (const char* field : {"ms_per_step_median", "samples_per_s", "first_loss", "final_loss"}) EXPECT_TRUE(bench.at(field).is_number()) << field;
}

TEST_F(Tools, FlagsThatChangeNothingAreNamed) {
  const std::string train = kTrain + " --steps 2 ";
  EXPECT_THAT(run(train + "--keep 2 --log-histograms").err, AllOf(HasSubstr("note: --keep changes nothing without --run-dir DIR, which is not given"), HasSubstr("note: --log-histograms changes nothing")));
  EXPECT_THAT(run(train + "--keep 2 --run-dir run").err, Not(HasSubstr("changes nothing")));
  EXPECT_THAT(run("HONE_KEEP=2 " + train).err, Not(HasSubstr("changes nothing"))) << "the environment is for many commands";
  EXPECT_THAT(run(train + "--set schedule.warmup_steps=3").err, HasSubstr("note: schedule.warmup_steps is 3, and the run has 2 steps"));
}

TEST_F(Tools, HelpAndVersionGoToStandardOutput) {
  for (const std::string tool : {"hone-compile", "hone-run", "hone-dump", "hone-opt"}) {
    EXPECT_THAT(run(tool + " --help").out, HasSubstr(tool)) << tool;
    EXPECT_THAT(run(tool + " --version").out, ContainsRegex("[0-9]+\\.[0-9]+")) << tool;
  }
  EXPECT_THAT(run("hone-run train --help").out, HasSubstr("--log-grad-norms"));
}

TEST(ExportedForOneSample, LearnsFromBatchesAndStaysTheFileThatItWas) {
  const TempFolder folder;
  TestModel model;
  model.input("x", {1, 6, 4}).initializer("flat", ints({1, -1})).initializer("w", wavy({24, 3})).output("y");
  model.node("Reshape", {"x", "flat"}, {"h"});
  model.node("MatMul", {"h", "w"}, {"y"});
  save_model(model.proto, folder / "model.onnx");
  folder.write("train.toml", "[loss]\nkind = \"mse\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.001\n[data]\nbatch_size = 8\n");
  write_npy(folder / "x.npy", wavy({20, 6, 4}));
  write_npy(folder / "y.npy", wavy({20, 3}));
  EXPECT_THAT(run_well(folder.path(), "hone-compile model.onnx -r train.toml -o plan.hone").err, HasSubstr("exported for batches of 1, and is taken for those of any size"));
  EXPECT_THAT(run_well(folder.path(), "hone-run train plan.hone --train x=x.npy,y=y.npy --out trained.onnx").err, HasSubstr("3/3"));
  EXPECT_EQ(load_model(folder / "trained.onnx").graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 1);
}

/// A model's own names are its own, also where those of states and of what a step gives look like them.
TEST(Names, OfAModelMayBeThoseOfATrainingStep) {
  const TempFolder folder;
  TestModel model;
  model.input("target", {"N", 2}).initializer("w", wavy({2, 3})).initializer("w/m", wavy({3})).initializer("step", wavy({3})).output("loss_sum").output("target_count");
  model.node("MatMul", {"target", "w"}, {"product"});
  model.node("Mul", {"product", "w/m"}, {"scaled"});
  model.node("Add", {"scaled", "step"}, {"loss_sum"});
  model.node("Relu", {"loss_sum"}, {"target_count"});
  folder.write("names.onnx", model.proto.SerializeAsString());
  folder.write("train.toml", "[loss]\nkind = \"mse\"\n[model]\noutput = \"loss_sum\"\n[optimizer]\nkind = \"adam\"\n");
  write_npy(folder / "x.npy", wavy({8, 2}));
  write_npy(folder / "y.npy", wavy({8, 3}));
  run_well(folder.path(), "hone-compile names.onnx -r train.toml -o names.hone");
  run_well(folder.path(), "hone-run train names.hone --train target=x.npy,target_=y.npy --epochs 3 --batch 8 --out trained.onnx --run-dir run");
  run_well(folder.path(), "hone-run predict names.hone --weights trained.onnx --data target=x.npy --out out.npz");
  for (const char* name : {"loss_sum", "target_count"}) EXPECT_EQ(read_npz(folder / "out.npz", name).shape(), (std::vector<std::int64_t>{8, 3})) << name;
}

}  // namespace
}  // namespace hone::test
