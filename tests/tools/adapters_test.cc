// Adapters that leave the plan by themselves (lora.export = "separate"), and frozen weights that are kept in less (model.frozen_precision), as a user sees both.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "formats/npy.h"
#include "formats/safetensors.h"
#include "runtime/plan/plan.h"
#include "runtime/train/export_onnx.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_folders.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Tensors = std::map<std::string, Tensor>;

class TrainedAdapters : public testing::Test {
 protected:
  TrainedAdapters() {
    write_mlp(folder_);
    write_demanding_recipe(folder_, 4, "", "[lora]\ntargets = [\"dense*/kernel\"]\nrank = 2\nalpha = 6");
  }
  ToolRun run(const std::string& command) const { return run_well(folder_.path(), command); }
  void compile(const std::string& plan, const std::string& set) const { run(fmt::format("hone-compile mlp.onnx -r train.toml -o {}.hone {}", plan, set)); }
  void train(const std::string& plan, const std::string& flags) const { run(fmt::format("hone-run train {}.hone --train x=x.npy,y=y.npy --quiet {}", plan, flags)); }
  Tensor prediction(const std::string& plan, const std::string& weights) const {
    run(fmt::format("hone-run predict {}.hone --data x=x.npy --weights {} --out predicted.npy", plan, weights));
    return read_npy(folder_ / "predicted.npy");
  }
  Tensors tensors(const std::string& file) const {
    Tensors found;
    for (auto& [name, tensor] : read_safetensors(folder_ / file)) found.emplace(name, tensor);
    return found;
  }
  std::string refusal(const std::string& command) const {
    const ToolRun refused = run_tool(folder_.path(), command);
    EXPECT_NE(refused.exit, 0) << command;
    return refused.err;
  }

  TempFolder folder_;
};

void expect_near(const Tensor& found, const Tensor& wanted, double most) {
  ASSERT_EQ(found.shape(), wanted.shape());
  for (std::int64_t i = 0; i < found.element_count(); ++i) EXPECT_NEAR(found.at(i), wanted.at(i), most);
}

TEST_F(TrainedAdapters, AreWrittenAloneAsPeftHasThem) {
  compile("alone", "--set lora.export=separate");
  train("alone", "--run-dir run --out adapter_model.safetensors");
  const Tensors saved = tensors("adapter_model.safetensors");
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& [name, tensor] : saved) shapes[name] = tensor.shape();
  const std::map<std::string, std::vector<std::int64_t>> wanted = {{"base_model.model.dense.lora_A.weight", {2, 4}},
                                                                   {"base_model.model.dense.lora_B.weight", {5, 2}},
                                                                   {"base_model.model.dense_1.lora_A.weight", {2, 5}},
                                                                   {"base_model.model.dense_1.lora_B.weight", {3, 2}}};
  EXPECT_EQ(shapes, wanted);
  const auto config = nlohmann::json::parse(folder_.read("adapter_config.json"));
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 6.0);
  EXPECT_EQ(config["target_modules"], (std::vector<std::string>{"dense", "dense_1"}));
}

/// In the plan that they come from, and in one that merges.
TEST_F(TrainedAdapters, GiveTheSameModelWhenTheyAreReadAgain) {
  compile("alone", "--set lora.export=separate");
  train("alone", "--run-dir run --out adapters.safetensors");
  const Tensor wanted = prediction("alone", "run/checkpoint-000015");
  expect_near(prediction("alone", "adapters.safetensors"), wanted, 0);
  compile("merged", "");
  expect_near(prediction("merged", "adapters.safetensors"), wanted, 0);
  train("merged", "--weights adapters.safetensors --epochs 1 --set optimizer.learning_rate=0 --out merged.onnx");
  run("hone-compile merged.onnx -o plain.hone");
  run("hone-run predict plain.hone --data x=x.npy --out plain.npy");
  expect_near(read_npy(folder_ / "plain.npy"), wanted, 1e-5);
  EXPECT_THAT(run("hone-run eval alone.hone --data x=x.npy,y=y.npy --weights adapters.safetensors").out, HasSubstr("loss"));
}

