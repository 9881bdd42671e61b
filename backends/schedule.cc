#include "backends/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "backends/above_diagonal.h"
#include "backends/kernel_cost.h"
#include "backends/llvm/emit.h"
#include "backends/panel_kernels.h"
#include "backends/panels.h"
#include "backends/parts.h"
#include "backends/recompute.h"
#include "base/hash.h"
#include "ir/kernel/compute.h"
#include "ir/kernel/fused.h"
#include "ir/kernel/scalar_math.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "runtime/library/rows.h"

namespace hone {

using plan::Buffer;

namespace {

std::string key_of_constant(const Graph& graph, const Input& input) { return fmt::format("{} {:016x}", to_string(graph.type(input.value)), hash_of(input.data->bytes())); }

}  // namespace

std::uint32_t PersistentSet::add(const Graph& graph, const Input& input) {
  HONE_CHECK(input.data.has_value(), fmt::format("\"{}\" has no data to start from", input.name));
  if (input.role == Role::kConstant) {
    const auto [found, is_new] = constants_.try_emplace(key_of_constant(graph, input), static_cast<std::uint32_t>(persistents_.size()));
    if (is_new) persistents_.push_back({"", plan::Persistent::Role::kConstant, false, false, *input.data});  // named by take(), when no more weights come
    return found->second;
  }
  const auto [found, is_new] = by_name_.try_emplace(input.name, static_cast<std::uint32_t>(persistents_.size()));
  if (is_new)
    persistents_.push_back(
        {input.name, input.role == Role::kWeight ? plan::Persistent::Role::kWeight : plan::Persistent::Role::kState, false, false, *input.data});
  return found->second;
}

void PersistentSet::name_constants() {
  std::size_t number = 0;
  for (plan::Persistent& persistent : persistents_) {
    if (persistent.role != plan::Persistent::Role::kConstant or not persistent.name.empty()) continue;
    do persistent.name = fmt::format("constant {}", ++number);
    while (by_name_.contains(persistent.name));  // a model may call its weights so
  }
}

std::string PersistentSet::name_of_constant(const Graph& graph, const Input& input) const {
  const auto found = constants_.find(key_of_constant(graph, input));
  return found == constants_.end() ? "" : persistents_[found->second].name;
}

namespace {

class Scheduler {
 public:
  /// `repeats`: the graph is the body of a loop.
  Scheduler(Fusion fusion, KernelSet& kernels, PersistentSet& persistents, const PassChoice& passes, const DescribeFeed& describe_feed, bool repeats = false)
      : repeats_(repeats),
        fusion_(std::move(fusion)),
        graph_(fusion_.graph),
        node_kernels_(graph_),
        above_diagonal_(graph_),
        passes_(passes),
        kernels_(kernels),
        persistents_(persistents),
        describe_feed_(describe_feed),
        buffers_(graph_.value_count()),
        states_(graph_.value_count()) {}

  ScheduledEntry run() {
    entry_.name = graph_.name;
    entry_.equations = graph_.equations();
    for (const Input& input : graph_.inputs())
      if (input.role == Role::kInput) buffer_of(input.value);
    find_last_reads();
    for (const Alias& alias : graph_.aliases()) states_[alias.value.index] = alias.state;
    for (std::size_t i = 0; i < graph_.node_count(); ++i) place(NodeId(i));
    placed_.clear();
    std::vector<std::uint32_t> new_values;
    for (const Alias& alias : graph_.aliases()) new_values.push_back(kept(alias.value));
    for (const Output& output : graph_.outputs()) entry_.results.push_back({output.name, kept(output.value)});
    for (std::size_t i = 0; i < new_values.size(); ++i) finish_alias(graph_.aliases()[i], new_values[i]);
    find_live_ranges(entry_);
    return {std::move(entry_), std::move(fusion_.graph), std::move(nodes_)};
  }

 private:
  // --- Buffers ---

  std::uint32_t add_buffer(ValueId value, Buffer::Storage storage, std::uint32_t index) {
    const Value& v = graph_.value(value);
    entry_.buffers.push_back({.name = v.name, .dtype = v.type.dtype, .shape = v.type.shape, .storage = storage, .index = index});
    return static_cast<std::uint32_t>(entry_.buffers.size() - 1);
  }

