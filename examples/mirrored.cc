// Newswires by topic on several devices, as with Keras's MirroredStrategy: the same plan on one device and on logical ones, a batch for each replica, side by side.
//
//   mirrored FOLDER [DEVICES [EPOCHS]]     FOLDER holds train.txt and test.txt: a topic, a tab, words; writes mirrored.onnx
#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "examples/newswire.h"

namespace {

using namespace newswire;

constexpr std::int64_t kBatchOfReplica = 32;
constexpr const char* kRecipe = R"(
[loss]
kind = "cross_entropy"
[optimizer]
kind = "nadam"
[metrics]
list = ["accuracy", "top_5_accuracy"]
[train]
convention = "keras"
)";

struct Epoch {
  NamedNumbers values;
  double seconds = 0;
};

/// Every replica gets batches of 32, so a step sees 32 times as many texts as there are replicas.
std::vector<Epoch> train(Trainer& trainer, const Newswires& news, int replicas, std::int64_t epochs) {
  fmt::print(stderr, "\n{} replica{}: {} texts a step, {} for each\n", replicas, replicas == 1 ? "" : "s", kBatchOfReplica * replicas, kBatchOfReplica);
  std::vector<Epoch> history;
  trainer.fit(news.train.shuffle(6000, 1).batch(kBatchOfReplica * replicas).prefetch(),
              {.valid = news.test.batch(256), .epochs = epochs, .on_epoch = [&](const EpochRecord& epoch) { history.push_back({*epoch.values, epoch.seconds}); }});
  return history;
}

double value_of(const Epoch& epoch, std::string_view name) {
  for (const auto& [each, value] : epoch.values)
    if (each == name) return value;
  return 0;
}

void compare(const std::string& folder, int devices, std::int64_t epochs) {
  const Newswires news = read_newswires(folder);
  nn::Model model("mirrored");
  build(model, news.words, news.topics);
  save_model(model, "mirrored.onnx");
  const plan::Plan plan = compile_model("mirrored.onnx", read_recipe_text(kRecipe));

  Trainer one(plan, {.threads = 1});
  Trainer several(plan, {.threads = devices}, {.local = devices});
  const std::vector<Epoch> alone = train(one, news, 1, epochs), together = train(several, news, devices, epochs);
  fmt::print("{:>5} | {:^36} | {:^36}\n", "", "one device", fmt::format("{} logical devices", devices));
  fmt::print("{:>5} | {:>8} {:>9} {:>8} {:>8} | {:>8} {:>9} {:>8} {:>8}\n", "epoch", "val_loss", "accuracy", "top 5", "seconds", "val_loss", "accuracy", "top 5", "seconds");
  const auto row = [](const Epoch& epoch) {
    return fmt::format("{:8.4f} {:9.4f} {:8.4f} {:8.2f}", value_of(epoch, "val_loss"), value_of(epoch, "val_accuracy"), value_of(epoch, "val_top_5_accuracy"), epoch.seconds);
  };
  for (std::size_t i = 0; i < alone.size() and i < together.size(); ++i) fmt::print("{:>5} | {} | {}\n", i + 1, row(alone[i]), row(together[i]));
  several.save("mirrored.onnx");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: mirrored FOLDER [DEVICES [EPOCHS]]\n");
    return 2;
  }
  try {
    compare(arguments[1], count > 2 ? std::atoi(arguments[2]) : 2, count > 3 ? std::atoll(arguments[3]) : 10);
    return 0;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
