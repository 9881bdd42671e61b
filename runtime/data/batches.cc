#include "runtime/data/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/alignment.h"
#include "base/checked.h"
#include "base/text.h"

namespace hone {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kFewestSharedBytes = 32 * 1024;  // less is copied before another thread has begun
/// Up to so large each thread has a batch to itself. A first layer's product is shared out by its results, so that each thread reads all of a batch. Of one for all, half of the lines that a thread reads or writes over would be in another core's
/// cache, and take more time than to gather the whole batch. But all threads go through all rows, so that more threads gain less.
constexpr std::size_t kMostCopiedBytes = 512 * 1024;
constexpr int kMostCopies = 2;
/// Behind each place of a batch. A processor foresees a walk down a column of it and asks for rows behind the last one: of whatever lies there another core would have to take back the lines that it writes. Nobody touches it.
constexpr std::size_t kBetweenPlaces = std::size_t{1} << 20;

/// Another number for each batch that any reader gathers.
std::uint64_t next_version() {
  static constinit std::atomic<std::uint64_t> versions = 0;
  return ++versions;
}

bool reads_files(const BoundArrays& arrays) {
  return std::any_of(arrays.columns().begin(), arrays.columns().end(), [](const BoundArrays::Column& column) { return column.array.is_streamed(); });
}

}  // namespace

BatchReader::BatchReader(const BoundArrays& arrays, std::int64_t batch_size, ShuffleOptions shuffle, GatherOptions how)
    : BatchReader(arrays, batch_size, std::make_unique<SampleOrder>(arrays.length(), arrays.pre_batched() ? ShuffleOptions{.shuffle = false} : shuffle), arrays.length(), std::move(how)) {}

BatchReader::BatchReader(const BoundArrays& arrays, std::int64_t batch_size, std::unique_ptr<Order> order, std::int64_t samples, GatherOptions how)
    : arrays_(arrays), device_(how.device), late_(how.late), part_(arrays.pre_batched() ? nullptr : std::move(how.part)), sample_order_(std::move(order)) {
  const std::int64_t fixed = std::max<std::int64_t>(arrays.fixed_batch(), 1);
  if (arrays.fixed_batch() > 0) batch_size = checked_multiply<std::int64_t>(fixed, how.replicas, "the batch of all replicas");
  sample_count_ = samples / fixed * fixed;  // of the fixed sizes only whole ones can be fed
  batch_size_ = arrays.pre_batched() ? 1 : std::min(batch_size, sample_count_);
  batch_count_ = (sample_count_ + batch_size_ - 1) / batch_size_;
  const bool streamed = reads_files(arrays), ahead = how.ahead == Ahead::kAlways or (how.ahead == Ahead::kIfStreamed and streamed);
  if (not ahead and not streamed) threads_ = how.threads;
  std::size_t shared_bytes = 0;
  for (const BoundArrays::Column& column : arrays.columns())
    if (column.by_sample) shared_bytes += column_bytes(column);
  if (std::ranges::all_of(arrays.columns(), [this](const BoundArrays::Column& column) { return most_copies_of(column) == 1; })) trial_.decide(Trial::Way::kAlone);
  if (threads_ > 1 and shared_bytes >= kFewestSharedBytes) team_ = std::make_unique<Team>(threads_);
  in_use_ = make_slot();
  for (const BoundArrays::Column& column : arrays.columns()) {
    if (arrays.pre_batched() and feeds_.empty() and not column.row_shape.empty()) samples_each_ = column.row_shape[0];
    std::vector<std::int64_t> shape = column.row_shape;
    if (column.by_sample and not arrays.pre_batched()) shape.insert(shape.begin(), batch_size_);
    feeds_.emplace_back(column.feed.name, TensorView(column.feed.dtype, std::move(shape), in_use_.columns[feeds_.size()].data()));
  }
  if (not ahead) return;
  next_ = make_slot();
  gather_ahead_ = std::make_unique<BackgroundJob>([this] {
    const TraceScope scope(track_, "gather batch", next_begin_ / batch_size_);
    gather(next_begin_, next_);
  });
}

void BatchReader::trace(Trace& trace) {
  if (gather_ahead_) track_ = &trace.add_track("training", "data");
}

