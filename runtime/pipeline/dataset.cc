#include "runtime/pipeline/dataset.h"

#include <fmt/format.h>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

constexpr std::int64_t kFewestPrefetched = 2, kMostPrefetched = 32, kMostInCycle = 1 << 16;
constexpr std::int64_t kAll = -1;  // of repeat, take and skip, as in tf.data

void check_at_least(std::int64_t least, std::int64_t number, const char* what) {
  if (number < least) throw Error(Code::kUsage, fmt::format("{} is {}", what, number), {}, {fmt::format("it is {} or more", least)});
}

void check_between(std::int64_t least, std::int64_t most, std::int64_t number, const char* what) {
  if (number < least or number > most) throw Error(Code::kUsage, fmt::format("{} is {}", what, number), {}, {fmt::format("it is {} to {}", least, most)});
}

void check_given(bool given, const char* step) {
  if (not given) throw Error(Code::kUsage, fmt::format("{}: the function is empty", step), {}, {"a std::function that holds nothing cannot be called: give it one"});
}

}  // namespace

std::int64_t ExampleIterator::skip(std::int64_t count) {
  check_at_least(0, count, "skip: the number of examples");
  return ask([&](ExampleStream& stream) { return stream.skip(count); });
}

void ExampleIterator::refuse_moved() { throw Error(Code::kUsage, "examples are asked for of an iterator that was moved from", {}, {"ask the one that it was moved to"}); }

Dataset Dataset::with(StagePointer stage) const {
  Dataset same = *this;
  same.stage_ = std::move(stage);
  return same;
}

Dataset Dataset::then(StagePointer stage, const std::string& step) const {
  Dataset next = with(std::move(stage));
  next.order_ += ", " + step;
  return next;
}

const Tensor& tensor_of(const Example& example, std::string_view name) {
  for (const auto& [own, tensor] : example)
    if (own == name) return tensor;
  throw Error(Code::kDataName, fmt::format("an example has no {}", quoted(name)), {}, {note_of_names(example)});
}

Dataset Dataset::rows_of(NamedArrays arrays) {
  StagePointer stage = rows_stage(std::move(arrays));
  const std::int64_t rows = stage->length().value();  // arrays have one
  return {std::move(stage), fmt::format("{} rows", rows)};
}

Dataset Dataset::from_tensor_slices(NamedTensors tensors) {
  NamedArrays arrays;
  for (auto& [name, tensor] : tensors) arrays.emplace_back(name, Array(name, std::move(tensor)));
  return rows_of(std::move(arrays));
}

Dataset Dataset::from_files(const std::vector<std::string>& named_files) {
  NamedArrays arrays;
  for (const DataSource& source : parse_data("from_files", named_files)) arrays.emplace_back(source.name, Array::open(source));
  return rows_of(std::move(arrays));
}

Dataset Dataset::from_generator(std::function<Generator()> start) {
  check_given(start != nullptr, "from_generator");
  return {generator_stage(std::move(start)), "a generator"};
}

Dataset Dataset::from_lines(std::vector<std::string> paths) {
  const std::size_t files = paths.size();
  return {lines_stage(std::move(paths)), fmt::format("the lines of {} files", files)};
}

Dataset Dataset::map(Map function, MapOptions options) const {
  check_given(function != nullptr, "map");
  check_between(1, limits::kThreads, options.threads, "map: the number of threads");
  const auto call = [function = std::move(function)](Example example, std::int64_t, std::uint64_t) { return function(std::move(example)); };
  return then(map_stage(stage_, call, options.threads), "map");
}

Dataset Dataset::map(RandomMap function, MapOptions options) const {
  check_given(function != nullptr, "map");
  check_between(1, limits::kThreads, options.threads, "map: the number of threads");
  const auto call = [function = std::move(function), seed = static_cast<std::uint64_t>(options.seed)](Example example, std::int64_t number,
                                                                                                      std::uint64_t pass) {
    RandomWords words(RandomWords(seed, pass).next(), static_cast<std::uint64_t>(number));
    return function(std::move(example), words);
  };
  return then(map_stage(stage_, call, options.threads), fmt::format("map(seed {})", options.seed));
}

Dataset Dataset::filter(Filter function) const {
  check_given(function != nullptr, "filter");
  return then(filter_stage(stage_, std::move(function)), "filter");
}

Dataset Dataset::shuffle(std::int64_t buffer, std::int64_t seed) const {
  check_at_least(1, buffer, "shuffle: the buffer");
  return then(shuffle_stage(stage_, buffer, seed), fmt::format("shuffle({}, seed {})", buffer, seed));
}

