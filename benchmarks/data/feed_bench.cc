// What feeding costs beside a small network's step: 784-256-10, Adam, batches of 64. Steps on batches that were made before take turns with steps on batches gathered
// from shuffled samples, in one process, a few at a time. Each turn is held against the turns on ready batches just before and behind it, and the median of these ratios is what counts:
// a machine that others use, too, gets slower and faster by more than feeding costs.
//
//   feed_bench [SECONDS [THREADS]]         all cores where no number of threads is given
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/hone.h"
#include "runtime/data/batches.h"
#include "runtime/pipeline/dataset_batches.h"
#include "runtime/train/bench.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPixels = 784, kClasses = 10, kBatch = 64, kSamples = 60'000, kReadyBatches = 64;
constexpr int kStepsInTurn = 100;

plan::Plan compiled_mlp() {
  nn::Model model("mlp");
  model.output("logits", nn::dense(nn::relu(nn::dense(model.input("x", {kPixels}), 256)), kClasses));
  return compile_model(model, read_recipe_text("[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\nkind = \"adam\"\n"));
}

/// Numbers that a step's time does not depend on.
Tensor bytes_of(DType dtype, std::vector<std::int64_t> shape) {
  return Tensor::make(dtype, std::move(shape), [&](std::span<std::byte> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = dtype == DType::kF32 and i % 4 == 3 ? std::byte{0x3e} : static_cast<std::byte>(i * 2654435761U >> 24);
  });
}

Tensor labels(std::int64_t count) {
  return Tensor::make(DType::kI64, {count}, [](std::span<std::byte> to) {
    auto* numbers = reinterpret_cast<std::int64_t*>(to.data());
    for (std::size_t i = 0; i < to.size() / sizeof(std::int64_t); ++i) numbers[i] = static_cast<std::int64_t>(i % kClasses);
  });
}

/// What a model is fed for a byte: less a mean and by a deviation, once it is 0 to 1.
struct Normalization {
  float mean = 0, deviation = 1;
  float operator()(std::byte byte) const { return (static_cast<float>(std::to_integer<int>(byte)) / 255 - mean) / deviation; }
};
constexpr Normalization kMnist = {.mean = 0.1307F, .deviation = 0.3081F};

Tensor normalized(const Tensor& bytes, Normalization normalization) {
  return Tensor::make(DType::kF32, bytes.shape(), [&](std::span<std::byte> to) { std::ranges::transform(bytes.bytes(), reinterpret_cast<float*>(to.data()), normalization); });
}

BindOptions bind_options(DType of_x, const std::string& batch_symbol) {
  std::map<std::string, double> scale;
  if (of_x == DType::kU8) scale["x"] = 1 / 255.0;
  return {.flag = "feed_bench", .batch_symbol = batch_symbol, .scale = std::move(scale)};
}

/// Samples, gone through epoch after epoch as hone-run train does.
class Feeding {
 public:
  Feeding(const plan::Plan& plan, Tensor x, int threads)
      : session_(plan, {.device = "cpu", .threads = threads}), data_(bound(session_.entry(plan::kTrainStep), std::move(x), plan.batch_symbol)), batches_(data_, kBatch, {.shuffle = true}, {.late = true, .threads = threads}) {
    batches_.add_feed("learning_rate", rate_);
    batches_.start_epoch(epoch_);
  }
  void step() {
    while (not batches_.next() or batches_.size() < kBatch) batches_.start_epoch(++epoch_);
    session_.run(plan::kTrainStep, batches_.feeds());
  }

 private:
  static BoundArrays bound(const plan::Entry& entry, Tensor x, const std::string& batch_symbol) {
    BindOptions how = bind_options(x.dtype(), batch_symbol);
    NamedArrays arrays;
    arrays.emplace_back("x", Array("x", std::move(x)));
    arrays.emplace_back("y", Array("y", labels(kSamples)));
    BoundArrays data(entry, std::move(arrays), std::move(how));
    data.keep_as_bytes();
    return data;
  }

  Session session_;
  BoundArrays data_;
  BatchReader batches_;
  Tensor rate_ = Tensor::scalar(0.001);
  std::int64_t epoch_ = 0;
};

Dataset as_it_is(const Dataset& data) { return data; }
Dataset normalized_each_time(const Dataset& data) {
  return data.map([](Example example) {
    example[0].second = normalized(example[0].second, kMnist);
    return example;
  });
}
Dataset normalized_and_cached(const Dataset& data) { return normalized_each_time(data).cache(); }

/// A data set of the same samples, made step by step as a C++ program does.
class Pipeline {
 public:
  using Steps = Dataset (*)(const Dataset&);  // on each sample
  Pipeline(const plan::Plan& plan, const Tensor& x, Steps steps, int threads)
      : session_(plan, {.device = "cpu", .threads = threads}),
        batches_(session_.entry(plan::kTrainStep), steps(Dataset::from_tensor_slices({{"x", x}, {"y", labels(kSamples)}})).shuffle(kSamples, 1).batch(kBatch, true), bind_options(steps == as_it_is ? x.dtype() : DType::kF32, plan.batch_symbol), {.late = true, .threads = threads}, Passes::kSeveral) {
    batches_.add_feed("learning_rate", rate_);
    batches_.start_epoch(epoch_);
    while (batches_.next()) continue;  // the first epoch fills a cache
  }
  void step() {
    while (not batches_.next()) batches_.start_epoch(++epoch_);
    session_.run(plan::kTrainStep, batches_.feeds());
  }

