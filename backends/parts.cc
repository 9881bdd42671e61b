#include "backends/parts.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace hone {

namespace {

using plan::Buffer;
using plan::Entry;
using plan::Step;

bool is_exchange(const Step& step) { return std::holds_alternative<plan::AllReduceStep>(step.what); }

/// For each step: does it wait for an exchange? And for each buffer: is it what one leaves, or comes after it?
struct AfterExchanges {
  explicit AfterExchanges(const Entry& entry) : buffers(entry.buffers.size()) {
    for (const Step& step : entry.steps) {
      bool waits = false;
      for_each_root(entry, step, [&](std::uint32_t buffer, bool reads, bool) { waits = waits or (reads and buffers[buffer]); });
      steps.push_back(waits);
      for_each_root(entry, step, [&](std::uint32_t buffer, bool, bool writes) { buffers[buffer] = buffers[buffer] or (writes and (waits or is_exchange(step))); });
    }
  }
  std::vector<bool> steps, buffers;
};

/// The steps that the given buffers need, of those that may stay; exchanges stay in any case.
std::vector<bool> needed_steps(const Entry& entry, std::vector<bool> needed, const std::vector<bool>& may_stay) {
  std::vector<bool> stays(entry.steps.size());
  for (std::size_t i = entry.steps.size(); i-- > 0;) {
    const Step& step = entry.steps[i];
    bool is_wanted = is_exchange(step) or std::holds_alternative<plan::ReadSizesStep>(step.what);
    for_each_root(entry, step, [&](std::uint32_t buffer, bool, bool writes) { is_wanted = is_wanted or (writes and needed[buffer]); });
    stays[i] = is_wanted and may_stay[i];
    if (stays[i]) for_each_root(entry, step, [&](std::uint32_t buffer, bool reads, bool) { needed[buffer] = needed[buffer] or reads; });
  }
  return stays;
}

enum class Feeds : std::uint8_t {
  kAll,
  kReadOrSized,  ///< those that a step or a result reads, and those from whose shapes sizes follow
  kRead,         ///< those that a step or a result reads; so nothing is left to be equal to sizes of the others
};

/// The entry with those steps and results, and the buffers that they use.
Entry with_steps(const Entry& entry, std::string name, const std::vector<bool>& stays, const std::vector<bool>& result_stays, Feeds feeds = Feeds::kAll) {
  Entry part{.name = std::move(name), .feeds = {}, .results = {}, .buffers = {}, .steps = {}, .equations = {}};
  std::vector<bool> used(entry.buffers.size());
  const auto use = [&](std::uint64_t buffer) {
    for (; not used[buffer]; buffer = entry.buffers[buffer].index) {
      used[buffer] = true;
      if (entry.buffers[buffer].storage != Buffer::Storage::kView) break;
    }
  };
  for (std::size_t i = 0; i < entry.steps.size(); ++i) {
    if (not stays[i]) continue;
    part.steps.push_back(entry.steps[i]);
    plan::for_each_buffer(entry.steps[i], [&](std::uint64_t buffer, plan::Access) { use(buffer); });
  }
  for (std::size_t i = 0; i < entry.results.size(); ++i) {
    if (not result_stays[i]) continue;
    part.results.push_back(entry.results[i]);
    use(entry.results[i].buffer);
  }
  std::vector<std::uint32_t> numbers(entry.buffers.size());
  for (std::size_t i = 0; i < entry.buffers.size(); ++i) {
    numbers[i] = static_cast<std::uint32_t>(part.buffers.size());
    if (used[i]) part.buffers.push_back(entry.buffers[i]);
  }
  if (feeds == Feeds::kAll) part.feeds = entry.feeds;
  if (feeds != Feeds::kRead) part.equations = entry.equations;
  std::vector<bool> is_fed(entry.feeds.size());
  for (Buffer& buffer : part.buffers) {
    if (buffer.storage == Buffer::Storage::kView) buffer.index = numbers[buffer.index];
    if (feeds == Feeds::kAll or buffer.storage != Buffer::Storage::kFeed) continue;
    is_fed[buffer.index] = true;
    part.feeds.push_back(entry.feeds[buffer.index]);
    buffer.index = static_cast<std::uint32_t>(part.feeds.size() - 1);
  }
  for (std::size_t i = 0; i < entry.feeds.size() and feeds == Feeds::kReadOrSized; ++i)
    if (not is_fed[i] and std::ranges::any_of(entry.feeds[i].shape, [](const Dim& dim) { return not dim.is_constant(); })) part.feeds.push_back(entry.feeds[i]);
  for (Step& step : part.steps) renumber(step, [&](std::uint64_t buffer) { return numbers[buffer]; });
  for (plan::Result& result : part.results) result.buffer = numbers[result.buffer];
  find_live_ranges(part);
  return part;
}

}  // namespace

