// OrderCheck: finds accesses to memory that nothing orders, by vector clocks. Of each stream and of the host it is known how much of every other one they have waited for; each access to
// memory is held against the last ones. (L. Lamport, 1978; C. Fidge, 1988; as in FastTrack, C. Flanagan, S. Freund, 2009.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hone {

class OrderCheck {
 public:
  using Thread = std::uint32_t;  ///< a stream, or the host
  static constexpr Thread kHost = 0;

  Thread add_stream();
  std::uint32_t add_event();

  /// The event stands for all that the stream has done.
  void record(std::uint32_t event, Thread stream);
  /// The stream, or the host, goes on after what the event stands for. Throws InternalError if it was never recorded.
  void wait(Thread stream, std::uint32_t event);
  /// The host has waited for the stream.
  void synchronize(Thread stream);
  /// Has the host waited for all that the event stands for? False for one that was never recorded.
  bool has_come(std::uint32_t event) const;

  /// Begins a piece of work in the stream, which comes after what the host has done. `what` names it in messages.
  void begin(Thread stream, std::string what);
  /// An access of the piece of work that was begun last. Throws InternalError if it and an earlier one of another stream could come in either order, one of them a write; or if the memory is not
  /// allocated.
  void read(const std::byte* memory, std::size_t bytes) { access(memory, bytes, false); }
  void write(const std::byte* memory, std::size_t bytes) { access(memory, bytes, true); }

  void allocate(const std::byte* memory, std::size_t bytes);
  /// Throws InternalError for memory that is not allocated, or that is used by something that the host has not waited for.
  void release(const std::byte* memory);

 private:
  using Clock = std::vector<std::uint64_t>;  // by thread
  struct Access {
    Thread thread = kHost;
    std::uint64_t time = 0;  ///< 0: none
    std::string what;
  };
  /// Accesses to neighbouring bytes that have the same story.
  struct Range {
    std::uintptr_t end = 0;
    Access last_write;
    std::vector<Access> reads;  ///< since then, the last of each thread
  };

  void access(const std::byte* memory, std::size_t bytes, bool writes);
  bool came_before(const Access& earlier, Thread thread) const;
  void split(std::uintptr_t at);
  [[noreturn]] void unordered(const Access& earlier, bool earlier_writes, bool writes) const;

  std::vector<Clock> clocks_ = {{1}};
  std::vector<Clock> events_;
  Thread now_ = kHost;
  std::string what_;
  std::map<std::uintptr_t, std::size_t> allocated_;
  std::map<std::uintptr_t, Range> ranges_;  // by begin; of what is allocated, without gaps
};

}  // namespace hone
