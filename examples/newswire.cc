// Newswires by topic, with a training loop of one's own: texts from a file, a convolutional net built in C++, batches fed one by one, means that begin anew each epoch, a bar.
//
//   newswire FOLDER [EPOCHS [SEED]]     FOLDER holds train.txt and test.txt: a topic, a tab, words; writes newswire.onnx
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "api/hone.h"

namespace {

using namespace hone;

constexpr std::int64_t kWords = 300, kEmbedding = 7;
constexpr const char* kRecipe = R"(
[loss]
kind = "cross_entropy"
[optimizer]
kind = "nadam"
[metrics]
list = ["accuracy"]
[train]
convention = "keras"
)";

void build(nn::Model& model, std::int64_t vocabulary, std::int64_t topics) {
  nn::Value x = nn::embedding(model.input("x", {kWords}, DType::kI32), vocabulary, kEmbedding);
  x = nn::permute(x, {2, 1});  // ONNX's convolutions want the channels first
  x = nn::max_pool(nn::relu(nn::conv(x, 64, 5)), 2);
  x = nn::max_pool(nn::relu(nn::conv(x, 32, 3)), 2);
  model.output("topic", nn::softmax(nn::dense(nn::flatten(nn::permute(x, {2, 1})), topics)));
}

std::pair<std::string_view, std::string_view> topic_and_text(const Example& line) {
  const std::string_view text = text_of(tensor_of(line, "line"));
  const std::size_t tab = std::min(text.find('\t'), text.size() - 1);
  return {text.substr(0, tab), text.substr(tab + 1)};
}

Dataset texts_of(const Dataset& lines) {
  return lines.map([](const Example& line) { return Example{{"line", text_tensor(topic_and_text(line).second)}}; });
}

/// The topics' numbers are their ranks in the alphabet.
std::map<std::string, std::int32_t, std::less<>> number_topics(const Dataset& lines) {
  std::map<std::string, std::int32_t, std::less<>> topics;
  ExampleIterator all = lines.iterate();
  for (const Example& line : all) topics.emplace(topic_and_text(line).first, 0);
  std::int32_t next = 0;
  for (auto& [topic, number] : topics) number = next++;
  return topics;
}

/// 1 begins a text, 2 is an unknown word; texts are filled up and cut at the front.
Dataset encoded(const Dataset& lines, const Vocabulary& words, const std::map<std::string, std::int32_t, std::less<>>& topics) {
  return lines.map([words, topics](const Example& line) {
    const auto [topic, text] = topic_and_text(line);
    const Tensor ids = words.tokenize(text).cast(DType::kI32);
    const Tensor begun = Tensor::make(DType::kI32, {ids.element_count() + 1}, [&](std::span<std::byte> bytes) {
      const std::int32_t start = 1;
      std::copy_n(reinterpret_cast<const std::byte*>(&start), sizeof start, bytes.begin());
      std::copy(ids.bytes().begin(), ids.bytes().end(), bytes.begin() + sizeof start);
    });
    const auto found = topics.find(topic);
    return Example{{"x", pad_sequence(begun, kWords)}, {"y", Tensor::scalar(found == topics.end() ? std::int32_t{0} : found->second)}};
  });
}

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
  const Dataset train_lines = Dataset::from_lines({folder + "/train.txt"}), test_lines = Dataset::from_lines({folder + "/test.txt"});
  const Vocabulary words = Vocabulary::count(texts_of(train_lines), "line", {.unknown_id = 2, .first_id = 3});
  const auto topics = number_topics(train_lines);

  nn::Model model("newswire", static_cast<std::uint64_t>(seed));
  build(model, words.size(), static_cast<std::int64_t>(topics.size()));
  save_model(model, "newswire.onnx");
  const Recipe recipe = read_recipe_text(kRecipe);
  const plan::Plan plan = compile_model("newswire.onnx", recipe);
  Session session(plan, {});

  const Dataset encoded_train = encoded(train_lines, words, topics).cache();
  Loop training(session, plan, plan::kTrainStep, encoded_train.shuffle(6000, seed).batch(32).prefetch(), "");
  Loop validation(session, plan, plan::kEvalStep, encoded(test_lines, words, topics).cache().batch(256), "val_");
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
