// The CPU: which nodes become calls of oneDNN (runtime/library/rows.h). Everything else becomes a generated kernel.
#pragma once

#include "passes/target.h"

namespace hone {

class CpuTarget final : public Target {
 public:
  std::string_view name() const override { return "cpu"; }
  RowChoice choose_row(const Graph& graph, NodeId node) const override;
};

}  // namespace hone
