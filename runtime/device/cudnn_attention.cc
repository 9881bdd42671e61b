#include "runtime/device/cudnn_attention.h"

#include <algorithm>
#include <limits>

#include "base/tensor.h"

namespace hone::cudnn {

namespace {

using Id = AttentionTensor;
using Extents = std::vector<std::int64_t>;

/// The last two axes swapped, of a tensor that stays where it is.
TensorLayout transposed(TensorLayout layout) {
  for (Extents* numbers : {&layout.extents, &layout.strides}) std::swap((*numbers)[2], (*numbers)[3]);
  return layout;
}

TensorLayout plain(DType dtype, Extents extents) { return {dtype, extents, row_major(extents)}; }

}  // namespace

/// Puts tensors and operations together. What is between operations is in no memory.
class AttentionMaker {
 public:
  using Tensor = const Descriptor*;

  AttentionMaker(const Library& library, const AttentionPart& part, AttentionGraph& made) : library_(library), part_(part), sizes_(part.sizes), made_(made) {}

  void make() {
    part_.gradient ? backward() : forward();
    made_.graph_ = Descriptor(library_, Kind::kGraph);
    made_.graph_.set(Attribute::kGraphOperations, Type::kDescriptor, std::span<const RawDescriptor>(operations_));
    made_.graph_.finalize();
  }

 private:
  // Tensors

  Extents of_queries(std::int64_t last) const { return {sizes_.batches, sizes_.heads, sizes_.queries, last}; }
  Extents of_keys(std::int64_t last) const { return {sizes_.batches, sizes_.heads, sizes_.keys, last}; }
  TensorLayout narrow(Extents extents) const { return plain(part_.dtype, std::move(extents)); }

  Tensor tensor(Id id, const TensorLayout& layout) { return finalized(described(static_cast<std::int64_t>(id), type_of(layout.dtype), layout)); }
  /// What an operation hands to another.
  Tensor between(const TensorLayout& layout, int type) {
    Descriptor& made = described(next_++, type, layout);
    made.set(Attribute::kTensorIsVirtual, Type::kBool, true);
    return finalized(made);
  }
  Tensor scores(int type = kFloat) { return between(plain(DType::kF32, of_queries(sizes_.keys)), type); }
  Tensor of_each_query() { return between(plain(DType::kF32, of_queries(1)), kFloat); }
  Tensor number(Id id) {
    Descriptor& made = described(static_cast<std::int64_t>(id), kFloat, plain(DType::kF32, {1, 1, 1, 1}));
    made.set(Attribute::kTensorIsByValue, Type::kBool, true);
    return finalized(made);
  }

  Descriptor& described(std::int64_t id, int type, const TensorLayout& layout) {
    Descriptor& made = made_.parts_.emplace_back(library_, Kind::kTensor);
    made.set(Attribute::kTensorType, Type::kDataType, type);
    made.set(Attribute::kTensorExtents, layout.extents);
    made.set(Attribute::kTensorStrides, layout.strides);
    made.set(Attribute::kTensorId, Type::kInt64, id);
    made.set(Attribute::kTensorAlignment, Type::kInt64, static_cast<std::int64_t>(kLibraryAlignment));
    return made;
  }
  static Tensor finalized(Descriptor& made) {
    made.finalize();
    return &made;
  }

  // Operations

  Descriptor& part(Kind kind) { return made_.parts_.emplace_back(library_, kind); }
  void add(Descriptor& operation) {
    operation.finalize();
    operations_.push_back(operation.raw());
  }

  Tensor multiply(Tensor a, Tensor b, Tensor c) {
    Descriptor& product = part(Kind::kMatmul);
    product.set(Attribute::kMatmulComputeType, Type::kDataType, kFloat);
    product.finalize();
    Descriptor& operation = part(Kind::kMatmulOperation);
    operation.set(Attribute::kMatmulDescriptor, product);
    operation.set(Attribute::kMatmulA, *a);
    operation.set(Attribute::kMatmulB, *b);
    operation.set(Attribute::kMatmulC, *c);
    add(operation);
    return c;
  }

