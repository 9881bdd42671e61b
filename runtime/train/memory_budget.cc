#include "runtime/train/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/library/arena.h"
#include "runtime/train/summary.h"

namespace hone {

namespace {

/// The one in use, the next one, and the one that comes in meanwhile (runtime/feeds_ahead.h).
constexpr std::int64_t kBatchesOnDevice = 3;

struct Need {
  PlannedMemory planned;
  std::int64_t scratch = 0;
  std::int64_t fed = 0;

  std::int64_t bytes() const { return planned.persistent + planned.arena + scratch + fed; }
};

std::string text_of(std::int64_t bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }

std::string need_text(const Need& need) {
  return fmt::format("{} ({} of weights and states, {} of activations and gradients, {} of library scratch{})", text_of(need.bytes()), text_of(need.planned.persistent), text_of(need.planned.arena),
                     text_of(need.scratch), need.fed > 0 ? fmt::format(", {} of data", text_of(need.fed)) : "");
}

class Budgeted {
 public:
  Budgeted(const plan::Program& program, const std::string& batch_symbol, const MemoryBudget& budget) : program_(program), batch_symbol_(batch_symbol), budget_(budget) {}

  std::optional<Need> need(std::int64_t batch) const {
    const auto planned = planned_memory(program_, batch_symbol_, batch, budget_.calls);
    if (not planned) return std::nullopt;
    Need need{.planned = *planned};
    for (const plan::Entry* entry : called_entries(program_, budget_.calls)) {
      need.scratch = std::max(need.scratch, library_scratch(*entry, sizes_for(batch_symbol_, batch)));
      if (budget_.on_device) need.fed = std::max(need.fed, kBatchesOnDevice * fed_bytes(*entry, sizes_for(batch_symbol_, batch)));
    }
    return need;
  }
  bool fits(std::int64_t batch) const { return need(batch)->bytes() <= budget_.bytes; }

  /// 0 if none does.
  std::int64_t largest(std::int64_t most) const {
    std::int64_t low = 0, high = 1;
    while (high < most and fits(high)) low = high, high = std::min(2 * high, most);
    if (high == most and fits(most)) return most;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return low;
  }

  [[noreturn]] void refuse(std::int64_t batch) const {
    std::vector<std::string> ways_out;
    if (not batch_symbol_.empty() and batch > 1) {
      const std::int64_t fitting = largest(batch - 1);
      ways_out.push_back(fitting > 0 ? fmt::format("a batch of {} fits: --batch {}, or --batch auto for the largest that does", fitting, fitting) : "not even one sample fits");
    }
    ways_out.push_back(fmt::format("hone-compile --memory-limit BYTES --batch {} makes a plan that keeps less for the backward pass", batch));
    ways_out.emplace_back(budget_.calls.shares > 1 ? "more replicas hold smaller parts of the optimizer's states each" : "--shard-optimizer with several replicas divides the optimizer's states among them");
    throw Error(Code::kMemory, fmt::format("a training step of batch {} takes {}, and there is {}", batch, need_text(*need(batch)), budget_.source), {}, std::move(ways_out));
  }

 private:
  const plan::Program& program_;
  const std::string& batch_symbol_;
  const MemoryBudget& budget_;
};

}  // namespace

std::int64_t largest_batch(const plan::Program& program, const std::string& batch_symbol, const MemoryBudget& budget, std::int64_t most) {
  if (batch_symbol.empty()) throw Error(Code::kUsage, "--batch auto: the model's sizes are fixed, and so is its batch", {}, {"leave --batch out"});
  const Budgeted budgeted(program, batch_symbol, budget);
  if (not budgeted.need(1)) throw Error(Code::kUsage, "--batch auto: what a step takes depends on sizes that are known only when it runs", {}, {"give --batch a number"});
  const std::int64_t batch = budgeted.largest(std::max<std::int64_t>(most, 1));
  if (batch == 0) budgeted.refuse(1);
  return batch;
}

bool require_fits(const plan::Program& program, const std::string& batch_symbol, const MemoryBudget& budget, std::int64_t batch) {
  const Budgeted budgeted(program, batch_symbol, budget);
  if (not budgeted.need(batch)) return false;
  if (not budgeted.fits(batch)) budgeted.refuse(batch);
  return true;
}

}  // namespace hone
