#include "runtime/data/batches.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/checked.h"

namespace hone {

namespace {

constexpr std::size_t kAlignment = 64;

/// Whole batches and what is left over, as far as it is fed.
std::int64_t batches_in(std::int64_t samples, std::int64_t batch_size, bool whole_only) {
  return samples / batch_size + (not whole_only and samples % batch_size != 0 ? 1 : 0);
}

/// A multiple of the alignment inside a buffer that is that much larger.
std::byte* aligned(std::byte* start) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  return start + (kAlignment - address % kAlignment) % kAlignment;
}

}  // namespace

BatchReader::BatchReader(const BoundArrays& dataset, std::int64_t batch_size, ShuffleOptions shuffle)
    : dataset_(dataset), sample_order_(dataset.length(), dataset.pre_batched() ? ShuffleOptions{.shuffle = false} : shuffle) {
  const bool fixed = dataset.fixed_batch() > 0;
  batch_size_ = dataset.pre_batched() ? 1 : fixed ? dataset.fixed_batch() : std::min(batch_size, dataset.length());
  batch_count_ = batches_in(dataset.length(), batch_size_, fixed);
  sample_count_ = std::min(dataset.length(), batch_count_ * batch_size_);
  for (const BoundArrays::Column& column : dataset.columns()) {
    if (dataset.pre_batched() and feeds_.empty() and not column.row_shape.empty()) samples_each_ = column.row_shape[0];
    const bool stacked = column.by_sample and not dataset.pre_batched();
    const std::int64_t rows = stacked ? batch_size_ : 1;
    const auto bytes = static_cast<std::size_t>(checked_multiply(rows, column.row_elements, "a batch")) * size_of(column.feed.dtype);
    buffers_.push_back(std::make_unique<std::byte[]>(bytes + kAlignment));
    std::vector<std::int64_t> shape = column.row_shape;
    if (stacked) shape.insert(shape.begin(), rows);
    feeds_.emplace_back(column.feed.name, TensorView(column.feed.dtype, std::move(shape), aligned(buffers_.back().get())));
    if (not column.by_sample) column.converter.convert(column.array.data(), aligned(buffers_.back().get()), static_cast<std::size_t>(column.row_elements));
  }
}

void BatchReader::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  HONE_CHECK(first_batch >= 0 and first_batch <= batch_count_, "an epoch has no such batch");
  order_ = sample_order_.start_epoch(epoch);
  begin_ = std::min(first_batch * batch_size_, sample_count_);
  size_ = 0;
}

bool BatchReader::next() {
  begin_ += size_;
  size_ = std::min(batch_size_, sample_count_ - begin_);
  if (size_ <= 0) {
    size_ = 0;
    return false;
  }
  for (std::size_t column = 0; column < buffers_.size(); ++column)
    if (dataset_.columns()[column].by_sample) gather(column);
  return true;
}

void BatchReader::gather(std::size_t index) {
  const BoundArrays::Column& column = dataset_.columns()[index];
  const std::size_t elements = static_cast<std::size_t>(column.row_elements);
  const std::size_t from_bytes = elements * size_of(column.array.dtype());
  const std::size_t to_bytes = elements * size_of(column.feed.dtype);
  std::byte* to = aligned(buffers_[index].get());
  for (const std::int64_t sample : samples()) {
    column.converter.convert(column.array.data() + static_cast<std::size_t>(sample) * from_bytes, to, elements);
    to += to_bytes;
  }
  if (not dataset_.pre_batched()) feeds_[index].second.shape[0] = size_;
}

}  // namespace hone
