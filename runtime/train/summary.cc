#include "runtime/train/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "runtime/device/team.h"
#include "runtime/library/arena.h"

namespace hone {

namespace {

constexpr std::size_t kMostRows = 40;  // of a list that is not shortened
constexpr std::size_t kLeastName = 8;  // columns
constexpr std::size_t kGaps = 6;       // between four columns
constexpr std::string_view kTrained = "Trained";

struct Row {
  std::string name, shape, count, trained;
};

/// Number of elements and bytes.
struct Amount {
  std::int64_t elements = 0, bytes = 0;
  void add(const Tensor& tensor) {
    elements += tensor.element_count();
    bytes += static_cast<std::int64_t>(tensor.byte_count());
  }
};

struct Totals {
  Amount trained, others, optimizer;
};

std::string bytes_text(std::int64_t bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }
std::string amount_text(const Amount& amount) { return fmt::format("{} ({})", grouped(amount.elements), bytes_text(amount.bytes)); }

bool is_listed(const plan::Persistent& persistent) {
  return persistent.role == plan::Persistent::Role::kWeight or (persistent.role == plan::Persistent::Role::kState and persistent.in_model);
}

Row row_of(const plan::Persistent& persistent) {
  const bool is_state = persistent.role == plan::Persistent::Role::kState;
  return {persistent.name, shape_text(persistent.initial.shape()), grouped(persistent.initial.element_count()),
          is_state ? "running" : persistent.trained ? "yes" : "no"};
}

Totals totals_of(const plan::Program& program) {
  Totals totals;
  for (const plan::Persistent& persistent : program.persistents) {
    const bool is_weight = persistent.role == plan::Persistent::Role::kWeight;
    if (is_listed(persistent)) (is_weight and persistent.trained ? totals.trained : totals.others).add(persistent.initial);
    else if (persistent.role == plan::Persistent::Role::kState) totals.optimizer.add(persistent.initial);
  }
  return totals;
}

/// The list with a row in its middle that stands for what is left out.
std::vector<Row> shortened(std::vector<Row> rows) {
  if (rows.size() <= kMostRows) return rows;
  const std::size_t left_out = rows.size() - (kMostRows - 1);
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(kMostRows / 2);
  rows.erase(begin, begin + static_cast<std::ptrdiff_t>(left_out));
  rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(kMostRows / 2), {fmt::format("... {} more, with --verbose", left_out), "", "", ""});
  return rows;
}

std::string table(const std::vector<Row>& rows, std::size_t columns) {
  const Row heading = {"Weight", "Shape", "Params", std::string(kTrained)};
  std::size_t name = heading.name.size(), shape = heading.shape.size(), count = heading.count.size();
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    shape = std::max(shape, row.shape.size());
    count = std::max(count, row.count.size());
  }
  const std::size_t others = shape + count + kTrained.size() + kGaps;
  name = std::min(name, std::max(kLeastName, columns > others ? columns - others : 0));
  const auto line = [&](const Row& row) {
    const std::string text = fmt::format("{:<{}}  {:<{}}  {:>{}}  {}", printable(row.name, name), name, row.shape, shape, row.count, count, row.trained);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  const std::size_t width = name + others;
  std::string text = std::string(width, '_') + "\n" + line(heading) + std::string(width, '=') + "\n";
  for (const Row& row : rows) text += line(row);
  return text + std::string(width, '=') + "\n";
}

/// The bytes of it that the replica holds which holds most.
std::int64_t held_bytes(const plan::Persistent& persistent, int shares) {
  const RangePiece largest = piece_of(persistent.initial.element_count(), persistent.in_parts ? shares : 1, 0);
  return (largest.end - largest.begin) * static_cast<std::int64_t>(size_of(persistent.initial.dtype()));
}

/// What of the optimizer's states is on each replica, and why not less.
std::string shares_text(const plan::Program& program, int shares) {
  if (shares == 1) return "";
  std::int64_t held = 0;
  std::map<std::string, Amount> whole;  // by reason
  std::map<std::string, std::int64_t> states;
  for (const plan::Persistent& persistent : program.persistents) {
    if (persistent.role != plan::Persistent::Role::kState or is_listed(persistent)) continue;
    held += held_bytes(persistent, shares);
    if (persistent.whole_because.empty()) continue;
    whole[persistent.whole_because].add(persistent.initial);
    ++states[persistent.whole_because];
  }
  std::string text = fmt::format(", {} of it on each of {} replicas", bytes_text(held), shares);
  constexpr std::size_t kMostReasons = 4;
  std::size_t told = 0;
  for (const auto& [reason, amount] : whole) {
    if (told++ == kMostReasons) return text + fmt::format("\n  ... and {} more reasons, with hone-compile --why", whole.size() - kMostReasons);
    text += fmt::format("\n  whole on each: {} state{} ({}), because {}", states[reason], states[reason] == 1 ? "" : "s", bytes_text(amount.bytes), printable(reason, 500));
  }
  return text;
}

std::string memory_text(const SummaryOptions& options) {
  return options.planned ? fmt::format("\nPlanned memory at batch {}: {}", options.batch_size, planned_text(*options.planned)) : "";
}

}  // namespace

