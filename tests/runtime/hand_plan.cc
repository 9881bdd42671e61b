#include "tests/runtime/hand_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/check.h"
#include "base/files.h"

namespace hone {
namespace {

// b: buffers, s: sizes; each handles the points from i to end.
constexpr const char* kMacros = R"(
#include <math.h>
#include <stdint.h>
#define KERNEL(name) void name(void* const* b, const int64_t* s, int64_t i, int64_t end)
#define F(n) ((float*)b[n])
#define EACH for (; i < end; ++i)
)";

constexpr const char* kKernels = R"(
KERNEL(twice) { EACH F(1)[i] = 2 * F(0)[i]; }
KERNEL(half) { EACH F(1)[i] = 0.5f * F(0)[i]; }
KERNEL(exponential) { EACH F(1)[i] = expf(F(0)[i]); }
KERNEL(add_size) { EACH F(1)[i] = F(0)[i] + (float)s[0]; }
KERNEL(count) { EACH F(0)[i] += 1; }
KERNEL(zero) { EACH F(0)[i] = 0; }
KERNEL(subtract) { EACH F(2)[i] = F(0)[i] - F(1)[i]; }
KERNEL(sum_of_squares) { EACH { float t = 0; for (int64_t k = 0; k < s[0]; ++k) t += F(0)[k] * F(0)[k]; F(1)[i] = t; } }
KERNEL(descend) { EACH F(0)[i] -= F(2)[0] * 2 * F(1)[i] / (float)s[0]; }
KERNEL(scatter) { int64_t k; for (k = 0; k < s[0]; ++k) { int64_t row = ((int64_t*)b[0])[k]; if (row >= i && row < end) F(1)[row] += 1; } }
)";

}  // namespace

std::vector<std::byte> compile_kernels(const std::string& source) {
  char folder[] = "/tmp/hone-kernels-XXXXXX";
  HONE_CHECK(mkdtemp(folder) != nullptr, "no folder for test kernels");
  const std::string stem = std::string(folder) + "/kernels";
  std::ofstream(stem + ".c") << kMacros << source;
  const std::string command = "cc -shared -fPIC -O2 -o " + stem + ".so " + stem + ".c";  // no -lm: the process has it
  HONE_CHECK(std::system(command.c_str()) == 0, "test kernels do not compile: " + command);
  std::vector<std::byte> code;
  {
    const MappedFile object(stem + ".so");
    code.assign(object.bytes().begin(), object.bytes().end());
  }
  remove_tree(folder);
  return code;
}

const std::vector<std::byte>& hand_written_code() {
  static const std::vector<std::byte> code = compile_kernels(kKernels);
  return code;
}

std::uint32_t EntryBuilder::feed(std::string name, DType dtype, Shape shape) {
  plan::Feed feed{.name = name, .kind = plan::Feed::Kind::kModelInput, .dtype = dtype, .shape = shape, .bounds = {}, .ignored = {}};
  entry_.feeds.push_back(std::move(feed));
  entry_.buffers.push_back({.name = std::move(name),
                            .dtype = dtype,
                            .shape = std::move(shape),
                            .storage = plan::Buffer::Storage::kFeed,
                            .index = static_cast<std::uint32_t>(entry_.feeds.size() - 1)});
  return static_cast<std::uint32_t>(entry_.buffers.size() - 1);
}

std::uint32_t EntryBuilder::persistent(std::uint32_t index, DType dtype, Shape shape) {
  entry_.buffers.push_back({.name = "persistent", .dtype = dtype, .shape = std::move(shape), .storage = plan::Buffer::Storage::kPersistent, .index = index});
  return static_cast<std::uint32_t>(entry_.buffers.size() - 1);
}

std::uint32_t EntryBuilder::arena(DType dtype, Shape shape, bool opaque) {
  entry_.buffers.push_back({.name = "arena", .dtype = dtype, .shape = std::move(shape), .opaque = opaque});
  return static_cast<std::uint32_t>(entry_.buffers.size() - 1);
}

