#include "runtime/device/cudnn_rnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/alignment.h"
#include "base/check.h"

namespace hone::cudnn {

namespace {

int number(std::int64_t size) {
  if (size > INT32_MAX) throw Refused{0, fmt::format("a size of {}: it counts in 32 bits", size)};
  return static_cast<int>(size);
}

RecurrentNeeds needs_of(const Library& library, Handle handle, const RnnDescriptors& layer, int mode) {
  RecurrentNeeds needs;
  check(library, library.rnn_weight_bytes(handle, layer.rnn(), &needs.weights), "cudnnGetRNNWeightSpaceSize");
  check(library, library.rnn_temporary_bytes(handle, layer.rnn(), mode, layer.x(), &needs.work, &needs.kept), "cudnnGetRNNTempSpaceSizes");
  return needs;
}

/// Memory that is handed out from its beginning on.
class Scratch {
 public:
  explicit Scratch(std::byte* begin) : next_(begin) {}
  std::byte* take(std::size_t bytes) {
    std::byte* const piece = next_;
    next_ += round_up(bytes, kRecurrentAlignment, "library scratch");
    return piece;
  }

 private:
  std::byte* next_;
};

/// What both calls have in common: weights are brought to where the library wants them, and it is told that every sample has all steps.
class RecurrentCall : public DeviceCall {
 public:
  struct Parts {
    const Library& library;
    Handle handle;
    RecurrentCase of;
    std::unique_ptr<const RnnDescriptors> layer;
    std::vector<WeightPiece> pieces;
    RecurrentNeeds needs;
    cuda::UseStream use;
    cuda::Moves moves;
  };
  explicit RecurrentCall(Parts parts) : parts_(std::move(parts)), states_(states_of(parts_.of.cell)) {}

  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    try {
      check(parts_.library, parts_.library.set_stream(parts_.handle, parts_.use(stream)), "cudnnSetStream");
      Scratch memory(scratch);
      std::byte* const weights = memory.take(parts_.needs.weights);
      for (const WeightPiece& piece : parts_.pieces) parts_.moves.copy(stream, weights + piece.to, operands[piece.operand] + piece.from, piece.bytes);
      std::byte* const lengths = memory.take(static_cast<std::size_t>(parts_.of.samples) * sizeof(std::int32_t));
      parts_.moves.fill(stream, lengths, static_cast<std::uint32_t>(parts_.of.steps), static_cast<std::size_t>(parts_.of.samples));
      run(stream, operands, results, {.weights = weights, .lengths = reinterpret_cast<const std::int32_t*>(lengths), .work = memory.take(parts_.needs.work), .rest = memory});
    } catch (const Refused& refused) { lose_device(refused); }
  }

 protected:
  struct Memory {
    std::byte* weights;
    const std::int32_t* lengths;
    std::byte* work;
    Scratch rest;
  };
  virtual void run(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, Memory memory) = 0;

  /// `c`: absent where the cell has none.
  void forward(int mode, const Memory& memory, std::span<const std::byte* const> operands, std::size_t first_state, std::byte* y, std::byte* last_h, std::byte* last_c, std::byte* kept) const {
    const RnnDescriptors& layer = *parts_.layer;
    const std::byte* const c = states_ > 1 ? operands[first_state + 1] : nullptr;
    check(parts_.library,
          parts_.library.rnn_forward(parts_.handle, layer.rnn(), mode, memory.lengths, layer.x(), operands[kRecurrentX], layer.y(), y, layer.state(), operands[first_state], last_h, layer.state(), c, last_c, parts_.needs.weights,
                                     memory.weights, parts_.needs.work, memory.work, kept == nullptr ? 0 : parts_.needs.kept, kept),
          "cudnnRNNForward");
  }

  const Parts parts_;
  const std::size_t states_;
};

class RecurrentForwardCall final : public RecurrentCall {
 public:
  using RecurrentCall::RecurrentCall;
  std::size_t scratch_bytes() const override { return recurrent_scratch(parts_.of, parts_.needs); }

