// What a step costs beside its kernels and library calls: steps that have nearly nothing to compute. The aim: at most 5 us, and 0.5 us a library call.
//
// The first step of a compiled model is put into its entry again and again: kernels of one element, means of four.
#include <benchmark/benchmark.h>

#include "backends/compile.h"
#include "frontend/builder.h"
#include "frontend/onnx/export.h"
#include "runtime/session.h"

namespace hone {
namespace {

plan::Plan compiled(const nn::Model& model) { return compile({model.graph(), onnx::export_model(model.graph()), "overhead"}, resolve({})).plan; }

plan::Entry& predict_of(plan::Plan& plan) {
  for (plan::Entry& entry : plan.programs[0].entries)
    if (entry.name == plan::kPredict) return entry;
  throw InternalError("the plan cannot predict");
}

/// The plan with its steps so many times. All are alive to the end.
plan::Plan repeated(plan::Plan plan, std::int64_t times) {
  plan::Entry& entry = predict_of(plan);
  const std::vector<plan::Step> once = entry.steps;
  if (once.size() != 1) throw InternalError("the model is more than one step");
  entry.steps.clear();
  for (std::int64_t i = 0; i < times; ++i) entry.steps.insert(entry.steps.end(), once.begin(), once.end());
  for (plan::Buffer& buffer : entry.buffers)
    if (buffer.storage == plan::Buffer::Storage::kArena) buffer.first_step = 0, buffer.last_step = static_cast<std::uint32_t>(entry.steps.size() - 1);
  return plan;
}

/// Runs predict on one sample of the shape, again and again.
void run(benchmark::State& state, const plan::Plan& plan, int threads, const std::vector<std::int64_t>& shape) {
  Session session(plan, {.device = "cpu", .threads = threads});
  const Tensor x = Tensor::zeros(DType::kF32, shape);
  const std::vector<std::pair<std::string, TensorView>> feeds = {{"x", x}};
  for (int i = 0; i < 100; ++i) session.run(plan::kPredict, feeds);  // ways are tried, caches warm
  for (auto _ : state) session.run(plan::kPredict, feeds);
}

void kernels(benchmark::State& state) {
  nn::Model model("kernels");
  model.output("y", nn::relu(model.input("x", {1})));
  run(state, repeated(compiled(model), state.range(0)), static_cast<int>(state.range(1)), {1, 1});
}
BENCHMARK(kernels)->ArgNames({"kernels", "threads"})->ArgsProduct({{1, 10, 100}, {1, 2}});

void library_calls(benchmark::State& state) {
  nn::Model model("calls");
  model.output("y", nn::average_pool(model.input("x", {1, 2, 2}), 2));
  const plan::Plan plan = repeated(compiled(model), state.range(0));
  if (not std::holds_alternative<plan::LibraryStep>(plan.programs[0].find(plan::kPredict)->steps[0].what)) throw InternalError("the model is no library call");
  run(state, plan, static_cast<int>(state.range(1)), {1, 1, 2, 2});
}
BENCHMARK(library_calls)->ArgNames({"calls", "threads"})->ArgsProduct({{1, 10, 100}, {1, 2}});

/// An LSTM of one unit: what an iteration of a loop costs.
void iterations(benchmark::State& state) {
  nn::Model model("iterations");
  model.output("y", nn::lstm(model.input("x", {state.range(0), 1}), 1));
  run(state, compiled(model), static_cast<int>(state.range(1)), {1, state.range(0), 1});
  state.counters["per iteration"] =
      benchmark::Counter(static_cast<double>(state.range(0)), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(iterations)->ArgNames({"trips", "threads"})->ArgsProduct({{1, 1000}, {1, 2}});

}  // namespace
}  // namespace hone