std::uint32_t EntryBuilder::view(std::uint32_t of, Shape shape) {
  entry_.buffers.push_back(
      {.name = "view", .dtype = entry_.buffers[of].dtype, .shape = std::move(shape), .storage = plan::Buffer::Storage::kView, .index = of});
  return static_cast<std::uint32_t>(entry_.buffers.size() - 1);
}

void EntryBuilder::kernel(std::string symbol, std::vector<std::uint32_t> buffers, std::vector<Dim> sizes, Dim range, Dim work) {
  entry_.steps.push_back({plan::KernelStep{std::move(symbol), std::move(buffers), std::move(sizes), range, work}, "a kernel"});
}

void EntryBuilder::library(plan::LibraryStep step) { entry_.steps.push_back({std::move(step), "a library call"}); }

plan::Entry EntryBuilder::build() const {
  plan::Entry entry = entry_;
  std::vector<bool> used(entry.buffers.size());
  const auto use = [&](std::uint32_t number, std::size_t step) {
    while (entry.buffers[number].storage == plan::Buffer::Storage::kView) number = entry.buffers[number].index;
    plan::Buffer& buffer = entry.buffers[number];
    if (buffer.storage != plan::Buffer::Storage::kArena) return;
    const auto at = static_cast<std::uint32_t>(step);
    buffer.first_step = used[number] ? std::min(buffer.first_step, at) : at;
    buffer.last_step = used[number] ? std::max(buffer.last_step, at) : at;
    used[number] = true;
  };
  for (std::size_t i = 0; i < entry.steps.size(); ++i)
    plan::for_each_buffer(entry.steps[i], [&](std::uint64_t buffer, plan::Access) { use(static_cast<std::uint32_t>(buffer), i); });
  for (const plan::Result& result : entry.results) use(result.buffer, entry.steps.empty() ? 0 : entry.steps.size() - 1);
  return entry;
}

plan::Plan hand_plan(std::vector<plan::Entry> entries, std::vector<plan::Persistent> persistents) {
  plan::Plan plan;
  plan.programs.push_back({.target = "cpu", .code = {{"x86-64", hand_written_code()}}, .persistents = std::move(persistents), .entries = std::move(entries)});
  return plan;
}

plan::Plan regression_plan() {
  const Dim n = Dim::symbol("N");
  EntryBuilder train(plan::kTrainStep);
  const std::uint32_t x = train.feed("x", DType::kF32, {n, 3}), target = train.feed("target", DType::kF32, {n}),
                      rate = train.feed("learning_rate", DType::kF32, {});
  const std::uint32_t w = train.persistent(0, DType::kF32, {3, 1});
  const std::uint32_t y = train.arena(DType::kF32, {n, 1}), flat_y = train.view(y, {n}), difference = train.arena(DType::kF32, {n});
  const std::uint32_t column = train.view(difference, {n, 1}), loss = train.arena(DType::kF32, {}), dw = train.arena(DType::kF32, {3, 1});
  train.library({"onednn.matmul", {{"ta", {0}}, {"tb", {0}}}, {x, w}, {y}});
  train.kernel("subtract", {flat_y, target, difference}, {}, n, n);
  train.kernel("sum_of_squares", {difference, loss}, {n}, 1, n);
  train.library({"onednn.matmul", {{"ta", {1}}, {"tb", {0}}}, {x, column}, {dw}});
  train.step({plan::AllReduceStep{{dw}, 0}, "all_reduce of dw"});
  train.kernel("descend", {w, dw, rate}, {n}, 3);
  train.result(plan::kLossSum, loss);
  train.result("y", flat_y);
  train.result("w", w);
  train.result("x", x);
  EntryBuilder predict(plan::kPredict);
  const std::uint32_t px = predict.feed("x", DType::kF32, {n, 3}), pw = predict.persistent(0, DType::kF32, {3, 1}), py = predict.arena(DType::kF32, {n, 1});
  predict.library({"onednn.matmul", {}, {px, pw}, {py}});
  predict.result("y", py);
  plan::Persistent weight{
      .name = "w", .role = plan::Persistent::Role::kWeight, .trained = true, .in_model = true, .initial = Tensor::zeros(DType::kF32, {3, 1})};
  return hand_plan({train.build(), predict.build()}, {weight});
}

}  // namespace hone
