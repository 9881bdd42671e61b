#include "runtime/pipeline/dataset_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/diag.h"

namespace hone {

namespace {

constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 4;  // samples of an epoch without an end

/// As a data set's steps order rows. Many are asked for at a time, the more the longer an epoch is, as SampleOrder makes all of an epoch at once: a step drives what finds them out of the caches.
class StageOrder : public Order {
 public:
  explicit StageOrder(StagePointer rows) : rows_(std::move(rows)) {}

  void start_epoch(std::int64_t epoch) override {
    stream_ = rows_->open_rows(static_cast<std::uint64_t>(epoch));
    known_.clear();
    at_ = 0;
    at_a_time_ = kFewestAtATime;
    begin_ = 0;
  }
  /// As many again are known afterwards. They are not gone back to.
  void copy(std::int64_t begin, std::span<std::int64_t> to) override {
    HONE_CHECK(begin >= begin_, "a data set that goes back");
    const auto passed = std::min<std::int64_t>(begin - begin_, static_cast<std::int64_t>(known_.size() - at_)), skipped = begin - begin_ - passed;
    if (skipped > 0) HONE_CHECK(stream_->skip(skipped) == skipped, kTooShort);
    at_ += static_cast<std::size_t>(passed);
    begin_ = begin;
    if (known_.size() - at_ < 2 * to.size()) know_more(2 * to.size());
    HONE_CHECK(known_.size() - at_ >= to.size(), kTooShort);
    std::copy_n(known_.begin() + static_cast<std::ptrdiff_t>(at_), to.size(), to.begin());
  }
  std::span<const std::int64_t> kept(std::int64_t begin, std::int64_t count) const override {
    const std::int64_t passed = begin - begin_, left = static_cast<std::int64_t>(known_.size() - at_) - passed;
    if (passed < 0 or left <= 0) return {};
    return std::span(known_).subspan(at_ + static_cast<std::size_t>(passed), static_cast<std::size_t>(std::min(count, left)));
  }
 private:
  static constexpr const char* kTooShort = "a data set that ends before its length";
  static constexpr std::size_t kFewestAtATime = 1024, kMostAtATime = 65'536;

  void know_more(std::size_t wanted) {
    known_.erase(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    const std::size_t before = known_.size();
    known_.resize(std::max({before, wanted, at_a_time_}));
    known_.resize(before + stream_->next_many(std::span(known_).subspan(before)));
    at_a_time_ = std::min(2 * at_a_time_, kMostAtATime);
  }

  StagePointer rows_;
  std::unique_ptr<RowStream> stream_;
  std::int64_t begin_ = 0;            // the place of known_[at_]
  std::vector<std::int64_t> known_;  // rows, of which those before at_ have been passed
  std::size_t at_ = 0, at_a_time_ = kFewestAtATime;
};

std::string label_of(const std::string& name) { return name + " of the data set"; }

}  // namespace

DatasetBatches::Gathered::Gathered(BoundArrays bound, const RowBatches& batches, std::int64_t samples, GatherOptions how)
    : data(std::move(bound)), reader(data, batches.size, std::make_unique<StageOrder>(batches.rows), samples, std::move(how)) {}

DatasetBatches::DatasetBatches(const plan::Entry& entry, Dataset batches, BindOptions options, GatherOptions gather, Passes passes)
    : entry_(entry), batches_(std::move(batches)), options_(std::move(options)), gather_(std::move(gather)), passes_(passes) {
  options_.one_batch = true;
  options_.files = false;
  if (options_.pre_batched)
    throw Error(Code::kUsage, "a data set of batches cannot be fed as pre-batched arrays", {}, {"its examples are batches already: leave pre_batched out"});
  gathered_ = gathered();
  if (gathered_) notes_ = gathered_->data.notes();
}

/// Null where batches are made of examples.
std::unique_ptr<DatasetBatches::Gathered> DatasetBatches::gathered() const {
  const std::optional<RowBatches> made = batches_.row_batches();
  if (not made) return nullptr;
  const std::optional<std::int64_t> length = made->rows->length();
  if (not length and not batches_.is_endless()) return nullptr;
  std::int64_t samples = std::min(length.value_or(kEndless), kEndless);
  if (made->drop_remainder or not length) samples -= samples % made->size;
  if (samples == 0) return nullptr;
  NamedArrays arrays = *made->rows->arrays();
  for (auto& [name, array] : arrays) array.relabel(label_of(name));
  std::optional<BoundArrays> bound;
  try {
    bound.emplace(entry_, std::move(arrays), options_);
  } catch (const Error&) { return nullptr; }  // the rows that are wrong may be none that the data set chooses; else it is said of the batch that has them
  if (not std::ranges::all_of(bound->columns(), &BoundArrays::Column::by_sample)) return nullptr;
  if (bound->fixed_batch() > 0 and (bound->fixed_batch() != made->size or samples % made->size != 0)) return nullptr;
  if (passes_ == Passes::kSeveral or samples > bound->length()) bound->keep_as_bytes();
  GatherOptions how = gather_;
  how.part = made->part;
  how.replicas = 1;  // a batch is for all of them
  return std::make_unique<Gathered>(std::move(*bound), *made, samples, std::move(how));
}

bool DatasetBatches::peek() {
  start_epoch(0);
  return is_peeked_ = next();
}

void DatasetBatches::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  is_made_ = std::exchange(is_peeked_, false) and epoch == 0 and first_batch == 0;
  if (is_made_) return;
  if (not gathered_) gathered_ = gathered();  // the epoch before may have filled a cache
  if (gathered_ and epoch >= 0 and first_batch >= 0) {
    gathered_->reader.start_epoch(epoch, first_batch);
    is_begun_ = true;
    return;
  }
  examples_.emplace(batches_.iterate(epoch, first_batch));
  skipped_ = first_batch;
  first_row_ = 0;
  is_begun_ = true;
}

void DatasetBatches::say_notes() {
  if (not say_ or notes_.empty()) return;
  for (const auto say = std::exchange(say_, nullptr); const std::string& note : notes_) say(note);
}

bool DatasetBatches::next() {
  if (not is_begun_) throw Error(Code::kUsage, fmt::format("{}: batches are asked for before an epoch was begun", options_.flag), {}, {"call start_epoch(epoch) before next()"});
  if (std::exchange(is_made_, false)) return true;
  if (gathered_) {
    if (not gathered_->reader.next()) return false;
    say_notes();
    const NamedViews& feeds = gathered_->reader.feeds();
    for (std::size_t i = 0; i < feeds.size(); ++i) show(i, feeds[i].first, feeds[i].second);
    return true;
  }
  if (not examples_->next(&batch_)) return false;
  NamedArrays arrays;
  for (const auto& [name, tensor] : batch_) {
    Array array(label_of(name), tensor);
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
  say_notes();
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
  show(index, column.feed.name, {column.feed.dtype, std::move(shape), data});
}

void DatasetBatches::show(std::size_t index, const std::string& name, const TensorView& view) {
  if (feeds_.size() <= index or feeds_[index].first != name) feeds_.insert(feeds_.begin() + static_cast<std::ptrdiff_t>(index), {name, view});
  else feeds_[index].second = view;
}

}  // namespace hone