Dataset Dataset::batch(std::int64_t size, bool drop_remainder) const {
  check_at_least(1, size, "batch: the size");
  return batches({.size = size, .drop_remainder = drop_remainder}, "batch");
}

Dataset Dataset::padded_batch(std::int64_t size, std::map<std::string, double> padding, bool drop_remainder) const {
  check_at_least(1, size, "padded_batch: the size");
  return batches({.size = size, .drop_remainder = drop_remainder, .padding = std::move(padding)}, "padded_batch");
}

Dataset Dataset::batches(BatchOptions how, const char* step) const {
  const std::int64_t size = how.size;
  std::string words = fmt::format("{}({}{})", step, size, how.drop_remainder ? ", whole ones" : "");
  Dataset batches = then(batch_stage(stage_, std::move(how)), words);
  batches.batch_size_ = size;
  return batches;
}

Dataset Dataset::unbatch() const {
  Dataset rows = then(unbatch_stage(stage_), "unbatch");
  rows.batch_size_.reset();
  return rows;
}

Dataset Dataset::zip(const std::vector<Dataset>& data) {
  if (data.empty()) throw Error(Code::kUsage, "zip: no data sets are given", {}, {"give one or more"});
  std::vector<StagePointer> stages;
  std::vector<std::string> orders;
  for (const Dataset& each : data) stages.push_back(each.stage_), orders.push_back(each.order_);
  Dataset zipped(zip_stage(std::move(stages)), fmt::format("zip({})", join(orders, "; ")));
  zipped.batch_size_ = data[0].batch_size_;
  return zipped;
}

Dataset Dataset::concatenate(const Dataset& next) const {
  Dataset both = then(concatenate_stage(stage_, next.stage_), fmt::format("concatenate({})", next.order_));
  if (batch_size_ != next.batch_size_) both.batch_size_.reset();
  return both;
}

Dataset Dataset::repeat(std::optional<std::int64_t> count) const {
  if (count == kAll) count.reset();
  check_at_least(1, count.value_or(1), "repeat: the number of passes");
  return then(repeat_stage(stage_, count), count ? fmt::format("repeat({})", *count) : "repeat()");
}

Dataset Dataset::take(std::int64_t count) const {
  if (count == kAll) return *this;
  check_at_least(0, count, "take: the number of examples");
  return then(slice_stage(stage_, 0, 1, count), fmt::format("take({})", count));
}

Dataset Dataset::skip(std::int64_t count) const {
  if (count == kAll) return take(0);
  check_at_least(0, count, "skip: the number of examples");
  return then(slice_stage(stage_, count, 1, std::nullopt), fmt::format("skip({})", count));
}

Dataset Dataset::shard(std::int64_t index, std::int64_t of) const {
  check_at_least(1, of, "shard: the number of shards");
  if (index < 0 or index >= of) throw Error(Code::kUsage, fmt::format("shard: there is no shard {} of {}", index, of), {}, {"shards count from 0"});
  return then(slice_stage(stage_, index, of, std::nullopt), fmt::format("shard({} of {})", index, of));
}

Dataset Dataset::cache(std::string path) const { return then(path.empty() ? memory_cache_stage(stage_) : file_cache_stage(stage_, std::move(path), order_), "cache"); }

Dataset Dataset::prefetch(std::optional<std::int64_t> examples) const {
  check_at_least(1, examples.value_or(1), "prefetch: the number of examples");
  return with(prefetch_stage(stage_, examples.value_or(kFewestPrefetched), examples.value_or(kMostPrefetched)));
}

Dataset Dataset::in_parts(const PartOfBatch& part) const {
  StagePointer parts = stage_->in_parts(part);
  return parts == nullptr ? *this : with(std::move(parts));
}

Dataset Dataset::interleave(std::function<Dataset(const Example&)> open, std::int64_t cycle, std::int64_t block) const {
  check_given(open != nullptr, "interleave");
  check_between(1, kMostInCycle, cycle, "interleave: the number of data sets in a cycle");
  check_at_least(1, block, "interleave: the length of a block");
  Dataset opened = then(interleave_stage(
                            stage_, [open = std::move(open)](const Example& example) { return open(example).stage_; }, cycle, block),
                        fmt::format("interleave({}, {})", cycle, block));
  opened.batch_size_.reset();
  return opened;
}

ExampleIterator Dataset::iterate(std::int64_t epoch, std::int64_t first) const {
  check_at_least(0, epoch, "iterate: the epoch");
  check_at_least(0, first, "iterate: the first example");
  ExampleIterator examples(stage_, static_cast<std::uint64_t>(epoch));
  if (first > 0) examples.skip(first);
  return examples;
}

}  // namespace hone
