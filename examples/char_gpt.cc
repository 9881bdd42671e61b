// A small GPT that learns to write, letter by letter, from one text file; nanoGPT's settings for a CPU.
//
//   char_gpt TEXT [STEPS [RUN_DIR]]     writes char_gpt.onnx, and a sample to standard output; with RUN_DIR a run that is stopped (Ctrl-C) is saved, and goes on there
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "api/hone.h"
#include "base/files.h"

namespace {

using namespace hone;

constexpr std::int64_t kContext = 64, kWidth = 128, kHeads = 4, kLayers = 4, kBatch = 12;
constexpr std::int64_t kStepsOfEpoch = 250, kValidationBatches = 200;
constexpr double kTemperature = 0.8;

constexpr const char* kRecipe = R"(
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adamw"
learning_rate = 1e-3
beta2 = 0.99
weight_decay = 0.1
weight_decay_on = "matrices"
clip_norm = 1.0
[schedule]
kind = "cosine"
warmup_steps = 100
final_fraction = 0.1
)";

/// Letters and their numbers, in the alphabet's order.
struct Letters {
  explicit Letters(const std::string& text) {
    for (const char letter : text) numbers.emplace(letter, 0);
    for (auto& [letter, number] : numbers) {
      number = static_cast<std::int32_t>(letters.size());
      letters += letter;
    }
  }
  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    for (const char letter : text) ids.push_back(numbers.at(letter));
    return ids;
  }
  std::map<char, std::int32_t> numbers;
  std::string letters;
};

void build(nn::Model& model, std::int64_t letters) {
  const nn::Initializer normal = nn::Initializer::normal(0.02);
  const nn::DenseOptions linear = {.use_bias = false, .kernel_initializer = normal};
  const nn::AttentionOptions attention = {.is_causal = true, .use_bias = false, .kernel_initializer = normal};
  const nn::Value table = model.weight("wte", {letters, kWidth}, normal), positions = model.weight("wpe", {kContext, kWidth}, normal);
  const auto norm = [](nn::Value x) { return nn::layer_norm(x, {.use_bias = false}); };
  nn::Value x = nn::embedding(model.input("x", {kContext}, DType::kI32), table) + positions;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    x = x + nn::self_attention(norm(x), kHeads, attention);
    x = x + nn::dense(nn::gelu(nn::dense(norm(x), 4 * kWidth, linear)), kWidth, linear);
  }
  model.output("logits", nn::matmul(norm(x), table, true));
}

/// Windows from anywhere in the text, each with the letters that follow.
Dataset windows(const std::vector<std::int32_t>& ids, std::int64_t batches, std::int64_t seed) {
  const auto text = std::make_shared<std::vector<std::int32_t>>(ids);
  const Dataset numbers = Dataset::from_tensor_slices({{"n", Tensor::zeros(DType::kU8, {batches * kBatch})}});
  return numbers
      .map(
          [text](Example, RandomWords& random) {
            const std::size_t begin = random.below(text->size() - kContext);
            const std::span<const std::int32_t> all(*text);
            return Example{{"x", Tensor::of<std::int32_t>({kContext}, all.subspan(begin, kContext))}, {"y", Tensor::of<std::int32_t>({kContext}, all.subspan(begin + 1, kContext))}};
          },
          {.seed = seed})
      .batch(kBatch)
      .prefetch();
}

/// The next letter, drawn by its probability.
std::int32_t draw(std::span<const float> logits, RandomWords& random) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float logit : logits) shares.push_back(sum += std::exp((logit - largest) / kTemperature));
  const double at = static_cast<double>(random.below(1 << 30)) / (1 << 30) * sum;
  return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(std::upper_bound(shares.begin(), shares.end(), at) - shares.begin(), static_cast<std::ptrdiff_t>(logits.size()) - 1));
}

std::string write(Session& session, const Letters& letters, std::int64_t count) {
  RandomWords random(1, 0);
  std::vector<std::int32_t> ids = letters.encode("\n");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t used = std::min<std::size_t>(ids.size(), kContext);
    std::vector<std::int32_t> window(kContext);
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(used), ids.end(), window.begin());
    const Tensor x = Tensor::of<std::int32_t>({1, kContext}, std::span<const std::int32_t>(window));
    const std::pair<std::string, TensorView> feed("x", x);
    session.run(plan::kPredict, std::span(&feed, 1));
    const Tensor logits = session.result_tensor("logits");
    ids.push_back(draw(logits.data<float>().subspan((used - 1) * letters.letters.size(), letters.letters.size()), random));
  }
  std::string text;
  for (const std::int32_t id : ids) text += letters.letters[static_cast<std::size_t>(id)];
  return text;
}

/// The exit code.
int train(const std::string& path, std::int64_t steps, const std::string& run_dir) {
  const std::string text = read_file(path);
  const Letters letters(text);
  const std::vector<std::int32_t> ids = letters.encode(text);
  const auto split = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() * 9 / 10);
  nn::Model model("char_gpt");
  build(model, static_cast<std::int64_t>(letters.letters.size()));
  save_model(model, "char_gpt.onnx");
  Trainer trainer(compile_model("char_gpt.onnx", read_recipe_text(kRecipe), {.levels = {"native"}}));
  const StopSignals signals;
  const TrainResult result = trainer.fit(windows({ids.begin(), split}, kStepsOfEpoch, 1), {.valid = windows({split, ids.end()}, kValidationBatches, 2),
                                                                                           .epochs = (steps + kStepsOfEpoch - 1) / kStepsOfEpoch,
                                                                                           .steps = steps,
                                                                                           .run_dir = run_dir,
                                                                                           .resume = not run_dir.empty(),
                                                                                           .stop_requested = [&] { return signals.came(); }});
  if (result.end == TrainResult::End::kStopRequested) {
    fmt::print(stderr, "Stopped after step {}{}\n", result.steps, run_dir.empty() ? "" : "; the same command goes on");
    return run_dir.empty() ? kExitStopped : kExitStoppedSaved;
  }
  trainer.save("char_gpt.onnx");
  fmt::print("{}\n", write(trainer.session(), letters, 500));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    fmt::print(stderr, "usage: char_gpt TEXT [STEPS [RUN_DIR]]\n");
    return 2;
  }
  try {
    return train(arguments[1], count > 2 ? std::atoll(arguments[2]) : 2000, count > 3 ? arguments[3] : "");
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
