#include "backends/llvm/kept_rows.h"

#include <algorithm>
#include <optional>

#include "backends/cost_model.h"

namespace hone {

namespace {

constexpr std::int64_t kLongestRow = 4096;  // elements: a few of them lie in the first level cache
constexpr int kCheap = 8;                   // in additions: what costs no more is worked out in each phase

/// The number of inner points, where all phases that have inner axes walk the same ones and it is known.
std::optional<std::int64_t> row_length(const Kernel& kernel, const Nest& nest) {
  const std::vector<std::uint32_t>* axes = nullptr;
  for (std::size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    if (kernel.phases[phase].scatter or (axes != nullptr and not nest.inner[phase].empty() and *axes != nest.inner[phase])) return std::nullopt;
    if (not nest.inner[phase].empty()) axes = &nest.inner[phase];
  }
  if (axes == nullptr) return std::nullopt;
  std::int64_t length = 1;
  for (const std::uint32_t axis : *axes) {
    if (not nest.extents[axis].is_constant() or nest.extents[axis].value() > kLongestRow) return std::nullopt;
    length *= nest.extents[axis].value();
    if (length > kLongestRow) return std::nullopt;
  }
  return length;
}

}  // namespace

KeptRows::KeptRows(const Kernel& kernel, const Nest& nest, Point& point) : nest_(nest), point_(point) {
  if (const std::optional<std::int64_t> length = row_length(kernel, nest)) choose(kernel, *length);
}

/// Users stand behind their operands: an expression that only kept ones use is seen in one phase, that of the first of them.
void KeptRows::choose(const Kernel& kernel, std::int64_t length) {
  const std::vector<std::uint64_t> axes_of = axes_of_expressions(kernel);
  std::vector<std::vector<bool>> reached;  // by phase, what it works out by itself
  for (const Phase& phase : kernel.phases) {
    std::vector<bool>& marks = reached.emplace_back(kernel.exprs.size());
    for (const Reduction& reduction : phase.reductions) marks[reduction.value.index] = true;
    for (const Store& store : phase.stores) {
      marks[store.value.index] = true;
      if (store.guard.valid()) marks[store.guard.index] = true;
    }
  }
  for (std::size_t i = kernel.exprs.size(); i-- > 0;) {
    const Expr& e = kernel.exprs[ExprId(i)];
    const bool moves_along_row = axes_of[i] >> kernel.outer_count != 0;
    const auto first = std::ranges::find_if(reached, [i](const std::vector<bool>& marks) { return marks[i]; });
    const auto phases = std::ranges::count_if(reached, [i](const std::vector<bool>& marks) { return marks[i]; });
    const bool keep = phases > 1 and moves_along_row and e.dtype == DType::kF32 and cost_of(e.op) > kCheap;
    if (keep) {
      rows_.emplace(ExprId(i), Row{static_cast<std::size_t>(first - reached.begin()), point_.array(point_.ir.getFloatTy(), length)});
    }
    for (auto marks = first; marks != reached.end(); ++marks) {
      if (not(*marks)[i] or (keep and marks != first)) continue;
      for (int k = 0; k < info(e.op).operands; ++k) (*marks)[e.operands[k].index] = true;
      for (const ExprId index : e.index) (*marks)[index.index] = true;
      if (e.guard.valid()) (*marks)[e.guard.index] = true;
    }
  }
}

void KeptRows::begin(std::size_t phase) {
  for (const auto& [id, row] : rows_) {
    point_.restore(id);
    if (row.first_phase < phase) {
      point_.replace(id, [this, &row, phase] { return point_.read(element(row, phase), DType::kF32); });
    } else if (row.first_phase == phase) {
      point_.replace(id, [this, &row, phase, id] {
        llvm::Value* value = point_.formula(id);
        point_.write(element(row, phase), value);
        return value;
      });
    }
  }
}

/// Of the current inner point.
llvm::Value* KeptRows::element(const Row& row, std::size_t phase) {
  llvm::Value* number = point_.ir.getInt64(0);
  for (const std::uint32_t axis : nest_.inner[phase])
    number = point_.ir.CreateNSWAdd(point_.ir.CreateNSWMul(number, point_.size(nest_.extents[axis])), point_.index(axis));
  return point_.ir.CreateInBoundsGEP(point_.ir.getFloatTy(), row.elements, number);
}

}  // namespace hone
