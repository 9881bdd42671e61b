// How fast a device multiplies: (10000 x 100) times (100 x 100000), elements uniform between 0 and 3, and the sum of all of the product, on each device in
// turn.
//
//   matmul_speed [DEVICE[,DEVICE]... [ROWS [COLUMNS [REPEATS]]]]     devices as hone-run devices lists them; "all": those that are used by themselves; writes
//   matmul_speed.onnx
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/hone.h"
#include "base/text.h"
#include "examples/side_by_side.h"
#include "runtime/data/order.h"

namespace {

using namespace hone;

constexpr std::int64_t kInner = 100;
constexpr std::int64_t kRowsAtATime = 1000;

struct Sizes {
  std::int64_t rows = 10'000, columns = 100'000, repeats = 3;
};

Tensor uniform(std::vector<std::int64_t> shape, std::uint64_t seed) {
  RandomWords random(seed, 0);
  return Tensor::make(DType::kF32, std::move(shape), [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) values[i] = 3.0F * static_cast<float>(random.below(1 << 24)) * 0x1p-24F;
  });
}

struct Measured {
  double sum = 0, seconds = 0;  ///< of the fastest repeat
};

Measured measure(const plan::Plan& plan, const std::string& device, const Tensor& a, const Sizes& sizes) {
  Session session(plan, {.device = device});
  for (const std::string& note : session.notes()) fmt::print(stderr, "note: {}\n", note);
  Progress progress = Progress::to_standard_error(false);
  Measured best;
  const std::int64_t steps = (sizes.rows + kRowsAtATime - 1) / kRowsAtATime;
  for (std::int64_t repeat = 0; repeat <= sizes.repeats; ++repeat) {  // the first one makes everything ready
    progress.start_epoch(repeat + 1, sizes.repeats + 1, steps);
    const auto begin = std::chrono::steady_clock::now();
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t first = step * kRowsAtATime, rows = std::min(kRowsAtATime, sizes.rows - first);
      const std::pair<std::string, TensorView> feed(
          "a", TensorView(DType::kF32, {rows, kInner}, a.bytes().data() + static_cast<std::size_t>(first * kInner) * sizeof(float)));
      session.run("predict", {&feed, 1});
      const TensorView sums = session.result("sum");
      for (std::int64_t row = 0; row < rows; ++row) sum += static_cast<const float*>(sums.data)[row];
      progress.step(step + 1, {{"sum", sum}});
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    progress.end_epoch(steps, seconds, {{"sum", sum}});
    if (repeat == 1 or seconds < best.seconds) best = {.sum = sum, .seconds = seconds};
  }
  return best;
}

void compare(const std::vector<std::string>& devices, const Sizes& sizes) {
  nn::Model model("matmul_speed");
  model.output("sum", nn::sum(nn::matmul(model.input("a", {kInner}), model.weight("b", uniform({kInner, sizes.columns}, 2)))));
  save_model(model, "matmul_speed.onnx");
  const plan::Plan plan = compile_model("matmul_speed.onnx", Recipe(), {.targets = side_by_side::targets_of(devices), .levels = {"native"}});
  const Tensor a = uniform({sizes.rows, kInner}, 1);

  std::vector<Measured> measured;
  for (const std::string& device : devices) {
    fmt::print(stderr, "\n{}: ({} x {}) times ({} x {})\n", device, sizes.rows, kInner, kInner, sizes.columns);
    measured.push_back(measure(plan, device, a, sizes));
  }
  fmt::print("{:>10} {:>20} {:>10} {:>10}\n", "device", "sum", "seconds", "GFLOP/s");
  const double operations = 2.0 * static_cast<double>(sizes.rows) * static_cast<double>(sizes.columns) * kInner;
  for (std::size_t i = 0; i < devices.size(); ++i)
    fmt::print("{:>10} {:>20.0f} {:>10.4f} {:>10.1f}\n", devices[i], measured[i].sum, measured[i].seconds, operations / measured[i].seconds / 1e9);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string devices = count > 1 ? arguments[1] : "all";
    Sizes sizes;
    for (int i = 2; i < count and i < 5; ++i) (i == 2 ? sizes.rows : i == 3 ? sizes.columns : sizes.repeats) = std::atoll(arguments[i]);
    if (sizes.rows < 1 or sizes.columns < 1 or sizes.repeats < 1 or count > 5) {
      fmt::print(stderr, "usage: matmul_speed [DEVICE[,DEVICE]... [ROWS [COLUMNS [REPEATS]]]]\n");
      return 2;
    }
    compare(devices == "all" ? side_by_side::all_devices() : split(devices, ','), sizes);
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
