// HostFunction: a plain C++ function over whole tensors, which a HostStep of a plan names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace hone {

struct HostTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  void* data = nullptr;  ///< row-major. Of an operand: read only; null where an optional one is absent. Of a result: null where nobody reads it

  std::int64_t element_count() const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;  // checked when the memory was made
    return count;
  }
  template <typename T>
  std::span<T> elements() const {
    return {static_cast<T*>(data), static_cast<std::size_t>(element_count())};
  }
};

/// The node's attributes; numbers and flags are lists of one.
class HostAttributes {
 public:
  using Lists = std::map<std::string, std::vector<std::int64_t>, std::less<>>;
  HostAttributes() = default;
  explicit HostAttributes(Lists lists) : lists_(std::move(lists)) {}

  /// 0 if absent, as everywhere in the graph.
  std::int64_t integer(std::string_view name) const {
    const auto found = lists_.find(name);
    return found == lists_.end() or found->second.empty() ? 0 : found->second.front();
  }
  bool flag(std::string_view name) const { return integer(name) != 0; }
  std::span<const std::int64_t> integers(std::string_view name) const {
    const auto found = lists_.find(name);
    return found == lists_.end() ? std::span<const std::int64_t>() : found->second;
  }

 private:
  Lists lists_;
};

/// Memory for a function's work. Its caller keeps it, so that only the first call for some sizes allocates.
class HostScratch {
 public:
  /// So many elements, which hold anything; apart from all that was taken since clear().
  template <typename T>
  std::span<T> take(std::size_t count) {
    if (taken_ == blocks_.size()) blocks_.emplace_back();
    std::vector<std::byte>& block = blocks_[taken_++];
    if (block.size() < count * sizeof(T)) block = std::vector<std::byte>(count * sizeof(T));  // aligned for any element
    return {reinterpret_cast<T*>(block.data()), count};
  }
  void clear() { taken_ = 0; }

 private:
  std::vector<std::vector<std::byte>> blocks_;  // each stays where it is
  std::size_t taken_ = 0;
};

struct HostFunction {
  std::string_view name;
  std::string_view doc;
  /// Writes all elements of all `results`. What it needs of memory is taken from `scratch`. Runs on one thread.
  void (*run)(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch);

  /// run(), with all of `scratch`.
  void call(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch& scratch) const {
    scratch.clear();
    run(attributes, operands, results, scratch);
  }
};

/// Null if there is none.
const HostFunction* find_host_function(std::string_view name);

}  // namespace hone
