#include "runtime/collective/call_watch.h"

#include <algorithm>

namespace hone {

using namespace std::chrono_literals;

CallWatch::CallWatch(std::chrono::steady_clock::duration patience, std::function<void()> look, std::function<void()> stuck) {
  thread_ = std::jthread([this, patience, look = std::move(look), stuck = std::move(stuck)](const std::stop_token& stop) {
    const auto interval = std::clamp<std::chrono::steady_clock::duration>(patience / 40, 5ms, 500ms);
    const std::int64_t most = patience / interval;
    std::uint64_t last = 0;
    std::int64_t same = 0;
    for (std::unique_lock lock(mutex_);;) {
      stopped_.wait_for(lock, stop, interval, [] { return false; });
      if (stop.stop_requested()) return;
      look();
      const std::uint64_t turn = turns_.load(std::memory_order_acquire);
      same = turn == last and turn % 2 == 1 ? same + 1 : 0;
      last = turn;
      if (same >= most) return stuck();
    }
  });
}

}  // namespace hone
