#include "backends/epilogues.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/parts.h"

namespace hone {

namespace {

using plan::Buffer;
using plan::KernelStep;
using plan::LibraryStep;
using Kind = EpilogueKernel::Kind;

constexpr std::string_view kProduct = "cublaslt.matmul", kWithBias = "cublaslt.matmul_bias", kWithBiasGradient = "cublaslt.matmul_bias_grad";
/// A product waits for its bias behind so many other steps at most: its operands live as long.
constexpr std::size_t kMostBetween = 4;

bool is_axis(const ExprPool& exprs, ExprId id, std::uint32_t axis) { return exprs[id].op == ScalarOp::kIndex and exprs[id].slot == axis; }
bool is_zero(const ExprPool& exprs, ExprId id) {
  const Expr& expr = exprs[id];
  return (expr.op == ScalarOp::kConstFloat and expr.float_value == 0) or (expr.op == ScalarOp::kConstInt and expr.int_value == 0);
}
bool is_plain_load(const Expr& expr) { return expr.op == ScalarOp::kLoad and not expr.guard.valid(); }

/// At the axes first, first + 1, ... of the kernel.
bool is_at(const ExprPool& exprs, const std::vector<ExprId>& index, std::uint32_t first) {
  for (std::uint32_t i = 0; i < index.size(); ++i)
    if (not is_axis(exprs, index[i], first + i)) return false;
  return true;
}

/// A vector along the last axis: other axes have extent 1.
bool is_vector(const Shape& shape, const Dim& columns) { return not shape.empty() and shape.back() == columns and element_count(shape) == columns; }

std::optional<EpilogueKernel> bias_kernel(const Kernel& kernel) {
  const ExprPool& exprs = kernel.exprs;
  const Phase& phase = kernel.phases[0];
  if (kernel.phases.size() != 1 or kernel.outer_count != kernel.axes.size() or kernel.axes.size() < 2 or phase.scatter or not phase.inner.empty() or not phase.reductions.empty() or phase.stores.size() != 1) return std::nullopt;
  const Store& store = phase.stores[0];
  if (store.guard.valid() or store.combine != Combine::kReplace or store.index.size() != kernel.axes.size() or not is_at(exprs, store.index, 0)) return std::nullopt;
  const Dim columns = kernel.axes.back().extent;
  EpilogueKernel found{.kind = Kind::kBias, .result = store.buffer, .columns = columns};
  const Expr* sum = &exprs[store.value];
  if (sum->op == ScalarOp::kMax) {
    found.relu = true;
    const bool zero_first = is_zero(exprs, sum->operands[0]);
    if (not zero_first and not is_zero(exprs, sum->operands[1])) return std::nullopt;
    sum = &exprs[sum->operands[zero_first ? 1 : 0]];
  }
  if (sum->op == ScalarOp::kRoundTo and sum->slot == StorageRounding{.dtype = kernel.buffers[store.buffer].dtype}.packed()) sum = &exprs[sum->operands[0]];  // as the store does; it makes no odds to a relu
  if (sum->op != ScalarOp::kAdd) return std::nullopt;
  const Shape& shape = kernel.buffers[store.buffer].shape;
  for (const std::size_t first : {0U, 1U}) {
    const Expr &values = exprs[sum->operands[first]], &vector = exprs[sum->operands[1 - first]];
    if (not is_plain_load(values) or not is_plain_load(vector) or values.index.size() != kernel.axes.size() or not is_at(exprs, values.index, 0)) continue;
    const Shape& bias = kernel.buffers[vector.slot].shape;
    if (kernel.buffers[values.slot].shape != shape or not is_vector(bias, columns) or not is_axis(exprs, vector.index.back(), static_cast<std::uint32_t>(kernel.axes.size()) - 1)) continue;
    found.values = values.slot, found.vector = vector.slot;
    return found;
  }
  return std::nullopt;
}

std::optional<EpilogueKernel> columns_kernel(const Kernel& kernel) {
  const ExprPool& exprs = kernel.exprs;
  const Reduction* reduction = nullptr;
  const Phase* summing = nullptr;
  const Store* store = nullptr;
  for (const Phase& phase : kernel.phases) {
    if (phase.scatter or phase.reductions.size() + phase.stores.size() > 1) return std::nullopt;
    if (not phase.reductions.empty() and std::exchange(reduction, &phase.reductions[0]) != nullptr) return std::nullopt;
    if (not phase.reductions.empty()) summing = &phase;
    if (not phase.stores.empty() and (not phase.inner.empty() or std::exchange(store, &phase.stores[0]) != nullptr)) return std::nullopt;
  }
  if (reduction == nullptr or store == nullptr or reduction->kind != ReduceKind::kSum or store->guard.valid() or store->combine != Combine::kReplace) return std::nullopt;
  const Expr &stored = exprs[store->value], &values = exprs[reduction->value];
  if (stored.op != ScalarOp::kTemp or stored.slot != reduction->temp or not is_plain_load(values) or values.index.size() != summing->inner.size() + 1 or values.index.size() < 2) return std::nullopt;
  for (std::size_t i = 0; i < summing->inner.size(); ++i)
    if (not is_axis(exprs, values.index[i], summing->inner[i])) return std::nullopt;
  const Expr& column = exprs[values.index.back()];
  if (column.op != ScalarOp::kIndex or column.slot >= kernel.outer_count) return std::nullopt;
  const Dim columns = kernel.axes[column.slot].extent;
  const Shape& shape = kernel.buffers[values.slot].shape;
  for (std::size_t i = 0; i < summing->inner.size(); ++i)
    if (kernel.axes[summing->inner[i]].extent != shape[i]) return std::nullopt;
  if (shape.back() != columns or kernel.outer_size() != columns or not is_vector(kernel.buffers[store->buffer].shape, columns) or not is_axis(exprs, store->index.back(), column.slot)) return std::nullopt;
  return EpilogueKernel{.kind = Kind::kColumns, .values = values.slot, .result = store->buffer, .columns = columns};
}

class Pairing {
 public:
  Pairing(plan::Entry& entry, const KernelSet& kernels, StepNodes* nodes) : entry_(entry), kernels_(kernels), nodes_(nodes) {}

