#include "backends/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/choose_kept.h"
#include "base/diag.h"
#include "base/parallel.h"
#include "base/text.h"
#include "runtime/library/arena.h"

namespace hone {

namespace {

std::string bytes_text(std::int64_t bytes) { return fmt::format("{} ({} bytes)", human_bytes(static_cast<std::uint64_t>(bytes)), bytes); }

/// With what is made again by the choice.
void apply(plan::Entry& entry, const MemoryUse& use, const KeptChoice& choice, LimitedEntry& report) {
  const Replay replay = hone::replay(use, choice.kept);
  report.again = replay.again;
  report.made_again.clear();
  report.step_before.clear();
  for (const Replay::Placed& placed : replay.placed) {
    if (placed.kind == Replay::Placed::Kind::kAgain) report.made_again.push_back(entry.steps[placed.step].origin);
    report.step_before.push_back(placed.kind == Replay::Placed::Kind::kCopy ? std::nullopt : std::optional(placed.step));
  }
  entry = replayed(entry, replay);
}

/// Is the entry one that a training run on one device calls, or all that the plan can do?
bool is_required(const std::vector<plan::Entry>& entries, const std::string& name) {
  if (plan::find(entries, plan::kTrainStep) == nullptr) return name == plan::kPredict;
  return name == plan::kTrainStep or name == plan::kAccumulateStep or name == plan::kEvalStep;
}

/// The largest batch below the limit's for which the entry, as it is, takes no more than `bytes`; 0 for none.
std::int64_t largest_batch(const plan::Entry& entry, const std::string& batch_symbol, std::int64_t below, std::int64_t bytes) {
  std::int64_t fits = 0;
  while (not batch_symbol.empty() and below - fits > 1) {
    const std::int64_t middle = fits + (below - fits) / 2;
    const auto size = arena_size(entry, sizes_for(batch_symbol, middle));
    (size and size->bytes <= bytes ? fits : below) = middle;
  }
  return fits;
}

[[noreturn]] void refuse_unknown_sizes(const plan::Entry& entry, const DimBindings& sizes) {
  std::vector<std::string> unknown;
  for (const plan::Buffer& buffer : entry.buffers)
    for (const Dim& dim : buffer.shape)
      for (const std::string& symbol : dim.symbols())
        if (not sizes.contains(symbol) and std::ranges::find(unknown, symbol) == unknown.end()) unknown.push_back(symbol);
  if (unknown.empty() or std::ranges::any_of(unknown, [](const std::string& symbol) { return symbol.starts_with("$"); }))
    throw Error(Code::kUsage, fmt::format("--memory-limit: {} reads sizes from tensors, so what it takes is known only when it runs", entry.name), {}, {"leave --memory-limit out"});
  throw Error(Code::kUsage, fmt::format("--memory-limit: what {} takes depends on {}, which is not known", entry.name, quoted_list(unknown)), {},
              {fmt::format("fix it with --dim {}=N", unknown[0])});
}

[[noreturn]] void refuse_persistents(const MemoryLimit& limit, std::int64_t persistent) {
  throw Error(Code::kMemory, fmt::format("--memory-limit {}: weights, optimizer states and constants alone take {}", bytes_text(limit.bytes), bytes_text(persistent)), {},
              {"the limit must leave room for the activations of a batch, too",
               "frozen weights (model.freeze) have no optimizer states, and optimizers differ in how many they have: sgd without momentum has none"});
}

[[noreturn]] void refuse_entry(const plan::Entry& entry, const LimitedEntry& report, const LimitedProgram& program, const std::string& batch_symbol) {
  const std::int64_t room = program.limit.bytes - program.persistent;
  const std::int64_t batch = largest_batch(entry, batch_symbol, program.limit.batch, room);
  std::vector<std::string> notes = {fmt::format("weights, optimizer states and constants take {}; activations and gradients {}, with everything kept {}", bytes_text(program.persistent),
                                                bytes_text(report.after), bytes_text(report.before))};
  if (batch > 0) notes.push_back(fmt::format("a batch of {} fits: --batch {}", batch, batch));
  else if (not batch_symbol.empty()) notes.push_back("not even a batch of 1 was found to fit");
  notes.push_back(fmt::format("--memory-limit {} is enough for a batch of {}", program.persistent + report.after, program.limit.batch));
  throw Error(Code::kMemory,
              fmt::format("--memory-limit {}: {} of batch {} takes {} more, with all made again that helps", bytes_text(program.limit.bytes), report.name, program.limit.batch,
                          bytes_text(report.after - room)),
              {}, std::move(notes));
}

std::string share_text(const LimitedEntry& entry) { return fmt::format("{:.1f} % more arithmetic", entry.operations > 0 ? 100 * entry.again / entry.operations : 0); }

}  // namespace

std::optional<LimitedEntry> fit_arena(plan::Entry& entry, const KernelSet& kernels, const DimBindings& sizes, std::int64_t bytes) {
  constexpr int kTries = 6;  // as placing buffers takes a little more than their sum
  const auto before = arena_size(entry, sizes);
  const std::optional<MemoryUse> use = memory_use(entry, kernels, sizes);
  if (not before or not use) return std::nullopt;
  LimitedEntry report{.name = entry.name, .before = before->bytes, .after = before->bytes, .operations = use->operations, .again = 0, .made_again = {}};
  const plan::Entry whole = entry;
  std::int64_t aim = bytes;
  for (int i = 0; i < kTries and report.after > bytes; ++i) {
    const KeptChoice choice = choose_kept(*use, aim);
    plan::Entry made = whole;
    LimitedEntry made_report = report;
    apply(made, *use, choice, made_report);
    made_report.after = arena_size(made, sizes)->bytes;
    if (made_report.after < report.after) {
      entry = std::move(made);
      report = std::move(made_report);
    }
    if (not choice.fits(aim)) break;
    aim -= std::max<std::int64_t>(report.after - bytes, bytes / 200);
  }
  return report;
}

LimitedProgram fit_program(std::vector<plan::Entry>& entries, const std::vector<plan::Persistent>& persistents, const KernelSet& kernels, const std::string& batch_symbol, const MemoryLimit& limit) {
  LimitedProgram program{.limit = limit, .persistent = persistent_bytes(persistents), .entries = {}};
  if (program.persistent >= limit.bytes) refuse_persistents(limit, program.persistent);
  const DimBindings sizes = sizes_for(batch_symbol, limit.batch);
  std::vector<std::optional<LimitedEntry>> reports(entries.size());
  on_all_cores(entries.size(), [&](std::size_t i) { reports[i] = fit_arena(entries[i], kernels, sizes, limit.bytes - program.persistent); });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (not is_required(entries, entries[i].name) and not reports[i]) continue;
    if (not reports[i]) refuse_unknown_sizes(entries[i], sizes);
    program.entries.push_back(*reports[i]);
    if (is_required(entries, entries[i].name) and program.persistent + reports[i]->after > limit.bytes) refuse_entry(entries[i], *reports[i], program, batch_symbol);
  }
  return program;
}

std::string to_text(const LimitedProgram& program) {
  std::string text = fmt::format("memory limit {} at batch {}: {} of weights and states", human_bytes(static_cast<std::uint64_t>(program.limit.bytes)), program.limit.batch,
                                 human_bytes(static_cast<std::uint64_t>(program.persistent)));
  for (const LimitedEntry& entry : program.entries) {
    const std::int64_t over = program.persistent + entry.after - program.limit.bytes;
    if (entry.before == entry.after and over <= 0) continue;
    text += fmt::format("\n  {:<16} peak {} instead of {}; {} steps run again, {}", entry.name, bytes_text(program.persistent + entry.after), bytes_text(program.persistent + entry.before),
                        entry.made_again.size(), share_text(entry));
    if (over > 0) text += fmt::format("; {} above the limit", bytes_text(over));
  }
  return text;
}

std::string explain_limit(const LimitedProgram& program) {
  std::string text = to_text(program) + "\n";
  for (const LimitedEntry& entry : program.entries) {
    if (entry.made_again.empty()) continue;
    text += fmt::format("made again in {}:\n", entry.name);
    for (const std::string& origin : entry.made_again) text += fmt::format("    {}\n", printable(origin, 300));
  }
  return text;
}

}  // namespace hone
