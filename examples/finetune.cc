// Fine-tuning: an exported ResNet learns the digits 5 to 9; then its backbone stays as it is, and a new head learns to tell 0 to 4 from each other.
//
//   finetune RESNET.onnx FOLDER [EPOCHS]     RESNET.onnx takes images [N,3,32,32] and ends in a layer "fc" of 10 classes; FOLDER holds images-idx3-ubyte.gz and
//                                            labels-idx1-ubyte.gz of 10,000 digits; writes pretrained.onnx and finetuned.onnx
//
// From the command line: hone-compile RESNET.onnx -r train.toml --new-head classes=5 --set 'model.train_only=["fc.*"]' --set model.batch_norm=frozen
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "api/hone.h"

namespace {

using namespace hone;

constexpr std::int64_t kChannels = 3, kSide = 32, kDigitSide = 28;
constexpr const char* kPretraining = R"(
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
[metrics]
list = ["accuracy"]
)";
constexpr const char* kFineTuning = R"(
[model]
new_head = { classes = 5 }
train_only = ["fc.*"]
batch_norm = "frozen"
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
learning_rate = 0.01
[metrics]
list = ["accuracy"]
)";

/// A grey digit as the ResNet wants its pictures: framed, in three equal channels.
Example as_picture(const Example& example) {
  const Tensor& digit = tensor_of(example, "x");
  const Tensor picture = Tensor::make(DType::kF32, {kChannels, kSide, kSide}, [&](std::span<std::byte> bytes) {
    auto* pixels = reinterpret_cast<float*>(bytes.data());
    constexpr std::int64_t kFrame = (kSide - kDigitSide) / 2;
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t y = 0; y < kDigitSide; ++y)
        for (std::int64_t x = 0; x < kDigitSide; ++x)
          pixels[(c * kSide + y + kFrame) * kSide + x + kFrame] = static_cast<float>(digit.at(y * kDigitSide + x)) / 255;
  });
  return {{"x", picture}, {"y", tensor_of(example, "y")}};
}

/// The digits from `low` to `high` of a part of the data.
Dataset pictures(const Dataset& digits, int low, int high) {
  return digits
      .filter([low, high](const Example& example) {
        const double digit = tensor_of(example, "y").at(0);
        return digit >= low and digit <= high;
      })
      .map(as_picture, {.threads = 2})
      .cache();
}

void train(const std::string& from, const char* recipe, const Dataset& training, const Dataset& valid, std::int64_t epochs, const std::string& to) {
  Trainer trainer(compile_model(from, read_recipe_text(recipe), {.levels = {"native"}}));
  trainer.fit(training.shuffle(5000, 1).batch(32), {.valid = valid.batch(100), .epochs = epochs});
  trainer.save(to);
}

void run(const std::string& model, const std::string& folder, std::int64_t epochs) {
  const Dataset digits = Dataset::from_files({"x=" + folder + "/images-idx3-ubyte.gz", "y=" + folder + "/labels-idx1-ubyte.gz"});
  const Dataset known = digits.take(8000), held_out = digits.skip(8000);
  train(model, kPretraining, pictures(known, 5, 9), pictures(held_out, 5, 9), epochs, "pretrained.onnx");
  train("pretrained.onnx", kFineTuning, pictures(known, 0, 4), pictures(held_out, 0, 4), epochs, "finetuned.onnx");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print(stderr, "usage: finetune RESNET.onnx FOLDER [EPOCHS]\n");
    return 2;
  }
  try {
    run(arguments[1], arguments[2], count > 3 ? std::atoll(arguments[3]) : 3);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
