#include "runtime/train/replica_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>

#include "base/diag.h"
#include "base/hash.h"
#include "base/text.h"
#include "runtime/collective/agreement.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

bool is_summed(std::string_view result) { return result == plan::kLossSum or result == plan::kTargetCount or result.starts_with(plan::kMetricPrefix); }

const plan::Feed* feed_named(const plan::Entry& entry, std::string_view name) {
  const auto found = std::ranges::find(entry.feeds, name, &plan::Feed::name);
  return found == entry.feeds.end() ? nullptr : &*found;
}

/// Those that the entry has a place for: a shard's step, for one, updates nothing and takes no learning rate.
NamedViews taken_by(const plan::Entry& entry, const NamedViews& feeds) {
  NamedViews taken;
  for (const auto& feed : feeds)
    if (feed_named(entry, feed.first) != nullptr) taken.push_back(feed);
  return taken;
}

/// How many samples a feed takes at a time, if its first axis is that of the samples; 0 if it is not.
std::int64_t samples_at_a_time(const plan::Feed& feed, const TensorView& view, std::string_view batch_symbol) {
  if (not plan::is_data(feed) or feed.shape.empty() or view.shape.size() != feed.shape.size()) return 0;
  if (not batch_symbol.empty()) return feed.shape[0] == Dim::symbol(std::string(batch_symbol)) ? 1 : 0;
  return feed.shape[0].is_constant() and feed.shape[0].value() > 0 ? feed.shape[0].value() : 0;
}

bool is_empty(const BatchPart& part) { return part.begin == part.end; }

template <typename T>
void add_elements(const void* from, std::span<double> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    T element;
    std::memcpy(&element, static_cast<const std::byte*>(from) + i * sizeof(T), sizeof(T));
    to[i] += static_cast<double>(element);
  }
}

/// Reads states of which each replica has a part, if the optimizer's work is shared: all processes gather the same ones in the same order, each when the one that keeps them comes to it.
class GatheredStates {
 public:
  /// `keeps`: does this process keep them? If none does, nothing is gathered, and nothing of what has no such states.
  GatheredStates(Replicas& replicas, StepRunner::Kept what, bool keeps) : replicas_(replicas) {
    if (replicas.optimizer_shares() <= 1 or what == StepRunner::Kept::kModel) return;
    std::int32_t is_kept = keeps ? 1 : 0;
    if (replicas.processes() > 1) {
      const ExchangedTensor flag = {DType::kI32, 1, &is_kept};
      replicas.between_processes()->all_reduce({&flag, 1});
    }
    if (is_kept != 0) names_ = replicas.session().states_in_parts();
  }

  Tensor read(const std::string& name) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) return replicas_.session().read(name);
    HONE_CHECK(static_cast<std::size_t>(found - names_.begin()) >= next_, "states are kept in another order than the program's");
    while (names_[next_] != name) (void)replicas_.gathered(names_[next_++]);
    return replicas_.gathered(names_[next_++]);
  }

  /// Those which others wait for still.
  void finish() {
    while (next_ < names_.size()) (void)replicas_.gathered(names_[next_++]);
  }

 private:
  Replicas& replicas_;
  std::vector<std::string> names_;
  std::size_t next_ = 0;
};

}  // namespace

ReplicaRunner::ReplicaRunner(Replicas& replicas, std::string batch_symbol)
    : replicas_(replicas), batch_symbol_(std::move(batch_symbol)), first_(replicas.session()), workers_(replicas.local()), work_(static_cast<std::size_t>(replicas.local())) {}

void ReplicaRunner::set_weights(const NamedTensors& weights) {
  first_.set_weights(weights);
  weights_are_shared_ = false;
}

void ReplicaRunner::forget_accumulated() {
  for (int local = 0; local < replicas_.local(); ++local) hone::forget_accumulated(replicas_.session(local));
}

void ReplicaRunner::ask(const std::function<bool()>& stop, double max_seconds) {
  using Clock = std::chrono::steady_clock;
  agreed_ = {};
  wishes_ = {};
  if (stop) wishes_ = [stop, max_seconds, begin = Clock::now()]() -> Wishes {
    return {.stop = stop(), .out_of_time = max_seconds > 0 and std::chrono::duration<double>(Clock::now() - begin).count() >= max_seconds};
  };
}

