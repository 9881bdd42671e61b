#include "runtime/pipeline/dataset_batches.h"

#include <fmt/format.h>

#include <utility>

#include "base/diag.h"

namespace hone {

DatasetBatches::DatasetBatches(const plan::Entry& entry, Dataset batches, BindOptions options)
    : entry_(entry), batches_(std::move(batches)), options_(std::move(options)) {
  options_.files = false;
  if (options_.pre_batched)
    throw Error(Code::kUsage, "a data set of batches cannot be fed as pre-batched arrays", {}, {"its examples are batches already: leave pre_batched out"});
}

void DatasetBatches::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  examples_.emplace(batches_.iterate(epoch, first_batch));
  skipped_ = first_batch;
  first_row_ = 0;
}

bool DatasetBatches::next() {
  HONE_CHECK(examples_.has_value(), "batches of an epoch that was not begun");
  if (not examples_->next(&batch_)) return false;
  NamedArrays arrays;
  for (const auto& [name, tensor] : batch_) {
    Array array(name + " of the data set", tensor);
    if (skipped_ > 0) first_row_ = skipped_ * array.row_count();  // only the last batch is smaller
    skipped_ = 0;
    array.number_rows_from(first_row_);
    arrays.emplace_back(name, std::move(array));
  }
  bound_.emplace(entry_, std::move(arrays), options_);
  if (bound_->fixed_batch() > 0 and bound_->length() != bound_->fixed_batch())
    throw Error(Code::kDataLength,
                fmt::format("{}: a batch of {} samples, and the model takes exactly {} at a time", options_.flag, bound_->length(), bound_->fixed_batch()), {},
                {fmt::format("make batches with batch({}, true), which drops what is left over", bound_->fixed_batch())});
  first_row_ += bound_->length();
  notes_ = bound_->notes();
  if (say_ and not notes_.empty())
    for (const auto say = std::exchange(say_, nullptr); const std::string& note : notes_) say(note);
  converted_.resize(bound_->columns().size());
  for (std::size_t i = 0; i < bound_->columns().size(); ++i) feed(i, bound_->columns()[i]);
  return true;
}

void DatasetBatches::feed(std::size_t index, const BoundArrays::Column& column) {
  const std::int64_t rows = column.by_sample ? column.array.row_count() : 1;
  std::vector<std::int64_t> shape = column.row_shape;
  if (column.by_sample) shape.insert(shape.begin(), rows);
  const std::byte* data = column.array.rows(0, column.array.row_count(), converted_[index]);  // a tensor: where it lies
  if (not column.converter.only_copies()) {
    const auto count = static_cast<std::size_t>(column.array.element_count());
    converted_[index].resize(count * size_of(column.feed.dtype));
    column.converter.convert(data, converted_[index].data(), count);
    data = converted_[index].data();
  }
  TensorView view(column.feed.dtype, std::move(shape), data);
  if (feeds_.size() <= index or feeds_[index].first != column.feed.name)
    feeds_.insert(feeds_.begin() + static_cast<std::ptrdiff_t>(index), {column.feed.name, std::move(view)});
  else feeds_[index].second = std::move(view);
}

}  // namespace hone
