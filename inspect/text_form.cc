// Files as lines for a terminal.
#include <fmt/format.h>

#include "base/text.h"
#include "inspect/forms.h"
#include "ir/print.h"

namespace hone {

namespace {

/// A plan in one page.
std::string overview(const plan::Plan& plan, const std::string& target) {
  std::string text = fmt::format("plan of \"{}\"; batch symbol {}\n", printable(plan.model_name), plan.batch_symbol.empty() ? "none" : plan.batch_symbol);
  for (const plan::Program& program : plan.programs) {
    if (not target.empty() and program.target != target) continue;
    text += fmt::format("program {}:\n", program.target);
    for (const auto& [level, code] : program.code) text += fmt::format("  code {}: {}\n", level, human_bytes(code.size()));
    for (const plan::Entry& entry : program.entries)
      text += fmt::format("  entry {}: {} feeds, {} results, {} steps\n", entry.name, entry.feeds.size(), entry.results.size(), entry.steps.size());
    std::uint64_t bytes = 0;
    for (const plan::Persistent& persistent : program.persistents) {
      bytes += persistent.initial.byte_count();
      if (persistent.role != plan::Persistent::Role::kConstant)
        text += fmt::format("  {:<6} {} {}{}{}\n", persistent.role == plan::Persistent::Role::kWeight ? "weight" : "state",
                            shape_text(persistent.initial.shape()), printable(persistent.name), persistent.trained ? "  trained" : "",
                            persistent.panels ? fmt::format("  in panels of {} along axis {}", persistent.panels->width, persistent.panels->axis) : "");
    }
    text += fmt::format("  {} of weights, states and constants\n", human_bytes(bytes));
  }
  if (not plan.recipe_json.empty()) text += "recipe: " + plan.recipe_json + "\n";
  std::vector<std::string> stages = {"schedule"};
  for (const auto& [stage, unused] : stages_of(plan, find_program(plan, target))) stages.push_back(stage);
  return text + "stages to look at with --stage: " + join(stages, ", ") + "\n";
}

std::string tensor_table(const Contents& contents) {
  std::string text = fmt::format("{} {}: {} tensors\n", to_string(contents.kind), quoted(contents.path), contents.tensors.size());
  std::uint64_t bytes = 0;
  std::string file;
  for (const StoredTensor& tensor : contents.tensors) {
    if (tensor.file != file) text += (file = tensor.file) + ":\n";
    text += fmt::format("  {:<5} {:<20} {:>10}  {}\n", to_string(tensor.dtype), shape_text(tensor.shape), human_bytes(tensor.bytes), printable(tensor.name));
    bytes += tensor.bytes;
  }
  text += fmt::format("{} of tensors\n", human_bytes(bytes));
  return contents.state.empty() ? text : text + "state: " + contents.state + (contents.state.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::string text_form(const Contents& contents, const DescribeOptions& options) {
  if (contents.plan) return options.stage.empty() ? overview(*contents.plan, options.target) : stage_text(*contents.plan, options.stage, options.target);
  if (contents.model or contents.graph) return print(contents.model ? contents.model->graph : *contents.graph);
  return tensor_table(contents);
}

}  // namespace hone