/// Something without samples is one thing, which cannot be cut.
ReplicaRunner::Samples ReplicaRunner::samples_in(const plan::Entry& entry, const NamedViews& feeds) const {
  for (const auto& [name, view] : feeds) {
    const plan::Feed* feed = feed_named(entry, name);
    const std::int64_t each = feed == nullptr ? 0 : samples_at_a_time(*feed, view, batch_symbol_);
    if (each != 0 and view.shape[0] % each == 0) return {.count = view.shape[0], .at_a_time = each};
  }
  return {};
}

/// What is wrong with a batch is said when it is run.
void ReplicaRunner::feed_ahead(std::string_view name, BatchSource& batches) {
  if (replicas_.session().device() == nullptr) return;
  const NamedViews* next = batches.ahead();
  if (next == nullptr) return;
  const plan::Entry& entry = replicas_.session().entry(name);
  const Samples samples = samples_in(entry, *next);
  for (int local = 0; local < replicas_.local(); ++local) {
    NamedViews own;
    for (int i = 0; i < replicas_.parts_of(local); ++i) {
      const BatchPart part = replicas_.part_of(samples.count, samples.at_a_time, local, i);
      if (not is_empty(part)) std::ranges::move(feeds_of(entry, *next, part), std::back_inserter(own));
    }
    replicas_.session(local).feed_ahead(own);
  }
}

void ReplicaRunner::deal_out(const plan::Entry& entry, const NamedViews& feeds) {
  const auto [samples, at_a_time] = samples_in(entry, feeds);
  const int parts = replicas_.parts();
  if (batch_symbol_.empty() and samples / at_a_time > parts)
    throw Error(Code::kDataShape, fmt::format("the model takes {} samples at a time; {} are fed to {} replicas", at_a_time, samples, parts), {}, {"feed that many to each replica at most"});
  for (int local = 0; local < replicas_.local(); ++local) {
    Work& work = work_[static_cast<std::size_t>(local)];
    work.parts.clear();
    work.feeds.clear();
    for (int i = 0; i < replicas_.parts_of(local); ++i) work.parts.push_back(replicas_.part_of(samples, at_a_time, local, i));
    for (const BatchPart& part : work.parts) work.feeds.push_back(feeds_of(entry, feeds, part));
  }
}

/// Part of every feed that has samples, and the others whole.
NamedViews ReplicaRunner::feeds_of(const plan::Entry& entry, const NamedViews& feeds, const BatchPart& part) const {
  NamedViews own;
  for (const auto& [name, view] : feeds) {
    TensorView piece = view;
    if (const plan::Feed* feed = feed_named(entry, name); feed != nullptr and samples_at_a_time(*feed, view, batch_symbol_) > 0 and view.shape[0] > 0) {
      const std::size_t bytes = static_cast<std::size_t>(checked_element_count(view.shape)) * size_of(view.dtype), row = bytes / static_cast<std::size_t>(view.shape[0]);
      piece.shape[0] = part.end - part.begin;
      piece.data = static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(part.begin) * row;
    }
    own.emplace_back(name, std::move(piece));
  }
  for (const plan::Feed& feed : entry.feeds)
    if (feed.kind == plan::Feed::Kind::kFirstSample) own.emplace_back(feed.name, TensorView(DType::kI64, {}, &part.begin));
  return own;
}

/// What the entry reports as sums, and where each stands among the numbers that are added up.
void ReplicaRunner::list_sums(const plan::Entry& entry) {
  if (summed_entry_ == entry.name) return;
  summed_.clear();
  std::size_t numbers = 0;
  for (const plan::Result& result : entry.results) {
    if (not is_summed(result.name)) continue;
    Summed summed{.name = result.name, .shape = {}, .offset = numbers, .count = 1};
    for (const Dim& dim : entry.buffers[result.buffer].shape) {
      HONE_CHECK(dim.is_constant(), "the size of a sum depends on the batch: " + result.name);
      summed.shape.push_back(dim.value());
      summed.count *= static_cast<std::size_t>(dim.value());
    }
    numbers += summed.count;
    summed_.push_back(std::move(summed));
  }
  sums_.assign(numbers, 0);
  for (Work& work : work_) work.sums.assign(numbers, 0);
  summed_entry_ = entry.name;
}

