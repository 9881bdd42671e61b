// Memory of the host for tensors: aligned, never initialized, refused early when the machine cannot have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/alignment.h"

namespace hone {

/// Bytes that this process may use at most: the machine's memory, or its control group's limit if that is smaller.
std::uint64_t host_memory_bytes();
/// Bytes of it that nobody uses at the moment, as the system tells.
std::uint64_t available_memory_bytes();
/// The same number in all processes that share this machine's memory, and hardly another machine's.
std::uint64_t machine_number();

/// Owns a block of memory. Contents are undefined at first.
class HostMemory {
 public:
  HostMemory() = default;
  /// `what` names it in the message: "the arena". It begins at a multiple of `alignment`, a power of two. Throws Error kMemory.
  HostMemory(std::size_t bytes, std::string_view what, std::size_t alignment = kTensorAlignment);
  ~HostMemory() { release(); }
  HostMemory(HostMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hone
