#include "runtime/device/cudnn_conv.h"

#include <fmt/format.h>

#include <algorithm>

namespace hone::cudnn {

namespace {

/// By which the calls' pack names the tensors.
constexpr std::int64_t kX = 1, kWeight = 2, kY = 3;

/// The library has two spatial axes at least: a first one of extent 1 is put in front of a single one.
TensorLayout of_two_spatial_axes(TensorLayout layout) {
  if (layout.extents.size() != 3) return layout;
  const std::int64_t whole = layout.extents[2] * layout.strides[2];
  layout.extents.insert(layout.extents.begin() + 2, 1);
  layout.strides.insert(layout.strides.begin() + 2, whole);
  return layout;
}

TensorLayout plain(const TensorType& type) { return of_two_spatial_axes({type.dtype, type.shape, row_major(type.shape)}); }

TensorLayout activation(const LibrarySpec& spec, const TensorType& type) {
  TensorLayout layout{type.dtype, type.shape, row_major(type.shape)};
  if (attribute_or(spec, "channels_last", 0) != 0)
    for (std::vector<std::int64_t>* numbers : {&layout.extents, &layout.strides}) std::rotate(numbers->begin() + 1, numbers->end() - 1, numbers->end());
  return of_two_spatial_axes(std::move(layout));
}

/// How far windows reach behind x: with as much in front the library has most to offer, if that gives as many windows; else what the last window needs.
std::int64_t pad_behind(std::int64_t input, std::int64_t kernel, std::int64_t output, std::int64_t stride, std::int64_t dilation, std::int64_t in_front) {
  const std::int64_t reach = (kernel - 1) * dilation + 1;
  const std::int64_t even = input + 2 * in_front - reach;
  if (even >= 0 and even / stride + 1 == output) return in_front;
  return std::max<std::int64_t>(0, (output - 1) * stride + reach - input - in_front);
}

struct Pass {
  Kind kind;
  std::string_view row;
  Attribute alpha;  ///< behind it come beta, the window, the weight, x and y, of which one is the result
};
constexpr Pass kPasses[] = {
    {Kind::kForward, "cudnn.conv", Attribute::kForwardAlpha},
    {Kind::kInputGradient, "cudnn.conv_input_grad", Attribute::kInputGradientAlpha},
    {Kind::kWeightGradient, "cudnn.conv_weight_grad", Attribute::kWeightGradientAlpha},
};

Attribute behind(Attribute attribute, int by) { return static_cast<Attribute>(static_cast<int>(attribute) + by); }

class ConvolutionCall final : public DeviceCall {
 public:
  ConvolutionCall(const Library& library, Handle handle, Kind pass, std::shared_ptr<const OperationGraph> graph, Plan plan, cuda::UseStream use)
      : library_(library), handle_(handle), pass_(pass), graph_(std::move(graph)), plan_(std::move(plan)), use_(std::move(use)) {}

  std::size_t scratch_bytes() const override { return plan_.scratch; }

  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    const auto pointer = [](const std::byte* memory) { return const_cast<std::byte*>(memory); };
    // As the rows have them: x and weight to y; dy and weight to dx; x and dy to dw.
    const std::int64_t first = pass_ == Kind::kInputGradient ? kY : kX, second = pass_ == Kind::kWeightGradient ? kY : kWeight;
    const std::int64_t ids[] = {first, second, kX + kWeight + kY - first - second};
    void* const pointers[] = {pointer(operands[0]), pointer(operands[1]), results[0]};
    put_plan(library_, handle_, plan_, use_(stream), ids, pointers, scratch);
  }

 private:
  const Library& library_;
  const Handle handle_;
  const Kind pass_;
  const std::shared_ptr<const OperationGraph> graph_;  ///< outlives the plan
  const Plan plan_;
  const cuda::UseStream use_;
};

}  // namespace

