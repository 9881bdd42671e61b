// Batches of arrays, gathered into memory that is used again and again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/data/background.h"
#include "runtime/data/batch_source.h"
#include "runtime/data/bound_arrays.h"
#include "runtime/data/order.h"
#include "runtime/device/pinned_memory.h"
#include "runtime/device/team.h"
#include "runtime/trace.h"
#include "runtime/trial.h"

namespace hone {

/// Whether the next batch is gathered by a thread of its own while this one is in use. The batches are the same either way.
enum class Ahead {
  kIfStreamed,  ///< where files are read as they are wanted; what lies in memory is gathered faster than two threads agree
  kAlways,
  kNever
};

struct GatherOptions {
  Ahead ahead = Ahead::kIfStreamed;
  int replicas = 1;  ///< that share a batch: of a batch size that the model has fixed, each gets one
  Device* device = nullptr;  ///< that will be fed the batches, and outlives the reader: they are gathered in memory which it copies while it computes (Session::feed_ahead)
  bool late = false;  ///< what each thread has a copy of is gathered by the session that takes it, as its run begins (TensorView::maker); nobody else may look at it before
  int threads = 1;  ///< that gather a batch together, the caller's among them; those of the session that takes it: they are there anyway, and it lies where they work on it, or each has a copy (TensorView::copies)
  std::function<BatchPart(std::int64_t samples)> part = {};  ///< what is wanted of a batch of so many samples, if not all: the rest of it is not read, and feeds are as large, with anything there. Slices of pre-batched data are read whole
};

/// Goes through arrays in the order of an epoch, batch after batch; the last one may be smaller. Pre-batched data are fed slice by slice, in order.
/// Nothing is allocated after the first epoch has begun (pre-batched or not), but for what an order of the caller's needs.
class BatchReader : public BatchSource, private FeedMaker {
 public:
  /// `arrays` stay alive. `batch_size` is overruled by a batch size that the model has fixed; then samples that do not fill a last one are left out.
  BatchReader(const BoundArrays& arrays, std::int64_t batch_size, ShuffleOptions shuffle, GatherOptions gather = {});
  /// The same in an order of the caller's, of which an epoch visits the first `samples` places; not pre-batched.
  BatchReader(const BoundArrays& arrays, std::int64_t batch_size, std::unique_ptr<Order> order, std::int64_t samples, GatherOptions gather = {});

  std::int64_t batch_count() const { return batch_count_; }
  std::optional<std::int64_t> known_batch_count() const override { return batch_count_; }
  std::string order() const override;
  std::string data_hash() const override;
  /// Samples that an epoch visits (batches, when pre-batched).
  std::int64_t sample_count() const { return sample_count_; }

  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0) override;
  bool next() override;
  const NamedViews* ahead() override;
  std::int64_t size() const override { return size_ * samples_each_; }
  std::string place_of(std::string_view feed, std::int64_t row) const override;
  /// Which rows of the arrays the last next() gathered.
  std::span<const std::int64_t> samples() const { return in_use_.samples; }
  /// Puts what the thread that gathers ahead does on a track of `trace`, if there is such a thread; before the first epoch begins. The trace outlives the reader.
  void trace(Trace& trace);

 private:
  static constexpr std::int64_t kBatchesBeforeTrial = 100;     // meanwhile kernels find out whether threads pay
  static constexpr std::int64_t kBatchesBetweenTrials = 1000;  // a virtual machine's cores have a cache in common for some seconds or minutes, and then not

  /// Memory for one batch.
  struct Slot {
    std::vector<PinnedMemory> columns;  // each with its copies, behind the place that is for all
    std::vector<std::int64_t> samples;  // which they are
    BatchPart part;                     // those that are wanted
    std::uint64_t version = 0;          // of what lies there
    std::vector<std::vector<std::byte>> scratch;  // for each thread: rows before they are converted, where they do not lie in memory
  };

  Slot make_slot() const;
  /// Samples of the batch that begins there; 0 at the end.
  std::int64_t size_at(std::int64_t begin) const { return std::max<std::int64_t>(0, std::min(batch_size_, sample_count_ - begin)); }
  void gather(std::int64_t begin, Slot& slot);
  void show(const Slot& slot, std::int64_t size, NamedViews& feeds);
  void make(int member, int members) noexcept override;
  void gather_share(Slot& slot, int member, int members) const;
  void gather_copies(std::size_t column, Slot& slot, int member, int members) const;
  bool is_late(const BoundArrays::Column& column) const { return late_ and copies_of(column) > 1 and not column.feed.bounds; }
  void choose_way();
  void ask_for_small_rows(std::int64_t begin) const;
  void gather_rows(std::size_t column, const BatchPart& part, Slot& slot, int member, int copy) const;
  int most_copies_of(const BoundArrays::Column& column) const;
  int copies_of(const BoundArrays::Column& column) const { return are_apart_ ? most_copies_of(column) : 1; }
  std::size_t column_bytes(const BoundArrays::Column& column) const;
  std::size_t distance_of_places(const BoundArrays::Column& column) const;
  std::byte* place(const Slot& slot, std::size_t column, int copy) const;

  const BoundArrays& arrays_;
  Device* const device_;
  const bool late_;
  std::int64_t batch_size_ = 1;
  std::int64_t batch_count_ = 0;
  std::int64_t sample_count_ = 0;
  std::int64_t samples_each_ = 1;
  std::function<BatchPart(std::int64_t)> part_;  // null: all
  std::unique_ptr<Order> sample_order_;
  std::int64_t begin_ = 0, size_ = 0;
  Slot in_use_, next_;
  std::optional<Slot> ready_;                    // where a device takes what follows on in_use_ meanwhile, while next_ is gathered
  bool is_ready_ = false;                        // does it hold that?
  NamedViews ahead_;                             // what it holds
  std::exception_ptr failure_;                   // of gathering it
  int threads_ = 1;                              // that gather, and take, batches
  std::unique_ptr<Team> team_;                   // null: whoever gathers does it alone
  bool are_apart_ = true;                        // are columns that can be gathered in copies so now?
  Trial trial_{kBatchesBeforeTrial, kBatchesBetweenTrials};  // of copies against one for all
  bool is_timed_ = false;                        // is the batch in use timed, since
  std::chrono::steady_clock::time_point began_;
  std::int64_t next_begin_ = 0;                  // of what is gathered into next_
  TraceTrack* track_ = nullptr;                  // of the thread that gathers ahead
  std::unique_ptr<BackgroundJob> gather_ahead_;  // null: each batch is gathered when it is asked for
};

}  // namespace hone