  /// The buffer of a value, made at its first use.
  std::uint32_t buffer_of(ValueId value) {
    std::optional<std::uint32_t>& buffer = buffers_[value.index];
    if (buffer) return *buffer;
    const Input* input = graph_.input_of(value);
    if (graph_.is_op(value, op::reshape)) {
      buffer = add_buffer(value, Buffer::Storage::kView, buffer_of(graph_.producer(value).operands[0]));
    } else if (input == nullptr) {
      buffer = add_buffer(value, Buffer::Storage::kArena, 0);
    } else if (input->role == Role::kInput) {
      buffer = add_buffer(value, Buffer::Storage::kFeed, static_cast<std::uint32_t>(entry_.feeds.size()));
      entry_.feeds.push_back(describe_feed_(graph_, *input));
    } else {
      buffer = add_buffer(value, Buffer::Storage::kPersistent, persistents_.add(graph_, *input));
    }
    return *buffer;
  }

  void make_view(ValueId value, std::uint32_t of) { buffers_[value.index] = add_buffer(value, Buffer::Storage::kView, of); }

  // --- Steps ---

  void add_step(decltype(plan::Step::what) what, const Node& node, const KernelCost& cost = {}) {
    const std::string where = to_string(node.loc);
    plan::Step step{.what = std::move(what), .origin = fmt::format("{}: {}{}{}", to_string(node.part), node.op->name, where.empty() ? "" : " ", where), .flops = cost.flops, .bytes = cost.bytes};
    const auto name = [&](const std::string& of) {
      if (not of.empty() and std::ranges::find(step.nodes, of) == step.nodes.end()) step.nodes.push_back(of);
    };
    for (const NodeId placed : placed_) name(graph_.node(placed).loc.node);
    push_step(std::move(step));
  }
  void push_step(plan::Step step) {
    entry_.steps.push_back(std::move(step));
    nodes_.push_back(placed_);
  }

  void place(NodeId id) {
    const Node& node = graph_.node(id);
    placed_ = {id};
    if (*node.op == op::reshape) return;  // a view, made where it is read; between members of a group there is none
    if (not node.attrs[kRow].empty() and node.op->region == Region::kNone) return place_library_call(id);
    if (node.op->host != nullptr) return place_host_call(id);
    if (node.op->binds) return place_read(node);
    if (node.op->collective) return place_all_reduce(node);
    if (node.op->region != Region::kNone) return place_region(node);
    const Group& group = fusion_.group(id);
    if (group.members.back() != id) return;  // its last member stands for it
    const bool can_be_fused = node_kernels_.of(id).kind != NodeKernel::Kind::kOther, all_read = group.stored.size() == node.results.size();
    if (group.members.size() == 1 and node.op->scalar == nullptr and (all_read or not can_be_fused)) place_kernel(id);
    else place_group(group);  // without the results that nobody reads
  }

  void place_group(const Group& group) {
    if (group.stored.empty()) return;
    placed_ = group.members;
    const NodeId last = group.members.back();
    FusedKernel made = fused_kernel(node_kernels_, group.members, group.stored);
    HONE_CHECK(made.why_not.empty(), "a group that cannot be one kernel: " + made.why_not);
    update_in_place(last, group.stored, made.buffers, &made.kernel);
    add_kernel_step(std::move(made.kernel), made.buffers, graph_.node(last));
  }

  void place_kernel(NodeId id) {
    const Node& node = graph_.node(id);
    Kernel kernel = kernel_of(graph_, id);
    std::vector<ValueId> values = node.operands;
    values.insert(values.end(), node.results.begin(), node.results.end());
    update_in_place(id, node.results, values, &kernel);
    add_kernel_step(std::move(kernel), values, node);
  }

  /// `values` are what the kernel's buffers hold.
  void add_kernel_step(Kernel kernel, const std::vector<ValueId>& values, const Node& node) {
    const KernelCost cost = cost_of(kernel);
    add_step(kernel_step(std::move(kernel), values), node, cost);
  }
  plan::KernelStep kernel_step(Kernel kernel, const std::vector<ValueId>& values) {
    const std::vector<KernelBuffer> buffers = kernel.buffers;
    kernel.repeats = repeats_ and std::ranges::any_of(kernel.phases, [](const Phase& phase) { return not phase.reductions.empty(); });  // of others it says nothing
    if (passes_.runs("triangles")) kernel.triangle = triangle_of(kernel, values, graph_, above_diagonal_);
    const KernelCall call = kernels_.add(std::move(kernel));
    plan::KernelStep step{call.symbol, {}, call.sizes, call.range, call.work};
    const auto is_written = [&](std::uint32_t i) { return buffers[i].access == Access::kWrite; };
    step.read_only = static_cast<std::uint32_t>(std::ranges::find_if(call.buffers, is_written) - call.buffers.begin());
    for (const std::uint32_t i : call.buffers) step.buffers.push_back(buffer_of(values[i]));
    return step;
  }