  struct Operands {
    Tensor x, b = nullptr, t = nullptr;
  };
  Tensor pointwise(Pointwise mode, Operands operands, Tensor y, int compute_type = kFloat, std::int64_t axis = -1) {
    Descriptor& function = part(Kind::kPointwise);
    function.set(Attribute::kPointwiseMode, Type::kPointwiseMode, mode);
    function.set(Attribute::kPointwiseComputeType, Type::kDataType, compute_type);
    if (axis >= 0) function.set(Attribute::kPointwiseAxis, Type::kInt64, axis);
    function.finalize();
    Descriptor& operation = part(Kind::kPointwiseOperation);
    operation.set(Attribute::kPointwiseDescriptor, function);
    operation.set(Attribute::kPointwiseX, *operands.x);
    if (operands.b != nullptr) operation.set(Attribute::kPointwiseB, *operands.b);
    if (operands.t != nullptr) operation.set(Attribute::kPointwiseT, *operands.t);
    operation.set(Attribute::kPointwiseY, *y);
    add(operation);
    return y;
  }

  Tensor reduce(int with, Tensor x, Tensor y) {
    Descriptor& reduction = part(Kind::kReduction);
    reduction.set(Attribute::kReductionOperator, Type::kReductionOperator, with);
    reduction.set(Attribute::kReductionComputeType, Type::kDataType, kFloat);
    reduction.finalize();
    Descriptor& operation = part(Kind::kReductionOperation);
    operation.set(Attribute::kReductionDescriptor, reduction);
    operation.set(Attribute::kReductionX, *x);
    operation.set(Attribute::kReductionY, *y);
    add(operation);
    return y;
  }

  /// The same elements under other axes.
  Tensor seen_as(Tensor x, const TensorLayout& layout) {
    const Tensor y = between(layout, type_of(layout.dtype));
    Descriptor& operation = part(Kind::kReshapeOperation);
    operation.set(Attribute::kReshapeX, *x);
    operation.set(Attribute::kReshapeY, *y);
    add(operation);
    return y;
  }

  // Attention

  /// What is left for the softmax, but for the causal mask.
  Tensor biased_scores(Tensor query, Tensor transposed_key) {
    const Tensor scaled = pointwise(Pointwise::kMul, {multiply(query, transposed_key, scores()), scale_ = number(Id::kScale)}, scores());
    return sizes_.bias ? pointwise(Pointwise::kAdd, {scaled, tensor(Id::kBias, plain(DType::kF32, sizes_.bias->shape))}, scores()) : scaled;
  }
  Tensor masked(Tensor x) {
    if (not sizes_.causal) return x;
    const Tensor row = pointwise(Pointwise::kIndex, {x}, scores(kInt32), kFloat, 2), column = pointwise(Pointwise::kIndex, {x}, scores(kInt32), kFloat, 3);
    const Tensor seen = pointwise(Pointwise::kGreaterEqual, {row, column}, scores(kBoolean), kBoolean);
    return pointwise(Pointwise::kSelect, {x, number(Id::kLowest), seen}, scores());
  }

  void forward() {
    const Tensor query = tensor(Id::kQuery, narrow(of_queries(sizes_.features))), key = tensor(Id::kKey, transposed(narrow(of_keys(sizes_.features))));
    const Tensor x = masked(biased_scores(query, key));
    const Tensor largest = reduce(kReduceMax, x, of_each_query());
    const Tensor exponentials = pointwise(Pointwise::kExp, {pointwise(Pointwise::kSub, {x, largest}, scores())}, scores());
    const Tensor total = reduce(kReduceAdd, exponentials, of_each_query());
    pointwise(Pointwise::kAdd, {largest, pointwise(Pointwise::kLog, {total}, of_each_query())}, tensor(Id::kStatistics, plain(DType::kF32, of_queries(1))));
    const Tensor weights = pointwise(Pointwise::kDiv, {exponentials, total}, scores(type_of(part_.dtype)));
    multiply(weights, tensor(Id::kValue, narrow(of_keys(sizes_.value_features))), tensor(Id::kY, narrow(of_queries(sizes_.value_features))));
  }