void ReplicaRunner::run_part(int local, const std::string& entry, const NamedViews& feeds) {
  Session& session = replicas_.session(local);
  session.run(entry, feeds);
  std::vector<double>& sums = work_[static_cast<std::size_t>(local)].sums;
  for (const Summed& summed : summed_) {
    const TensorView view = session.result(summed.name);
    const std::span<double> to = std::span(sums).subspan(summed.offset, summed.count);
    if (view.dtype == DType::kF64) add_elements<double>(view.data, to);
    else add_elements<float>(view.data, to);
  }
}

/// What is run of the plan's entries for replicas.
std::string ReplicaRunner::entry_for(const std::string& replica_entry) const {
  std::string sharded = plan::sharded_entry(replica_entry);
  return replicas_.optimizer_shares() > 1 and replicas_.session().has_entry(sharded) ? sharded : replica_entry;  // what adds gradients up updates nothing
}

void ReplicaRunner::run_replica(int local, const plan::Entry& entry) {
  Session& session = replicas_.session(local);
  Work& work = work_[static_cast<std::size_t>(local)];
  std::ranges::fill(work.sums, 0);
  const std::string exchanging = entry_for(plan::replica_entry(entry.name)), idle = entry_for(plan::idle_entry(entry.name));
  const bool exchanges = session.has_entry(exchanging), in_shards = exchanges and replicas_.in_shards();
  bool is_done = false;  // its exchange, and so its update
  for (std::size_t i = 0; i < work.parts.size(); ++i) {
    if (is_empty(work.parts[i])) continue;
    const std::string& step = in_shards ? plan::kShardStep : exchanges ? exchanging : entry.name;
    run_part(local, step, taken_by(session.entry(step), work.feeds[i]));
    is_done = not in_shards;
  }
  if (exchanges and not is_done) session.run(idle, taken_by(session.entry(idle), work.feeds[0]));
}

void ReplicaRunner::run(std::string_view name, const NamedViews& feeds) {
  const plan::Entry& entry = replicas_.session().entry(name);
  const bool updates = name == plan::kTrainStep or name == plan::kTrainStepNorms;
  do_in_step(step_ + (updates ? 1 : 0), [&] {
    share();
    run_step(entry, feeds);
    step_ += updates ? 1 : 0;
    if (updates and compare_every_ > 0 and step_ % compare_every_ == 0) compare_weights();
  });
}

void ReplicaRunner::share() {
  if (weights_are_shared_) return;
  replicas_.share_weights();
  compare_weights();
  weights_are_shared_ = true;
}

/// Weights are compared when they have been read to be kept, and as they were read: a bit that flips before that would come back in every process that goes on from there.
void ReplicaRunner::save(const KeepState& keep, Kept what) {
  do_in_step(step_, [&] {
    share();
    GatheredStates gathered(replicas_, what, static_cast<bool>(keep));
    const bool compares = compare_every_ > 0 and replicas_.total() > 1;
    Hashes hashes;
    bool is_confirmed = false;
    const auto confirm = [&] {
      gathered.finish();
      if (compares) compare_weights(hashes);
      is_confirmed = true;
    };
    const auto read = [&](const std::string& name) {
      Tensor value = gathered.read(name);
      if (compares) hashes[name] = hash_of(value.bytes());
      return value;
    };
    if (keep) keep({read, confirm});
    if (not is_confirmed) confirm();
  });
}

/// What is said of other replicas names the step.
template <typename Job>
void ReplicaRunner::do_in_step(std::int64_t step, Job job) {
  try {
    job();
  } catch (const Error& error) {
    if (error.diags().front().code != Code::kPeer) throw;
    throw with_note(error, fmt::format("in step {}", step));
  }
}

