// Two of Keras's tutorials, handwritten digits and newswires by topic, on each device in turn, from one plan each, and what they came to side by side.
//
//   devices DIGITS NEWSWIRES [DEVICE[,DEVICE]... [EPOCHS]]     the folders of mnist and newswire; devices as hone-run devices lists them, "all": those that are
//   used by themselves
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"
#include "examples/mnist.h"
#include "examples/newswire.h"
#include "examples/side_by_side.h"

namespace {

using namespace side_by_side;

constexpr std::int64_t kBatch = 32;

void compare(const nn::Model& model, const std::string& name, const char* recipe, const Dataset& examples, const Dataset& valid,
             const std::vector<std::string>& devices, std::int64_t epochs) {
  const std::string file = name + ".onnx";
  save_model(model, file);
  const plan::Plan plan = compile_model(file, read_recipe_text(recipe), {.targets = targets_of(devices), .levels = {"native"}});
  std::vector<Run> runs;
  for (const std::string& device : devices) {
    fmt::print(stderr, "\n{} on {}\n", name, device);
    Trainer trainer(plan, {.device = device});
    runs.push_back(train(trainer, device, examples.shuffle(8000, 1).batch(kBatch).prefetch(), valid.batch(500), epochs));
  }
  fmt::print("{}\n", name);
  print_table(runs, {"loss", "val_loss", "val_accuracy", "seconds"});
}

void compare_all(const std::string& digits_folder, const std::string& news_folder, const std::vector<std::string>& devices, std::int64_t epochs) {
  nn::Model digits_net("mnist"), news_net("newswire");
  const mnist::Digits digits = mnist::read_digits(digits_folder);
  mnist::build(digits_net);
  compare(digits_net, "mnist", mnist::kRecipe, digits.train, digits.valid, devices, epochs);
  const newswire::Newswires news = newswire::read_newswires(news_folder);
  newswire::build(news_net, news.words, news.topics);
  compare(news_net, "newswire", newswire::kRecipe, news.train, news.test, devices, epochs);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 or count > 5) {
    fmt::print(stderr, "usage: devices DIGITS NEWSWIRES [DEVICE[,DEVICE]... [EPOCHS]]\n");
    return 2;
  }
  try {
    const std::string devices = count > 3 ? arguments[3] : "all";
    compare_all(arguments[1], arguments[2], devices == "all" ? all_devices() : split(devices, ','), count > 4 ? std::atoll(arguments[4]) : 10);
    return 0;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