/// PEFT multiplies by lora_alpha / r, or by lora_alpha over the root of r, of its configuration: a plan with another alpha must do so, too.
TEST_F(TrainedAdapters, CountAsTheirConfigurationSays) {
  compile("alone", "--set lora.export=separate");
  train("alone", "--out adapters.safetensors");
  const Tensor wanted = prediction("alone", "adapters.safetensors");
  compile("half", "--set lora.alpha=3");
  expect_near(prediction("half", "adapters.safetensors"), wanted, 1e-6);
  const nlohmann::json written = nlohmann::json::parse(folder_.read("adapter_config.json"));
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json config = written;
    config[key] = value;
    folder_.write("adapter_config.json", config.dump());
  };
  with("lora_alpha", 12);
  compile("double", "--set lora.alpha=12");
  const Tensor twice = prediction("alone", "adapters.safetensors");
  std::filesystem::remove(folder_ / "adapter_config.json");
  expect_near(prediction("double", "adapters.safetensors"), twice, 1e-6);
  with("use_rslora", true);
  compile("root", fmt::format("--set lora.alpha={}", 6 * std::sqrt(2)));
  const Tensor by_root = prediction("alone", "adapters.safetensors");
  std::filesystem::remove(folder_ / "adapter_config.json");
  expect_near(prediction("root", "adapters.safetensors"), by_root, 1e-6);
}

