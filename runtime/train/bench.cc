#include "runtime/train/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/train/machine_load.h"

namespace hone {

namespace {

constexpr std::int64_t kBatches = 8;  // different ones, so that no step finds its data in the cache by right
constexpr std::int64_t kFewestWarmUpSteps = 3, kFewestMeasuredSteps = 5, kTracedSteps = 20;
constexpr double kMeasuredSeconds = 1;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// What steps took: of all, or of a long run each second, fourth, ... one's, so that memory stays small.
class StepTimes {
 public:
  void add(double seconds) {
    if (count_++ % every_ != 0) return;
    kept_.push_back(seconds);
    if (kept_.size() < kMost) return;
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    every_ *= 2;
  }
  std::int64_t count() const { return count_; }
  std::vector<double> sorted() && {
    std::ranges::sort(kept_);
    return std::move(kept_);
  }

 private:
  static constexpr std::size_t kMost = 1 << 15;
  std::vector<double> kept_;
  std::int64_t count_ = 0, every_ = 1;
};

Tensor made_up_floats(const std::vector<std::int64_t>& shape, RandomWords& random) {
  return Tensor::make(DType::kF32, shape, [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] = static_cast<float>(random.below(1 << 24)) * 0x1p-24f;
  });
}

Tensor made_up_integers(const std::vector<std::int64_t>& shape, std::int64_t low, std::int64_t high, RandomWords& random) {
  return Tensor::make(DType::kI64, shape, [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<std::int64_t*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(std::int64_t); ++i)
      values[i] = low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low)));
  });
}

std::vector<std::int64_t> shape_for(const plan::Feed& feed, const BenchOptions& options) {
  DimBindings bindings = options.dims;
  if (not options.batch_symbol.empty()) bindings[options.batch_symbol] = kBatches * options.batch_size;
  for (const Dim& dim : feed.shape)
    for (const std::string& symbol : dim.symbols())
      if (not bindings.contains(symbol))
        throw Error(Code::kUsage,
                    fmt::format("the input {} is {}[{}], and {} is not known", quoted(feed.name), to_string(feed.dtype), to_string(feed.shape), symbol), {},
                    {fmt::format("add --dim {}=N", symbol)});
  std::vector<std::int64_t> shape = evaluate(feed.shape, bindings);
  if (options.batch_symbol.empty() and not shape.empty()) shape[0] *= kBatches;
  return shape;
}

NamedArrays made_up_data(const plan::Entry& entry, const BenchOptions& options) {
  NamedArrays arrays;
  RandomWords random(0, 0);
  for (const plan::Feed& feed : entry.feeds) {
    if (not is_data(feed)) continue;
    const auto shape = shape_for(feed, options);
    const auto [low, high] = feed.bounds.value_or(std::pair<std::int64_t, std::int64_t>(0, 2));
    Tensor values = is_float(feed.dtype) ? made_up_floats(shape, random) : made_up_integers(shape, low, high, random).cast(feed.dtype);
    arrays.emplace_back(feed.name, Array("made-up data for " + feed.name, std::move(values)));
  }
  return arrays;
}

BoundArrays data_for(const plan::Entry& entry, const BenchOptions& options) {
  const BindOptions how = {.flag = "--data", .batch_symbol = options.batch_symbol, .pre_batched = false, .reading = FileReading::kWhenWanted, .scale = options.scale};
  return options.data.empty() ? BoundArrays(entry, made_up_data(entry, options), how) : BoundArrays(entry, options.data, how);
}

}  // namespace

double percentile(std::span<const double> sorted, double share) { return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)]; }

BenchResult bench(StepRunner& runner, const plan::Entry& entry, const BenchOptions& options) {
  const BoundArrays data = data_for(entry, options);
  GatherOptions gather = options.gather;
  gather.late = false, gather.threads = 1;  // the step is timed, not what makes its batch
  if (gather.device == nullptr) gather.ahead = Ahead::kNever;
  BatchReader batches(data, options.batch_size, {.shuffle = false}, gather);
  for (const plan::Feed& feed : entry.feeds)
    if (feed.kind == plan::Feed::Kind::kLearningRate)
      batches.add_feed(feed.name, {DType::kF64, std::vector<std::int64_t>(feed.shape.size(), 1), &options.learning_rate});
  BenchResult result;
  StepTimes times;
  batches.start_epoch(0);
  const auto step = [&] {
    if (not batches.next()) {
      batches.start_epoch(0);
      batches.next();
    }
    const auto begin = Clock::now();
    runner.feed_ahead(entry.name, batches);
    runner.run(entry.name, batches.feeds());
    result.final_loss = scalar_result(runner, plan::kLossSum) / scalar_result(runner, plan::kTargetCount);
    return seconds_since(begin);
  };
  result.first_step = step();
  result.first_loss = result.final_loss;
  result.process_to_first_step = seconds_since_process_start();
  const auto warm_up = Clock::now();
  for (std::int64_t i = 0; i < kFewestWarmUpSteps or seconds_since(warm_up) < options.warm_up_seconds; ++i) step();
  const OtherLoad other;
  const auto begin = Clock::now();
  while (options.steps > 0 ? times.count() < options.steps : times.count() == 0 or seconds_since(begin) < options.seconds)
    times.add(step());
  result.other_load = other.cores();
  if (options.start_measuring) {
    options.start_measuring();
    for (; result.measured_steps < kFewestMeasuredSteps or result.measured_seconds < kMeasuredSeconds; ++result.measured_steps) result.measured_seconds += step();
  }
  if (options.start_tracing) {
    TraceTrack* const track = options.start_tracing();
    for (std::int64_t i = 0; i < kTracedSteps; ++i) {
      const TraceScope scope(track, Trace::kStep, i + 1);
      step();
    }
  }
  result.batch = batches.size();
  result.steps = times.count();
  const std::vector<double> sorted = std::move(times).sorted();
  result.p10 = percentile(sorted, 0.1);
  result.median = percentile(sorted, 0.5);
  result.p90 = percentile(sorted, 0.9);
  return result;
}

}  // namespace hone
