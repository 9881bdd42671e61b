// Handwritten digits with fit and evaluate, as Keras's first tutorial has them.
//
//   mnist FOLDER [EPOCHS [ACCURACY]]     FOLDER holds images-idx3-ubyte.gz and labels-idx1-ubyte.gz of 10,000 digits; trains on the first 8,000, until ACCURACY of the others
//                                        are told right, if that is given; writes mnist.onnx
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "examples/mnist.h"

namespace {

using namespace mnist;

void train(const std::string& folder, std::int64_t epochs, double enough) {
  nn::Model model("mnist");
  build(model);
  save_model(model, "mnist.onnx");

  const Digits digits = read_digits(folder);
  const Dataset valid = digits.valid.batch(500);
  Trainer trainer(compile_model("mnist.onnx", read_recipe_text(kRecipe), {.levels = {"native"}}));
  trainer.fit(digits.train.shuffle(8000, 1).batch(32), {.valid = valid, .epochs = epochs, .on_epoch = [&](const EpochRecord& epoch) {
                                                          if (value_of(*epoch.values, "val_accuracy") >= enough) trainer.end_training();
                                                        }});
  for (const auto& [name, value] : trainer.evaluate(valid)) fmt::print("{}: {:.4f}\n", name, value);
  trainer.save("mnist.onnx");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: mnist FOLDER [EPOCHS [ACCURACY]]\n");
    return 2;
  }
  try {
    train(arguments[1], count > 2 ? std::atoll(arguments[2]) : 10, count > 3 ? std::atof(arguments[3]) : 1);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
