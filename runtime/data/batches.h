// Batches of a data set, gathered into memory that is used again and again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/bound_arrays.h"
#include "runtime/data/order.h"
#include "runtime/session.h"

namespace hone {

using NamedViews = std::vector<std::pair<std::string, TensorView>>;

/// Goes through a data set in the order of an epoch, batch after batch; the last one may be smaller. Pre-batched data are fed slice by slice, in order.
/// Nothing is allocated after the first epoch has begun (pre-batched or not).
class BatchReader {
 public:
  /// `dataset` stays alive. `batch_size` is overruled by a batch size that the model has fixed; then a last smaller batch is left out.
  BatchReader(const BoundArrays& dataset, std::int64_t batch_size, ShuffleOptions shuffle);

  std::int64_t batch_count() const { return batch_count_; }
  /// Samples that an epoch visits (batches, when pre-batched).
  std::int64_t sample_count() const { return sample_count_; }

  /// Adds a feed that is the same for every batch, such as the learning rate: the caller's memory, which may change between batches.
  void add_feed(const std::string& name, TensorView view) { feeds_.emplace_back(name, std::move(view)); }

  /// The first batch that next() gives is number `first_batch` of the epoch: a run that was stopped goes on there.
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0);
  /// Gathers the next batch; false at the end of the epoch.
  bool next();
  /// What the last next() gathered, by feed name; valid until the following one.
  const NamedViews& feeds() const { return feeds_; }
  /// Its number of samples; when pre-batched the slice's first extent.
  std::int64_t size() const { return size_ * samples_each_; }
  /// Which rows of the data set they are.
  std::span<const std::int64_t> samples() const { return order_.subspan(static_cast<std::size_t>(begin_), static_cast<std::size_t>(size_)); }

 private:
  void gather(std::size_t column);

  const BoundArrays& dataset_;
  std::int64_t batch_size_ = 1;
  std::int64_t batch_count_ = 0;
  std::int64_t sample_count_ = 0;
  std::int64_t samples_each_ = 1;
  SampleOrder sample_order_;
  std::span<const std::int64_t> order_;
  std::int64_t begin_ = 0, size_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> buffers_;  // one a column
  NamedViews feeds_;                                   // the columns first, in their order
};

}  // namespace hone
