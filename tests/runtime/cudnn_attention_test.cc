// The rows cudnn.attention and cudnn.attention_grad without a GPU: the graph that the library is told describes what the host computes, whole and in parts, and which engines are taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/device/cudnn_attention.h"
#include "runtime/library/elements.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/random_tensor.h"

namespace hone::test {
namespace {

cuda::StreamHandle null_stream_of_attention(Stream) { return nullptr; }

/// A call with its operands.
struct Attention {
  const LibraryRow& row;
  LibrarySpec spec;
  std::vector<std::vector<std::byte>> operands = {};

  std::vector<std::vector<std::byte>> results() const {
    std::vector<std::vector<std::byte>> memory;
    for (const TensorType& result : spec.results) memory.emplace_back(element_count_of(result) * size_of(result.dtype), std::byte{0xff});
    return memory;
  }
};

template <typename Bytes, typename Pointer>
std::vector<Pointer> pointers(Bytes& memory) {
  std::vector<Pointer> list;
  for (auto& bytes : memory) list.push_back(bytes.empty() ? nullptr : bytes.data());
  return list;
}

std::vector<std::vector<std::byte>> on_host(const Attention& attention) {
  std::vector<std::vector<std::byte>> results = attention.results();
  std::vector<const void*> operands = pointers<const std::vector<std::vector<std::byte>>, const void*>(attention.operands);
  std::vector<void*> written = pointers<std::vector<std::vector<std::byte>>, void*>(results);
  attention.row.make(attention.spec)->execute(operands, written, nullptr);
  return results;
}

enum class Mask { kNone, kCausal, kOfSamples, kOfAll };

struct Sizes {
  std::int64_t batches = 2, heads = 3, queries = 5, keys = 7, features = 8, value_features = 8;
};

Attention forward(RandomTensors& random, DType dtype, const Sizes& sizes, Mask mask) {
  const auto heads = [&](DType of, std::int64_t rows, std::int64_t columns) { return TensorType{of, {sizes.batches, sizes.heads, rows, columns}}; };
  Attention made{.row = *find_library_row("cudnn.attention"), .spec = {}};
  made.spec.operands = {heads(dtype, sizes.queries, sizes.features), heads(dtype, sizes.keys, sizes.features), heads(dtype, sizes.keys, sizes.value_features)};
  if (mask == Mask::kOfSamples) made.spec.operands.emplace_back(TensorType{DType::kF32, {sizes.batches, 1, 1, sizes.keys}});
  if (mask == Mask::kOfAll) made.spec.operands.emplace_back(TensorType{DType::kF32, {1, 1, sizes.queries, sizes.keys}});
  made.spec.results = {heads(dtype, sizes.queries, sizes.value_features), heads(DType::kF32, sizes.queries, 1)};
  made.spec.attributes = {{"scale_bits", {std::bit_cast<std::int32_t>(0.6F)}}, {"causal", {mask == Mask::kCausal ? 1 : 0}}};
  for (const auto& operand : made.spec.operands) made.operands.push_back(random.numbers(*operand));
  return made;
}

/// Of what the forward pass gives.
Attention gradient_of(RandomTensors& random, const Attention& of) {
  const std::vector<std::vector<std::byte>> results = on_host(of);
  Attention made{.row = *find_library_row("cudnn.attention_grad"), .spec = {}};
  made.spec.attributes = of.spec.attributes;
  made.spec.operands.assign(of.spec.operands.begin(), of.spec.operands.begin() + 3);
  made.operands.assign(of.operands.begin(), of.operands.begin() + 3);
  const auto add = [&](const TensorType& type, std::vector<std::byte> data) {
    made.spec.operands.emplace_back(type);
    made.operands.push_back(std::move(data));
  };
  add(of.spec.results[0], results[0]);
  add(of.spec.results[0], random.numbers(of.spec.results[0]));
  add(of.spec.results[1], results[1]);
  if (of.operands.size() > 3) add(*of.spec.operands[3], of.operands[3]);
  for (std::size_t i = 0; i < 3; ++i) made.spec.results.push_back(*of.spec.operands[i]);
  return made;
}

/// As the library does it, with so much scratch; in how many calls.
int expect_as_on_host(const Attention& attention, const std::string& what) {
  FakeCudnn fake;
  const cudnn::Library library = library_of(fake);
  const std::vector<std::vector<std::byte>> expected = on_host(attention);
  std::vector<std::vector<std::byte>> found = attention.results();
  {
    const cudnn::Descriptor device = cudnn::device_properties(library, cudnn::Handle{});
    std::string why;
    const std::vector<Candidate> made = cudnn::make_attention(library, nullptr, device, attention.row, attention.spec, null_stream_of_attention, 1, &why);
    if (made.empty()) return ADD_FAILURE() << what << ": " << why, 0;
    std::vector<std::byte> scratch(made.front().call->scratch_bytes());
    const auto operands = pointers<const std::vector<std::vector<std::byte>>, const std::byte*>(attention.operands);
    const auto results = pointers<std::vector<std::vector<std::byte>>, std::byte*>(found);
    made.front().call->put(Stream{0}, operands, results, scratch.data());
  }
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_LT(largest_difference(attention.spec.results[i], found[i], expected[i]), 0.02) << what << ", result " << i << " of " << attention.row.name;
  EXPECT_EQ(fake.alive, 0) << "descriptors are given back";
  return fake.calls;
}

TEST(CudnnAttention, IsToldOfTheAttentionThatIsMeant) {
  RandomTensors random(7);
  for (const Mask mask : {Mask::kNone, Mask::kCausal, Mask::kOfSamples, Mask::kOfAll})
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const std::string what = std::string(to_string(dtype)) + ", mask " + std::to_string(static_cast<int>(mask));
      const Attention attention = forward(random, dtype, {.value_features = random.flip() ? 8 : 16}, mask);
      EXPECT_EQ(expect_as_on_host(attention, what), 1);
      EXPECT_EQ(expect_as_on_host(gradient_of(random, attention), what), 1);
    }
}

/// A part is as large as its tiles allow, and mask and heads go along.
TEST(CudnnAttention, TheGradientComesInPartsWhereScratchIsShort) {
  const LibraryRow& row = *find_library_row("cudnn.attention_grad");
  const auto parts = [&](const Sizes& sizes, Mask mask, std::size_t scratch) {
    RandomTensors random(1);
    const Attention of = forward(random, DType::kBF16, sizes, mask);
    LibrarySpec spec = of.spec;
    spec.operands = {of.spec.operands[0], of.spec.operands[1], of.spec.operands[2], of.spec.results[0], of.spec.results[0], of.spec.results[1]};
    if (of.spec.operands.size() > 3) spec.operands.push_back(of.spec.operands[3]);
    spec.results = {*of.spec.operands[0], *of.spec.operands[1], *of.spec.operands[2]};
    return cudnn::parts_of(row, spec, scratch);
  };
  constexpr std::size_t kTile = 128 * 128 * 2, kShared = 256, kMore = 512;
  const Sizes sizes = {.batches = 4, .heads = 6, .queries = 60, .keys = 100};
  const cudnn::AttentionParts whole = parts(sizes, Mask::kNone, 24 * (kTile + kShared) + kMore);
  EXPECT_EQ(whole.count, 1);
  EXPECT_EQ(whole.part.sizes.heads, 6);
  const cudnn::AttentionParts eighths = parts(sizes, Mask::kNone, 3 * (kTile + kShared) + kMore);
  EXPECT_EQ(eighths.count, 8);
  EXPECT_EQ(eighths.part.sizes.batches, 3) << "heads, where nobody tells them apart";
  EXPECT_EQ(eighths.part.sizes.heads, 1);
  const cudnn::AttentionParts masked = parts(sizes, Mask::kOfSamples, 12 * (kTile + kShared) + kMore);
  EXPECT_EQ(masked.count, 2);
  EXPECT_EQ(masked.part.sizes.batches, 2);
  EXPECT_EQ(masked.part.sizes.heads, 6);
  EXPECT_EQ(masked.part.sizes.bias->shape, (std::vector<std::int64_t>{2, 1, 1, 100}));
  EXPECT_EQ(parts(sizes, Mask::kNone, 1).count, 24) << "a head at a time, whatever it takes";
}

TEST(CudnnAttention, PartsAreOneAfterTheOther) {
  RandomTensors random(9);
  for (const Mask mask : {Mask::kCausal, Mask::kOfSamples, Mask::kOfAll}) {
    const Sizes sizes = {.batches = mask == Mask::kOfSamples ? 40 : 20, .heads = mask == Mask::kOfSamples ? 1 : 2, .queries = 2, .keys = 3};  // 40 tiles, where there is room for 32
    EXPECT_EQ(expect_as_on_host(gradient_of(random, forward(random, DType::kBF16, sizes, mask)), "in parts"), 2);
  }
}

/// How many ways are offered, of the engines with these notes.
std::size_t offered(std::vector<FakeCudnn::Engine> engines) {
  FakeCudnn fake{.recommended = std::move(engines)};
  const cudnn::Library library = library_of(fake);
  const cudnn::Descriptor device = cudnn::device_properties(library, cudnn::Handle{});
  RandomTensors random(3);
  const Attention gradient = gradient_of(random, forward(random, DType::kBF16, {}, Mask::kCausal));
  return cudnn::make_attention(library, nullptr, device, gradient.row, gradient.spec, null_stream_of_attention, 6, nullptr).size();
}

TEST(CudnnAttention, SumsComeInOneOrder) {
  using Note = cudnn::Note;
  EXPECT_EQ(offered({{{Note::kTensorCores}}, {{Note::kTensorCores, Note::kNonDeterministic}}, {{Note::kTensorCores}}}), 2U);
  EXPECT_EQ(offered({{{Note::kNonDeterministic}}, {{Note::kNarrowsSums}}}), 0U) << "the body of the call does it";
  EXPECT_EQ(offered({{.notes = {}, .workspace = std::int64_t{64} << 20}}), 0U) << "scratch is for the plan and what lies in front of it";
}

}  // namespace
}  // namespace hone::test