/// What is the same for every batch is converted here, once.
BatchReader::Slot BatchReader::make_slot() const {
  Slot slot;
  slot.scratch.resize(static_cast<std::size_t>(threads_));
  slot.samples.reserve(static_cast<std::size_t>(batch_size_));
  for (const BoundArrays::Column& column : arrays_.columns()) {
    const std::size_t places = most_copies_of(column) == 1 ? 1 : static_cast<std::size_t>(1 + most_copies_of(column)), bytes = column_bytes(column), apart = distance_of_places(column);
    std::byte* const first = slot.columns.emplace_back(device_, places == 1 ? bytes : places * apart, "a batch").data();
    for (std::size_t i = 0; i < places; ++i) std::memset(first + i * apart, 0, bytes);  // of what is not wanted nothing is read
    if (column.by_sample and not column.converter.only_copies())  // now, because later epochs may need more of it than the first
      for (std::vector<std::byte>& scratch : slot.scratch)
        scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(batch_size_ * most_copies_of(column) / threads_ + 1) * column.array.row_bytes()));
    if (column.by_sample) continue;
    const std::byte* whole = column.array.rows(0, column.array.row_count(), slot.scratch[0]);
    column.converter.convert(whole, slot.columns.back().data(), static_cast<std::size_t>(column.row_elements));
  }
  return slot;
}

std::string BatchReader::order() const {
  const std::string batches = arrays_.pre_batched() ? fmt::format("{} slices", sample_count_) : fmt::format("{} samples in batches of {}", sample_count_, batch_size_);
  return batches + sample_order_->text();
}

std::string BatchReader::data_hash() const { return fmt::format("{:016x}", arrays_.hash()); }

std::string BatchReader::place_of(std::string_view feed, std::int64_t row) const {
  const auto column = std::ranges::find(arrays_.columns(), feed, [](const BoundArrays::Column& each) -> std::string_view { return each.feed.name; });
  if (column == arrays_.columns().end() or not column->by_sample or in_use_.samples.empty()) return "";
  const auto name_of = [&](std::int64_t place, std::string_view word) { return column->array.name_of_row(in_use_.samples[static_cast<std::size_t>(place)], word); };
  const std::string label = printable(column->array.label());
  if (arrays_.pre_batched()) return fmt::format("row {} of {} of {}", row, name_of(0, "batch"), label);
  return row >= in_use_.part.begin and row < in_use_.part.end ? fmt::format("{} of {}", name_of(row, "row"), label) : "";
}

void BatchReader::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  HONE_CHECK(first_batch >= 0, "an epoch that begins before its first batch");
  if (gather_ahead_) gather_ahead_->finish();
  is_ready_ = false;
  is_timed_ = false;
  failure_ = nullptr;
  sample_order_->start_epoch(epoch);
  begin_ = std::min(first_batch, batch_count_) * batch_size_;
  size_ = 0;
  next_begin_ = begin_;
  if (gather_ahead_ and size_at(next_begin_) > 0) gather_ahead_->begin();
}

bool BatchReader::next() {
  begin_ += size_;
  size_ = size_at(begin_);
  if (size_ == 0) return false;
  if (failure_) std::rethrow_exception(failure_);
  if (is_ready_) {
    std::swap(in_use_, *ready_);
    is_ready_ = false;
  } else if (gather_ahead_) {
    gather_ahead_->finish();
    std::swap(in_use_, next_);
    next_begin_ = begin_ + size_;
    if (size_at(next_begin_) > 0) gather_ahead_->begin();
  } else {
    choose_way();
    gather(begin_, in_use_);
    ask_for_small_rows(begin_ + size_);
  }
  show(in_use_, size_, feeds_);
  return true;
}

/// A copy for each thread, or one that they gather together: what is faster depends on whether cores find what the other has written in a cache that they share. It is found by trying both: by
/// what passes from batch to batch, which is mostly the step that takes them.
void BatchReader::choose_way() {
  using Clock = std::chrono::steady_clock;
  if (is_timed_) trial_.add(std::chrono::duration<double>(Clock::now() - began_).count());
  is_timed_ = trial_.wants_time();
  are_apart_ = trial_.next() == Trial::Way::kAlone;
  if (is_timed_) began_ = Clock::now();
}

