// A short list of fixed capacity that can stand in a constinit table.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

namespace hone {

template <typename T, std::size_t kCapacity>
class FixedList {
 public:
  constexpr FixedList() = default;
  constexpr FixedList(std::initializer_list<T> items) {
    for (const T& item : items) items_.at(size_++) = item;
  }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](std::size_t i) const { return items_.at(i); }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }

 private:
  std::array<T, kCapacity> items_{};
  std::size_t size_ = 0;
};

}  // namespace hone