  void place_library_call(NodeId id) {
    const Node& node = graph_.node(id);
    update_in_place(id, node.results, node.operands, nullptr);
    plan::LibraryStep step{node.attrs[kRow], attribute_lists(node.attrs), {}, {}};
    for (const ValueId operand : node.operands) step.operands.push_back(operand.valid() ? static_cast<std::int64_t>(buffer_of(operand)) : -1);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (i > 0 and uses_[node.results[i].index] == 0) break;  // a workspace that nobody reads need not be written
      step.results.push_back(buffer_of(node.results[i]));
      if (i > 0) entry_.buffers[step.results.back()].opaque = true;
    }
    Kernel kernel = kernel_of(graph_, id);
    const KernelCost cost = cost_of(kernel);
    if (not find_library_row(step.row)->device_library.empty()) {
      std::vector<ValueId> values = node.operands;
      values.insert(values.end(), node.results.begin(), node.results.end());
      step.own_kernel = kernel_step(std::move(kernel), values);
    }
    add_step(std::move(step), node, cost);
  }

  void place_read(const Node& node) {
    make_view(node.results[0], buffer_of(node.operands[0]));
    plan::ReadSizesStep step{*buffers_[node.results[0].index], {}};
    for (const Dim& symbol : node.attrs[kSizes]) step.symbols.push_back(symbol.text());
    add_step(std::move(step), node);
  }

  /// Does nobody but one read the value, nor what it is a view of?
  bool has_one_reader(ValueId value) const {
    while (uses_[value.index] == 1 and graph_.is_op(value, op::reshape)) value = graph_.producer(value).operands[0];
    return uses_[value.index] == 1;
  }

  /// In place, where nobody else wants what this replica alone has.
  void place_all_reduce(const Node& node) {
    plan::AllReduceStep step{.buffers = {}, .bucket = node.attrs[kBucket]};
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId from = node.operands[i], to = node.results[i];
      const bool in_place = has_one_reader(from) and entry_.buffers[root(buffer_of(from))].storage == Buffer::Storage::kArena;
      if (in_place) make_view(to, buffer_of(from));
      else if (is_zero(from)) add_zeros(to, node);
      else push_step({plan::CopyStep{buffer_of(from), buffer_of(to)}, "what this replica has: " + graph_.value(from).name});
      step.buffers.push_back(buffer_of(to));
    }
    add_step(std::move(step), node);
  }

  /// A constant of zeros: what a replica without samples brings.
  bool is_zero(ValueId value) const {
    const Input* input = graph_.input_of(value);
    if (input == nullptr or input->role != Role::kConstant or not input->data) return false;
    return std::ranges::all_of(input->data->bytes(), [](std::byte byte) { return byte == std::byte{0}; });
  }

  /// Writes them: as a constant they would take as much memory as the weights, all the time.
  void add_zeros(ValueId value, const Node& node) {
    const Type& type = graph_.type(value);
    Kernel kernel;
    kernel.name = "zeros";
    kernel.buffers = {{"y", type.dtype, type.shape, Access::kWrite}};
    std::vector<ExprId> point;
    for (std::uint32_t axis = 0; axis < type.shape.size(); ++axis) {
      kernel.axes.push_back({fmt::format("i{}", axis), type.shape[axis]});
      point.push_back(kernel.exprs.add({.op = ScalarOp::kIndex, .dtype = DType::kI64, .slot = axis}));
    }
    kernel.outer_count = static_cast<std::uint32_t>(type.shape.size());
    const DType computed = arithmetic_type(type.dtype);
    const ExprId zero = is_float(type.dtype) ? expr::constant(kernel.exprs, computed, 0).id() : expr::constant_int(kernel.exprs, computed, 0).id();
    kernel.phases.resize(1);
    kernel.phases[0].stores.push_back({.buffer = 0, .index = point, .value = zero, .guard = {}});
    add_kernel_step(std::move(kernel), {value}, node);
  }

