#include "runtime/library/attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/alignment.h"
#include "base/tensor.h"
#include "runtime/library/played_call.h"

namespace hone {

namespace {

constexpr std::size_t kBias = 3, kBiasOfGradient = 6;  // among the operands, the last one, if it is there

float rounded(DType dtype, float value) {
  std::uint32_t element = 0;
  write_element(dtype, &element, 0, static_cast<double>(value));
  return static_cast<float>(read_element(dtype, &element, 0));
}

/// Products are of the stored numbers, sums are f32 in the order of positions, weights and what is multiplied of the scores' gradients are rounded to the operands' type.
class HostAttention : public PlayedCall<float> {
 public:
  HostAttention(const LibrarySpec& spec, std::size_t bias) : PlayedCall(spec), case_(attention_of(spec)), bias_(bias), scores_(static_cast<std::size_t>(case_.keys)) {}

 protected:
  void play() override {
    for (std::int64_t batch = 0; batch < case_.batches; ++batch)
      for (std::int64_t head = 0; head < case_.heads; ++head)
        for (std::int64_t query = 0; query < case_.queries; ++query) attend(batch, head, query);
  }
  virtual void attend(std::int64_t batch, std::int64_t head, std::int64_t query) = 0;

  DType narrow() const { return spec_.operands[0]->dtype; }
  std::int64_t head_of(std::int64_t batch, std::int64_t head) const { return batch * case_.heads + head; }
  Rows<const float> rows(std::size_t operand, std::int64_t head) const {
    const std::vector<std::int64_t>& shape = spec_.operands[operand]->shape;
    return {read_[operand].data() + head * shape[2] * shape[3], shape[3]};
  }
  float* made(std::size_t result, std::int64_t head, std::int64_t row) {
    const std::vector<std::int64_t>& shape = spec_.results[result].shape;
    return made_[result].data() + (head * shape[2] + row) * shape[3];
  }

  /// One query's, into scores_; those of keys that it does not see are -inf.
  void fill_scores(std::int64_t batch, std::int64_t head, std::int64_t query) {
    const Rows<const float> queries = rows(0, head_of(batch, head)), keys = rows(1, head_of(batch, head));
    for (std::int64_t key = 0; key < case_.keys; ++key) {
      const bool is_seen = not case_.causal or key <= query;
      scores_[static_cast<std::size_t>(key)] =
          is_seen ? case_.scale * dot(queries[query], keys[key], case_.features) + bias_at(batch, head, query, key) : -std::numeric_limits<float>::infinity();
    }
  }

  const AttentionCase case_;

 private:
  float bias_at(std::int64_t batch, std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (not case_.bias) return 0;
    const std::int64_t at[] = {batch, head, query, key};
    std::int64_t from = 0;
    for (std::size_t axis = 0; axis < std::size(at); ++axis) from = from * case_.bias->shape[axis] + (case_.bias->shape[axis] == 1 ? 0 : at[axis]);
    return read_[bias_][static_cast<std::size_t>(from)];
  }

  const std::size_t bias_;

 protected:
  std::vector<float> scores_;
};

class Forward final : public HostAttention {
 public:
  explicit Forward(const LibrarySpec& spec) : HostAttention(spec, kBias) {}

 private:
  void attend(std::int64_t batch, std::int64_t head, std::int64_t query) override {
    fill_scores(batch, head, query);
    const float largest = *std::ranges::max_element(scores_);
    float total = 0;
    for (float& score : scores_) total += score = std::exp(score - largest);
    *made(1, head_of(batch, head), query) = largest + std::log(total);
    const Rows<const float> values = rows(2, head_of(batch, head));
    for (std::int64_t key = 0; key < case_.keys; ++key)
      add_scaled(made(0, head_of(batch, head), query), values[key], rounded(narrow(), scores_[static_cast<std::size_t>(key)] / total), case_.value_features);
  }
};

class Backward final : public HostAttention {
 public:
  explicit Backward(const LibrarySpec& spec) : HostAttention(spec, kBiasOfGradient) {}

 private:
  void attend(std::int64_t batch, std::int64_t head, std::int64_t query) override {
    fill_scores(batch, head, query);
    const std::int64_t of = head_of(batch, head);
    const Rows<const float> queries = rows(0, of), keys = rows(1, of), values = rows(2, of);
    const float *const y = rows(3, of)[query], *const dy = rows(4, of)[query], statistics = *rows(5, of)[query], shared = dot(dy, y, case_.value_features);
    for (std::int64_t key = 0; key < case_.keys; ++key) {
      const float weight = std::exp(scores_[static_cast<std::size_t>(key)] - statistics);
      const float of_score = rounded(narrow(), weight * (dot(dy, values[key], case_.value_features) - shared) * case_.scale);
      add_scaled(made(0, of, query), keys[key], of_score, case_.features);
      add_scaled(made(1, of, key), queries[query], of_score, case_.features);
      add_scaled(made(2, of, key), dy, rounded(narrow(), weight), case_.value_features);
    }
  }
};

}  // namespace

AttentionCase attention_of(const LibrarySpec& spec) {
  const std::vector<std::int64_t>&query = spec.operands[0]->shape, &key = spec.operands[1]->shape, &value = spec.operands[2]->shape;
  const std::size_t bias = spec.operands.size() < kBiasOfGradient ? kBias : kBiasOfGradient;
  return {.batches = query[0],
          .heads = query[1],
          .queries = query[2],
          .keys = key[2],
          .features = query[3],
          .value_features = value[3],
          .scale = std::bit_cast<float>(static_cast<std::uint32_t>(attribute_or(spec, "scale_bits", 0))),
          .causal = attribute_or(spec, "causal", 0) != 0,
          .bias = spec.operands.size() > bias ? spec.operands[bias] : std::nullopt};
}

AttentionCase one_head(AttentionCase of) {
  of.batches = of.heads = 1;
  return of;
}

std::size_t shared_scratch(const AttentionCase& of) {
  constexpr std::size_t kAlignment = 256;
  const std::int64_t sums = checked_element_count(std::array{of.batches, of.heads, of.queries});
  return round_up(static_cast<std::size_t>(sums) * sizeof(float), kAlignment, "library scratch");
}

/// As versions 9.19 and before are seen to: rows and columns are rounded up to 128, elements have two bytes.
std::size_t gradient_scratch(const AttentionCase& of) {
  constexpr std::int64_t kTile = 128;
  constexpr std::size_t kElement = 2, kMore = 512;
  const auto tiled = [](std::int64_t extent) { return round_up(extent, kTile, "library scratch"); };
  const std::int64_t kept = checked_element_count(std::array{of.batches, of.heads, tiled(of.queries), tiled(of.keys)});
  return static_cast<std::size_t>(kept) * kElement + shared_scratch(of) + kMore;
}

std::unique_ptr<LibraryCall> create_attention(const LibrarySpec& spec) { return std::make_unique<Forward>(spec); }
std::unique_ptr<LibraryCall> create_attention_gradient(const LibrarySpec& spec) { return std::make_unique<Backward>(spec); }

}  // namespace hone
