// Examples made before they are asked for, by a thread of the stream's own.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/pipeline/stages.h"

namespace hone {

namespace {

class PrefetchStream : public ExampleStream {
 public:
  PrefetchStream(std::unique_ptr<ExampleStream> from, std::size_t examples, std::size_t most_examples)
      : from_(std::move(from)), room_(examples), most_room_(most_examples) {}
  ~PrefetchStream() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  bool next(Example* example) override {
    if (not thread_.joinable()) thread_ = std::thread([this] { work(); });
    std::unique_lock lock(mutex_);
    if (any_given_ and ready_.empty() and not ended_) room_ = std::min(2 * room_, most_room_);
    changed_.wait(lock, [this] { return not ready_.empty() or ended_; });
    if (ready_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return false;
    }
    *example = std::move(ready_.front());
    ready_.pop_front();
    any_given_ = true;
    lock.unlock();
    changed_.notify_all();
    return true;
  }

  std::int64_t skip(std::int64_t count) override { return thread_.joinable() ? ExampleStream::skip(count) : from_->skip(count); }

 private:
  void work() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopped_ or ready_.size() < room_; });
        if (stopped_) return;
      }
      Example example;
      bool more = false;
      std::exception_ptr failure;
      try {
        more = from_->next(&example);
      } catch (...) { failure = std::current_exception(); }
      {
        const std::lock_guard lock(mutex_);
        if (more) ready_.push_back(std::move(example));
        failure_ = failure;
        ended_ = not more;
      }
      changed_.notify_all();
      if (not more) return;
    }
  }

  std::unique_ptr<ExampleStream> from_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Example> ready_;
  std::size_t room_, most_room_;
  std::exception_ptr failure_;
  bool ended_ = false, stopped_ = false, any_given_ = false;
  std::thread thread_;
};

class PrefetchStage : public Stage {
 public:
  PrefetchStage(StagePointer from, std::size_t examples, std::size_t most_examples) : from_(std::move(from)), examples_(examples), most_examples_(most_examples) {}
  std::unique_ptr<ExampleStream> open(std::uint64_t pass) const override {
    return std::make_unique<PrefetchStream>(from_->open(pass), examples_, most_examples_);
  }
  std::optional<std::int64_t> length() const override { return from_->length(); }
  Endless endless() const override { return from_->endless(); }
  std::optional<RowBatches> row_batches() const override { return from_->row_batches(); }
  StagePointer in_parts(const PartOfBatch& part) const override {
    const StagePointer parts = from_->in_parts(part);
    return parts == nullptr ? nullptr : std::make_shared<PrefetchStage>(parts, examples_, most_examples_);
  }

 private:
  StagePointer from_;
  std::size_t examples_, most_examples_;
};

}  // namespace

StagePointer prefetch_stage(StagePointer from, std::int64_t examples, std::int64_t most_examples) {
  return std::make_shared<PrefetchStage>(std::move(from), static_cast<std::size_t>(examples), static_cast<std::size_t>(most_examples));
}

}  // namespace hone
