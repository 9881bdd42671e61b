// A data set of batches, fed to an entry point of a plan.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/batches.h"
#include "runtime/data/bound_arrays.h"
#include "runtime/pipeline/dataset.h"

namespace hone {

/// How often the rows of a data set are gone through: over several epochs it pays to keep floats in memory of which few differ as bytes (BoundArrays::keep_as_bytes()).
enum class Passes { kOne, kSeveral };

/// Each example is a batch: the first axis of its tensors is the sample. Each is checked as arrays are (BoundArrays): names, types, shapes, lengths, ranges of
/// labels and ids; integers become floats, scaled, where floats are wanted. Where a data set only chooses rows of arrays, orders and batches them, the rows are gathered as BatchReader does it, without an example being made.
class DatasetBatches : public BatchSource {
 public:
  /// `entry` stays alive. `gather`: how rows of arrays are gathered, for which batches have one size, and the data set says which part is wanted. A data set that repeats its rows
  /// makes several passes by itself. Throws kUsage for options.pre_batched, which is for arrays.
  DatasetBatches(const plan::Entry& entry, Dataset batches, BindOptions options, GatherOptions gather = {}, Passes passes = Passes::kOne);

  std::optional<std::int64_t> known_batch_count() const override { return batches_.length(); }
  bool is_endless() const override { return batches_.is_endless(); }
  std::string order() const override { return batches_.order(); }
  std::string data_hash() const override { return gathered_ ? gathered_->reader.data_hash() : ""; }
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0) override;
  /// Makes the first batch of epoch 0, with which it begins once it is begun. False where there is none. Throws what next() throws.
  bool peek();
  /// Throws kUsage before start_epoch(), what BoundArrays throws, naming a row by its number in the epoch, and what the data set's functions throw.
  bool next() override;
  const NamedViews* ahead() override { return gathered_ ? gathered_->reader.ahead() : nullptr; }
  std::int64_t size() const override { return gathered_ ? gathered_->reader.size() : bound_ ? bound_->length() : 0; }
  std::string place_of(std::string_view feed, std::int64_t row) const override { return gathered_ ? gathered_->reader.place_of(feed, row) : ""; }
  /// Liberties that were taken with the last batch, such as another grouping of the axes: one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Is called with each note of the first batch that has any: those of others say the same again.
  void on_note(std::function<void(const std::string&)> say) { say_ = std::move(say); }

 private:
  /// Rows of arrays, and what makes batches of them.
  struct Gathered {
    Gathered(BoundArrays bound, const RowBatches& batches, std::int64_t samples, GatherOptions how);
    BoundArrays data;
    BatchReader reader;
  };
  std::unique_ptr<Gathered> gathered() const;
  void say_notes();
  void feed(std::size_t index, const BoundArrays::Column& column);
  void show(std::size_t index, const std::string& name, const TensorView& view);

  const plan::Entry& entry_;
  Dataset batches_;
  BindOptions options_;
  GatherOptions gather_;
  Passes passes_;
  bool is_begun_ = false;                // an epoch
  bool is_peeked_ = false, is_made_ = false;  // is the first batch there, before its epoch has begun, and before it is asked for?
  std::unique_ptr<Gathered> gathered_;  // null: batches are made of examples
  std::optional<ExampleIterator> examples_;
  std::int64_t skipped_ = 0;    // batches before the first of this epoch
  std::int64_t first_row_ = 0;  // of the next batch, within the epoch
  Example batch_;
  std::optional<BoundArrays> bound_;
  std::vector<std::vector<std::byte>> converted_;  // one a column
  std::vector<std::string> notes_;
  std::function<void(const std::string&)> say_;  // empty when all is said
};

}  // namespace hone