void ReplicaRunner::compare_weights(const Hashes& kept) {
  if (replicas_.total() == 1) return;
  std::vector<std::uint64_t> hashes = {hash_of_weights(0, kept)};
  for (int local = 1; local < replicas_.local(); ++local) hashes.push_back(hash_of_weights(local));
  constexpr const char* kWhat = "other weights";
  require_same_here(hashes, kWhat);
  if (replicas_.processes() > 1) require_same(*replicas_.between_processes(), std::array{std::pair<std::string, std::uint64_t>(kWhat, hashes.front())});
}

std::uint64_t ReplicaRunner::hash_of_weights(int local, const Hashes& kept) {
  Session& session = replicas_.session(local);
  std::uint64_t hash = 0;
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (persistent.role == plan::Persistent::Role::kConstant or session.holds_part(persistent.name)) continue;
    const auto read = kept.find(persistent.name);
    const std::uint64_t own = read != kept.end() ? read->second : hash_of(session.read(persistent.name).bytes());
    hash = hash_of(std::as_bytes(std::span(&own, 1)), hash);
  }
  return hash;
}

void ReplicaRunner::run_step(const plan::Entry& entry, const NamedViews& feeds) {
  deal_out(entry, feeds);
  list_sums(entry);
  const auto& errors = workers_.run([&](int local) {
    try {
      run_replica(local, entry);
    } catch (const std::exception& error) {
      replicas_.fail(local, error.what());
      throw;
    }
  });
  if (std::ranges::any_of(errors, [](const std::exception_ptr& error) { return error != nullptr; })) {
    replicas_.renew();
    weights_are_shared_ = false;
  }
  std::exception_ptr of_others;
  for (const std::exception_ptr& error : errors) {
    if (error == nullptr) continue;
    try {
      std::rethrow_exception(error);
    } catch (const Error& thrown) {
      if (thrown.diags().front().code != Code::kPeer) throw;
      of_others = error;
    }
  }
  if (of_others != nullptr) std::rethrow_exception(of_others);
  add_up();
}

void ReplicaRunner::add_up() {
  std::ranges::fill(sums_, 0);
  for (const Work& work : work_)
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += work.sums[i];
  if (replicas_.processes() == 1) return;
  const Wishes own = wishes_ ? wishes_() : Wishes{};
  double wishes[] = {own.stop ? 1.0 : 0.0, own.out_of_time ? 1.0 : 0.0};
  const ExchangedTensor all[] = {{DType::kF64, static_cast<std::int64_t>(sums_.size()), sums_.data()}, {DType::kF64, std::size(wishes), wishes}};
  replicas_.between_processes()->all_reduce(all);
  agreed_ = {.stop = wishes[0] > 0, .out_of_time = wishes[1] > 0};
}

TensorView ReplicaRunner::result(std::string_view name) {
  for (const Summed& summed : summed_)
    if (summed.name == name) return {DType::kF64, summed.shape, &sums_[summed.offset]};
  return replicas_.session().result(name);
}

/// A shard's step changes nothing.
std::vector<std::string> ReplicaRunner::find_not_finite(std::string_view name, const NamedViews& feeds) {
  if (not replicas_.session().has_entry(plan::kShardStep)) return {};
  const plan::Entry& entry = replicas_.session().entry(name);
  deal_out(entry, feeds);
  for (int local = 0; local < replicas_.local(); ++local) {
    Session& session = replicas_.session(local);
    const Work& work = work_[static_cast<std::size_t>(local)];
    for (std::size_t i = 0; i < work.parts.size(); ++i) {
      if (is_empty(work.parts[i])) continue;
      const NotFiniteReport report = session.find_not_finite(plan::kShardStep, taken_by(session.entry(plan::kShardStep), work.feeds[i]));
      if (report.first_nan or report.first_infinity) return sentences(report);
    }
  }
  return {};
}

std::optional<TrainState> state_of_first(Communicator& processes, const std::optional<TrainState>& own) {
  const std::string text = text_of_first(processes, own ? to_json(*own) : "");
  if (text.empty()) return std::nullopt;
  return state_from_json(text, "the first process");
}

}  // namespace hone
