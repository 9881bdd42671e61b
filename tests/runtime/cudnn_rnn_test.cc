// The rows cudnn.recurrent and cudnn.recurrent_grad without a GPU: weights reach the places in the library's space that it names, and what it gives is what the host computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/diag.h"
#include "runtime/device/cudnn_rnn.h"
#include "runtime/library/elements.h"
#include "tests/runtime/fake_cudnn.h"
#include "tests/runtime/random_tensor.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 4, kSamples = 3, kFeatures = 5, kHidden = 2;

cuda::StreamHandle null_stream_of_layers(Stream) { return nullptr; }

const cuda::Moves kOnHost = {.copy = [](Stream, std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); },
                             .fill = [](Stream, std::byte* to, std::uint32_t word, std::size_t words) {
                               for (std::size_t i = 0; i < words; ++i) std::memcpy(to + i * sizeof(word), &word, sizeof(word));
                             }};

using Tensors = std::vector<std::vector<std::byte>>;

/// A call with its operands.
struct LayerCall {
  const LibraryRow& row;
  LibrarySpec spec;
  Tensors operands = {};

  Tensors results() const {
    Tensors memory;
    for (const TensorType& result : spec.results) memory.emplace_back(element_count_of(result) * size_of(result.dtype), std::byte{0xff});
    return memory;
  }
};

template <typename Pointer, typename Bytes>
std::vector<Pointer> addresses_of(Bytes& memory) {
  std::vector<Pointer> list;
  for (auto& bytes : memory) list.push_back(bytes.data());
  return list;
}

LayerCall layer_call(RandomTensors& random, RecurrentCell cell, std::vector<std::int64_t> gates, bool gradient, bool tf32 = false) {
  const auto f32 = [](std::vector<std::int64_t> shape) { return TensorType{DType::kF32, std::move(shape)}; };
  const std::int64_t rows = gates_of(cell) * kHidden;
  const TensorType state = f32({kSamples, kHidden}), y = f32({kSteps, kSamples, kHidden});
  const std::vector<TensorType> weights = {f32({kSteps, kSamples, kFeatures}), f32({rows, kFeatures}), f32({rows, kHidden}), f32({rows}), f32({rows})};
  LayerCall made{.row = *find_library_row(gradient ? "cudnn.recurrent_grad" : "cudnn.recurrent"), .spec = {}};
  made.spec.attributes = {{"cell", {static_cast<std::int64_t>(cell)}}, {"gates", std::move(gates)}, {"tf32", {tf32 ? 1 : 0}}};
  made.spec.operands.assign(weights.begin(), weights.end());
  if (gradient) made.spec.operands.emplace_back(y);
  made.spec.operands.insert(made.spec.operands.end(), (gradient ? 2 : 1) * states_of(cell), state);
  made.spec.results = gradient ? weights : std::vector{y};
  made.spec.results.insert(made.spec.results.end(), states_of(cell), state);
  for (const auto& operand : made.spec.operands) made.operands.push_back(random.numbers(*operand));
  return made;
}

Tensors layer_on_host(const LayerCall& call) {
  Tensors results = call.results();
  const auto operands = addresses_of<const void*>(call.operands);
  const auto written = addresses_of<void*>(results);
  call.row.make(call.spec)->execute(operands, written, nullptr);
  return results;
}

std::vector<Candidate> candidates_of(const cudnn::Library& library, const LayerCall& call, std::string* why = nullptr) {
  return cudnn::make_recurrent(library, nullptr, call.row, call.spec, null_stream_of_layers, kOnHost, why);
}

void put_call(DeviceCall& made, const LayerCall& call, Tensors& results) {
  std::vector<std::byte> scratch(made.scratch_bytes(), std::byte{0xff});
  const auto operands = addresses_of<const std::byte*>(call.operands);
  const auto written = addresses_of<std::byte*>(results);
  made.put(Stream{0}, operands, written, scratch.data());
}

TEST(CudnnRnn, ComputesTheLayerThatIsMeant) {
  RandomTensors random(11);
  const std::pair<RecurrentCell, std::vector<std::int64_t>> cells[] = {
      {RecurrentCell::kTanh, {0}}, {RecurrentCell::kLstm, {0, 1, 2, 3}}, {RecurrentCell::kLstm, {0, 2, 3, 1}}, {RecurrentCell::kGru, {0, 1, 2}}, {RecurrentCell::kGru, {1, 0, 2}}};
  for (const auto& [cell, gates] : cells)
    for (const bool gradient : {false, true}) {
      const LayerCall call = layer_call(random, cell, gates, gradient);
      ASSERT_EQ(call.row.why_not(call.spec), "");
      FakeCudnn fake;
      const cudnn::Library library = library_of(fake);
      Tensors found = call.results();
      {
        std::string why;
        const std::vector<Candidate> made = candidates_of(library, call, &why);
        ASSERT_EQ(made.size(), 1U) << why;
        put_call(*made.front().call, call, found);
      }
      const Tensors expected = layer_on_host(call);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_LT(largest_difference(call.spec.results[i], found[i], expected[i]), 1e-6) << to_string(cell) << ", result " << i << " of " << call.row.name;
      EXPECT_EQ(fake.calls, gradient ? 3 : 1) << "the gradient goes through all steps first";
      EXPECT_EQ(fake.alive, 0) << "descriptors are given back";
    }
}