void BatchReader::show(const Slot& slot, std::int64_t size, NamedViews& feeds) {
  for (std::size_t column = 0; column < slot.columns.size(); ++column) {
    TensorView& view = feeds[column].second;
    view.data = place(slot, column, 0);
    view.version = slot.version;
    view.maker = is_late(arrays_.columns()[column]) ? this : nullptr;
    view.copies = copies_of(arrays_.columns()[column]);
    view.copy_bytes = distance_of_places(arrays_.columns()[column]);
    if (arrays_.columns()[column].by_sample and not arrays_.pre_batched()) view.shape[0] = size;
  }
}

/// Where reading fails, next() tells: until there the batches are good.
const NamedViews* BatchReader::ahead() {
  const std::int64_t begin = begin_ + size_, size = size_at(begin);
  if (not gather_ahead_ or size == 0 or failure_) return nullptr;
  if (is_ready_) return &ahead_;
  try {
    gather_ahead_->finish();
  } catch (...) {
    failure_ = std::current_exception();
    return nullptr;
  }
  if (not ready_) {
    ready_ = make_slot();
    ahead_.assign(feeds_.begin(), feeds_.begin() + static_cast<std::ptrdiff_t>(in_use_.columns.size()));
  }
  std::swap(*ready_, next_);
  is_ready_ = true;
  show(*ready_, size, ahead_);
  next_begin_ = begin + size;
  if (size_at(next_begin_) > 0) gather_ahead_->begin();
  return &ahead_;
}

void BatchReader::gather(std::int64_t begin, Slot& slot) {
  slot.samples.resize(static_cast<std::size_t>(size_at(begin)));
  sample_order_->copy(begin, slot.samples);
  const auto samples = static_cast<std::int64_t>(slot.samples.size());
  slot.part = part_ ? part_(samples) : BatchPart{.begin = 0, .end = samples};
  slot.version = next_version();
  std::size_t bytes = 0;
  for (const BoundArrays::Column& column : arrays_.columns())
    if (column.by_sample and not is_late(column)) bytes += column_bytes(column);
  if (team_ == nullptr or bytes < kFewestSharedBytes) return gather_share(slot, 0, 1);
  const Team::InUse in_use(*team_);
  team_->run([&](const Team::Member& member) {
    const DenormalsKept kept;
    gather_share(slot, member.number(), member.count());
  });
}

/// What one of several threads gathers: its share of each column's rows, and all rows of its copies.
void BatchReader::gather_share(Slot& slot, int member, int members) const {
  const auto [begin, end] = slot.part;
  const BatchPart share = {.begin = begin + (end - begin) * member / members, .end = begin + (end - begin) * (member + 1) / members};
  for (std::size_t index = 0; index < slot.columns.size(); ++index) {
    const BoundArrays::Column& column = arrays_.columns()[index];
    if (not column.by_sample or is_late(column)) continue;
    if (copies_of(column) == 1) gather_rows(index, share, slot, member, 0);
    else gather_copies(index, slot, member, members);
  }
}

/// Each begins with other rows, so that one thread finds in a cache what the other had to wait for.
void BatchReader::gather_copies(std::size_t column, Slot& slot, int member, int members) const {
  const auto [begin, end] = slot.part;
  const int copies = copies_of(arrays_.columns()[column]);
  for (int copy = member; copy < copies; copy += members) {
    const std::int64_t from = begin + (end - begin) * copy / copies;
    gather_rows(column, {from, end}, slot, member, copy);
    gather_rows(column, {begin, from}, slot, member, copy);
  }
}

void BatchReader::make(int member, int members) noexcept {
  const DenormalsKept kept;
  for (std::size_t index = 0; index < in_use_.columns.size(); ++index)
    if (is_late(arrays_.columns()[index])) gather_copies(index, in_use_, member, members);
}

