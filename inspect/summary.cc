#include "inspect/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "inspect/flops.h"
#include "inspect/layers.h"
#include "inspect/memory.h"
#include "passes/passes.h"
#include "runtime/library/arena.h"
#include "runtime/plan/step_name.h"
#include "runtime/train/memory_budget.h"
#include "runtime/train/summary.h"

namespace hone {

namespace {

/// What training makes of a node of the model.
struct Work {
  double forward = 0, backward = 0;
  bool has_gradient = false;
  std::int64_t saved = 0;             ///< bytes of the forward pass that the backward pass reads
  std::vector<std::string> kernels;  ///< that run it in the forward pass
};

struct Totals {
  double forward = 0, backward = 0, update = 0;
  std::int64_t saved = 0;
};

/// By the name of the node.
struct WorkTable {
  std::map<std::string, Work> by_node;
  Totals totals;
  bool trains = false, has_kernels = false;
};

/// By value: does the loss's gradient with respect to a trained weight flow through it? A sum has one without a node that says so.
std::vector<bool> carries_gradient(const Graph& graph) {
  std::vector<bool> depends(graph.value_count()), reaches(graph.value_count());
  const auto is_forward = [](const Node& node) { return node.part == Part::kForward or node.part == Part::kLoss; };
  for (const Alias& alias : graph.aliases())
    if (const Input* input = graph.input_of(alias.state); input != nullptr and input->role == Role::kWeight) depends[alias.state.index] = true;
  if (const Output* loss = graph.find_output(plan::kLossSum)) reaches[loss->value.index] = true;
  for (const Node& node : graph.nodes())
    for (const ValueId operand : node.operands)
      for (const ValueId result : node.results)
        if (is_forward(node) and operand.valid() and depends[operand.index] and is_float(graph.type(result).dtype)) depends[result.index] = true;
  for (std::size_t i = graph.node_count(); i-- > 0;)
    if (const Node& node = graph.node(NodeId(i)); is_forward(node))
      for (const ValueId result : node.results)
        for (const ValueId operand : node.operands)
          if (operand.valid() and reaches[result.index] and is_float(graph.type(operand).dtype)) reaches[operand.index] = true;
  for (std::size_t i = 0; i < depends.size(); ++i) depends[i] = depends[i] and reaches[i];
  return depends;
}

void add_arithmetic(const Graph& graph, const DimBindings& sizes, WorkTable& table) {
  const std::vector<bool> carries = carries_gradient(graph);
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(NodeId(i));
    const double flops = flops_of(graph, NodeId(i), sizes).value_or(0);
    Work& work = table.by_node[layer_of(graph, node)];
    if (node.part == Part::kUpdate or node.part == Part::kAllReduce) {
      table.totals.update += flops;
    } else if (node.part == Part::kBackward) {
      work.backward += flops, table.totals.backward += flops;
      table.trains = true;
    } else {
      work.has_gradient = work.has_gradient or std::ranges::any_of(node.results, [&](ValueId result) { return carries[result.index]; });
      work.forward += flops, table.totals.forward += flops;
    }
  }
}

/// What each layer keeps and what runs it, as the plan's entry has it.
void add_entry(const plan::Entry& entry, const Graph& graph, const DimBindings& sizes, WorkTable& table) {
  table.has_kernels = true;
  for (const plan::Step& step : entry.steps) {
    if (not step.origin.starts_with("forward: ")) continue;
    for (const std::string& node : step.nodes) {
      std::vector<std::string>& kernels = table.by_node[node].kernels;
      if (std::string name = name_of(step); std::ranges::find(kernels, name) == kernels.end()) kernels.push_back(std::move(name));
    }
  }
  std::map<std::string, std::string> maker;  // of a value, by its name
  for (const Node& node : graph.nodes())
    for (const ValueId result : node.results) maker.try_emplace(graph.value(result).name, node.loc.node);
  const PlacedMemory memory = placed_memory(entry, sizes);
  for (std::size_t i = 0; i < entry.buffers.size(); ++i) {
    const plan::Buffer& kept = entry.buffers[i];
    if (kept.storage != plan::Buffer::Storage::kArena or not memory.bytes[i] or kept.last_step >= entry.steps.size()) continue;
    const plan::Step& first = entry.steps[kept.first_step];
    if (category_of(part_of(first), part_of(entry.steps[kept.last_step])) != kSavedActivation) continue;
    const auto found = maker.find(kept.name);
    table.totals.saved += *memory.bytes[i];
    if (found != maker.end() and not kept.name.empty()) table.by_node[found->second].saved += *memory.bytes[i];
    else if (not first.nodes.empty()) table.by_node[first.nodes.back()].saved += *memory.bytes[i];
  }
}

/// "12.3 M"
std::string flops_text(double flops) {
  constexpr std::string_view kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  std::size_t unit = 0;
  for (; flops >= 999.5 and unit + 1 < std::size(kUnits); ++unit) flops /= 1000;
  return fmt::format("{:.3g}{}", flops, kUnits[unit]);
}

std::string bytes_text(std::int64_t bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }

std::string keras_shape(const Type& type) {
  std::string text;
  for (const Dim& dim : type.shape) text += (text.empty() ? "" : ", ") + (dim.is_constant() ? dim.text() : "None");
  return "(" + text + ")";
}

std::string cut(const std::string& text, std::size_t width) { return text.size() <= width ? text : text.substr(0, width - 3) + "..."; }

struct Column {
  std::string heading;
  std::size_t width;
  std::string (*text)(const Layer& layer, const Work& work);
  bool for_training = false, for_kernels = false;
};

const Column kColumns[] = {
    {"Layer (type)", 43, [](const Layer& layer, const Work&) { return fmt::format("{} ({})", printable(layer.node), layer.ops.empty() ? "input" : join(layer.ops, ", ")); }},
    {"Output Shape", 22, [](const Layer& layer, const Work&) { return keras_shape(layer.type); }},
    {"Param #", 12, [](const Layer& layer, const Work&) { return grouped(layer.parameters); }},
    {"FLOPs", 9, [](const Layer& layer, const Work& work) { return layer.ops.empty() ? "" : flops_text(work.forward); }},
    {"Gradient", 9, [](const Layer& layer, const Work& work) { return std::string(layer.ops.empty() ? "" : work.has_gradient ? "yes" : "no"); }, true},
    {"Backward", 9, [](const Layer& layer, const Work& work) { return layer.ops.empty() ? "" : flops_text(work.backward); }, true},
    {"Saved", 10, [](const Layer& layer, const Work& work) { return layer.ops.empty() ? "" : bytes_text(work.saved); }, true, true},
    {"Kernel", 30, [](const Layer&, const Work& work) { return work.kernels.empty() ? "" : work.kernels[0] + (work.kernels.size() > 1 ? fmt::format(" and {} more", work.kernels.size() - 1) : ""); }, false, true},
};

/// What the model has and a plan trains of it; of a model alone, what could be trained.
ParameterCounts counts_of(const Layers& layers, const plan::Program* program) {
  if (program != nullptr and program->find(plan::kTrainStep) != nullptr) return count_parameters(*program);
  return {.trained = layers.trainable, .others = layers.fixed};
}

std::string table_text(const std::string& name, const Layers& layers, ParameterCounts counts, const WorkTable& table) {
  std::vector<const Column*> columns;
  std::size_t width = 1;
  for (const Column& column : kColumns) {
    if ((column.for_training and not table.trains) or (column.for_kernels and not table.has_kernels)) continue;
    columns.push_back(&column);
    width += column.width;
  }
  std::string text = fmt::format("Model: \"{}\"\n{}\n", printable(name), std::string(width, '_'));
  const auto row = [&](const auto& cell) {
    std::string line;
    for (const Column* column : columns) line += " " + fmt::format("{:<{}}", cut(cell(*column), column->width - 1), column->width - 1);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  row([](const Column& column) { return column.heading; });
  text += std::string(width, '=') + "\n";
  for (const Layer& layer : layers.list) {
    const auto found = table.by_node.find(layer.node);
    const Work work = found == table.by_node.end() ? Work{} : found->second;
    row([&](const Column& column) { return column.text(layer, work); });
  }
  text += std::string(width, '=') + "\n";
  text += fmt::format("Total params: {}\nTrainable params: {}\nNon-trainable params: {}\n", grouped(counts.trained + counts.others), grouped(counts.trained), grouped(counts.others));
  return text;
}

/// What a training step takes, and which batch fits.
std::string memory_text(const plan::Plan& plan, const plan::Program& program, std::int64_t batch, std::optional<std::int64_t> limit) {
  const auto planned = planned_memory(program, plan.batch_symbol, batch);
  if (not planned) return "Peak memory: depends on sizes that are known only when it runs (hone-compile --dim NAME=SIZE makes them fixed)\n";
  const std::int64_t scratch = library_scratch(*program.find(plan::kTrainStep), sizes_for(plan.batch_symbol, batch));
  std::string text = fmt::format("Peak memory at batch {}: {} ({} of weights and states, {} of activations and gradients, {} of library scratch)\n", batch,
                                 bytes_text(planned->persistent + planned->arena + scratch), bytes_text(planned->persistent), bytes_text(planned->arena), bytes_text(scratch));
  if (not limit or plan.batch_symbol.empty()) return text;
  constexpr std::int64_t kMost = 1 << 20;
  const MemoryBudget budget{.bytes = *limit, .source = "--memory-limit " + bytes_text(*limit)};
  try {
    const std::int64_t largest = largest_batch(program, plan.batch_symbol, budget, kMost);
    return text + fmt::format("Largest batch in {}: {}\n", bytes_text(*limit), largest == kMost ? fmt::format("{} or more", grouped(largest)) : grouped(largest));
  } catch (const Error& error) {
    if (error.diags().front().code != Code::kMemory) throw;
    return text + fmt::format("Largest batch in {}: not even one sample fits\n", bytes_text(*limit));
  }
}

std::string totals_text(const WorkTable& table, std::int64_t batch) {
  const Totals& totals = table.totals;
  if (not table.trains) return fmt::format("FLOPs at batch {}: {}\n", batch, flops_text(totals.forward));
  return fmt::format("FLOPs at batch {}: {} ({} forward, {} backward, {} of updates)\nSaved for the backward pass: {}\n", batch,
                     flops_text(totals.forward + totals.backward + totals.update), flops_text(totals.forward), flops_text(totals.backward), flops_text(totals.update), bytes_text(totals.saved));
}

}  // namespace

std::string summary_text(const Contents& contents, const DescribeOptions& options, std::optional<std::int64_t> memory_limit) {
  const Graph model = graph_of(contents, options.stage.empty() and contents.plan ? "imported" : options.stage, options.target);
  const plan::Program* const program = contents.plan ? &find_program(*contents.plan, options.target) : nullptr;
  const KnownSizes known = sizes_of(contents, options);
  WorkTable table;
  if (program != nullptr) {
    const std::string stage = default_stage(contents);
    const Graph graph = graph_of(contents, stage, options.target);
    add_arithmetic(graph, known.sizes, table);
    if (const plan::Entry* entry = program->find(stage)) add_entry(*entry, graph, known.sizes, table);
  } else {
    Graph expanded = model.clone();
    (void)expand(expanded);
    add_arithmetic(expanded, known.sizes, table);
  }
  const std::int64_t batch = batch_of(contents, options);
  const Layers layers = layers_of(model);
  std::string text = table_text(model.name, layers, counts_of(layers, program), table) + totals_text(table, batch);
  if (program != nullptr and table.trains) text += memory_text(*contents.plan, *program, batch, memory_limit);
  return text;
}

}  // namespace hone