TEST(CudnnRnn, RoundsFactorsWhereItMay) {
  RandomTensors random(1);
  for (const bool tf32 : {false, true}) {
    FakeCudnn fake;
    const cudnn::Library library = library_of(fake);
    EXPECT_EQ(candidates_of(library, layer_call(random, RecurrentCell::kLstm, {0, 1, 2, 3}, false, tf32)).size(), 1U);
    EXPECT_EQ(fake.math, tf32 ? cudnn::kMayBeTf32 : cudnn::kIsF32);
  }
}

/// Each with descriptors of its own. Which sizes a way takes is asked of the library, which says no in its own words.
TEST(CudnnRnn, OffersAllWaysThatTheLibraryHasForTheLayer) {
  RandomTensors random(4);
  const LayerCall call = layer_call(random, RecurrentCell::kLstm, {0, 1, 2, 3}, true);
  FakeCudnn fake{.algorithms = {cudnn::kStandardAlgorithm, cudnn::kSmallPersistentAlgorithm}};
  const cudnn::Library library = library_of(fake);
  const Tensors expected = layer_on_host(call);
  std::vector<std::string> names;
  for (const Candidate& each : candidates_of(library, call)) {
    names.push_back(each.name);
    Tensors found = call.results();
    put_call(*each.call, call, found);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_LT(largest_difference(call.spec.results[i], found[i], expected[i]), 1e-6) << each.name << ", result " << i;
  }
  EXPECT_THAT(names, testing::ElementsAre("standard", "small persistent")) << "the one that is always there comes first: a choice by rule takes it";
  EXPECT_EQ(fake.alive, 0);
}

TEST(CudnnRnn, TakesNoMoreScratchThanThePlanHas) {
  RandomTensors random(2);
  for (const bool gradient : {false, true}) {
    const LayerCall call = layer_call(random, RecurrentCell::kGru, {0, 1, 2}, gradient);
    const std::size_t most = device_scratch(call.row, call.spec);
    FakeCudnn fake{.work = most / 2};
    const cudnn::Library library = library_of(fake);
    EXPECT_LE(candidates_of(library, call).front().call->scratch_bytes(), most);
    fake.work = most;
    std::string why;
    EXPECT_THAT(candidates_of(library, call, &why), testing::IsEmpty()) << "the body of the call does it";
    EXPECT_THAT(why, HasSubstr("more than there is"));
  }
}

/// What 9.19 answers for an LSTM of 128 hidden features over 100 steps of 32 samples with 64 features, and others.
TEST(CudnnRnn, TheScratchIsEnoughForWhatTheLibraryIsKnownToTake) {
  struct Known {
    RecurrentCase of;
    std::size_t weights, work, kept;
  };
  const Known known[] = {
      {{.cell = RecurrentCell::kLstm, .steps = 100, .samples = 32, .features = 64, .hidden = 128}, 397312, 15433984, 8192256},
      {{.cell = RecurrentCell::kLstm, .steps = 35, .samples = 20, .features = 1500, .hidden = 1500}, 72048000, 97908864, 21000256},
      {{.cell = RecurrentCell::kLstm, .steps = 5, .samples = 2000, .features = 16, .hidden = 32}, 25600, 15069440, 6400256},
      {{.cell = RecurrentCell::kGru, .steps = 50, .samples = 8, .features = 512, .hidden = 512}, 6303744, 17187072, 4915456},
      {{.cell = RecurrentCell::kGru, .steps = 1000, .samples = 256, .features = 64, .hidden = 1024}, 13393920, 2119958784, 6291456256},
      {{.cell = RecurrentCell::kTanh, .steps = 100, .samples = 64, .features = 64, .hidden = 128}, 99328, 15073536, 3277056},
      {{.cell = RecurrentCell::kTanh, .steps = 1, .samples = 1, .features = 1, .hidden = 1}, 16, 8388992, 288},
  };
  for (const Known& one : known) {
    const RecurrentNeeds most = most_needs(one.of);
    EXPECT_GE(most.weights, one.weights);
    EXPECT_GE(most.work, one.work);
    EXPECT_GE(most.kept, one.kept);
  }
}

/// Whether or not the library is here.
TEST(CudnnRnn, BuffersOfOneSizeMakeSumsTheSameInEveryRun) {
  (void)cudnn::library(nullptr);
  EXPECT_NE(std::getenv("CUBLAS_WORKSPACE_CONFIG"), nullptr) << "ours, or the user's";
}

TEST(CudnnRnn, WhatFailsOnTheDeviceLosesIt) {
  RandomTensors random(3);
  const LayerCall call = layer_call(random, RecurrentCell::kTanh, {0}, true);
  FakeCudnn fake;
  const cudnn::Library library = library_of(fake);
  const std::vector<Candidate> made = candidates_of(library, call);
  fake.next_failure = 5000;
  Tensors results = call.results();
  expect_error(Code::kDeviceLost, "cudnnRNNForward says CUDNN_STATUS_EXECUTION_FAILED (5000): as the library puts it", [&] { put_call(*made.front().call, call, results); });
}

}  // namespace
}  // namespace hone::test