/// Samples that follow each other in an array are taken in one go. Rows that lie in memory are asked for some time before their turn, two kilobytes at a time while others are taken:
/// all of a long row at once would be more lines than a core can wait for.
void BatchReader::gather_rows(std::size_t index, const BatchPart& part, Slot& slot, int member, int copy) const {
  constexpr std::size_t kPiece = 2048, kRowsAhead = 2, kSmallRowsAhead = 16;  // a small one is taken before the next one has come
  const BoundArrays::Column& column = arrays_.columns()[index];
  const std::vector<std::int64_t>& samples = slot.samples;
  const std::size_t from_bytes = column.array.row_bytes(), row_bytes = static_cast<std::size_t>(column.row_elements) * size_of(column.feed.dtype);
  const std::size_t from_element = size_of(column.array.dtype()), element = size_of(column.feed.dtype), ahead = from_bytes <= kLine ? kSmallRowsAhead : kRowsAhead;
  const auto take = [&](const std::byte* from, std::byte* to, std::size_t bytes) {
    if (column.converter.only_copies()) std::memcpy(to, from, bytes);
    else column.converter.convert(from, to, bytes / from_element);
  };
  std::byte* const batch = place(slot, index, copy);
  const auto stop = static_cast<std::size_t>(part.end);
  for (auto at = static_cast<std::size_t>(part.begin), end = at; at < stop; at = end) {
    for (end = at + 1; end < stop and samples[end] == samples[end - 1] + 1;) ++end;
    const auto rows = static_cast<std::int64_t>(end - at);
    const std::size_t bytes = static_cast<std::size_t>(rows) * from_bytes;
    std::byte* const to = batch + at * row_bytes;
    const std::byte* const from = column.array.where_they_lie(samples[at], rows);
    if (from == nullptr) {
      if (column.converter.only_copies()) column.array.read(samples[at], rows, to);
      else take(column.array.rows(samples[at], rows, slot.scratch[static_cast<std::size_t>(member)]), to, bytes);
      continue;
    }
    const std::byte* const expected = end + ahead - 1 < stop ? column.array.where_they_lie(samples[end + ahead - 1], 1) : nullptr;
    std::size_t done = 0;
    for (; expected != nullptr and done + kPiece <= from_bytes; done += kPiece) {
      for (std::size_t line = done; line < done + kPiece; line += kLine) __builtin_prefetch(expected + line);
      take(from + done, to + done / from_element * element, kPiece);
    }
    for (std::size_t line = done; expected != nullptr and line < from_bytes; line += kLine) __builtin_prefetch(expected + line);
    take(from + done, to + done / from_element * element, bytes - done);
  }
}

/// Of the batch that begins there: such a row is taken before it has come, however soon it is asked for while others are taken. Now a step runs meanwhile.
void BatchReader::ask_for_small_rows(std::int64_t begin) const {
  constexpr std::int64_t kMostAsked = 256;  // more would push out of the first level cache what the step reads
  const std::span<const std::int64_t> samples = sample_order_->kept(begin, std::min(size_at(begin), kMostAsked));
  for (const BoundArrays::Column& column : arrays_.columns()) {
    if (not column.by_sample or column.array.row_bytes() > kLine) continue;
    for (const std::int64_t sample : samples) __builtin_prefetch(column.array.where_they_lie(sample, 1));
  }
}

int BatchReader::most_copies_of(const BoundArrays::Column& column) const {
  const std::size_t bytes = column_bytes(column);
  return device_ == nullptr and threads_ <= kMostCopies and column.by_sample and bytes >= kFewestSharedBytes and bytes <= kMostCopiedBytes ? threads_ : 1;
}

std::size_t BatchReader::distance_of_places(const BoundArrays::Column& column) const { return checked_add(column_bytes(column), kBetweenPlaces, "a batch"); }

/// What is for all has a place of its own, so that copies which are tried after it lie where their cores had them.
std::byte* BatchReader::place(const Slot& slot, std::size_t column, int copy) const {
  const BoundArrays::Column& of = arrays_.columns()[column];
  return slot.columns[column].data() + (copies_of(of) == 1 ? 0 : static_cast<std::size_t>(copy + 1) * distance_of_places(of));
}

std::size_t BatchReader::column_bytes(const BoundArrays::Column& column) const {
  const std::int64_t rows = column.by_sample ? batch_size_ : 1;
  const auto bytes = static_cast<std::size_t>(checked_multiply(rows, column.row_elements, "a batch")) * size_of(column.feed.dtype);
  return round_up(bytes, kTensorAlignment, "a batch");
}

}  // namespace hone