 private:
  void run(Stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, Memory memory) override {
    forward(kInference, memory, operands, kRecurrentWeights, results[0], results[1], states_ > 1 ? results[2] : nullptr, nullptr);
  }
};

/// What the way back reads of the forward pass is the library's own, and as large as it says when it is there; so it is made again here, and no plan has to keep it.
class RecurrentGradientCall final : public RecurrentCall {
 public:
  using RecurrentCall::RecurrentCall;
  std::size_t scratch_bytes() const override { return recurrent_gradient_scratch(parts_.of, parts_.needs); }

 private:
  void run(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, Memory memory) override {
    constexpr std::size_t kDy = kRecurrentWeights, kFirstState = kDy + 1;
    const RnnDescriptors& layer = *parts_.layer;
    const auto at = [&](auto list, std::size_t i) { return states_ > 1 ? list[i] : nullptr; };  // of c
    std::byte* const dweights = memory.rest.take(parts_.needs.weights);
    std::byte* const y = memory.rest.take(static_cast<std::size_t>(parts_.of.steps * parts_.of.samples * parts_.of.hidden) * sizeof(float));
    std::byte* const kept = memory.rest.take(parts_.needs.kept);
    forward(kTraining, memory, operands, kFirstState, y, nullptr, nullptr, kept);
    check(parts_.library,
          parts_.library.rnn_backward_data(parts_.handle, layer.rnn(), memory.lengths, layer.y(), y, operands[kDy], layer.x(), results[kRecurrentX], layer.state(), operands[kFirstState], operands[kFirstState + states_],
                                           results[kRecurrentWeights], layer.state(), at(operands, kFirstState + 1), at(operands, kFirstState + 3), at(results, kRecurrentWeights + 1), parts_.needs.weights, memory.weights,
                                           parts_.needs.work, memory.work, parts_.needs.kept, kept),
          "cudnnRNNBackwardData_v8");
    parts_.moves.fill(stream, dweights, 0, parts_.needs.weights / sizeof(std::uint32_t));
    check(parts_.library,
          parts_.library.rnn_backward_weights(parts_.handle, layer.rnn(), kAddsGradients, memory.lengths, layer.x(), operands[kRecurrentX], layer.state(), operands[kFirstState], layer.y(), y, parts_.needs.weights, dweights,
                                              parts_.needs.work, memory.work, parts_.needs.kept, kept),
          "cudnnRNNBackwardWeights_v8");
    for (const WeightPiece& piece : parts_.pieces) parts_.moves.copy(stream, results[piece.operand] + piece.from, dweights + piece.to, piece.bytes);
  }
};

constexpr std::pair<const char*, int> kAlgorithms[] = {{"standard", kStandardAlgorithm}, {"persistent", kPersistentAlgorithm}, {"small persistent", kSmallPersistentAlgorithm}};

std::int64_t elements_of(const Library& library, const Tensor& tensor) {
  constexpr int kRoom = 8;
  int type = 0, axes = 0, extents[kRoom] = {}, strides[kRoom] = {};
  check(library, library.tensor_get(tensor.raw(), kRoom, &type, &axes, extents, strides), "cudnnGetTensorNdDescriptor");
  std::int64_t elements = 1;
  for (int axis = 0; axis < std::min(axes, kRoom); ++axis) elements *= extents[axis];
  return elements;
}

}  // namespace

RnnDescriptors::RnnDescriptors(const Library& library, const RecurrentCase& of, int algorithm) : rnn_(library), x_(library), y_(library), state_(library) {
  const int steps = number(of.steps), samples = number(of.samples), features = number(of.features), hidden = number(of.hidden);
  check(library,
        library.rnn_set(rnn(), algorithm, static_cast<int>(of.cell), kTwoBiases, kOneDirection, kMultipliesInput, kFloat, kFloat, of.tf32 ? kMayBeTf32 : kIsF32, features, hidden, hidden, 1, nullptr, 0),
        "cudnnSetRNNDescriptor_v8");
  const std::vector<int> lengths(static_cast<std::size_t>(samples), steps);
  check(library, library.rnn_data_set(x(), kFloat, kPackedSteps, steps, samples, features, lengths.data(), nullptr), "cudnnSetRNNDataDescriptor");
  check(library, library.rnn_data_set(y(), kFloat, kPackedSteps, steps, samples, hidden, lengths.data(), nullptr), "cudnnSetRNNDataDescriptor");
  const int extents[] = {1, samples, hidden}, strides[] = {number(of.samples * of.hidden), hidden, 1};
  check(library, library.tensor_set(state(), kFloat, 3, extents, strides), "cudnnSetTensorNdDescriptor");
}