Convolution convolution_of(const LibraryRow& row, const LibrarySpec& spec) {
  const Pass& pass = *std::ranges::find(kPasses, row.name, &Pass::row);
  const TensorType &first = *spec.operands[0], &second = *spec.operands[1], &result = spec.results[0];
  const bool forward = pass.kind == Kind::kForward, of_weight = pass.kind == Kind::kWeightGradient;
  Convolution convolution{.pass = pass.kind,
                          .x = activation(spec, forward or of_weight ? first : result),
                          .weight = plain(of_weight ? result : second),
                          .y = activation(spec, forward ? result : of_weight ? second : first),
                          .tf32 = attribute_or(spec, "tf32", 0) != 0};
  const std::size_t space = convolution.x.extents.size() - 2, given = first.shape.size() - 2;
  const auto attribute = [&](std::string_view name, std::int64_t otherwise) {
    std::vector<std::int64_t> numbers = attribute_or(spec, name, std::vector<std::int64_t>(given, otherwise));
    numbers.insert(numbers.begin(), space - given, otherwise);
    return numbers;
  };
  convolution.strides = attribute("strides", 1);
  convolution.dilations = attribute("dilations", 1);
  convolution.pads_begin = attribute("pads_begin", 0);
  for (std::size_t i = 0; i < space; ++i)
    convolution.pads_end.push_back(
        pad_behind(convolution.x.extents[2 + i], convolution.weight.extents[2 + i], convolution.y.extents[2 + i], convolution.strides[i], convolution.dilations[i], convolution.pads_begin[i]));
  return convolution;
}

OperationGraph::OperationGraph(const Library& library, const Convolution& convolution) {
  const auto tensor = [&](std::int64_t id, const TensorLayout& layout) -> const Descriptor& {
    Descriptor& made = parts_.emplace_back(library, Kind::kTensor);
    made.set(Attribute::kTensorType, Type::kDataType, type_of(layout.dtype));
    made.set(Attribute::kTensorExtents, layout.extents);
    made.set(Attribute::kTensorStrides, layout.strides);
    made.set(Attribute::kTensorId, Type::kInt64, id);
    made.set(Attribute::kTensorAlignment, Type::kInt64, static_cast<std::int64_t>(kLibraryAlignment));
    made.finalize();
    return made;
  };
  parts_.reserve(5);  // they are referred to
  const Descriptor &x = tensor(kX, convolution.x), &weight = tensor(kWeight, convolution.weight), &y = tensor(kY, convolution.y);
  Descriptor& window = parts_.emplace_back(library, Kind::kConvolution);
  window.set(Attribute::kComputeType, Type::kDataType, kFloat);
  window.set(Attribute::kConvolutionMode, Type::kConvolutionMode, kCrossCorrelation);
  window.set(Attribute::kSpatialAxes, Type::kInt64, static_cast<std::int64_t>(convolution.strides.size()));
  window.set(Attribute::kStrides, convolution.strides);
  window.set(Attribute::kDilations, convolution.dilations);
  window.set(Attribute::kPadsBegin, convolution.pads_begin);
  window.set(Attribute::kPadsEnd, convolution.pads_end);
  window.finalize();
  const Pass& pass = *std::ranges::find(kPasses, convolution.pass, &Pass::kind);
  Descriptor& operation = parts_.emplace_back(library, convolution.pass);
  operation.set(pass.alpha, Type::kFloat, 1.0F);
  operation.set(behind(pass.alpha, 1), Type::kFloat, 0.0F);
  operation.set(behind(pass.alpha, 2), window);
  operation.set(behind(pass.alpha, 3), weight);
  operation.set(behind(pass.alpha, 4), x);
  operation.set(behind(pass.alpha, 5), y);
  operation.finalize();
  graph_ = Descriptor(library, Kind::kGraph);
  graph_.set(Attribute::kGraphOperations, operation);
  graph_.finalize();
}

std::vector<Plan> choose_plans(const Library& library, const OperationGraph& graph, const Descriptor& device, const Convolution& convolution, std::size_t most_scratch, std::size_t most) {
  return choose_plans(library, graph.graph(), device, {.are_f32 = convolution.x.dtype == DType::kF32, .tf32 = convolution.tf32}, most_scratch, most);
}

std::vector<Candidate> make_convolutions(const Library& library, Handle handle, const Descriptor& device, const LibraryRow& row, const LibrarySpec& spec, const cuda::UseStream& use, std::size_t most, std::string* why_not) {
  const Convolution convolution = convolution_of(row, spec);
  std::vector<Candidate> candidates;
  try {
    const auto graph = std::make_shared<const OperationGraph>(library, convolution);
    for (Plan& plan : choose_plans(library, *graph, device, convolution, device_scratch(spec), most)) {
      std::string name = plan.name;
      candidates.push_back({std::move(name), std::make_unique<ConvolutionCall>(library, handle, convolution.pass, graph, std::move(plan), use)});
    }
  } catch (const Refused& refused) {
    if (why_not != nullptr) *why_not = refused.what;
  }
  return candidates;
}

}  // namespace hone::cudnn
