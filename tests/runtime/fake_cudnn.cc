#include "tests/runtime/fake_cudnn.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "runtime/library/elements.h"

namespace hone::test {

namespace {

using cudnn::Attribute;
using cudnn::Kind;
using cudnn::RawDescriptor;
using cudnn::Status;
using cudnn::Type;

FakeCudnn* cudnn_in_use = nullptr;

struct FakeDescriptor {
  Kind kind;
  std::map<Attribute, std::vector<std::byte>> values;
  bool is_final = false;
  int engine = -1;                        ///< of configurations, engines and plans
  const FakeDescriptor* graph = nullptr;  ///< which they compute
};

std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::kInt64:
    case Type::kHandle:
    case Type::kPointer:
    case Type::kDescriptor: return 8;
    case Type::kChar:
    case Type::kBool: return 1;
    default: return 4;
  }
}

FakeDescriptor& of(RawDescriptor raw) { return *static_cast<FakeDescriptor*>(raw); }

template <typename T>
std::vector<T> list(const FakeDescriptor& descriptor, Attribute attribute) {
  const auto& bytes = descriptor.values.at(attribute);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
const FakeDescriptor& part(const FakeDescriptor& descriptor, Attribute attribute) { return of(list<RawDescriptor>(descriptor, attribute).front()); }

const FakeCudnn::Engine& engine(int number) {
  const auto first = cudnn_in_use->recommended.size(), i = static_cast<std::size_t>(number);
  return i < first ? cudnn_in_use->recommended[i] : cudnn_in_use->fallback[i - first];
}

/// f32 at an index of a tensor.
float& element(const FakeDescriptor& tensor, const std::map<std::int64_t, void*>& memory, const std::vector<std::int64_t>& at) {
  const auto strides = list<std::int64_t>(tensor, Attribute::kTensorStrides);
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < strides.size(); ++axis) offset += strides[axis] * at[axis];
  return static_cast<float*>(memory.at(list<std::int64_t>(tensor, Attribute::kTensorId).front()))[offset];
}

