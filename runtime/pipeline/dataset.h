// Dataset: where examples come from and what is done with them, step by step, as in Keras and tf.data.
//
//   Dataset train = Dataset::from_files({"x=images.npy", "y=labels.npy"}).shuffle(1000, 42).map(augment, {.threads = 2}).batch(32).prefetch();
//   for (const Example& batch : train.iterate(epoch)) ...
//
// What an epoch gives is a function of the data, the seeds and the epoch's number alone: not of threads, and not of epochs before. So it can be entered
// anywhere.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/data/order.h"
#include "runtime/pipeline/sources.h"
#include "runtime/pipeline/stage.h"

namespace hone {

struct BatchOptions;  // runtime/pipeline/stages.h

/// One pass over a data set's examples. For one thread at a time; the data set may go before it. Where something was thrown the pass is over: who asks again is told the same.
class ExampleIterator {
 public:
  explicit ExampleIterator(StagePointer stage, std::uint64_t epoch) : stage_(std::move(stage)), stream_(stage_->open(epoch)) {}
  ExampleIterator(ExampleIterator&&) noexcept = default;
  ExampleIterator& operator=(ExampleIterator&& other) noexcept {
    stream_ = std::move(other.stream_);  // first: a stream ends before the stage that it goes through
    stage_ = std::move(other.stage_);
    failure_ = std::move(other.failure_);
    return *this;
  }
  /// The next example; false at the end. Throws what a source throws, and what a function throws with the number of the example.
  bool next(Example* example) {
    return ask([&](ExampleStream& stream) { return stream.next(example); });
  }
  /// Passes over `count` examples, without making them where that can be helped. How many there were: fewer only at the end. Throws kUsage for less than 0.
  std::int64_t skip(std::int64_t count);

  struct End {};
  class Cursor {
   public:
    explicit Cursor(ExampleIterator& examples) : examples_(examples) { ++*this; }
    const Example& operator*() const { return example_; }
    Cursor& operator++() { return more_ = examples_.next(&example_), *this; }
    bool operator!=(End) const { return more_; }

   private:
    ExampleIterator& examples_;
    Example example_;
    bool more_ = false;
  };
  Cursor begin() { return Cursor(*this); }
  End end() const { return {}; }

 private:
  template <typename Question>
  std::invoke_result_t<Question&, ExampleStream&> ask(Question&& question) {
    if (failure_) std::rethrow_exception(failure_);
    if (stream_ == nullptr) refuse_moved();
    try {
      return question(*stream_);
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }
  [[noreturn]] static void refuse_moved();

  StagePointer stage_;
  std::unique_ptr<ExampleStream> stream_;
  std::exception_ptr failure_;
};

/// The tensor of that name. Throws kDataName.
const Tensor& tensor_of(const Example& example, std::string_view name);

struct MapOptions {
  int threads = 1;        ///< 1: the caller's; more: so many of the map's own, which call the function at the same time. Examples keep their order.
  std::int64_t seed = 0;  ///< of a function that takes random words
};

/// A cheap handle: copies share the stages, which never change. A move is a copy, and leaves nothing that must not be used.
class Dataset {
 public:
  Dataset(const Dataset&) = default;
  Dataset& operator=(const Dataset&) = default;

  using Map = std::function<Example(Example)>;
  /// The words are a function of seed, epoch and the example's number.
  using RandomMap = std::function<Example(Example, RandomWords&)>;
  using Filter = std::function<bool(const Example&)>;

  /// Row i of every tensor is example i. Throws kDataLength, kDataName.
  static Dataset from_tensor_slices(NamedTensors tensors);
  /// Row i of every array is example i: NAME=FILE as hone-run takes it (docs/data.md). Larger files are read as they are wanted. Throws what opening them
  /// throws.
  static Dataset from_files(const std::vector<std::string>& named_files);
  /// `start` begins each pass with a function that gives examples until it gives nothing; the same ones each time, if runs are to be repeated.
  static Dataset from_generator(std::function<Generator()> start);
  /// The lines of text files, one file after the other: u8[bytes] called "line". Throws kFileOpen.
  static Dataset from_lines(std::vector<std::string> paths);

  /// Example i has the tensors of example i of each; it ends with the shortest. Throws kUsage for none, kDataName where two tensors have one name.
  static Dataset zip(const std::vector<Dataset>& data);
  /// This one's examples, and then those of `next`.
  Dataset concatenate(const Dataset& next) const;