  std::vector<std::string> run() {
    for (plan::Step& step : entry_.steps)
      if (auto* region = std::get_if<plan::RegionStep>(&step.what))
        for (plan::Entry& body : region->bodies)  // the verifier limits the depth
          for (std::string& line : pair_epilogues(body, kernels_, nullptr)) lines_.push_back(std::move(line));
    bool changed = false;
    for (std::size_t i = 0; i < entry_.steps.size();) {
      if (is_free_product(i) and join(i)) changed = true;  // another step may be number i now
      else ++i;
    }
    if (changed) find_live_ranges(entry_);
    return std::move(lines_);
  }

 private:
  LibraryStep& library(std::size_t step) { return std::get<LibraryStep>(entry_.steps[step].what); }
  const Buffer& buffer(std::int64_t number) const { return entry_.buffers[static_cast<std::size_t>(number)]; }
  std::uint32_t root(std::int64_t number) const { return plan::root_of(entry_, static_cast<std::uint64_t>(number)); }
  bool is_in_arena(std::int64_t number) const { return entry_.buffers[root(number)].storage == Buffer::Storage::kArena; }

  bool is_free_product(std::size_t step) const {
    const auto* call = std::get_if<LibraryStep>(&entry_.steps[step].what);
    return call != nullptr and call->row == kProduct and call->own_kernel and not call->epilogue;
  }

  bool is_set(const LibraryStep& product, const char* attribute) const {
    const auto found = product.attributes.find(attribute);
    return found != product.attributes.end() and not found->second.empty() and not found->second[0].is_constant(0);
  }

  /// Does a step in [first, end) touch memory of the buffer, or (kWrites) change it?
  enum class Touch : std::uint8_t { kAny, kWrites };
  bool is_touched(std::size_t first, std::size_t end, std::int64_t number, Touch how) const {
    bool touched = false;
    const std::uint32_t of = root(number);
    for (std::size_t i = first; i < end; ++i) for_each_root(entry_, entry_.steps[i], [&](std::uint32_t each, bool, bool writes) { touched = touched or (each == of and (how == Touch::kAny or writes)); });
    return touched;
  }

  /// The kernel of a step, if it is one that can be part of a call.
  std::optional<EpilogueKernel> kernel_at(std::size_t step, Kind kind) const {
    const auto* call = std::get_if<KernelStep>(&entry_.steps[step].what);
    if (call == nullptr or call->own_part) return std::nullopt;
    const auto found = epilogue_kernel(kernels_.find(call->symbol));
    return found and found->kind == kind ? found : std::nullopt;
  }

  /// With the step of the product at `product` goes the first kernel that can.
  bool join(std::size_t product) { return join_bias(product) or join_bias_gradient(product); }

  /// The only one that reads the product adds a bias to it: both are done there.
  bool join_bias(std::size_t product) {
    const LibraryStep& call = library(product);
    const std::uint32_t y = call.results[0];
    const bool rows_are_a = not is_set(call, "ta") or buffer(call.operands[0]).shape.size() == 2;  // one matrix of all rows
    if (buffer(call.operands[1]).shape.size() != 2 or not rows_are_a or not is_in_arena(y) or std::ranges::any_of(entry_.results, [&](const plan::Result& result) { return root(result.buffer) == root(y); })) return false;
    for (std::size_t i = product + 1; i < std::min(entry_.steps.size(), product + 2 + kMostBetween); ++i) {
      if (not is_touched(i, i + 1, y, Touch::kAny)) {
        const bool is_work = std::holds_alternative<KernelStep>(entry_.steps[i].what) or std::holds_alternative<LibraryStep>(entry_.steps[i].what);
        if (not is_work or std::ranges::any_of(call.operands, [&](std::int64_t operand) { return is_touched(i, i + 1, operand, Touch::kWrites); })) return false;
        continue;
      }
      const auto kernel = kernel_at(i, Kind::kBias);
      if (not kernel) return false;
      const KernelStep& step = std::get<KernelStep>(entry_.steps[i].what);
      const std::uint32_t values = step.buffers[kernel->values], vector = step.buffers[kernel->vector], result = step.buffers[kernel->result];
      const bool fits = root(values) == root(y) and root(vector) != root(y) and is_in_arena(result) and root(result) != root(y) and buffer(result).shape == buffer(y).shape;
      if (not fits or is_touched(0, product, y, Touch::kAny) or is_touched(i + 1, entry_.steps.size(), y, Touch::kAny) or std::ranges::any_of(call.operands, [&](std::int64_t operand) { return root(operand) == root(result); })) return false;
      LibraryStep::Epilogue epilogue{.kernel = step, .row = std::string(kWithBias), .attributes = call.attributes, .operands = {call.operands[0], call.operands[1], vector}, .results = {result}};
      epilogue.attributes["relu"] = {kernel->relu ? 1 : 0};
      epilogue.kernel.buffers[kernel->values] = y;  // it may have read a view of it
      make_one(product, i, i, std::move(epilogue));
      return true;
    }
    return false;
  }