 private:
  Session session_;
  DatasetBatches batches_;
  Tensor rate_ = Tensor::scalar(0.001);
  std::int64_t epoch_ = 0;
};

/// Batches that lie in memory as the step takes them, another one each step.
class Ready {
 public:
  Ready(const plan::Plan& plan, int threads) : session_(plan, {.device = "cpu", .threads = threads}) {
    for (std::int64_t i = 0; i < kReadyBatches; ++i) batches_.push_back(bytes_of(DType::kF32, {kBatch, kPixels}));
  }
  void step() {
    const std::pair<std::string, TensorView> feeds[] = {{"x", batches_[number_++ % batches_.size()]}, {"target", target_}, {"learning_rate", rate_}};
    session_.run(plan::kTrainStep, feeds);
  }

 private:
  Session session_;
  std::vector<Tensor> batches_;
  Tensor target_ = labels(kBatch), rate_ = Tensor::scalar(0.001);
  std::size_t number_ = 0;
};

struct Way {
  std::string name;
  std::function<void()> step;
  std::vector<double> seconds = {}, ratios = {};  // of a step, and to one on ready batches; one for each turn
};

double seconds_of_turn(const std::function<void()>& step) {
  const auto begin = Clock::now();
  for (int i = 0; i < kStepsInTurn; ++i) step();
  return std::chrono::duration<double>(Clock::now() - begin).count() / kStepsInTurn;
}

void run(double seconds, int threads) {
  const plan::Plan plan = compiled_mlp();
  Ready ready(plan, threads);
  const std::vector<std::int64_t> shape = {kSamples, kPixels};
  std::vector<Way> ways;
  const auto add = [&](const std::string& kind, const std::function<Tensor()>& make) {  // each session gets rows of its own
    ways.push_back({"arrays of " + kind, [feeding = std::make_shared<Feeding>(plan, make(), threads)] { feeding->step(); }});
    ways.push_back({"data sets of " + kind, [pipeline = std::make_shared<Pipeline>(plan, make(), as_it_is, threads)] { pipeline->step(); }});
  };
  add("bytes, scaled", [&] { return bytes_of(DType::kU8, shape); });
  add("pixels, 0 to 1", [&] { return normalized(bytes_of(DType::kU8, shape), {}); });
  add("pixels less a mean", [&] { return normalized(bytes_of(DType::kU8, shape), kMnist); });
  for (const auto& [kind, steps] : {std::pair("data set, mapped", &normalized_each_time), std::pair("data set, mapped and cached", &normalized_and_cached)})
    ways.push_back({kind, [pipeline = std::make_shared<Pipeline>(plan, bytes_of(DType::kU8, shape), steps, threads)] { pipeline->step(); }});
  add("any floats", [&] { return bytes_of(DType::kF32, shape); });
  ways.push_back({"ready, once more", [again = std::make_shared<Ready>(plan, threads)] { again->step(); }});  // what the ratios of two equal ways are like
  const auto on_ready = [&] { return seconds_of_turn([&] { ready.step(); }); };
  const auto take_turns = [&] {
    double before = on_ready();
    for (Way& way : ways) {
      const double taken = seconds_of_turn(way.step), behind = on_ready();
      way.seconds.push_back(taken);
      way.ratios.push_back(taken / ((before + behind) / 2));
      before = behind;
    }
  };
  take_turns();
  for (Way& way : ways) way.seconds.clear(), way.ratios.clear();
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do take_turns();
  while (Clock::now() < end);
  fmt::print("{} turns of {} steps each; percent beside steps on ready batches: median (quarter to three quarters of the turns)\n", ways[0].seconds.size(), kStepsInTurn);
  for (Way& way : ways) {
    std::ranges::sort(way.seconds);
    std::ranges::sort(way.ratios);
    const auto percent = [&](double fraction) { return 100 * (percentile(way.ratios, fraction) - 1); };
    fmt::print("{:<28} {:>7.1f} us a step {:>+6.1f} % ({:+.1f} to {:+.1f})\n", way.name, percentile(way.seconds, 0.5) * 1e6, percent(0.5), percent(0.25), percent(0.75));
  }
}

}  // namespace
}  // namespace hone

int main(int count, char** words) {
  const double seconds = count > 1 ? std::strtod(words[1], nullptr) : 10;
  if (not(seconds > 0) or count > 3) {
    fmt::print(stderr, "usage: feed_bench [SECONDS [THREADS]]\n");
    return 2;
  }
  try {
    hone::run(seconds, count > 2 ? std::atoi(words[2]) : hone::Session::thread_count(0));
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