void find_live_ranges(Entry& entry) {
  std::vector<bool> seen(entry.buffers.size());
  const auto use = [&](std::uint64_t buffer, std::uint32_t step) {
    const std::uint32_t r = plan::root_of(entry, buffer);
    Buffer& b = entry.buffers[r];
    if (not seen[r]) b.first_step = b.last_step = step;
    seen[r] = true;
    b.last_step = std::max(b.last_step, step);
  };
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
    plan::for_each_buffer(entry.steps[i], [&](std::uint64_t buffer, plan::Access) { use(buffer, i); });
    if (not is_exchange(entry.steps[i]) or std::get<plan::AllReduceStep>(entry.steps[i].what).collects) continue;
    const std::uint32_t last = plan::end_of_exchange(entry, i) - 1;
    plan::for_each_buffer(entry.steps[i], [&](std::uint64_t buffer, plan::Access) { use(buffer, last); });
  }
  const auto end = static_cast<std::uint32_t>(entry.steps.empty() ? 0 : entry.steps.size() - 1);
  for (const plan::Result& result : entry.results) use(result.buffer, end);
}

Entry without_exchanges(const Entry& entry, std::string name) {
  std::vector<bool> stays;
  for (const Step& step : entry.steps) stays.push_back(not is_exchange(step));
  return with_steps(entry, std::move(name), stays, std::vector<bool>(entry.results.size(), true));
}

Entry without_norms(const Entry& entry, std::string name) {
  std::vector<bool> needed(entry.buffers.size()), result_stays;
  for (std::size_t i = 0; i < entry.buffers.size(); ++i) needed[i] = entry.buffers[i].storage == Buffer::Storage::kPersistent;
  for (const plan::Result& result : entry.results) {
    result_stays.push_back(not result.name.starts_with(plan::kGradNormPrefix));
    if (result_stays.back()) needed[plan::root_of(entry, result.buffer)] = true;
  }
  return with_steps(entry, std::move(name), needed_steps(entry, std::move(needed), std::vector<bool>(entry.steps.size(), true)), result_stays);
}

Entry without_data(const Entry& entry) {
  return with_steps(entry, entry.name, std::vector<bool>(entry.steps.size(), true), std::vector<bool>(entry.results.size(), true), Feeds::kRead);
}

Entry shard_of(const Entry& entry, std::string name) {
  const AfterExchanges after(entry);
  std::vector<bool> needed(entry.buffers.size()), result_stays, may_stay = after.steps;
  may_stay.flip();
  for (std::size_t i = 0; i < entry.steps.size(); ++i) HONE_CHECK(may_stay[i] or not is_exchange(entry.steps[i]), "an exchange of a shard waits for another one: " + entry.steps[i].origin);
  for (const plan::Result& result : entry.results) {
    result_stays.push_back(not after.buffers[plan::root_of(entry, result.buffer)]);
    if (result_stays.back()) needed[plan::root_of(entry, result.buffer)] = true;
  }
  Entry shard = with_steps(entry, std::move(name), needed_steps(entry, std::move(needed), may_stay), result_stays, Feeds::kReadOrSized);  // no learning rate: nothing is updated
  for (Step& step : shard.steps)
    if (auto* exchange = std::get_if<plan::AllReduceStep>(&step.what)) exchange->collects = true;
  return shard;
}

}  // namespace hone