  Dataset map(Map function, MapOptions options = {}) const;
  Dataset map(RandomMap function, MapOptions options = {}) const;
  /// Leaves the examples for which it says true.
  Dataset filter(Filter function) const;
  /// Draws each next example from `buffer` of them, in another order each epoch.
  Dataset shuffle(std::int64_t buffer, std::int64_t seed = 0) const;
  /// Stacks every `size` examples; each tensor gets a first axis. The last batch may be smaller, or is dropped. Examples of different shapes throw kDataShape.
  Dataset batch(std::int64_t size, bool drop_remainder = false) const;
  /// The same of examples of different shapes: each tensor is filled up at the ends of its axes to the largest one of the batch, with `padding`'s number for its name, or with 0. Throws what batch() throws where they differ
  /// in type or number of axes, kUsage for a number that the type does not hold, kDataName for a name that no tensor has.
  Dataset padded_batch(std::int64_t size, std::map<std::string, double> padding = {}, bool drop_remainder = false) const;
  /// The rows of batches: each tensor without its first axis. Throws kDataLength, kDataShape for tensors that are no batch.
  Dataset unbatch() const;
  /// So many passes in one, each shuffled anew; without a number, or with -1, there is no end.
  Dataset repeat(std::optional<std::int64_t> count = std::nullopt) const;
  /// The first so many, and all but these; -1 stands for all.
  Dataset take(std::int64_t count) const;
  Dataset skip(std::int64_t count) const;
  /// Example i of every `of`: what worker i of several gets.
  Dataset shard(std::int64_t index, std::int64_t of) const;
  /// Keeps the examples of the first whole pass in memory, or in a file, which later runs find again. What lies before is then as it is in epoch 0, in every
  /// epoch: shuffle behind it. Throws kFileWrite, kDataFormat for a file that is no such cache, or one of
  /// a data set with other steps (order()); what functions and files were behind them nobody checks.
  Dataset cache(std::string path = "") const;
  /// Makes up to `examples` before they are asked for, on a thread of its own. Without a number: two, and twice as many (up to 32) whenever they ran out.
  Dataset prefetch(std::optional<std::int64_t> examples = std::nullopt) const;
  /// Goes through `cycle` data sets at a time, `block` examples of each in turn; `open` makes one of each example.
  Dataset interleave(std::function<Dataset(const Example&)> open, std::int64_t cycle, std::int64_t block = 1) const;

  /// The same batches for one of several processes that share them, which makes no others than its own samples, where steps before can pass over them; their rows are zeros (and in what DatasetBatches feeds whatever lies there). All of them where batch() is not the last
  /// step but for prefetch(), or where it is not known how many examples there are.
  Dataset in_parts(const PartOfBatch& part) const;

  /// Examples of an epoch; nothing when that is not known, or when there is no end.
  std::optional<std::int64_t> length() const { return stage_->length(); }
  /// Is there always another one, because of a repeat() without a number? So it is where that may have nothing to repeat, too.
  bool is_endless() const { return stage_->endless() != Endless::kNo; }
  /// What batch() was given, where that is known to be what examples are now; the last batch may be smaller.
  std::optional<std::int64_t> batch_size() const { return batch_size_; }
  /// The steps that an epoch's examples follow from, in words: "60000 rows, shuffle(1000, seed 42), batch(32)". What functions and generators do is not in them.
  const std::string& order() const { return order_; }
  /// How they are made, where they are batches of rows of arrays, which the steps before batch() only choose and order.
  std::optional<RowBatches> row_batches() const { return stage_->row_batches(); }
  /// Goes through an epoch, from example `first` on.
  ExampleIterator iterate(std::int64_t epoch = 0, std::int64_t first = 0) const;

 private:
  Dataset(StagePointer stage, std::string order) : stage_(std::move(stage)), order_(std::move(order)) {}
  static Dataset rows_of(NamedArrays arrays);
  /// This one with another step, or with one that gives the same.
  Dataset then(StagePointer stage, const std::string& step) const;
  Dataset with(StagePointer stage) const;
  Dataset batches(BatchOptions how, const char* step) const;

  StagePointer stage_;
  std::string order_;
  std::optional<std::int64_t> batch_size_;
};

}  // namespace hone
