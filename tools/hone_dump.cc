// hone-dump: what is in a file of ours, as text, picture or table.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "frontend/onnx/export.h"
#include "frontend/onnx/export_training.h"
#include "frontend/onnx/import.h"
#include "ir/dot.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/summary.h"
#include "passes/pipeline.h"
#include "runtime/plan/plan.h"
#include "runtime/train/export_onnx.h"
#include "tools/command_line.h"

namespace hone {
namespace {

struct Arguments {
  std::string file, as = "text", stage;
  bool summary = false;
};

/// A plan in one page.
std::string overview(const plan::Plan& plan) {
  std::string text = fmt::format("plan of \"{}\"; batch symbol {}\n", printable(plan.model_name), plan.batch_symbol.empty() ? "none" : plan.batch_symbol);
  for (const plan::Program& program : plan.programs) {
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
  std::vector<std::string> stages;
  for (const auto& [stage, unused] : plan.graphs) stages.push_back(stage);
  return text + "stages to look at with --stage: " + join(stages, ", ") + "\n";
}

const std::string& stage_of(const plan::Plan& plan, const std::string& stage) {
  if (const auto found = plan.graphs.find(stage); found != plan.graphs.end()) return found->second;
  std::vector<std::string> stages;
  for (const auto& [name, unused] : plan.graphs) stages.push_back(name);
  throw Error(Code::kUsage, fmt::format("--stage {}: the plan has no such stage", quoted(stage)), {}, {"it has: " + quoted_list(stages)});
}

/// The graph of a file: a model's, a .hir's, or a stage of a plan.
Graph graph_of(const Arguments& arguments) {
  if (arguments.file.ends_with(".onnx")) return onnx::import_model(arguments.file).graph;
  if (arguments.file.ends_with(".hir")) return parse_graph(read_file(arguments.file), arguments.file);
  const plan::Plan plan = plan::load(arguments.file);
  const std::string stage = not arguments.stage.empty()          ? arguments.stage
                            : arguments.summary                  ? "imported"
                            : plan.graphs.contains("train_step") ? "train_step"
                                                                 : "predict";
  return parse_graph(stage_of(plan, stage), arguments.file + ":" + stage);
}

/// What a model does not say of a recipe.
void say_what_is_lost(const Recipe& recipe) {
  std::vector<std::string> lost;
  if (recipe.schedule.kind != "constant" or recipe.schedule.warmup_steps > 0) lost.push_back("the learning rate's schedule");
  if (not recipe.data.scale.empty()) lost.emplace_back("data.scale");
  if (not lost.empty()) print_message(fmt::format("note: ONNX has no place for {}: it is left out", join(lost, " and ")));
}

/// The model of a plan with the values that its training begins with, and that training as TrainingInfoProto.
onnx::ModelProto model_of(const Arguments& arguments) {
  const plan::Plan plan = plan::load(arguments.file);
  const plan::Program& program = plan.programs.at(0);
  onnx::ModelProto model = trained_model(plan.onnx_model, program, [&](const std::string& name) {
    return std::find_if(program.persistents.begin(), program.persistents.end(), [&](const plan::Persistent& one) { return one.name == name; })->initial;
  });
  const Recipe recipe = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  if (not recipe.can_train()) return model;  // with the training that it came with, if any
  const onnx::Imported imported = onnx::import_model(model, plan.model_name, folder_of(arguments.file), {.mend = onnx::mend_options(recipe), .own_training = false});
  const ExportedStep step = build_exported_step(imported.graph, recipe);
  onnx::add_training_info(model, step.forward, step.step, recipe.optimizer.learning_rate);
  say_what_is_lost(recipe);
  return model;
}

int write_onnx(const Arguments& arguments) {
  if (arguments.file.ends_with(".onnx")) throw Error(Code::kUsage, "--as onnx: the file is ONNX already", {}, {"it is for .hone and .hir files"});
  print_data((arguments.file.ends_with(".hir") ? onnx::export_model(graph_of(arguments)) : model_of(arguments)).SerializeAsString());
  return 0;
}

int run(const Arguments& arguments) {
  const bool known = arguments.file.ends_with(".onnx") or arguments.file.ends_with(".hir") or arguments.file.ends_with(".hone");
  if (not known) throw Error(Code::kUsage, fmt::format("{}: expected a name that ends in .onnx, .hir or .hone", quoted(arguments.file)), {}, {"give the file the ending of what is in it"});
  if (arguments.as != "text" and arguments.as != "dot" and arguments.as != "onnx")
    throw Error(Code::kUsage, fmt::format("--as {}: this version writes text, dot and onnx", quoted(arguments.as)), {},
                {"dot -Tsvg turns the second into a picture"});
  if (arguments.as == "onnx") return write_onnx(arguments);
  if (arguments.summary) print_data(model_summary(graph_of(arguments)));
  else if (arguments.as == "dot") print_data(to_dot(graph_of(arguments)));
  else if (arguments.file.ends_with(".hone"))
    print_data(arguments.stage.empty() ? overview(plan::load(arguments.file)) : stage_of(plan::load(arguments.file), arguments.stage));
  else print_data(print(graph_of(arguments)));
  return 0;
}

Tool make_tool(Arguments& a) {
  return {.name = "hone-dump",
          .doc = "Shows what is in a model, a .hir file or a plan.",
          .commands = {{"",
                        "",
                        {{"FILE", "", "a .onnx, .hir or .hone file", &a.file, true},
                         {"--summary", "", "a table of layers, output shapes and parameters", &a.summary},
                         {"--as", "FORM", "text, dot, or onnx: a plan's model with its training (TrainingInfoProto), a graph of ordinary nodes", &a.as},
                         {"--stage", "STAGE", "which stage of a plan: imported, train_step, kernels, ...", &a.stage}},
                        [&a] { return run(a); }}},
          .not_yet = {{"diff", "comparing two files"}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