  /// Without a sum of the query's gradient in f32 to which all add in any order: then it is one product, of a matrix in the plan's scratch. The library knows the pass by the product with one: without it, three such
  /// matrices are in memory.
  void backward() {
    const TensorLayout of_value = narrow(of_queries(sizes_.value_features)), transposed_scores = transposed(plain(part_.dtype, of_queries(sizes_.keys)));
    const Tensor y = tensor(Id::kY, of_value), dy = tensor(Id::kDy, of_value);
    const Tensor sum = reduce(kReduceAdd, pointwise(Pointwise::kMul, {dy, y}, between(plain(DType::kF32, of_value.extents), kFloat)), of_each_query());
    const Tensor shared = pointwise(Pointwise::kMul, {sum, number(Id::kOne)}, tensor(Id::kShared, plain(DType::kF32, of_queries(1))));
    const Tensor query = tensor(Id::kQuery, narrow(of_queries(sizes_.features))), key = tensor(Id::kKey, transposed(narrow(of_keys(sizes_.features))));
    const Tensor less = pointwise(Pointwise::kSub, {biased_scores(query, key), tensor(Id::kStatistics, plain(DType::kF32, of_queries(1)))}, scores());
    const Tensor weights = pointwise(Pointwise::kExp, {masked(less)}, scores());
    multiply(seen_as(weights, transposed_scores), dy, tensor(Id::kValueGradient, narrow(of_keys(sizes_.value_features))));
    const Tensor value = tensor(Id::kValue, transposed(narrow(of_keys(sizes_.value_features))));
    const Tensor of_weights = pointwise(Pointwise::kSub, {multiply(dy, value, scores()), shared}, scores());
    const Tensor of_scores = pointwise(Pointwise::kMul, {pointwise(Pointwise::kMul, {of_weights, weights}, scores()), scale_}, scores());
    multiply(seen_as(of_scores, transposed_scores), query, tensor(Id::kKeyGradient, narrow(of_keys(sizes_.features))));
    multiply(of_scores, seen_as(key, narrow(of_keys(sizes_.features))), tensor(Id::kQueryGradient, narrow(of_queries(sizes_.features))));
  }

  const Library& library_;
  const AttentionPart& part_;
  const AttentionCase& sizes_;
  AttentionGraph& made_;
  std::vector<RawDescriptor> operations_;
  Tensor scale_ = nullptr;
  std::int64_t next_ = 100;  // the id of what is between operations
};

namespace {

/// A tensor of a call, by the row's order of operands and results.
struct Bound {
  Id id;
  const std::byte* data;
  std::size_t part_bytes;  ///< from one part to the next; 0: all read the same
};

class AttentionCall final : public DeviceCall {
 public:
  AttentionCall(const Library& library, Handle handle, AttentionParts parts, std::shared_ptr<const AttentionGraph> graph, Plan plan, cuda::UseStream use)
      : library_(library), handle_(handle), parts_(std::move(parts)), graph_(std::move(graph)), plan_(std::move(plan)), use_(std::move(use)), scale_(parts_.part.sizes.scale) {}

  std::size_t scratch_bytes() const override { return shared_bytes(parts_.part) + plan_.scratch; }

  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    const std::vector<Bound> tensors = bound(operands, results);
    for (std::int64_t i = 0; i < parts_.count; ++i) {
      std::vector<std::int64_t> ids;
      std::vector<void*> pointers;
      const auto add = [&](Id id, const void* data) {
        ids.push_back(static_cast<std::int64_t>(id));
        pointers.push_back(const_cast<void*>(data));
      };
      for (const Bound& tensor : tensors) add(tensor.id, tensor.data + static_cast<std::size_t>(i) * tensor.part_bytes);
      add(Id::kScale, &scale_);
      if (parts_.part.sizes.causal) add(Id::kLowest, &lowest_);
      if (parts_.part.gradient) add(Id::kOne, &one_), add(Id::kShared, scratch);
      put_plan(library_, handle_, plan_, use_(stream), ids, pointers, scratch + shared_bytes(parts_.part));
    }
  }

