// Feeds of an entry, and arrays for them, written down.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/bound_arrays.h"

namespace hone::test::feeds {

inline plan::Feed input(const std::string& name, DType dtype, Shape shape) {
  return {name, plan::Feed::Kind::kModelInput, dtype, std::move(shape), std::nullopt, std::nullopt};
}
inline plan::Feed labels(std::int64_t classes) {
  return {"labels", plan::Feed::Kind::kTarget, DType::kI64, {Dim::symbol("N")}, std::pair<std::int64_t, std::int64_t>(0, classes), std::nullopt};
}
inline plan::Entry entry_with(std::vector<plan::Feed> feeds) {
  plan::Entry entry;
  entry.name = "train_step";
  feeds.push_back({"learning_rate", plan::Feed::Kind::kLearningRate, DType::kF64, {}, std::nullopt, std::nullopt});
  entry.feeds = std::move(feeds);
  return entry;
}
inline plan::Entry classifier() { return entry_with({input("image", DType::kF32, {Dim::symbol("N"), 4}), labels(3)}); }

template <typename T>
inline Array array(const std::string& label, std::vector<std::int64_t> shape, std::vector<T> values) {
  return {label, Tensor::of<T>(std::move(shape), std::span<const T>(values))};
}
inline Array counted(const std::string& label, std::vector<std::int64_t> shape) {
  std::vector<float> values(static_cast<std::size_t>(checked_element_count(shape)));
  std::iota(values.begin(), values.end(), 0.0f);
  return array<float>(label, std::move(shape), values);
}
inline BindOptions options(std::map<std::string, double> scale = {}) {
  return {.flag = "--train", .batch_symbol = "N", .pre_batched = false, .scale = std::move(scale)};
}
inline std::vector<std::pair<std::string, Array>> pair_of(Array x, Array y) {
  std::vector<std::pair<std::string, Array>> arrays;
  arrays.emplace_back("x", std::move(x));
  arrays.emplace_back("y", std::move(y));
  return arrays;
}
template <typename T>
std::vector<T> values_of(const TensorView& view) {
  const auto* data = static_cast<const T*>(view.data);
  return {data, data + checked_element_count(view.shape)};
}

}  // namespace hone::test::feeds
