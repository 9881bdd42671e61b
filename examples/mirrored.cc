// Newswires by topic on several devices, as with Keras's MirroredStrategy: the same plan on one device and on logical ones, a batch for each replica, side by
// side.
//
//   mirrored FOLDER [DEVICES [EPOCHS]]     FOLDER holds train.txt and test.txt: a topic, a tab, words; writes mirrored.onnx
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "examples/newswire.h"
#include "examples/side_by_side.h"

namespace {

using namespace newswire;
using namespace side_by_side;

constexpr std::int64_t kBatchOfReplica = 32;
constexpr const char* kTopFiveRecipe = R"(
[loss]
kind = "cross_entropy"
[optimizer]
kind = "nadam"
[metrics]
list = ["accuracy", "top_5_accuracy"]
[train]
convention = "keras"
)";

/// Every replica gets batches of 32, so a step sees 32 times as many texts as there are replicas.
Run train_on(Trainer& trainer, const Newswires& news, int replicas, std::int64_t epochs) {
  fmt::print(stderr, "\n{} replica{}: {} texts a step, {} for each\n", replicas, replicas == 1 ? "" : "s", kBatchOfReplica * replicas, kBatchOfReplica);
  const std::string name = replicas == 1 ? "one device" : fmt::format("{} logical devices", replicas);
  return train(trainer, name, news.train.shuffle(6000, 1).batch(kBatchOfReplica * replicas).prefetch(), news.test.batch(256), epochs);
}

void compare(const std::string& folder, int devices, std::int64_t epochs) {
  const Newswires news = read_newswires(folder);
  nn::Model model("mirrored");
  build(model, news.words, news.topics);
  save_model(model, "mirrored.onnx");
  const plan::Plan plan = compile_model("mirrored.onnx", read_recipe_text(kTopFiveRecipe), {.levels = {"native"}});

  Trainer one(plan, {.threads = 1});
  Trainer several(plan, {.threads = devices}, {.local = devices});
  const Run alone = train_on(one, news, 1, epochs), together = train_on(several, news, devices, epochs);
  print_table({alone, together}, {"val_loss", "val_accuracy", "val_top_5_accuracy", "seconds"});
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
