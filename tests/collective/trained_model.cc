#include "tests/collective/trained_model.h"

#include <fmt/format.h>

#include "formats/npy.h"
#include "frontend/onnx/export.h"
#include "tests/frontend/test_model.h"
#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {

namespace {

constexpr std::int64_t kSamples = 97, kFeatures = 4, kFrozen = 6, kHidden = 16, kClasses = 3;

/// Values around 0 that differ from each other.
std::vector<float> values(std::int64_t count, float first) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back((i % 2 == 0 ? 1.0F : -1.0F) * (first + 0.61803F * static_cast<float>(i % 17) / 17 + 0.001F * static_cast<float>(i)));
  return result;
}

}  // namespace

const std::vector<float>& TrainedModel::frozen_weight() {
  static const std::vector<float> weight = values(kFeatures * kFrozen, 0.0314159F);
  return weight;
}

TrainedModel::TrainedModel() {
  TestModel model;
  model.input("x", {"N", kFeatures}).output("logits");
  model.initializer("frozen", f32({kFeatures, kFrozen}, frozen_weight()));
  model.initializer("kernel", f32({kFrozen, kHidden}, values(kFrozen * kHidden, 0.02F))).initializer("bias", f32({kHidden}, values(kHidden, 0.01F)));
  model.initializer("last_kernel", f32({kHidden, kClasses}, values(kHidden * kClasses, 0.03F))).initializer("last_bias", f32({kClasses}, values(kClasses, 0.005F)));
  model.node("MatMul", {"x", "frozen"}, {"mixed"});
  model.node("MatMul", {"mixed", "kernel"}, {"product"});
  model.node("Add", {"product", "bias"}, {"sum"});
  model.node("Relu", {"sum"}, {"hidden"});
  model.node("MatMul", {"hidden", "last_kernel"}, {"last_product"});
  model.node("Add", {"last_product", "last_bias"}, {"logits"});
  folder.write("model.onnx", model.proto.SerializeAsString());
  write_demanding_recipe(folder, 16, "", "[model]\nfreeze = [\"frozen\"]");
  write_floats(folder, "x.npy", {kSamples, kFeatures});
  write_classes(folder, "y.npy", kSamples, kClasses);
  write_npy(folder / "other.npy", f32({kSamples, kFeatures}, values(kSamples * kFeatures, 0.1F)));
  run_well(folder.path(), "hone-compile model.onnx -r train.toml -o plan.hone");
  run_well(folder.path(), "hone-compile model.onnx -r train.toml --set optimizer.learning_rate=0.02 -o other.hone");
}

std::string TrainedModel::command(const std::string& name, const std::string& flags, const std::string& plan, const std::string& samples) {
  return fmt::format("hone-run train {1} --train x={2},y=y.npy --valid x={2}[0:20],y=y.npy[0:20] --run-dir {0} --out {0}.onnx --save-steps 5 --global-batch --check-every 1 {3}", name, plan, samples, flags);
}

}  // namespace hone::test
