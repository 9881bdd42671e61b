// The CPU: which nodes become calls of oneDNN (runtime/library/rows.h). Everything else becomes a generated kernel.
#pragma once

#include "backends/backend.h"

namespace hone {

class CpuTarget final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  RowChoice choose_row(const Graph& graph, NodeId node) const override;
  std::int64_t parts_of_weight_gradient(const Graph& graph, NodeId node) const override;
  TargetCode emit(std::span<const Kernel* const> kernels, const CodeLevels& levels) const override;
  std::string text(std::span<const Kernel* const> kernels, std::string_view kind, const CodeLevels& levels) const override;
  bool wants_panels() const override { return true; }
};

}  // namespace hone
