// NVIDIA's GPUs, and their program played by the host. Products and convolutions are calls of cuBLASLt and cuDNN, with kernels of the same meaning beside them; every other node becomes a generated kernel.
#pragma once

#include "backends/backend.h"

namespace hone {

class CudaTarget : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string why_no_attention(const AttentionTypes& types) const override;
  std::string why_no_recurrence(const RecurrentTypes& types) const override;
  RowChoice choose_row(const Graph& graph, NodeId node) const override;
  bool gives_wide_sums(const OpDef& product) const override;
  std::int64_t row_multiple(const Graph& graph, NodeId product) const override;
  Parallelism parallelism() const override;
  bool has_own_memory() const override { return true; }
  /// PTX for each level, named "sm_90"; and where ptxas is at hand machine code for just that GPU, "sm_90.cubin".
  TargetCode emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const override;
  std::string text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const override;
  bool wants_panels() const override { return false; }  // they are the shape of a processor's tiles
};

/// The CUDA program, its kernels in the same form emitted for the host (backends/llvm/gpu_blocks.h): how everything but speed is tested without a GPU.
class SimTarget final : public CudaTarget {
 public:
  std::string_view name() const override { return "sim"; }
  TargetCode emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const override;
  std::string text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const override;
};

}  // namespace hone
