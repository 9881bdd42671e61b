// Plans written by hand, with kernels written in C: what the executor is tested with, no compiler of ours involved.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

/// A shared object of C kernels, made with the system's C compiler. The source sees KERNEL(name), F(n) and EACH of hand_plan.cc.
std::vector<std::byte> compile_kernels(const std::string& source);
/// A shared object of the C kernels in hand_plan.cc, made once a process.
const std::vector<std::byte>& hand_written_code();

/// Puts entries together: add_* return buffer numbers, steps run in the order of adding, live ranges follow from their use.
class EntryBuilder {
 public:
  explicit EntryBuilder(std::string name) { entry_.name = std::move(name); }

  std::uint32_t feed(std::string name, DType dtype, Shape shape);
  std::uint32_t persistent(std::uint32_t index, DType dtype, Shape shape);
  std::uint32_t arena(DType dtype, Shape shape, bool opaque = false);
  std::uint32_t view(std::uint32_t of, Shape shape);

  void kernel(std::string symbol, std::vector<std::uint32_t> buffers, std::vector<Dim> sizes, Dim range, Dim work = 1);
  void library(plan::LibraryStep step);
  void step(plan::Step step) { entry_.steps.push_back(std::move(step)); }
  void result(std::string name, std::uint32_t buffer) { entry_.results.push_back({std::move(name), buffer}); }

  plan::Entry& entry() { return entry_; }
  /// With the live ranges of all arena buffers.
  plan::Entry build() const;

 private:
  plan::Entry entry_;
};

/// A plan of one program for cpu with the hand-written code.
plan::Plan hand_plan(std::vector<plan::Entry> entries, std::vector<plan::Persistent> persistents = {});

/// Linear regression trained by gradient descent: feeds x f32[N,3], target f32[N], learning_rate f32[]; weight w f32[3,1]; results loss_sum, y
/// (predictions, f32[N]), w (the weight itself), x (the feed itself).
plan::Plan regression_plan();

using Feeds = std::vector<std::pair<std::string, TensorView>>;

}  // namespace hone