  void place_region(const Node& node) {
    using Kind = plan::RegionStep::Kind;
    plan::RegionStep step;
    const bool is_call = node.op->region == Region::kCall;
    step.kind = is_call ? Kind::kCall : node.op->region == Region::kScan ? Kind::kScan : node.op->region == Region::kWhile ? Kind::kWhile : Kind::kBranch;
    if (is_call) step.row = node.attrs[kRow], step.attributes = attribute_lists(node.attrs), step.trips = 1;
    if (not node.attrs[kTrips].empty()) step.trips = node.attrs[kTrips][0];
    step.reverse = node.attrs[kReverse];
    step.states = static_cast<std::uint32_t>(node.attrs[kStates]);
    step.scanned = static_cast<std::uint32_t>(node.attrs[kScanned]);
    for (const ValueId operand : node.operands) step.operands.push_back(buffer_of(operand));
    for (const ValueId result : node.results) step.results.push_back(is_call or uses_[result.index] > 0 ? static_cast<std::int64_t>(buffer_of(result)) : -1);
    const auto describe = [](const Graph& body, const Input& input) {
      return plan::Feed{.name = input.name, .dtype = body.type(input.value).dtype, .shape = body.type(input.value).shape};
    };
    for (const auto& body : node.bodies)
      step.bodies.push_back(Scheduler(fuse_and_recompute(*body, passes_, Exchange::kNone, fusion_.parallelism), kernels_, persistents_, passes_, describe, step.kind == Kind::kScan).run().entry);  // the verifier limits the depth
    if (step.kind == Kind::kScan and passes_.runs("panels")) panels_for_all_iterations(step, node);
    const KernelCost cost = is_call ? cost_of_call(step) : KernelCost{};
    add_step(std::move(step), node, cost);
  }

  /// The arithmetic of its body, and what goes in and out.
  KernelCost cost_of_call(const plan::RegionStep& step) const {
    KernelCost cost;
    for (const plan::Step& inner : step.bodies[0].steps) cost.flops = cost.flops + inner.flops;
    const auto add = [&](std::int64_t buffer) { cost.bytes = cost.bytes + element_count(entry_.buffers[static_cast<std::size_t>(buffer)].shape) * static_cast<std::int64_t>(size_of(entry_.buffers[static_cast<std::size_t>(buffer)].dtype)); };
    std::ranges::for_each(step.operands, add);
    std::ranges::for_each(step.results, add);
    return cost;
  }

  /// What products read in every iteration is laid out for them once.
  void panels_for_all_iterations(plan::RegionStep& step, const Node& node) {
    constexpr std::int64_t kFewTrips = 4;
    if (step.trips.is_constant() and step.trips.value() < kFewTrips) return;
    for (std::size_t i = step.states + step.scanned; i < step.operands.size(); ++i) {
      const auto panels = lay_out_feed_in_panels(step.bodies[0], static_cast<std::uint32_t>(i) + 1, kernels_);  // feed 0 is the iteration's number
      if (not panels) continue;
      const auto from = static_cast<std::uint32_t>(step.operands[i]);
      const Buffer whole = entry_.buffers[from];
      const auto to = static_cast<std::uint32_t>(entry_.buffers.size());
      entry_.buffers.push_back({.name = whole.name, .dtype = whole.dtype, .shape = plan::panel_shape(whole.shape, *panels)});
      const KernelCall call = kernels_.add(copy_into_panels(whole.shape, *panels));
      add_step(plan::KernelStep{call.symbol, {from, to}, call.sizes, call.range, call.work, 1}, node);
      step.operands[i] = to;
    }
  }

  void place_host_call(NodeId id) {
    const Node& node = graph_.node(id);
    update_in_place(id, node.results, node.operands, nullptr);
    plan::HostStep step{std::string(node.op->host->name), attribute_lists(node.attrs), {}, {}};
    for (const ValueId operand : node.operands) step.operands.push_back(operand.valid() ? static_cast<std::int64_t>(buffer_of(operand)) : -1);
    for (const ValueId result : node.results) step.results.push_back(uses_[result.index] > 0 ? static_cast<std::int64_t>(buffer_of(result)) : -1);
    add_step(std::move(step), node);
  }

  // --- States ---

  /// May its result lie where its operand does?
  static bool is_view(const Node& node) { return *node.op == op::reshape or node.op->binds or node.op->collective; }

  /// For each value, the last node that reads its memory (directly or through a view), and how often it is read.
  void find_last_reads() {
    uses_ = count_uses(graph_);
    last_read_.assign(graph_.value_count(), -1);
    for (std::size_t i = 0; i < graph_.node_count(); ++i)
      for (const ValueId operand : graph_.node(NodeId(i)).operands)
        if (operand.valid()) last_read_[operand.index] = std::max<std::int64_t>(last_read_[operand.index], fusion_.group(NodeId(i)).members.back().index);
    for (std::size_t i = graph_.node_count(); i-- > 0;) {  // what reads a view reads what it is a view of
      const Node& node = graph_.node(NodeId(i));
      if (not is_view(node)) continue;
      for (std::size_t k = 0; k < node.results.size(); ++k) {
        auto& last = last_read_[node.operands[k].index];
        last = std::max(last, last_read_[node.results[k].index]);
      }
    }
  }

