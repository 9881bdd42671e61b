// The graphs of the rows for attention, to the end: the real cuDNN recommends engines for a GPU that is described to it, and compiles them. In place of a driver there is one that does nothing (no_driver.cc).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>

#include "runtime/device/cudnn_attention.h"
#include "runtime/library/call_text.h"
#include "tests/support/described_gpu.h"

namespace hone::test {
namespace {

cuda::StreamHandle the_null_stream(Stream) { return nullptr; }

using Shape = std::vector<std::int64_t>;

struct Attention {
  Shape queries;  ///< [batches, heads, positions, features]
  std::int64_t keys;
  bool causal = false;
  Shape bias = {};  ///< empty: none
  DType dtype = DType::kBF16;
};

LibrarySpec spec_of(const Attention& attention, bool gradient) {
  Shape of_keys = attention.queries, of_each = attention.queries;
  of_keys[2] = attention.keys;
  of_each[3] = 1;
  const TensorType query{attention.dtype, attention.queries}, key{attention.dtype, of_keys}, statistics{DType::kF32, of_each};
  LibrarySpec spec;
  spec.attributes = {{"scale_bits", {std::bit_cast<std::int32_t>(0.125F)}}, {"causal", {attention.causal ? 1 : 0}}};
  spec.operands = {query, key, key};
  if (gradient) spec.operands.insert(spec.operands.end(), {query, query, statistics});
  if (not attention.bias.empty()) spec.operands.emplace_back(TensorType{DType::kF32, attention.bias});
  spec.results = gradient ? std::vector{query, key, key} : std::vector{query, statistics};
  return spec;
}

/// cuDNN closes the compiler that it calls after each engine; what that leaks would then have no name by which it could be excused (base/known_leaks.cc).
void keep_runtime_compiler() {
  for (const char* file : {"libnvrtc.so.13", "libnvrtc.so.12"}) dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/// With a driver that does nothing; null where there is no cuDNN.
const cudnn::Library* library_with_driver() {
  EXPECT_NE(dlopen(HONE_NO_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  keep_runtime_compiler();
  return cudnn::library(nullptr);
}

void expect_planned(const cudnn::Library& library, const Attention& attention) {
  const cudnn::Descriptor device = cudnn::device_properties(library, kDescribedGpu);
  for (const char* name : {"cudnn.attention", "cudnn.attention_grad"}) {
    const LibraryRow& row = *find_library_row(name);
    const LibrarySpec spec = spec_of(attention, std::string(name) == "cudnn.attention_grad");
    ASSERT_EQ(row.why_not(spec), "");
    std::string why;
    const std::vector<Candidate> made = cudnn::make_attention(library, nullptr, device, row, spec, the_null_stream, 1, &why);
    ASSERT_EQ(made.size(), 1U) << text_of(row, spec) << ": " << why;
    EXPECT_LE(made.front().call->scratch_bytes(), device_scratch(row, spec));
  }
}

void expect_all_planned(std::initializer_list<Attention> all) {
  const cudnn::Library* library = library_with_driver();
  if (library == nullptr) GTEST_SKIP() << "no cuDNN here";
  for (const Attention& attention : all) expect_planned(*library, attention);
}

TEST(CudnnPlans, AttentionOfAnyLength) {
  expect_all_planned({{{2, 4, 1, 64}, 1, true}, {{2, 4, 100, 64}, 100, true}, {{2, 4, 64, 64}, 200}, {{8, 12, 1024, 64}, 1024, true}, {{1, 1, 16384, 64}, 16384, true}});
}

TEST(CudnnPlans, HeadsOfEightToOneHundredAndTwentyEightFeatures) {
  expect_all_planned({{{16, 4, 32, 16}, 32, true}, {{2, 4, 128, 8}, 128, false, {}, DType::kF16}, {{2, 4, 128, 96}, 128, false, {}, DType::kF16}, {{2, 4, 128, 128}, 128, true}});
}

TEST(CudnnPlans, MasksThatAreAdded) {
  expect_all_planned({{{2, 2, 16, 32}, 16, false, {2, 1, 16, 16}}, {{2, 4, 200, 64}, 64, false, {2, 1, 1, 64}}, {{2, 4, 100, 64}, 100, false, {1, 4, 100, 100}}, {{8, 12, 1024, 64}, 1024, false, {8, 1, 1, 1024}}});
}

}  // namespace
}  // namespace hone::test
