// map and filter. A map on several threads hands out its examples in the order in which they came.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

constexpr std::size_t kExamplesPerThread = 2;  // under way at the same time

class MapStream : public ExampleStream {
 public:
  MapStream(std::unique_ptr<ExampleStream> from, const ExampleFunction& function, std::uint64_t pass)
      : from_(std::move(from)), function_(function), pass_(pass) {}
  bool next(Example* example) override {
    if (not from_->next(example)) return false;
    *example = for_example("map", number_, [&] { return with_own_names(function_(std::move(*example), number_, pass_)); });
    ++number_;
    return true;
  }
  std::int64_t skip(std::int64_t count) override {
    const std::int64_t done = from_->skip(count);
    number_ += done;
    return done;
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  const ExampleFunction& function_;
  std::uint64_t pass_;
  std::int64_t number_ = 0;
};

/// Threads take examples from the stream before, one at a time, and put what becomes of them into a ring, each at its number's place.
class ParallelMapStream : public ExampleStream {
 public:
  ParallelMapStream(std::unique_ptr<ExampleStream> from, const ExampleFunction& function, std::uint64_t pass, int threads)
      : from_(std::move(from)), function_(function), pass_(pass), thread_count_(static_cast<std::size_t>(threads)), ring_(kExamplesPerThread * thread_count_) {}
  ~ParallelMapStream() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  bool next(Example* example) override {
    while (threads_.size() < thread_count_) threads_.emplace_back([this] { work(); });
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(given_);
    changed_.wait(lock, [&] { return slot.state != Slot::kEmpty; });
    if (slot.state == Slot::kEnd) return false;
    if (slot.failure) std::rethrow_exception(slot.failure);  // and again, if it is asked again
    *example = std::move(slot.example);
    slot = {};
    ++given_;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  std::int64_t skip(std::int64_t count) override {
    if (not threads_.empty()) return ExampleStream::skip(count);
    const std::int64_t done = from_->skip(count);
    given_ += done;
    taken_ += done;
    return done;
  }

 private:
  struct Slot {
    enum { kEmpty, kDone, kEnd } state = kEmpty;
    Example example;
    std::exception_ptr failure;
  };
  Slot& slot_of(std::int64_t number) { return ring_[static_cast<std::size_t>(number) % ring_.size()]; }

  void work() {
    std::int64_t number = 0;
    Slot made;
    while (take(&number, &made)) {
      if (not made.failure) make(number, &made);
      put(number, std::move(made));
      made = {};
    }
  }

  /// The next example of the stream before and its number; false when there is nothing left to do.
  bool take(std::int64_t* number, Slot* slot) {
    const std::lock_guard one_at_a_time(taking_);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ended_ or taken_ < given_ + static_cast<std::int64_t>(ring_.size()); });
      if (ended_) return false;
      *number = taken_++;
    }
    bool more = false;
    try {
      more = from_->next(&slot->example);
    } catch (...) { slot->failure = std::current_exception(); }
    if (more) return true;
    slot->state = slot->failure ? Slot::kDone : Slot::kEnd;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      slot_of(*number) = std::move(*slot);
    }
    changed_.notify_all();
    return false;
  }

  void make(std::int64_t number, Slot* slot) const {
    try {
      slot->example = for_example("map", number, [&] { return with_own_names(function_(std::move(slot->example), number, pass_)); });
    } catch (...) { slot->failure = std::current_exception(); }
  }

  void put(std::int64_t number, Slot made) {
    made.state = Slot::kDone;
    {
      const std::lock_guard lock(mutex_);
      slot_of(number) = std::move(made);
    }
    changed_.notify_all();
  }

  std::unique_ptr<ExampleStream> from_;
  const ExampleFunction& function_;
  std::uint64_t pass_;
  std::size_t thread_count_;
  std::mutex taking_, mutex_;  // the second guards what follows
  std::condition_variable changed_;
  std::vector<Slot> ring_;
  std::int64_t taken_ = 0, given_ = 0;
  bool ended_ = false;  // nothing more is taken
  std::vector<std::thread> threads_;
};

class MapStage : public Stage {
 public:
  MapStage(StagePointer from, ExampleFunction function, int threads) : from_(std::move(from)), function_(std::move(function)), threads_(threads) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override {
    if (threads_ == 1) return std::make_unique<MapStream>(from_->open(pass), function_, pass);
    return std::make_unique<ParallelMapStream>(from_->open(pass), function_, pass, threads_);
  }
  std::optional<std::int64_t> length() const override { return from_->length(); }
  Endless endless() const override { return from_->endless(); }

 private:
  StagePointer from_;
  ExampleFunction function_;
  int threads_;
};

class FilterStream : public ExampleStream {
 public:
  FilterStream(std::unique_ptr<ExampleStream> from, const std::function<bool(const Example&)>& function) : from_(std::move(from)), function_(function) {}
  bool next(Example* example) override {
    for (bool wanted = false; not wanted; ++number_) {
      if (not from_->next(example)) return false;
      wanted = for_example("filter", number_, [&] { return function_(*example); });
    }
    return true;
  }

 private:
  std::unique_ptr<ExampleStream> from_;
  const std::function<bool(const Example&)>& function_;
  std::int64_t number_ = 0;
};

class FilterStage : public Stage {
 public:
  FilterStage(StagePointer from, std::function<bool(const Example&)> function) : from_(std::move(from)), function_(std::move(function)) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override { return std::make_unique<FilterStream>(from_->open(pass), function_); }
  std::optional<std::int64_t> length() const override { return std::nullopt; }
  Endless endless() const override { return std::min(from_->endless(), Endless::kUnlessEmpty); }

 private:
  StagePointer from_;
  std::function<bool(const Example&)> function_;
};

}  // namespace

StagePointer map_stage(StagePointer from, ExampleFunction function, int threads) {
  return std::make_shared<MapStage>(std::move(from), std::move(function), threads);
}

StagePointer filter_stage(StagePointer from, std::function<bool(const Example&)> function) {
  return std::make_shared<FilterStage>(std::move(from), std::move(function));
}

}  // namespace hone