TEST_F(TrainedAdapters, ThatCountOtherwiseAreRefused) {
  compile("alone", "--set lora.export=separate");
  train("alone", "--out adapters.safetensors");
  const nlohmann::json written = nlohmann::json::parse(folder_.read("adapter_config.json"));
  const std::string command = "hone-run predict alone.hone --data x=x.npy --weights adapters.safetensors --out y.npy";
  const std::vector<std::tuple<const char*, nlohmann::json, const char*>> wrong = {{"use_dora", true, "use_dora is set"},
                                                                                   {"alpha_pattern", {{"dense", 4}}, "alpha_pattern gives modules an alpha of their own"},
                                                                                   {"lora_alpha", "six", "lora_alpha is no number"},
                                                                                   {"peft_type", "IA3", "peft_type is not LORA"}};
  for (const auto& [key, value, said] : wrong) {
    nlohmann::json config = written;
    config[key] = value;
    folder_.write("adapter_config.json", config.dump());
    EXPECT_THAT(refusal(command), AllOf(HasSubstr("adapter_config.json"), HasSubstr(said)));
  }
  for (const std::string& damaged : {std::string("{"), std::string("[1]"), std::string(100'000, '[')}) {
    folder_.write("adapter_config.json", damaged);
    EXPECT_THAT(refusal(command), HasSubstr("is no configuration of adapters"));
  }
}

/// "a.weight" and "a/kernel" would both be module a.
TEST_F(TrainedAdapters, OfModulesWithOneNameAreCalledAsTheirWeights) {
  TestModel model;
  model.input("x", {"N", 4}).initializer("a.weight", wavy({4, 4})).initializer("a/kernel", wavy({4, 3})).output("logits");
  model.node("MatMul", {"x", "a.weight"}, {"hidden"});
  model.node("MatMul", {"hidden", "a/kernel"}, {"logits"});
  save_model(model.proto, folder_ / "twice.onnx");
  run("hone-compile twice.onnx -r train.toml --set model.dropout.after=[\"*\"] --set lora.targets=[\"a*\"] --set lora.export=separate -o twice.hone");
  train("twice", "--epochs 1 --out adapters.safetensors");
  const Tensors saved = tensors("adapters.safetensors");
  EXPECT_EQ(saved.size(), 4U);
  EXPECT_TRUE(saved.contains("base_model.model.a.weight.lora_A.weight"));
  EXPECT_TRUE(saved.contains("base_model.model.a/kernel.lora_B.weight"));
}

TEST_F(TrainedAdapters, TakeWithThemWhatElseWasTrained) {
  compile("alone", "--set lora.export=separate --set lora.targets=[\"dense/kernel\"] --set model.train_only=[\"dense_1/*\"]");
  train("alone", "--run-dir run --out adapters.safetensors");
  const Tensors saved = tensors("adapters.safetensors");
  EXPECT_TRUE(saved.contains("base_model.model.dense_1/kernel"));
  EXPECT_TRUE(saved.contains("base_model.model.dense_1/bias"));
  EXPECT_EQ(saved.size(), 4U);
  expect_near(prediction("alone", "adapters.safetensors"), prediction("alone", "run/checkpoint-000015"), 0);
}

TEST_F(TrainedAdapters, SayWhyTheyCannotBeWrittenOrRead) {
  compile("alone", "--set lora.export=separate");
  EXPECT_THAT(refusal("hone-run train alone.hone --train x=x.npy,y=y.npy --out trained.onnx"), AllOf(HasSubstr("the adapters alone are written"), HasSubstr("ends in .safetensors")));
  train("alone", "--out adapters.safetensors");
  run("hone-compile mlp.onnx -o plain.hone");
  EXPECT_THAT(refusal("hone-run predict plain.hone --data x=x.npy --weights adapters.safetensors --out y.npy"), HasSubstr("the plan has none: compile the model with the [lora] section"));
  compile("other", "--set lora.rank=1");
  EXPECT_THAT(refusal("hone-run predict other.hone --data x=x.npy --weights adapters.safetensors --out y.npy"),
              AllOf(HasSubstr("\"base_model.model.dense.lora_A.weight\" is f32[2,4] there, and f32[1,4] in the plan"), HasSubstr("lora.rank")));
  compile("fewer", "--set lora.targets=[\"dense/kernel\"]");
  EXPECT_THAT(refusal("hone-run predict fewer.hone --data x=x.npy --weights adapters.safetensors --out y.npy"), HasSubstr("\"base_model.model.dense_1.lora_A.weight\" is nothing that the plan has"));
}

/// There is one adapter_config.json in a folder.
TEST_F(TrainedAdapters, KeepWhatTheyMean) {
  compile("alone", "--set lora.export=separate");
  std::filesystem::create_directory(folder_ / "next");
  train("alone", "--out adapters.safetensors");
  EXPECT_THAT(refusal("hone-run train alone.hone --train x=x.npy,y=y.npy --weights adapters.safetensors --out next.safetensors"), AllOf(HasSubstr("adapter_config.json"), HasSubstr("it would be lost")));
  train("alone", "--weights adapters.safetensors --out next/adapters.safetensors");
}

TEST_F(TrainedAdapters, HaveADryRun) {
  compile("alone", "--set lora.export=separate");
  train("alone", "--dry-run --out adapters.safetensors");
}

// ---- Of convolutions.

/// W + alpha / rank * B A, where A is a convolution to `rank` channels and B one of single pixels, as in PEFT.
TEST(ConvolutionsAdapters, AreMergedIntoTheWindow) {
  const TempFolder folder;
  write_conv_net(folder);
  const auto run = [&](const std::string& command) { return run_well(folder.path(), command); };
  for (const auto& [plan, set] : {std::pair("merged", ""), {"alone", "--set lora.export=separate"}})
    run(fmt::format("hone-compile conv.onnx -r train.toml --set lora.targets=[\"*conv*\",\"*dense*\"] --set lora.rank=2 --set lora.alpha=6 --set optimizer.learning_rate=0.02 {} -o {}.hone", set, plan));
  run("hone-run train merged.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --run-dir run --out merged.safetensors");
  run("hone-run train merged.hone --train x=x.npy,y=y.npy --steps 26 --quiet --run-dir run --resume --out merged.onnx");
  std::map<std::string, Tensor> kept, merged;
  for (const auto& [name, tensor] : read_safetensors(folder / "run/checkpoint-000026/model.safetensors")) kept.emplace(name, tensor);
  for (const auto& [name, tensor] : read_safetensors(folder / "merged.safetensors")) merged.emplace(name, tensor);
  int convolutions = 0;
  for (const auto& [name, weight] : kept) {
    if (weight.shape().size() != 4 or name.find(".lora_") != std::string::npos) continue;
    const Tensor a = kept.at(name + ".lora_A"), b = kept.at(name + ".lora_B");
    const std::int64_t outputs = weight.shape()[0], rest = weight.element_count() / outputs;
    EXPECT_EQ(a.shape(), (std::vector<std::int64_t>{2, weight.shape()[1], 3, 3}));
    EXPECT_EQ(b.shape(), (std::vector<std::int64_t>{outputs, 2, 1, 1}));
    double moved = 0;
    for (std::int64_t i = 0; i < weight.element_count(); ++i) {
      double wanted = weight.at(i);
      for (std::int64_t r = 0; r < 2; ++r) wanted += 3 * b.at(i / rest * 2 + r) * a.at(r * rest + i % rest);
      EXPECT_NEAR(merged.at(name).at(i), wanted, 1e-6);
      moved = std::fmax(moved, std::abs(wanted - weight.at(i)));
    }
    EXPECT_GT(moved, 1e-3) << "nothing was trained";
    ++convolutions;
  }
  EXPECT_EQ(convolutions, 1);
  run("hone-compile merged.onnx -o plain.hone");
  run("hone-run predict plain.hone --data x=x.npy --out plain.npy");
  run("hone-run predict merged.hone --data x=x.npy --weights run/checkpoint-000026 --out adapted.npy");
  expect_near(read_npy(folder / "plain.npy"), read_npy(folder / "adapted.npy"), 1e-5);
  // Alone they take the running statistics with them, and are the same model again.
  run("hone-run train alone.hone --train x=x.npy,y=y.npy --epochs 2 --quiet --out adapters.safetensors");
  run("hone-run predict alone.hone --data x=x.npy --weights adapters.safetensors --out alone.npy");
  expect_near(read_npy(folder / "alone.npy"), read_npy(folder / "adapted.npy"), 1e-5);
}

// ---- Beside weights that are kept in less.

class NarrowFrozenWeights : public TrainedAdapters, public testing::WithParamInterface<const char*> {
 protected:
  bool is_int8() const { return GetParam() == std::string("int8"); }
};

/// What training leaves of a matrix [inputs, outputs] whose adapter adds nothing.
TEST_P(NarrowFrozenWeights, AreKeptInLessAndSavedAsWhatTheyAreComputedWith) {
  compile("narrow", fmt::format("--set model.frozen_precision={}", GetParam()));
  const plan::Plan plan = plan::load(folder_ / "narrow.hone");
  for (const plan::Persistent& persistent : plan.programs[0].persistents)
    if (persistent.in_model and persistent.initial.shape().size() == 2) EXPECT_EQ(persistent.initial.dtype(), is_int8() ? DType::kI8 : DType::kBF16) << persistent.name;
  train("narrow", "--epochs 1 --set optimizer.learning_rate=0 --out narrow.safetensors");
  const Tensors narrow = tensors("narrow.safetensors");
  ASSERT_EQ(narrow.size(), 4U);
  for (const auto& [name, stored] : weights_in_onnx(folder_ / "mlp.onnx")) {
    if (not narrow.contains(name)) continue;  // a constant
    const Tensor weight = stored.read();
    const Tensor& kept = narrow.at(name);
    ASSERT_EQ(kept.dtype(), DType::kF32);
    ASSERT_EQ(kept.shape(), weight.shape()) << name;
    const std::int64_t outputs = weight.shape().back();
    for (std::int64_t i = 0; i < weight.element_count(); ++i) {
      if (weight.shape().size() < 2) {
        EXPECT_EQ(kept.at(i), weight.at(i)) << name << ": a vector stays as it is";
      } else if (is_int8()) {
        double largest = 0;
        for (std::int64_t k = i % outputs; k < weight.element_count(); k += outputs) largest = std::fmax(largest, std::abs(weight.at(k)));
        const double scale = static_cast<float>(largest) / 127.0F;
        EXPECT_NEAR(kept.at(i), std::nearbyint(weight.at(i) / scale) * scale, 1e-6 * largest) << name;
      } else {
        EXPECT_EQ(kept.at(i), weight.cast(DType::kBF16).at(i)) << name;
      }
    }
  }
}

TEST_P(NarrowFrozenWeights, TrainAdaptersAsWideOnesDo) {
  compile("narrow", fmt::format("--set model.frozen_precision={}", GetParam()));
  compile("wide", "");
  for (const char* name : {"narrow", "wide"}) train(name, fmt::format("--run-dir {0}_run --out {0}.onnx --save-steps 1 --keep 100", name));
  const auto loss = [&](const std::string& name) { return lines_of_kind(folder_, name, "epoch").back().at("loss").get<double>(); };
  EXPECT_NEAR(loss("narrow_run"), loss("wide_run"), 0.02 * loss("wide_run"));
  EXPECT_NE(loss("narrow_run"), loss("wide_run"));
  stop_run_after(folder_, 7, "part", "narrow_run");
  train("narrow", "--run-dir part --out part.onnx --resume");
  EXPECT_EQ(folder_.read("part.onnx"), folder_.read("narrow.onnx"));
  // The merged model, read by a plan of its own and by this one, whose adapters then add nothing: but for what is rounded once more.
  run("hone-compile narrow.onnx -o plain.hone");
  run("hone-run predict plain.hone --data x=x.npy --out plain.npy");
  expect_near(read_npy(folder_ / "plain.npy"), prediction("narrow", "narrow_run/checkpoint-000015"), 1e-5);
  expect_near(prediction("narrow", "narrow.onnx"), read_npy(folder_ / "plain.npy"), 0.1);
}

INSTANTIATE_TEST_SUITE_P(, NarrowFrozenWeights, testing::Values("bf16", "int8"), [](const auto& info) { return std::string(info.param); });

TEST_F(TrainedAdapters, NarrowWeightsOfAPlanThatOnlyPredicts) {
  run("hone-compile mlp.onnx --set model.frozen_precision=int8 -o narrow.hone");
  run("hone-compile mlp.onnx -o wide.hone");
  for (const char* name : {"narrow", "wide"}) run(fmt::format("hone-run predict {0}.hone --data x=x.npy --out {0}.npy", name));
  expect_near(read_npy(folder_ / "narrow.npy"), read_npy(folder_ / "wide.npy"), 0.05);
  // As a model they are what the plan computes with, not the codes that it keeps.
  run("hone-dump narrow.hone --as onnx > dumped.onnx");
  run("hone-compile dumped.onnx -o dumped.hone");
  run("hone-run predict dumped.hone --data x=x.npy --out dumped.npy");
  expect_near(read_npy(folder_ / "dumped.npy"), read_npy(folder_ / "narrow.npy"), 1e-5);
}

}  // namespace
}  // namespace hone::test
