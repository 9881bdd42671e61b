#include "backends/cpu/cpu_target.h"

#include <fmt/format.h>

#include "backends/cpu/own_kernels.h"
#include "backends/library_rows.h"
#include "backends/llvm/emit.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"

namespace hone {

namespace {

/// The first operand is data in every row here; later ones have its type, or are positions.
std::string all_f32(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  return dtype == DType::kF32 ? "" : fmt::format("{} operands: the row is for f32", to_string(dtype));
}

/// The same for products, whose operands may be bf16, and results then either: where a processor has no instructions for that, the row widens its operands.
std::string all_f32_or_bf16(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  return dtype == DType::kF32 or dtype == DType::kBF16 ? "" : fmt::format("{} operands: the row is for f32 and bf16", to_string(dtype));
}

std::string accepts_matmul(const Graph& graph, const Node& node) {
  const std::string why = fits_matmul(graph, node);
  return why.empty() ? all_f32_or_bf16(graph, node) : why;
}

std::string accepts_conv(const Graph& graph, const Node& node) {
  const std::string why = fits_conv(node);
  return why.empty() ? all_f32_or_bf16(graph, node) : why;
}

/// Pooling of x to y: windows must not hang over the padded input (ONNX's ceil_mode), nor leave gaps in themselves.
std::string fits_pooling(const Attrs& attrs, const Shape& x, const Shape& y) {
  const std::span<const Dim> inputs = spatial(attrs, x), outputs = spatial(attrs, y);
  if (inputs.empty() or inputs.size() > 3) return fmt::format("{} spatial axes: the row has 1 to 3", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (attrs[kDilations][i] != 1) return "dilated windows";
    const Dim begin = attrs[kPadsBegin][i], end = attrs[kPadsEnd][i], window = attrs[kKernel][i];
    if (not begin.is_constant() or not end.is_constant() or begin.value() < 0 or end.value() < 0 or begin.value() >= window.value() or end.value() >= window.value())
      return "pads that are not known, negative, or as large as the window";
    if (floordiv(inputs[i] + begin + end - window, attrs[kStrides][i]) + 1 != outputs[i]) return "windows that hang over the padded input (ceil_mode)";
  }
  return "";
}

/// Max-pooling and its gradient share an opaque workspace: either all nodes around one `window` result take the row, or none.
std::string accepts_max_pool(const Graph& graph, const Node& node) {
  if (std::string why = fits_pooling(node.attrs, graph.type(node.operands[0]).shape, graph.type(node.results[0]).shape); not why.empty()) return why;
  const ValueId window = node.results[1];
  for (const Output& output : graph.outputs())
    if (output.value == window) return "its window numbers are an output";
  for (const Node& reader : graph.nodes())
    for (std::size_t i = 0; i < reader.operands.size(); ++i)
      if (reader.operands[i] == window and not(*reader.op == op::max_pool_grad and i == 1)) return fmt::format("its window numbers are read by {}", reader.op->name);
  return all_f32(graph, node);
}

std::string accepts_max_pool_grad(const Graph& graph, const Node& node) {
  if (not graph.is_op(node.operands[1], op::max_pool)) return "its window numbers come from somewhere else than max_pool";
  return accepts_max_pool(graph, graph.producer(node.operands[1]));
}

std::string accepts_avg_pool(const Graph& graph, const Node& node) {
  const std::string why = fits_pooling(node.attrs, graph.type(node.operands[0]).shape, graph.type(node.results[0]).shape);
  return why.empty() ? all_f32(graph, node) : why;
}

std::string accepts_avg_pool_grad(const Graph& graph, const Node& node) {
  const std::string why = fits_pooling(node.attrs, graph.type(node.results[0]).shape, graph.type(node.operands[0]).shape);
  return why.empty() ? all_f32(graph, node) : why;
}

constexpr TargetRow kCpuRows[] = {
    {&op::matmul, "onednn.matmul", accepts_matmul},
    {&op::conv, "onednn.conv", accepts_conv},
    {&op::conv_input_grad, "onednn.conv_input_grad", accepts_conv},
    {&op::conv_weight_grad, "onednn.conv_weight_grad", accepts_conv},
    {&op::max_pool, "onednn.max_pool", accepts_max_pool},
    {&op::max_pool_grad, "onednn.max_pool_grad", accepts_max_pool_grad},
    {&op::avg_pool, "onednn.avg_pool", accepts_avg_pool},
    {&op::avg_pool_grad, "onednn.avg_pool_grad", accepts_avg_pool_grad},
};

}  // namespace

RowChoice CpuTarget::choose_row(const Graph& graph, NodeId node) const { return choose_among(kCpuRows, graph, node, better_as_kernel); }

std::int64_t CpuTarget::parts_of_weight_gradient(const Graph& graph, NodeId node) const { return parts_of_own_gradient(graph, node); }

TargetCode CpuTarget::emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const {
  const std::vector<EmitOptions> processors = options_for(levels.cpu);
  std::vector<std::vector<std::byte>> objects = compile_shared_objects(kernels, processors);
  TargetCode code;
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (not objects[i].empty()) code.emplace_back(levels.cpu[i], std::move(objects[i]));
  return code;
}

std::string CpuTarget::text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const {
  return kind == "llvm" or kind == "asm" ? emit_texts(kernels, options_for(levels.cpu), kind) : "";
}

}  // namespace hone
