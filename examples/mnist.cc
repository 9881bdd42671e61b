// Handwritten digits with fit and evaluate, as Keras's first tutorial has them.
//
//   mnist FOLDER [EPOCHS]     FOLDER holds images-idx3-ubyte.gz and labels-idx1-ubyte.gz of 10,000 digits; trains on the first 8,000; writes mnist.onnx
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "api/hone.h"

namespace {

using namespace hone;

// The tutorial's model ends in Softmax, and its loss says from_logits = true: softmax_cross_entropy on probabilities. That is done as asked, with a warning; cross_entropy
// would be the loss for probabilities.
constexpr const char* kRecipe = R"(
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
[metrics]
list = ["accuracy"]
[data]
scale = { image = 0.00392156862745098 }
[train]
convention = "keras"
)";

void train(const std::string& folder, std::int64_t epochs) {
  nn::Model model("mnist");
  const nn::Value x = nn::relu(nn::dense(nn::flatten(model.input("image", {28, 28})), 128));
  model.output("probabilities", nn::softmax(nn::dense(x, 10)));
  save_model(model, "mnist.onnx");

  const Dataset digits = Dataset::from_files({"x=" + folder + "/images-idx3-ubyte.gz", "y=" + folder + "/labels-idx1-ubyte.gz"});
  const Dataset valid = digits.skip(8000).batch(500);
  Trainer trainer(compile_model("mnist.onnx", read_recipe_text(kRecipe), {}, [](const Diag& warning) { fmt::print(stderr, "{}\n", to_string(warning)); }));
  trainer.fit(digits.take(8000).shuffle(8000, 1).batch(32), {.valid = valid, .epochs = epochs});
  for (const auto& [name, value] : trainer.evaluate(valid)) fmt::print("{}: {:.4f}\n", name, value);
  trainer.save("mnist.onnx");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: mnist FOLDER [EPOCHS]\n");
    return 2;
  }
  try {
    train(arguments[1], count > 2 ? std::atoll(arguments[2]) : 10);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
