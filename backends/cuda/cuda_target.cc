#include "backends/cuda/cuda_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "backends/cuda/ptxas.h"
#include "backends/cuda/registers.h"
#include "backends/library_rows.h"
#include "backends/llvm/emit.h"
#include "base/parallel.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"

namespace hone {

namespace {

/// What a simulation's kernels are compiled for: they are run for what they compute, so one level does, and LLVM need not try hard.
constexpr int kSimLevel = 1;
EmitOptions sim_options(const CodeLevels& levels) { return {.cpu = levels.cpu.front(), .opt_level = kSimLevel, .form = KernelForm::kBlocks}; }

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

/// The latest of the GPUs that the PTX for the highest level is for, and since which release ptxas can say what becomes of it there.
constexpr std::pair<const char*, int> kLatestGpu = {"sm_100", 1208};

/// Sums are f32 whatever is multiplied; a GPU's f64 is for kernels.
std::string is_narrow_enough(const Graph& graph, const Node& node) {
  const DType dtype = graph.type(node.operands[0]).dtype;
  const bool fits = dtype == DType::kF32 or dtype == DType::kBF16 or dtype == DType::kF16;
  return fits ? "" : fmt::format("{} operands: the row is for f32, bf16 and f16", to_string(dtype));
}

std::string fits_cublaslt(const Graph& graph, const Node& node) {
  const std::string why = fits_matmul(graph, node);
  return why.empty() ? is_narrow_enough(graph, node) : why;
}

/// cuDNN 9 recommends no engine for narrow operands and a result of f32.
std::string fits_cudnn(const Graph& graph, const Node& node) {
  if (const std::string why = fits_conv(node); not why.empty()) return why;
  const DType dtype = graph.type(node.operands[0]).dtype, result = graph.type(node.results[0]).dtype;
  if (dtype != result) return fmt::format("{} operands and a result of {}: cuDNN gives the type that it multiplies", to_string(dtype), to_string(result));
  return is_narrow_enough(graph, node);
}

std::string takes_all(const Graph&, const Node&) { return ""; }

/// Each with the program's own kernel beside it, for where the library is not there or does not take the sizes (plan::LibraryStep::own_kernel); what several kernels do, with a body.
constexpr TargetRow kCudaRows[] = {
    {&op::matmul, "cublaslt.matmul", fits_cublaslt},
    {&op::conv, "cudnn.conv", fits_cudnn},
    {&op::conv_input_grad, "cudnn.conv_input_grad", fits_cudnn},
    {&op::conv_weight_grad, "cudnn.conv_weight_grad", fits_cudnn},
};

/// Whether they fit was asked before anything was differentiated (why_no_attention, why_no_recurrence).
constexpr TargetRow kWholeRows[] = {
    {&op::fused_attention, "cudnn.attention", takes_all},
    {&op::fused_attention_grad, "cudnn.attention_grad", takes_all},
    {&op::recurrent, "cudnn.recurrent", takes_all},
    {&op::recurrent_grad, "cudnn.recurrent_grad", takes_all},
};

}  // namespace

RowChoice CudaTarget::choose_row(const Graph& graph, NodeId node) const {
  if (graph.node(node).op->whole) return choose_among(kWholeRows, graph, node, takes_all);
  return choose_among(kCudaRows, graph, node, too_few_products);
}

/// What cuDNN 9 has engines for, forward and backward.
std::string CudaTarget::why_no_attention(const AttentionTypes& types) const {
  constexpr std::int64_t kMostFeatures = 128, kFeaturesAtOnce = 8;
  for (const Dim& features : {types.query[3], types.value[3]}) {
    if (not features.is_constant() or features.value() % kFeaturesAtOnce != 0 or features.value() > kMostFeatures)
      return fmt::format("cudnn.attention: heads of {} features; the row is for multiples of {} up to {}", features.text(), kFeaturesAtOnce, kMostFeatures);
  }
  return types.query[3] == types.value[3] ? "" : "cudnn.attention: keys and values of different features";
}

/// cuDNN counts sizes in 32 bits, which those that are known now must fit; the others are looked at when they are.
std::string CudaTarget::why_no_recurrence(const RecurrentTypes& types) const {
  for (const Dim& size : {types.steps, types.samples, types.features, types.hidden})
    if (size.is_constant() and (size.value() < 1 or size.value() > INT32_MAX / gates_of(types.cell))) return fmt::format("cudnn.recurrent: a size of {}", size.value());
  return "";
}

/// cuDNN's result has its operands' type (fits_cudnn).
bool CudaTarget::gives_wide_sums(const OpDef& product) const { return product == op::matmul; }

/// Tensor cores are fed 16 bytes at a time. cuBLASLt 13.1 on an H200 multiplies [8192,768] by [768,50257] in bf16 at a fifth of the speed that it has with 50264 columns.
std::int64_t CudaTarget::row_multiple(const Graph& graph, NodeId product) const {
  constexpr std::int64_t kBytes = 16;
  const Node& node = graph.node(product);
  if (*node.op != op::matmul or choose_row(graph, product).row.empty()) return 0;
  const DType dtype = graph.type(node.operands[0]).dtype;
  return dtype != DType::kF32 or node.attrs[kTf32] ? kBytes / static_cast<std::int64_t>(size_of(dtype)) : 1;
}

/// Some 130 processors, each with two blocks; rows whose elements lie side by side go 32 to a block (backends/llvm/gpu_schedule.h).
Parallelism CudaTarget::parallelism() const { return {.fewest_rows = 4096, .short_unknown_row = 512, .neighbours = 32, .fewest_shares = 256, .fewest_elements = 1 << 15}; }

TargetCode CudaTarget::emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const {
  const std::optional<std::string> ptxas = find_ptxas();
  std::vector<std::string> ptx(levels.gpu.size());
  std::vector<std::vector<std::byte>> cubins(levels.gpu.size());
  on_all_cores(levels.gpu.size(), [&](std::size_t i) {
    ptx[i] = compile_ptx(kernels, {.cpu = levels.gpu[i]});
    if (not ptxas) return;
    std::vector<std::string> gpus = {levels.gpu[i]};
    if (i + 1 == levels.gpu.size() and release_of(*ptxas) >= kLatestGpu.second) gpus.emplace_back(kLatestGpu.first);
    Roomy roomy = without_spills(*ptxas, std::move(ptx[i]), gpus);
    ptx[i] = std::move(roomy.ptx);
    cubins[i] = std::move(roomy.assembled.cubin);
  });
  TargetCode code;
  for (std::size_t i = 0; i < levels.gpu.size(); ++i) {
    code.emplace_back(levels.gpu[i], bytes_of(ptx[i]));
    if (not cubins[i].empty()) code.emplace_back(levels.gpu[i] + ".cubin", std::move(cubins[i]));
  }
  return code;
}

std::string CudaTarget::text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const { return emit_texts(kernels, options_for(levels.gpu), kind); }

TargetCode SimTarget::emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const {
  return {{levels.cpu.front(), compile_shared_object(kernels, sim_options(levels))}};
}

std::string SimTarget::text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const {
  const EmitOptions options = sim_options(levels);
  return kind == "llvm" or kind == "asm" ? emit_texts(kernels, {&options, 1}, kind) : "";
}

}  // namespace hone