std::vector<WeightPiece> weight_pieces(const Library& library, Handle handle, const RnnDescriptors& layer, const RecurrentCase& of) {
  const Tensor matrix(library), bias(library);
  std::size_t space_bytes = 0;
  check(library, library.rnn_weight_bytes(handle, layer.rnn(), &space_bytes), "cudnnGetRNNWeightSpaceSize");
  auto* const space = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 32);  // nobody reads there: what is asked for is how far from it things lie
  std::vector<WeightPiece> pieces;
  const std::int64_t gates = gates_of(of.cell);
  const auto add = [&](std::size_t operand, std::int64_t place, std::int64_t elements, const void* at, std::int64_t found) {
    const std::ptrdiff_t to = static_cast<const std::byte*>(at) - space;
    const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
    if (found != elements or to < 0 or static_cast<std::size_t>(to) + bytes > space_bytes) throw Refused{0, "its space for weights is laid out in an unknown way"};
    pieces.push_back({operand, static_cast<std::size_t>(place) * bytes, static_cast<std::size_t>(to), bytes});
  };
  for (std::int64_t i = 0; i < 2 * gates; ++i) {  // the products with x, and then those with h
    void *matrix_at = nullptr, *bias_at = nullptr;
    check(library, library.rnn_weight(handle, layer.rnn(), 0, space_bytes, space, static_cast<std::int32_t>(i), matrix.raw(), &matrix_at, bias.raw(), &bias_at), "cudnnGetRNNWeightParams");
    const bool of_state = i >= gates;
    const std::int64_t place = of.gates[static_cast<std::size_t>(i % gates)];
    add(of_state ? kRecurrentR : kRecurrentW, place, of.hidden * (of_state ? of.hidden : of.features), matrix_at, elements_of(library, matrix));
    add(of_state ? kRecurrentStateBias : kRecurrentBias, place, of.hidden, bias_at, elements_of(library, bias));
  }
  std::ranges::sort(pieces, {}, &WeightPiece::to);
  std::vector<WeightPiece> together;
  for (const WeightPiece& piece : pieces) {
    if (not together.empty())
      if (WeightPiece& last = together.back(); last.operand == piece.operand and last.from + last.bytes == piece.from and last.to + last.bytes == piece.to) {
        last.bytes += piece.bytes;
        continue;
      }
    together.push_back(piece);
  }
  return together;
}

std::vector<Candidate> make_recurrent(const Library& library, Handle handle, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, const cuda::Moves& moves, std::string* why_not) {
  const bool is_gradient = row.name == "cudnn.recurrent_grad";
  std::vector<Candidate> candidates;
  for (const auto& [name, algorithm] : kAlgorithms) try {
      RecurrentCall::Parts parts{.library = library, .handle = handle, .of = recurrent_of(spec), .layer = nullptr, .pieces = {}, .needs = {}, .use = use, .moves = moves};
      parts.layer = std::make_unique<const RnnDescriptors>(library, parts.of, algorithm);
      parts.pieces = weight_pieces(library, handle, *parts.layer, parts.of);
      parts.needs = needs_of(library, handle, *parts.layer, is_gradient ? kTraining : kInference);
      std::unique_ptr<DeviceCall> call;
      if (is_gradient) call = std::make_unique<RecurrentGradientCall>(std::move(parts));
      else call = std::make_unique<RecurrentForwardCall>(std::move(parts));
      if (call->scratch_bytes() > device_scratch(row, spec)) throw Refused{0, fmt::format("it takes {} bytes of scratch, more than there is", call->scratch_bytes())};
      candidates.push_back({name, std::move(call)});
    } catch (const Refused& refused) {
      if (why_not != nullptr and why_not->empty()) *why_not = refused.what;
    }
  return candidates;
}

}  // namespace hone::cudnn
