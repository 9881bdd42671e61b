#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "runtime/library/recurrent.h"
#include "tests/runtime/fake_cudnn.h"

struct hone::cudnn::OpaqueRnn {
  hone::RecurrentCell cell;
  std::int64_t features, hidden;
};
struct hone::cudnn::OpaqueRnnData {
  std::int64_t steps, samples, features;
};
struct hone::cudnn::OpaqueTensor {
  std::vector<int> extents;
};

namespace hone::test {

namespace {

using cudnn::RawRnn;
using cudnn::RawRnnData;
using cudnn::RawTensor;
using cudnn::Status;

constexpr Status kBadParameter = 2000;
constexpr std::uint32_t kTrainedMark = 0x7eac4e5;  // what a training pass leaves for the way back

FakeCudnn* rnn_in_use = nullptr;
std::vector<std::vector<float>> last_gradients;  // of the last way back, which leaves those of weights to another call

constexpr std::size_t kGap = 8;  // floats between biases and matrices

/// Where in the space a matrix and its bias lie, in floats: biases first, the last product's before the others'.
struct Place {
  std::size_t matrix, matrix_size, bias;
};
Place place_of(const cudnn::OpaqueRnn& rnn, std::int64_t number) {
  const std::int64_t gates = gates_of(rnn.cell), behind = 2 * gates - 1 - number;
  const auto size = [&](std::int64_t of) { return static_cast<std::size_t>(rnn.hidden * (of < gates ? rnn.features : rnn.hidden)); };
  Place place{.matrix = static_cast<std::size_t>(2 * gates * rnn.hidden) + kGap, .matrix_size = size(number), .bias = static_cast<std::size_t>(behind * rnn.hidden)};
  for (std::int64_t other = 2 * gates; --other > number;) place.matrix += size(other);
  return place;
}
std::size_t space_bytes(const cudnn::OpaqueRnn& rnn) { return (place_of(rnn, 0).matrix + place_of(rnn, 0).matrix_size) * sizeof(float); }

/// A layer with its gates in the library's order, as the host's rows take it.
struct Played {
  LibrarySpec spec;
  std::vector<std::vector<float>> weights;  ///< w, r, bias, state_bias
};
Played played(const cudnn::OpaqueRnn& rnn, const cudnn::OpaqueRnnData& x, const float* space) {
  const std::int64_t gates = gates_of(rnn.cell), rows = gates * rnn.hidden;
  const auto f32 = [](std::vector<std::int64_t> shape) { return TensorType{DType::kF32, std::move(shape)}; };
  Played made{.spec = {}, .weights = std::vector<std::vector<float>>(4)};
  std::vector<std::int64_t> order(static_cast<std::size_t>(gates));
  std::iota(order.begin(), order.end(), 0);
  made.spec.attributes = {{"cell", {static_cast<std::int64_t>(rnn.cell)}}, {"gates", order}};
  made.spec.operands = {f32({x.steps, x.samples, x.features}), f32({rows, rnn.features}), f32({rows, rnn.hidden}), f32({rows}), f32({rows})};
  for (std::int64_t number = 0; number < 2 * gates; ++number) {
    const Place place = place_of(rnn, number);
    const std::size_t of = number < gates ? 0 : 1;
    made.weights[of].insert(made.weights[of].end(), space + place.matrix, space + place.matrix + place.matrix_size);
    made.weights[2 + of].insert(made.weights[2 + of].end(), space + place.bias, space + place.bias + rnn.hidden);
  }
  return made;
}

bool has_all_steps(const std::int32_t* lengths, const cudnn::OpaqueRnnData& x) {
  return std::all_of(lengths, lengths + x.samples, [&](std::int32_t length) { return length == x.steps; });
}

Status forward(RawRnn rnn, int mode, const std::int32_t* lengths, RawRnnData x_type, const void* x, RawRnnData, void* y, RawTensor, const void* h, void* last_h, RawTensor, const void* c, void* last_c, std::size_t bytes,
               const void* weights, std::size_t work_bytes, void* work, std::size_t kept_bytes, void* kept) {
  ++rnn_in_use->calls;
  const bool trains = mode == cudnn::kTraining;
  if (rnn_in_use->next_failure != 0) return rnn_in_use->next_failure;
  if (bytes != space_bytes(*rnn) or work_bytes < rnn_in_use->work or (trains and kept_bytes < rnn_in_use->kept) or not has_all_steps(lengths, *x_type)) return kBadParameter;
  std::memset(work, 0xff, work_bytes);
  Played play = played(*rnn, *x_type, static_cast<const float*>(weights));
  const TensorType state{DType::kF32, {x_type->samples, rnn->hidden}}, steps{DType::kF32, {x_type->steps, x_type->samples, rnn->hidden}};
  play.spec.operands.emplace_back(state);
  play.spec.results = {steps, state};
  std::vector<const void*> operands = {x, play.weights[0].data(), play.weights[1].data(), play.weights[2].data(), play.weights[3].data(), h};
  std::vector<float> of_h(static_cast<std::size_t>(x_type->samples * rnn->hidden)), of_c = of_h;
  std::vector<void*> results = {y, of_h.data()};
  if (states_of(rnn->cell) > 1) play.spec.operands.emplace_back(state), play.spec.results.push_back(state), operands.push_back(c), results.push_back(of_c.data());
  create_recurrent(play.spec)->execute(operands, results, nullptr);
  const auto give = [](void* to, const std::vector<float>& values) {
    if (to != nullptr) std::ranges::copy(values, static_cast<float*>(to));
  };
  give(last_h, of_h);
  give(last_c, of_c);
  if (trains) std::memcpy(kept, &kTrainedMark, sizeof(kTrainedMark));
  return 0;
}

bool is_of_training(const void* kept) { return std::memcmp(kept, &kTrainedMark, sizeof(kTrainedMark)) == 0; }

Status back_to_data(RawRnn rnn, const std::int32_t* lengths, RawRnnData, const void* y, const void* dy, RawRnnData x_type, void* dx, const void* h, const void* dlast_h, void* dh, const void* c, const void* dlast_c, void* dc,
                    const void* weights, const void* x, const void* kept) {
  ++rnn_in_use->calls;
  if (rnn_in_use->next_failure != 0) return rnn_in_use->next_failure;
  if (not is_of_training(kept) or not has_all_steps(lengths, *x_type) or y == nullptr) return kBadParameter;
  Played play = played(*rnn, *x_type, static_cast<const float*>(weights));
  const TensorType state{DType::kF32, {x_type->samples, rnn->hidden}}, steps{DType::kF32, {x_type->steps, x_type->samples, rnn->hidden}};
  for (const auto& operand : play.spec.operands) play.spec.results.push_back(*operand);
  play.spec.operands.emplace_back(steps);
  std::vector<const void*> operands = {x, play.weights[0].data(), play.weights[1].data(), play.weights[2].data(), play.weights[3].data(), dy};
  const bool has_c = states_of(rnn->cell) > 1;
  for (const void* given : {h, c, dlast_h, dlast_c}) {
    if (not has_c and (given == c or given == dlast_c)) continue;
    operands.push_back(given);
    play.spec.operands.emplace_back(state);
  }
  play.spec.results.insert(play.spec.results.end(), has_c ? 2 : 1, state);
  last_gradients.assign(play.spec.results.size(), {});
  std::vector<void*> results;
  for (std::size_t i = 0; i < last_gradients.size(); ++i) {
    last_gradients[i].resize(static_cast<std::size_t>(std::accumulate(play.spec.results[i].shape.begin(), play.spec.results[i].shape.end(), std::int64_t{1}, std::multiplies<>())));
    results.push_back(last_gradients[i].data());
  }
  create_recurrent_gradient(play.spec)->execute(operands, results, nullptr);
  std::ranges::copy(last_gradients[kRecurrentX], static_cast<float*>(dx));
  std::ranges::copy(last_gradients[kRecurrentWeights], static_cast<float*>(dh));
  if (has_c) std::ranges::copy(last_gradients[kRecurrentWeights + 1], static_cast<float*>(dc));
  return 0;
}

const void* x_of_forward = nullptr;  // which the way back to data is not told

}  // namespace

void add_recurrent_functions(FakeCudnn& fake, cudnn::Library& f) {
  rnn_in_use = &fake;
  f.tensor_create = [](RawTensor* tensor) { return ++rnn_in_use->alive, *tensor = new cudnn::OpaqueTensor, 0; };
  f.tensor_destroy = [](RawTensor tensor) { return --rnn_in_use->alive, delete tensor, 0; };
  f.tensor_set = [](RawTensor tensor, int, int axes, const int* extents, const int*) { return tensor->extents.assign(extents, extents + axes), 0; };
  f.tensor_get = [](RawTensor tensor, int room, int*, int* axes, int* extents, int*) {
    *axes = static_cast<int>(tensor->extents.size());
    std::copy_n(tensor->extents.begin(), std::min(room, *axes), extents);
    return 0;
  };
  f.rnn_create = [](RawRnn* rnn) { return ++rnn_in_use->alive, *rnn = new cudnn::OpaqueRnn{}, 0; };
  f.rnn_destroy = [](RawRnn rnn) { return --rnn_in_use->alive, delete rnn, 0; };
  f.rnn_set = [](RawRnn rnn, int algorithm, int cell, int biases, int directions, int input, int type, int compute_type, int math, std::int32_t features, std::int32_t hidden, std::int32_t projected, std::int32_t layers, void*,
                 std::uint32_t) {
    *rnn = {static_cast<RecurrentCell>(cell), features, hidden};
    rnn_in_use->math = math;
    const bool is_known = std::ranges::count(rnn_in_use->algorithms, algorithm) > 0 and biases == cudnn::kTwoBiases and directions == cudnn::kOneDirection and input == cudnn::kMultipliesInput and type == cudnn::kFloat and compute_type == cudnn::kFloat;
    return is_known and projected == hidden and layers == 1 ? 0 : kBadParameter;
  };
  f.rnn_data_create = [](RawRnnData* data) { return ++rnn_in_use->alive, *data = new cudnn::OpaqueRnnData{}, 0; };
  f.rnn_data_destroy = [](RawRnnData data) { return --rnn_in_use->alive, delete data, 0; };
  f.rnn_data_set = [](RawRnnData data, int type, int layout, int steps, int samples, int features, const int* lengths, void*) {
    *data = {steps, samples, features};
    return type == cudnn::kFloat and layout == cudnn::kPackedSteps and has_all_steps(lengths, *data) ? 0 : kBadParameter;
  };
  f.rnn_weight_bytes = [](cudnn::Handle, RawRnn rnn, std::size_t* bytes) { return *bytes = space_bytes(*rnn), 0; };
  f.rnn_weight = [](cudnn::Handle, RawRnn rnn, std::int32_t, std::size_t, const void* space, std::int32_t number, RawTensor matrix, void** matrix_at, RawTensor bias, void** bias_at) {
    const Place place = place_of(*rnn, number);
    const auto columns = static_cast<int>(number < gates_of(rnn->cell) ? rnn->features : rnn->hidden), hidden = static_cast<int>(rnn->hidden);
    auto* const begin = static_cast<float*>(const_cast<void*>(space));
    *matrix_at = begin + place.matrix, matrix->extents = {1, hidden, columns};
    *bias_at = begin + place.bias, bias->extents = {1, hidden, 1};
    return 0;
  };
  f.rnn_temporary_bytes = [](cudnn::Handle, RawRnn, int mode, RawRnnData, std::size_t* work, std::size_t* kept) { return *work = rnn_in_use->work, *kept = mode == cudnn::kTraining ? rnn_in_use->kept : 0, 0; };
  f.rnn_forward = [](cudnn::Handle, RawRnn rnn, int mode, const std::int32_t* lengths, RawRnnData x_type, const void* x, RawRnnData y_type, void* y, RawTensor h_type, const void* h, void* last_h, RawTensor c_type, const void* c,
                     void* last_c, std::size_t bytes, const void* weights, std::size_t work_bytes, void* work, std::size_t kept_bytes, void* kept) {
    x_of_forward = x;
    return forward(rnn, mode, lengths, x_type, x, y_type, y, h_type, h, last_h, c_type, c, last_c, bytes, weights, work_bytes, work, kept_bytes, kept);
  };
  f.rnn_backward_data = [](cudnn::Handle, RawRnn rnn, const std::int32_t* lengths, RawRnnData y_type, const void* y, const void* dy, RawRnnData x_type, void* dx, RawTensor, const void* h, const void* dlast_h, void* dh, RawTensor,
                           const void* c, const void* dlast_c, void* dc, std::size_t, const void* weights, std::size_t, void*, std::size_t,
                           void* kept) { return back_to_data(rnn, lengths, y_type, y, dy, x_type, dx, h, dlast_h, dh, c, dlast_c, dc, weights, x_of_forward, kept); };
  f.rnn_backward_weights = [](cudnn::Handle, RawRnn rnn, int mode, const std::int32_t*, RawRnnData, const void* x, RawTensor, const void*, RawRnnData, const void*, std::size_t, void* dweights, std::size_t, void*, std::size_t,
                              void* kept) {
    ++rnn_in_use->calls;
    if (mode != cudnn::kAddsGradients or not is_of_training(kept) or x != x_of_forward) return kBadParameter;
    auto* const space = static_cast<float*>(dweights);
    const std::int64_t gates = gates_of(rnn->cell);
    for (std::int64_t number = 0; number < 2 * gates; ++number) {
      const Place place = place_of(*rnn, number);
      const std::size_t of = number < gates ? 0 : 1, gate = static_cast<std::size_t>(number % gates), hidden = static_cast<std::size_t>(rnn->hidden);
      for (std::size_t i = 0; i < place.matrix_size; ++i) space[place.matrix + i] += last_gradients[kRecurrentW + of][gate * place.matrix_size + i];
      for (std::size_t i = 0; i < hidden; ++i) space[place.bias + i] += last_gradients[kRecurrentBias + of][gate * hidden + i];
    }
    return 0;
  };
}

}  // namespace hone::test
