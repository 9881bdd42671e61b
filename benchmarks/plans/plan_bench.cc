// Plans of one model that take turns, step by step, in one process: what else the machine does, and its clocks, disturb all of them alike, so that a few hundredths show which two
// processes one behind the other would not. Each has inputs of its own, or the first would pay for the others' cache misses.
//
//   plan_bench SECONDS THREADS x=x.npy,y=y.npy A.plan B.plan ...
//
// Prints for each plan the median and the tenth percentile of its steps, and the median of its steps' times over those of the first plan in the same turn.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "api/hone.h"
#include "base/text.h"
#include "runtime/train/bench.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

class Runner {
 public:
  Runner(const std::string& file, const std::string& data, int threads) : plan_(plan::load(file)), session_(plan_, {.device = "cpu", .threads = threads}), batches_(entry(), batches_of(data, plan_), {.flag = "plan_bench", .batch_symbol = plan_.batch_symbol}) {
    for (const plan::Feed& feed : entry().feeds)
      if (feed.kind == plan::Feed::Kind::kLearningRate) batches_.add_feed(feed.name, {DType::kF64, {}, &kRate});
    batches_.start_epoch(0);
  }

  double milliseconds_of_step() {
    while (not batches_.next()) batches_.start_epoch(++epoch_);
    const Clock::time_point begin = Clock::now();
    session_.run(plan::kTrainStep, batches_.feeds());
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  }

 private:
  static constexpr double kRate = 1e-6;  // weights stay as good as they are

  static Dataset batches_of(const std::string& data, const plan::Plan& plan) { return Dataset::from_files(split(data, ',')).batch(recipe_from_json(plan.recipe_json).data.batch_size, true); }
  const plan::Entry& entry() const { return session_.entry(plan::kTrainStep); }

  plan::Plan plan_;
  Session session_;
  DatasetBatches batches_;
  std::int64_t epoch_ = 0;
};

void take_turns(double seconds, int threads, const std::string& data, const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<Runner>> runners;
  for (const std::string& file : files) runners.push_back(std::make_unique<Runner>(file, data, threads));
  std::vector<std::vector<double>> times(files.size()), ratios(files.size());
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (int turn = 0; turn < 3 or Clock::now() < end; ++turn) {
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const double time = runners[i]->milliseconds_of_step();
      if (turn == 0) continue;  // makes ready
      times[i].push_back(time);
      ratios[i].push_back(time / times[0].back());
    }
  }
  for (std::vector<double>& each : times) std::ranges::sort(each);
  for (std::vector<double>& each : ratios) std::ranges::sort(each);
  for (std::size_t i = 0; i < files.size(); ++i) fmt::print("{:<40} median {:.4g} ms, p10 {:.4g} ms, of the first one's time {:.3f}\n", files[i], percentile(times[i], 0.5), percentile(times[i], 0.1), percentile(ratios[i], 0.5));
}

}  // namespace
}  // namespace hone

int main(int count, char** arguments) {
  if (count < 5) {
    fmt::print(stderr, "usage: plan_bench SECONDS THREADS x=x.npy,y=y.npy A.plan B.plan ...\n");
    return 2;
  }
  try {
    hone::take_turns(std::atof(arguments[1]), std::atoi(arguments[2]), arguments[3], {arguments + 4, arguments + count});
    return 0;
  } catch (const hone::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