 private:
  std::vector<Bound> bound(std::span<const std::byte* const> operands, std::span<std::byte* const> results) const {
    constexpr Id kForward[] = {Id::kQuery, Id::kKey, Id::kValue, Id::kBias}, kForwardResults[] = {Id::kY, Id::kStatistics};
    constexpr Id kBackward[] = {Id::kQuery, Id::kKey, Id::kValue, Id::kY, Id::kDy, Id::kStatistics, Id::kBias}, kBackwardResults[] = {Id::kQueryGradient, Id::kKeyGradient, Id::kValueGradient};
    const std::span<const Id> of_operands = parts_.part.gradient ? std::span<const Id>(kBackward) : kForward, of_results = parts_.part.gradient ? std::span<const Id>(kBackwardResults) : kForwardResults;
    std::vector<Bound> tensors;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i] != nullptr) tensors.push_back({of_operands[i], operands[i], part_bytes(of_operands[i])});
    for (std::size_t i = 0; i < results.size(); ++i) tensors.push_back({of_results[i], results[i], part_bytes(of_results[i])});
    return tensors;
  }

  std::size_t part_bytes(Id id) const {
    const AttentionCase& sizes = parts_.part.sizes;
    const auto bytes = [&](std::int64_t rows, std::int64_t columns, DType dtype) { return static_cast<std::size_t>(sizes.batches * sizes.heads * rows * columns) * size_of(dtype); };
    switch (id) {
      case Id::kQuery:
      case Id::kQueryGradient: return bytes(sizes.queries, sizes.features, parts_.part.dtype);
      case Id::kKey:
      case Id::kKeyGradient: return bytes(sizes.keys, sizes.features, parts_.part.dtype);
      case Id::kValue:
      case Id::kValueGradient: return bytes(sizes.keys, sizes.value_features, parts_.part.dtype);
      case Id::kY:
      case Id::kDy: return bytes(sizes.queries, sizes.value_features, parts_.part.dtype);
      case Id::kStatistics: return bytes(sizes.queries, 1, DType::kF32);
      case Id::kBias: return sizes.bias->shape[0] == 1 ? 0 : static_cast<std::size_t>(checked_element_count(sizes.bias->shape)) * sizeof(float);
      default: return 0;  // not the row's
    }
  }

  const Library& library_;
  const Handle handle_;
  const AttentionParts parts_;
  const std::shared_ptr<const AttentionGraph> graph_;  ///< outlives the plan
  const Plan plan_;
  const cuda::UseStream use_;
  const float scale_, one_ = 1, lowest_ = -std::numeric_limits<float>::infinity();
};

/// Heads are batches where nobody tells them apart.
void merge_heads(AttentionCase& sizes) {
  if (sizes.bias and (sizes.bias->shape[0] != 1 or sizes.bias->shape[1] != 1)) return;
  sizes.batches *= sizes.heads;
  sizes.heads = 1;
}

}  // namespace

AttentionGraph::AttentionGraph(const Library& library, const AttentionPart& part) { AttentionMaker(library, part, *this).make(); }

std::size_t shared_bytes(const AttentionPart& part) { return part.gradient ? shared_scratch(part.sizes) : 0; }

AttentionParts parts_of(const LibraryRow& row, const LibrarySpec& spec, std::size_t most_scratch) {
  AttentionParts parts{.part = {.gradient = row.name == "cudnn.attention_grad", .dtype = spec.operands[0]->dtype, .sizes = attention_of(spec)}};
  const auto fits = [&](const AttentionPart& part) { return not part.gradient or gradient_scratch(part.sizes) <= most_scratch; };
  if (fits(parts.part)) return parts;
  merge_heads(parts.part.sizes);
  const std::int64_t all = parts.part.sizes.batches;
  do ++parts.count, parts.part.sizes.batches = all / parts.count;
  while (parts.count < all and (all % parts.count != 0 or not fits(parts.part)));
  if (parts.part.sizes.bias and parts.part.sizes.bias->shape[0] != 1) parts.part.sizes.bias->shape[0] = parts.part.sizes.batches;
  return parts;
}

std::vector<Candidate> make_attention(const Library& library, Handle handle, const Descriptor& device, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, std::size_t most, std::string* why_not) {
  std::vector<Candidate> candidates;
  const std::size_t scratch = device_scratch(row, spec);
  const AttentionParts parts = parts_of(row, spec, scratch);
  const std::size_t taken = shared_bytes(parts.part);
  try {
    if (taken > scratch) throw Refused{0, "a part of it takes more scratch than there is"};
    const auto graph = std::make_shared<const AttentionGraph>(library, parts.part);
    for (Plan& plan : choose_plans(library, graph->graph(), device, {}, scratch - taken, most)) {
      std::string name = plan.name;
      candidates.push_back({std::move(name), std::make_unique<AttentionCall>(library, handle, parts, graph, std::move(plan), use)});
    }
  } catch (const Refused& refused) {
    if (why_not != nullptr) *why_not = refused.what;
  }
  return candidates;
}

}  // namespace hone::cudnn