std::vector<const plan::Entry*> called_entries(const plan::Program& program, RunCalls calls) {
  std::vector<const char*> names = {plan::kTrainStep, plan::kAccumulateStep};
  if (calls.norms) names.push_back(plan::kTrainStepNorms);
  if (calls.evaluates) names.push_back(plan::kEvalStep);
  std::vector<const plan::Entry*> entries;
  for (const char* name : names) {
    const plan::Entry* entry = program.find(name);
    if (calls.replicas > 1)  // a model's own training has no others, and an evaluation exchanges nothing
      if (const plan::Entry* exchanging = program.find(plan::replica_entry(name))) entry = exchanging;
    if (calls.shares > 1 and entry != nullptr)
      if (const plan::Entry* sharded = program.find(plan::sharded_entry(entry->name))) entry = sharded;
    if (entry != nullptr) entries.push_back(entry);
  }
  return entries;
}

std::optional<PlannedMemory> planned_memory(const plan::Program& program, const std::string& batch_symbol, std::int64_t batch_size, RunCalls calls) {
  if (program.find(plan::kTrainStep) == nullptr) return std::nullopt;
  const std::vector<const plan::Entry*> entries = called_entries(program, calls);
  PlannedMemory planned;
  for (const plan::Entry* entry : entries) {
    const auto arena = arena_size(*entry, sizes_for(batch_symbol, batch_size));
    if (not arena) return std::nullopt;
    planned.arena = std::max(planned.arena, arena->bytes);
  }
  for (const plan::Persistent& persistent : program.persistents) planned.persistent += held_bytes(persistent, calls.shares);
  return planned;
}

std::string planned_text(const PlannedMemory& memory) {
  return fmt::format("{} ({} of weights and states, {} of activations and gradients)", bytes_text(memory.persistent + memory.arena), bytes_text(memory.persistent),
                     bytes_text(memory.arena));
}

ParameterCounts count_parameters(const plan::Program& program) {
  const Totals totals = totals_of(program);
  return {.trained = totals.trained.elements, .others = totals.others.elements};
}

std::string model_summary(const plan::Program& program, const SummaryOptions& options) {
  std::vector<Row> rows;
  for (const plan::Persistent& persistent : program.persistents)
    if (is_listed(persistent)) rows.push_back(row_of(persistent));
  const Totals totals = totals_of(program);
  const Amount all = {totals.trained.elements + totals.others.elements, totals.trained.bytes + totals.others.bytes};
  return fmt::format("Model: {}\n{}Total params: {}\nTrained params: {}\nOther params: {}\nOptimizer state: {}{}{}", printable(options.model_name),
                     table(options.all_weights ? rows : shortened(std::move(rows)), static_cast<std::size_t>(std::max(1, options.columns))), amount_text(all),
                     amount_text(totals.trained), amount_text(totals.others), bytes_text(totals.optimizer.bytes), shares_text(program, options.optimizer_shares), memory_text(options));
}

std::string grouped(std::int64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t end = text.size(); end > 3 and text[end - 4] != '-'; end -= 3) text.insert(end - 3, ",");
  return text;
}

}  // namespace hone
