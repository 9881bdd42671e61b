#include "runtime/exchanges.h"

#include "base/diag.h"

namespace hone {

Exchanges::Exchanges(Communicator* communicator) : communicator_(communicator) {
  if (communicator != nullptr and communicator->mostly_waits()) thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Exchanges::~Exchanges() { abandon(); }

void Exchanges::run(const BoundExchange& exchange) {
  const TraceScope scope(track_, "exchange bucket", exchange.bucket);
  try {
    using Operation = plan::AllReduceStep::Operation;
    switch (exchange.operation) {
      case Operation::kAllReduce: communicator_->all_reduce(exchange.tensors); break;
      case Operation::kReduceScatter: communicator_->reduce_scatter(exchange.tensors); break;
      case Operation::kAllGather: communicator_->all_gather(exchange.tensors); break;
    }
  } catch (const Error& error) { throw with_note(error, exchange.name); }
}

void Exchanges::begin(const BoundExchange& exchange) {
  if (communicator_ == nullptr) return;
  if (not thread_.joinable()) return run(exchange);
  {
    const std::lock_guard lock(mutex_);
    begun_.push_back(&exchange);
  }
  changed_.notify_all();
}

void Exchanges::end(std::size_t count) {
  if (not thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= count; });
  if (failure_) std::rethrow_exception(failure_);
}

void Exchanges::end_all() {
  if (not thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ == begun_.size(); });
  if (failure_) std::rethrow_exception(failure_);
  forget();
}

void Exchanges::end_begun() {
  if (not thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ == begun_.size(); });
  if (failure_) std::rethrow_exception(failure_);
}

void Exchanges::abandon() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ == begun_.size(); });
  forget();
  failure_ = nullptr;
}

/// All have ended; under the lock, as the thread may wake at any time.
void Exchanges::forget() {
  begun_.clear();
  ended_ = 0;
}

void Exchanges::work(const std::stop_token& stop) {
  for (std::unique_lock lock(mutex_); changed_.wait(lock, stop, [this] { return ended_ < begun_.size(); });) {
    const BoundExchange& exchange = *begun_[ended_];
    const bool is_tried = failure_ == nullptr;
    std::exception_ptr failure;
    lock.unlock();
    try {
      if (is_tried) run(exchange);
    } catch (...) { failure = std::current_exception(); }
    lock.lock();
    if (failure) failure_ = failure;
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace hone