  /// The product makes a weight's gradient of the same rows whose sum is a bias's: the sum can wait for it, or comes ahead.
  bool join_bias_gradient(std::size_t product) {
    const LibraryStep& call = library(product);
    if (buffer(call.operands[0]).shape.size() != 2 or buffer(call.operands[1]).shape.size() != 2 or not is_set(call, "ta") or is_set(call, "tb")) return false;
    for (const std::int64_t of : {1, 0}) {
      const std::int64_t rows = call.operands[static_cast<std::size_t>(of)];
      for (std::size_t i = 0; i < entry_.steps.size(); ++i) {
        const auto kernel = i == product ? std::nullopt : kernel_at(i, Kind::kColumns);
        if (not kernel) continue;
        const KernelStep& step = std::get<KernelStep>(entry_.steps[i].what);
        const std::uint32_t values = step.buffers[kernel->values], result = step.buffers[kernel->result];
        if (root(values) != root(rows) or buffer(rows).shape.back() != kernel->columns or not is_in_arena(result) or root(result) == root(call.results[0]) or root(result) == root(rows)) continue;
        const std::size_t first = std::min(i, product) + 1, end = std::max(i, product);
        const auto is_segments_end = [](const plan::Step& between) { return std::holds_alternative<plan::ReadSizesStep>(between.what); };
        if (std::any_of(entry_.steps.begin() + static_cast<std::ptrdiff_t>(first), entry_.steps.begin() + static_cast<std::ptrdiff_t>(end), is_segments_end)) continue;
        if (is_touched(first, end, values, Touch::kWrites) or is_touched(first, end, result, Touch::kAny) or is_touched(product, product + 1, result, Touch::kAny)) continue;
        LibraryStep::Epilogue epilogue{.kernel = step, .row = std::string(kWithBiasGradient), .attributes = call.attributes, .operands = call.operands, .results = {call.results[0], result}};
        epilogue.attributes["of"] = {of};
        epilogue.kernel.buffers[kernel->values] = static_cast<std::uint32_t>(rows);  // it may have read another view of them
        make_one(product, i, product, std::move(epilogue));
        return true;
      }
    }
    return false;
  }

  /// Of both steps, where `at` is, which is one of them.
  void make_one(std::size_t product, std::size_t kernel, std::size_t at, LibraryStep::Epilogue epilogue) {
    plan::Step& made = entry_.steps[product];
    const plan::Step& other = entry_.steps[kernel];
    for (const std::string& node : other.nodes)
      if (std::ranges::find(made.nodes, node) == made.nodes.end()) made.nodes.push_back(node);
    made.flops = made.flops + other.flops;
    made.bytes = made.bytes + other.bytes;
    lines_.push_back(fmt::format("{} and {}, or both as {}  // {}", library(product).row, epilogue.kernel.symbol, epilogue.row, made.origin));
    library(product).epilogue = std::move(epilogue);
    const std::size_t gone = at == product ? kernel : product;
    if (gone == product) std::swap(entry_.steps[product], entry_.steps[kernel]);
    entry_.steps.erase(entry_.steps.begin() + static_cast<std::ptrdiff_t>(gone));
    if (nodes_ == nullptr) return;
    auto &kept = (*nodes_)[at], &added = (*nodes_)[gone];
    kept.insert(kept.end(), added.begin(), added.end());
    std::ranges::sort(kept, {}, &NodeId::index);
    nodes_->erase(nodes_->begin() + static_cast<std::ptrdiff_t>(gone));
  }

  plan::Entry& entry_;
  const KernelSet& kernels_;
  StepNodes* nodes_;
  std::vector<std::string> lines_;
};

}  // namespace

std::optional<EpilogueKernel> epilogue_kernel(const Kernel& kernel) {
  if (kernel.phases.empty()) return std::nullopt;
  if (auto found = bias_kernel(kernel)) return found;
  return columns_kernel(kernel);
}

std::vector<std::string> pair_epilogues(plan::Entry& entry, const KernelSet& kernels, StepNodes* nodes) { return Pairing(entry, kernels, nodes).run(); }

}  // namespace hone