  /// What `value` shows, through views.
  ValueId shown(ValueId value) const {
    while (graph_.value(value).producer.valid() and is_view(graph_.producer(value))) {
      const Node& view = graph_.producer(value);
      value = view.operands[static_cast<std::size_t>(std::find(view.results.begin(), view.results.end(), value) - view.results.begin())];
    }
    return value;
  }

  /// Its value from before the step is wanted after it.
  bool outlives_step(ValueId state) const {
    return std::any_of(graph_.outputs().begin(), graph_.outputs().end(), [&](const Output& output) { return shown(output.value) == state; }) or
           std::any_of(graph_.aliases().begin(), graph_.aliases().end(), [&](const Alias& alias) { return shown(alias.value) == state; });
  }

  /// The buffer of what the step leaves; of a copy where that is a state's old value, which is overwritten.
  std::uint32_t kept(ValueId value) {
    const std::uint32_t buffer = buffer_of(value);
    const auto replaces = [&](const Alias& alias) { return alias.state == shown(value) and shown(alias.value) != alias.state; };
    if (std::none_of(graph_.aliases().begin(), graph_.aliases().end(), replaces)) return buffer;
    const std::uint32_t copy = add_buffer(value, Buffer::Storage::kArena, 0);
    push_step({plan::CopyStep{buffer, copy}, "kept as it was: " + graph_.value(value).name});
    return copy;
  }

  /// If what runs at `id` makes the new value of a state that nobody reads afterwards, lets it write where the state lies.
  void update_in_place(NodeId id, const std::vector<ValueId>& results, const std::vector<ValueId>& values, const Kernel* kernel) {
    for (const ValueId result : results) {
      const ValueId state = states_[result.index];
      if (not state.valid() or buffers_[result.index] or outlives_step(state)) continue;
      const std::int64_t last = last_read_[state.index], now = static_cast<std::int64_t>(id.index);
      if (last > now) continue;
      if (last == now and (kernel == nullptr or not reads_as_it_writes(values, *kernel, result, state))) continue;
      buffers_[result.index] = buffer_of(state);
    }
  }

  /// `values` are what the kernel's buffers hold.
  bool reads_as_it_writes(const std::vector<ValueId>& values, const Kernel& kernel, ValueId result, ValueId state) {
    const auto written = static_cast<std::uint32_t>(std::find(values.begin(), values.end(), result) - values.begin());
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      if (values[i] == state) {
        if (not may_share_memory(kernel, written, i)) return false;
      } else if (i != written and values[i].valid() and is_view_of(values[i], state)) {
        return false;
      }
    }
    return true;
  }

  /// A view has no buffer before its first use.
  bool is_view_of(ValueId value, ValueId state) {
    while (graph_.is_op(value, op::reshape)) value = graph_.producer(value).operands[0];
    const std::optional<std::uint32_t> buffer = buffers_[value.index];
    return value == state or (buffer and root(*buffer) == root(buffer_of(state)));
  }

  void finish_alias(const Alias& alias, std::uint32_t value) {
    const std::uint32_t state = buffer_of(alias.state);
    persistents_.mark_trained(entry_.buffers[state].index);
    if (root(value) == root(state)) return;
    push_step({plan::CopyStep{value, state}, "update: copy of " + graph_.value(alias.state).name});
  }

  std::uint32_t root(std::uint32_t buffer) const { return plan::root_of(entry_, buffer); }

  bool repeats_;
  Fusion fusion_;
  const Graph& graph_;  ///< in the order of groups
  NodeKernels node_kernels_;
  AboveDiagonal above_diagonal_;
  const PassChoice& passes_;
  KernelSet& kernels_;
  PersistentSet& persistents_;
  const DescribeFeed& describe_feed_;
  plan::Entry entry_;
  StepNodes nodes_;              // by step
  std::vector<NodeId> placed_;   // what the next steps stand for
  std::vector<std::optional<std::uint32_t>> buffers_;  // by value
  std::vector<ValueId> states_;                        // by value: the state that it replaces
  std::vector<std::uint32_t> uses_;
  std::vector<std::int64_t> last_read_;
};

}  // namespace

ScheduledEntry schedule(Fusion fusion, KernelSet& kernels, PersistentSet& persistents, const PassChoice& passes, const DescribeFeed& describe_feed) {
  return Scheduler(std::move(fusion), kernels, persistents, passes, describe_feed).run();
}

}  // namespace hone
