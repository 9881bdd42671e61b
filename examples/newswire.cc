// Newswires by topic, with a training loop of one's own: texts from a file, a convolutional net built in C++, batches fed one by one, means that begin anew each epoch, a bar.
//
//   newswire FOLDER [EPOCHS [SEED]]     FOLDER holds train.txt and test.txt: a topic, a tab, words; writes newswire.onnx
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "examples/newswire.h"

namespace {

using namespace newswire;

/// Goes through `batches` once, calling `entry` for each; the means of loss and accuracy.
class Loop {
 public:
  Loop(Session& session, const plan::Plan& plan, const char* entry, const Dataset& batches, const char* prefix)
      : runner_(session), entry_(session.entry(entry)), batches_(entry_, batches, {.flag = entry, .batch_symbol = plan.batch_symbol}), means_(entry_, prefix) {
    for (const plan::Feed& feed : entry_.feeds)
      if (feed.kind == plan::Feed::Kind::kLearningRate) batches_.add_feed(feed.name, {DType::kF64, {}, &rate_});
  }
  const NamedNumbers& run(std::int64_t epoch, Progress* progress) {
    means_.reset();
    batches_.start_epoch(epoch);
    for (std::int64_t step = 1; batches_.next(); ++step) {
      runner_.run(entry_.name, batches_.feeds());
      means_.add(runner_);
      if (progress != nullptr) progress->step(step, means_.values());
    }
    return means_.values();
  }
  std::int64_t steps() const { return batches_.known_batch_count().value_or(0); }
  void set_rate(double rate) { rate_ = rate; }

 private:
  SessionRunner runner_;
  const plan::Entry& entry_;
  DatasetBatches batches_;
  Means means_;
  double rate_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

void train(const std::string& folder, std::int64_t epochs, std::int64_t seed) {
  const Newswires news = read_newswires(folder);
  nn::Model model("newswire", static_cast<std::uint64_t>(seed));
  build(model, news.words, news.topics);
  save_model(model, "newswire.onnx");
  const Recipe recipe = read_recipe_text(kRecipe);
  const plan::Plan plan = compile_model("newswire.onnx", recipe, {.levels = {"native"}});
  Session session(plan, {});

  Loop training(session, plan, plan::kTrainStep, news.train.shuffle(6000, seed).batch(32).prefetch(), "");
  Loop validation(session, plan, plan::kEvalStep, news.test.batch(256), "val_");
  training.set_rate(recipe.optimizer.learning_rate);
  Progress progress = Progress::to_standard_error(false);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    progress.start_epoch(epoch + 1, epochs, training.steps());
    NamedNumbers values = training.run(epoch, &progress);
    const double seconds = seconds_since(begin);
    const NamedNumbers& valid = validation.run(0, nullptr);
    values.insert(values.end(), valid.begin(), valid.end());
    progress.end_epoch(training.steps(), seconds, values);
  }
  save_trained_model(plan, session, "newswire.onnx");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: newswire FOLDER [EPOCHS [SEED]]\n");
    return 2;
  }
  try {
    train(arguments[1], count > 2 ? std::atoll(arguments[2]) : 10, count > 3 ? std::atoll(arguments[3]) : 1);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