/// Calls visit(index) for every index below the extents.
template <typename Visit>
void for_each_index(const std::vector<std::int64_t>& extents, Visit visit) {
  std::vector<std::int64_t> at(extents.size());
  for (;;) {
    visit(at);
    std::size_t axis = extents.size();
    while (axis > 0 and ++at[axis - 1] == extents[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

/// As the library's manual has it: dx, dw or y, whichever the operation is for.
void convolve(const FakeDescriptor& operation, const std::map<std::int64_t, void*>& memory) {
  const auto alpha = static_cast<int>(operation.kind == Kind::kForward ? Attribute::kForwardAlpha : operation.kind == Kind::kInputGradient ? Attribute::kInputGradientAlpha : Attribute::kWeightGradientAlpha);
  const auto at = [&](int behind) -> const FakeDescriptor& { return part(operation, static_cast<Attribute>(alpha + behind)); };
  const FakeDescriptor &window = at(2), &weight = at(3), &x = at(4), &y = at(5);
  const auto strides = list<std::int64_t>(window, Attribute::kStrides), dilations = list<std::int64_t>(window, Attribute::kDilations), pads = list<std::int64_t>(window, Attribute::kPadsBegin);
  const auto x_extents = list<std::int64_t>(x, Attribute::kTensorExtents), y_extents = list<std::int64_t>(y, Attribute::kTensorExtents), w_extents = list<std::int64_t>(weight, Attribute::kTensorExtents);
  const FakeDescriptor& result = operation.kind == Kind::kForward ? y : operation.kind == Kind::kInputGradient ? x : weight;
  for_each_index(list<std::int64_t>(result, Attribute::kTensorExtents), [&](const auto& index) { element(result, memory, index) = 0; });
  const std::int64_t groups = x_extents[1] / w_extents[1], outputs = w_extents[0] / groups;
  for_each_index(y_extents, [&](const std::vector<std::int64_t>& out) {
    std::vector<std::int64_t> taps = w_extents;
    taps[0] = 1;
    for_each_index(taps, [&](std::vector<std::int64_t> tap) {
      tap[0] = out[1];
      std::vector<std::int64_t> in = {out[0], out[1] / outputs * w_extents[1] + tap[1]};
      for (std::size_t i = 0; i + 2 < out.size(); ++i) {
        in.push_back(out[2 + i] * strides[i] + tap[2 + i] * dilations[i] - pads[i]);
        if (in.back() < 0 or in.back() >= x_extents[2 + i]) return;
      }
      float &dx = element(x, memory, in), &dw = element(weight, memory, tap), &dy = element(y, memory, out);
      if (operation.kind == Kind::kForward) dy += dx * dw;
      else if (operation.kind == Kind::kInputGradient) dx += dy * dw;
      else dw += dy * dx;
    });
  });
}

/// A graph of products, functions, reductions and views, operation by operation, in double; what is stored, in memory or between operations, is rounded to its type.
class FakeGraph {
 public:
  explicit FakeGraph(const std::map<std::int64_t, void*>& memory) : memory_(memory) {}

  void run(const FakeDescriptor& graph) {
    for (const RawDescriptor raw : list<RawDescriptor>(graph, Attribute::kGraphOperations)) {
      const FakeDescriptor& operation = of(raw);
      if (operation.kind == Kind::kMatmulOperation) multiply(part(operation, Attribute::kMatmulA), part(operation, Attribute::kMatmulB), part(operation, Attribute::kMatmulC));
      else if (operation.kind == Kind::kPointwiseOperation) map(operation);
      else if (operation.kind == Kind::kReductionOperation) reduce(operation);
      else view(part(operation, Attribute::kReshapeX), part(operation, Attribute::kReshapeY));
    }
  }

 private:
  using Index = std::vector<std::int64_t>;

  static Index extents(const FakeDescriptor& tensor) { return list<std::int64_t>(tensor, Attribute::kTensorExtents); }
  static std::int64_t offset(const FakeDescriptor& tensor, const Index& at) {
    const auto strides = list<std::int64_t>(tensor, Attribute::kTensorStrides), all = extents(tensor);
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) offset += all[axis] == 1 ? 0 : strides[axis] * at[axis];
    return offset;
  }
  static DType dtype(const FakeDescriptor& tensor) {
    const int type = list<int>(tensor, Attribute::kTensorType).front();
    return type == cudnn::kHalf ? DType::kF16 : type == cudnn::kBFloat16 ? DType::kBF16 : DType::kF32;  // positions and truths are small numbers
  }
  static std::int64_t id(const FakeDescriptor& tensor) { return list<std::int64_t>(tensor, Attribute::kTensorId).front(); }
  static bool is_virtual(const FakeDescriptor& tensor) { return tensor.values.contains(Attribute::kTensorIsVirtual); }

  double read(const FakeDescriptor& tensor, const Index& at) const {
    const std::int64_t from = offset(tensor, at);
    return is_virtual(tensor) ? between_.at(id(tensor)).at(from) : read_element(dtype(tensor), memory_.at(id(tensor)), static_cast<std::size_t>(from));
  }
  void write(const FakeDescriptor& tensor, const Index& at, double value) {
    const std::int64_t to = offset(tensor, at);
    if (not is_virtual(tensor)) return write_element(dtype(tensor), memory_.at(id(tensor)), static_cast<std::size_t>(to), value);
    std::uint32_t rounded = 0;
    write_element(dtype(tensor), &rounded, 0, value);
    between_[id(tensor)][to] = read_element(dtype(tensor), &rounded, 0);
  }

  void multiply(const FakeDescriptor& a, const FakeDescriptor& b, const FakeDescriptor& c) {
    const std::int64_t terms = extents(a)[3];
    for_each_index(extents(c), [&](const Index& at) {
      double sum = 0;
      for (std::int64_t k = 0; k < terms; ++k) sum += read(a, {at[0], at[1], at[2], k}) * read(b, {at[0], at[1], k, at[3]});
      write(c, at, sum);
    });
  }

  void map(const FakeDescriptor& operation) {
    const FakeDescriptor& function = part(operation, Attribute::kPointwiseDescriptor);
    const auto mode = list<cudnn::Pointwise>(function, Attribute::kPointwiseMode).front();
    const auto operand = [&](Attribute attribute, const Index& at) { return operation.values.contains(attribute) ? read(part(operation, attribute), at) : 0; };
    const FakeDescriptor& y = part(operation, Attribute::kPointwiseY);
    for_each_index(extents(y), [&](const Index& at) {
      const double x = operand(Attribute::kPointwiseX, at), b = operand(Attribute::kPointwiseB, at);
      switch (mode) {
        case cudnn::Pointwise::kAdd: return write(y, at, x + b);
        case cudnn::Pointwise::kSub: return write(y, at, x - b);
        case cudnn::Pointwise::kMul: return write(y, at, x * b);
        case cudnn::Pointwise::kDiv: return write(y, at, x / b);
        case cudnn::Pointwise::kExp: return write(y, at, std::exp(x));
        case cudnn::Pointwise::kLog: return write(y, at, std::log(x));
        case cudnn::Pointwise::kGreaterEqual: return write(y, at, x >= b ? 1 : 0);
        case cudnn::Pointwise::kIndex: return write(y, at, static_cast<double>(at[static_cast<std::size_t>(list<std::int64_t>(function, Attribute::kPointwiseAxis).front())]));
        case cudnn::Pointwise::kSelect: return write(y, at, operand(Attribute::kPointwiseT, at) != 0 ? x : b);
      }
    });
  }

  /// Over the last axis.
  void reduce(const FakeDescriptor& operation) {
    const bool adds = list<int>(part(operation, Attribute::kReductionDescriptor), Attribute::kReductionOperator).front() == cudnn::kReduceAdd;
    const FakeDescriptor &x = part(operation, Attribute::kReductionX), &y = part(operation, Attribute::kReductionY);
    for_each_index(extents(y), [&](Index at) {
      double result = read(x, at);
      for (std::int64_t i = 1; i < extents(x).back(); ++i) {
        at.back() = i;
        result = adds ? result + read(x, at) : std::max(result, read(x, at));
      }
      at.back() = 0;
      write(y, at, result);
    });
  }

  /// x as it lies, under other axes.
  void view(const FakeDescriptor& x, const FakeDescriptor& y) {
    std::map<std::int64_t, double> lies;
    for_each_index(extents(x), [&](const Index& at) { lies[offset(x, at)] = read(x, at); });
    for_each_index(extents(y), [&](const Index& at) { write(y, at, lies.at(offset(y, at))); });
  }

  const std::map<std::int64_t, void*>& memory_;
  std::map<std::int64_t, std::map<std::int64_t, double>> between_;  // by id and offset
};

Status get(RawDescriptor raw, Attribute attribute, Type, std::int64_t room, std::int64_t* count, void* values) {
  FakeDescriptor& from = of(raw);
  if (not from.is_final and from.kind != Kind::kEngine) return 2000;
  switch (attribute) {
    case Attribute::kHeuristicsResults: {
      const bool better = list<int>(from, Attribute::kHeuristicsMode).front() == cudnn::kHeuristicsBest;
      const auto known = static_cast<std::int64_t>(better ? cudnn_in_use->recommended.size() : cudnn_in_use->fallback.size());
      *count = values == nullptr ? known : std::min(room, known);
      for (std::int64_t i = 0; values != nullptr and i < *count; ++i) {
        FakeDescriptor& config = of(static_cast<RawDescriptor*>(values)[i]);
        config.engine = static_cast<int>(i) + (better ? 0 : static_cast<int>(cudnn_in_use->recommended.size()));
        config.graph = &part(from, Attribute::kHeuristicsGraph);
        config.is_final = true;
      }
      return 0;
    }
    case Attribute::kConfigEngine: return of(*static_cast<RawDescriptor*>(values)).engine = from.engine, *count = 1, 0;
    case Attribute::kEngineNotes: {
      const auto& notes = engine(from.engine).notes;
      *count = std::min<std::int64_t>(room, static_cast<std::int64_t>(notes.size()));
      std::copy_n(notes.begin(), *count, static_cast<cudnn::Note*>(values));
      return 0;
    }
    case Attribute::kPlanWorkspace: return *static_cast<std::int64_t*>(values) = engine(from.engine).workspace, *count = 1, 0;
    default: return 2000;
  }
}

Status finalize(RawDescriptor raw) {
  FakeDescriptor& descriptor = of(raw);
  if (descriptor.kind == Kind::kExecutionPlan) {
    const FakeDescriptor& config = part(descriptor, Attribute::kPlanConfig);
    descriptor.engine = config.engine, descriptor.graph = config.graph;
    if (not engine(config.engine).builds) return 3000;
  }
  descriptor.is_final = true;
  return 0;
}

}  // namespace

cudnn::Library library_of(FakeCudnn& of_test) {
  cudnn_in_use = &of_test;
  cudnn::Library f;
  f.get_version = [] { return std::size_t{91000}; };
  f.status_text = [](Status) { return "CUDNN_STATUS_EXECUTION_FAILED"; };
  f.last_error = [](char* text, std::size_t bytes) { std::strncpy(text, "as the library puts it", bytes); };
  f.set_stream = [](cudnn::Handle, cuda::StreamHandle) { return 0; };
  f.descriptor_create = [](Kind kind, RawDescriptor* raw) { return ++cudnn_in_use->alive, *raw = new FakeDescriptor{.kind = kind}, 0; };
  f.descriptor_destroy = [](RawDescriptor raw) { return --cudnn_in_use->alive, delete static_cast<FakeDescriptor*>(raw), 0; };
  f.descriptor_finalize = finalize;
  f.descriptor_set = [](RawDescriptor raw, Attribute attribute, Type type, std::int64_t count, const void* values) {
    if (of(raw).is_final) return 2000;
    const auto* bytes = static_cast<const std::byte*>(values);
    of(raw).values[attribute].assign(bytes, bytes + static_cast<std::size_t>(count) * bytes_of(type));
    return 0;
  };
  f.descriptor_get = get;
  f.execute = [](cudnn::Handle, RawDescriptor plan, RawDescriptor pack) {
    ++cudnn_in_use->calls;
    cudnn_in_use->used_engine = of(plan).engine;
    if (cudnn_in_use->next_failure != 0 or not of(pack).is_final) return cudnn_in_use->next_failure;
    const auto ids = list<std::int64_t>(of(pack), Attribute::kPackIds);
    const auto pointers = list<void*>(of(pack), Attribute::kPackPointers);
    std::map<std::int64_t, void*> memory;
    for (std::size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers[i];
    const FakeDescriptor& graph = *of(plan).graph;
    if (const FakeDescriptor& first = part(graph, Attribute::kGraphOperations); first.kind == Kind::kForward or first.kind == Kind::kInputGradient or first.kind == Kind::kWeightGradient) convolve(first, memory);
    else FakeGraph(memory).run(graph);
    return 0;
  };
  add_recurrent_functions(of_test, f);
  return f;
}

}  // namespace hone::test
