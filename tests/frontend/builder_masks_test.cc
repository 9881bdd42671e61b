// Padded steps and positions: what a mask leaves out might as well not be there.
#include <functional>
#include <optional>

#include "tests/frontend/built_model.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using nn::Value;

constexpr std::int64_t kSteps = 5, kKept = 3, kIn = 2, kUnits = 4;

/// Two samples: the first has kKept steps, and then numbers that nobody may look at; the second has all.
Tensor padded() {
  const Tensor x = wavy({2, kSteps, kIn});
  Numbers values = values_of(x);
  for (std::size_t i = kKept * kIn; i < kSteps * kIn; ++i) values[i] = 77;
  std::vector<float> floats(values.begin(), values.end());
  return Tensor::of<float>({2, kSteps, kIn}, std::span<const float>(floats));
}

Tensor ids() { return i64({2, kSteps}, {1, 5, 2, 0, 0, 3, 1, 4, 1, 5}); }

/// Rows [first, first + count) of the numbers of sample `sample`, `width` each.
Numbers rows(const Tensor& y, std::size_t sample, std::size_t first, std::size_t count, std::size_t width) {
  const Numbers all = values_of(y);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>((sample * (all.size() / 2)) + first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

using LayerOf = std::function<Value(Value x, std::optional<Value> mask)>;

/// What `layer` makes of the padded samples with the mask of `ids`, and of the first one cut to its steps, without a mask, by the same weights.
std::pair<Tensor, Tensor> padded_and_cut(const LayerOf& layer) {
  nn::Model masked("masked"), cut("cut");
  const Value of_ids = masked.input("ids", {kSteps}, DType::kI64);
  masked.output("y", layer(masked.input("x", {kSteps, kIn}), nn::not_equal(of_ids, 0)));
  cut.output("y", layer(cut.input("x", {kKept, kIn}), std::nullopt));
  const Numbers all = values_of(padded());
  const std::vector<float> kept(all.begin(), all.begin() + kKept * kIn);
  const Feeds feeds = {{"x", padded()}, {"ids", ids()}};
  const Tensor found = output_of(masked.graph(), feeds);
  const onnx::Imported imported = onnx::import_model(onnx::export_model(masked.graph()), "model.onnx", ".", {});
  EXPECT_THAT(values_of(output_of(imported.graph, feeds)), testing::Pointwise(testing::DoubleNear(1e-6), values_of(found))) << "and so does the file";
  return {found, output_of(cut.graph(), {{"x", Tensor::of<float>({1, kKept, kIn}, std::span<const float>(kept))}})};
}

void expect_equal(const Numbers& found, const Numbers& expected) { EXPECT_THAT(found, testing::Pointwise(testing::DoubleNear(2e-6), expected)); }

TEST(BuilderMasks, RecurrentLayersKeepTheirStateWhereStepsArePadding) {
  for (const bool is_lstm : {true, false})
    for (const bool bidirectional : {true, false}) {
      SCOPED_TRACE(std::string(is_lstm ? "lstm" : "gru") + (bidirectional ? " both ways" : ""));
      const std::size_t width = kUnits * (bidirectional ? 2 : 1);
      const auto layer = [&](bool sequences) {
        return [=](Value x, std::optional<Value> mask) {
          return is_lstm ? nn::lstm(x, kUnits, {.return_sequences = sequences, .bidirectional = bidirectional, .mask = mask}) : nn::gru(x, kUnits, {.return_sequences = sequences, .bidirectional = bidirectional, .mask = mask});
        };
      };
      const auto [last, last_cut] = padded_and_cut(layer(false));
      expect_equal(rows(last, 0, 0, 1, width), values_of(last_cut));
      const auto [all, all_cut] = padded_and_cut(layer(true));
      expect_equal(rows(all, 0, 0, kKept, width), values_of(all_cut));
      Numbers behind = rows(all, 0, kKept, 1, width), end = rows(all, 0, kKept - 1, 1, width);
      behind.resize(kUnits), end.resize(kUnits);  // forwards; backwards nothing has been seen there
      expect_equal(behind, end);
    }
}

TEST(BuilderMasks, NothingAttendsToPaddedPositions) {
  for (const bool is_causal : {false, true}) {
    const auto [found, cut] = padded_and_cut([&](Value x, std::optional<Value> mask) { return nn::self_attention(nn::dense(x, kUnits), 2, {.is_causal = is_causal, .mask = mask}); });
    expect_equal(rows(found, 0, 0, kKept, kUnits), values_of(cut));
  }
  const auto [found, cut] = padded_and_cut([](Value x, std::optional<Value> mask) { return nn::cross_attention(nn::dense(nn::slice(x, 1, 0, 2), kUnits), x, 2, {.mask = mask}); });
  expect_equal(rows(found, 0, 0, 2, kUnits), values_of(cut));
}

TEST(BuilderMasks, AreOneTruthForEachStep) {
  nn::Model model("wrong");
  const Value x = model.input("x", {kSteps, kIn}), ids = model.input("ids", {kSteps}, DType::kI64), few = model.input("few", {2}, DType::kI64);
  expect_error(Code::kShape, "lstm: its mask is i64[N,5], and bool[N,5] is wanted", [&] { nn::lstm(x, 3, {.mask = ids}); });
  expect_error(Code::kShape, "gru: its mask is bool[N,2], and bool[N,5] is wanted", [&] { nn::gru(x, 3, {.mask = nn::not_equal(few, 0)}); });
  expect_error(Code::kShape, "self_attention: its mask is bool[N,2]", [&] { nn::self_attention(x, 1, {.mask = nn::not_equal(few, 0)}); });
  nn::Model other("other");
  const Value elsewhere = nn::not_equal(other.input("ids", {kSteps}, DType::kI64), 0);
  expect_error(Code::kBadGraph, "one of the model \"other\"", [&] { nn::lstm(x, 3, {.mask = elsewhere}); });
}

}  // namespace
}  // namespace hone::test
