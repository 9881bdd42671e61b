#include "inspect/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "backends/schedule.h"
#include "backends/step_nodes.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "ir/parse.h"
#include "runtime/library/check_calls.h"
#include "runtime/plan/metadata.h"
#include "runtime/train/checkpoint.h"

namespace hone {

namespace {

void add_tensors(std::vector<StoredTensor>& tensors, const std::string& path, const std::string& file_name) {
  const auto file = std::make_shared<MappedFile>(path);
  for (const SafetensorsEntry& entry : read_safetensors_header(file->bytes(), path).entries)
    tensors.push_back({entry.name, file_name, entry.dtype, entry.shape, entry.bytes, [file, entry] { return read_entry(file->bytes(), entry); }});
}

void add_tensor(std::vector<StoredTensor>& tensors, const std::string& name, const Tensor& tensor) {
  tensors.push_back({name, "", tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, tensor.byte_count(), [tensor] { return tensor; }});  // its bytes are shared
}

Contents model_contents(const std::string& path) {
  Contents contents{.kind = Contents::Kind::kModel, .path = path, .model = onnx::import_model(path)};
  for (const Input& input : contents.model->graph.inputs())
    if (input.role == Role::kWeight and input.data) add_tensor(contents.tensors, input.name, *input.data);
  return contents;
}

Contents plan_contents(const std::string& path) {
  Contents contents{.kind = Contents::Kind::kPlan, .path = path, .plan = plan::load(path)};
  check_calls(*contents.plan);
  if (contents.plan->programs.empty())
    throw plan::unsound_plan(fmt::format("{} has no program for any device", printable(path, 1000)));
  for (const plan::Persistent& persistent : contents.plan->programs[0].persistents)
    if (persistent.role != plan::Persistent::Role::kConstant) add_tensor(contents.tensors, persistent.name, persistent.initial);
  return contents;
}

Contents checkpoint_contents(const std::string& path) {
  check_checkpoint(path);
  Contents contents{.kind = Contents::Kind::kCheckpoint, .path = path};
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) add_tensors(contents.tensors, path + "/" + file, file);
  contents.state = read_file(path + "/state.json");
  return contents;
}

bool is_graph(const std::string& text) { return text.starts_with("graph "); }

/// The same for all targets: they are of the model, and of the training step before any pass has looked at it.
bool is_common(const std::string& stage) { return stage == "imported" or stage == "training"; }

constexpr const char* kSchedule = "schedule";

/// "": of all entries.
std::string schedule_text(const plan::Program& program, const std::string& entry) {
  std::string text;
  for (const plan::Entry& one : program.entries)
    if (entry.empty() or one.name == entry) text += print(one, program.persistents) + "\n";
  return text;
}

/// Why a picture of it cannot be drawn, and what can.
std::string why_no_graph(const std::string& stage) {
  if (stage == "kernels") return "each kernel is a loop nest by itself, which is text; --stage schedule draws the steps that call them, and --as html shows each with its text";
  if (stage == kSchedule or stage.ends_with(std::string(".") + kSchedule)) return "a schedule is steps over buffers; --as svg and dot draw it, --as json has it under program";
  return "it is a list of numbers";
}

std::string graphs_among(const std::map<std::string, const std::string*>& stages) {
  std::vector<std::string> names;
  for (const auto& [name, text] : stages)
    if (is_graph(*text)) names.push_back(name);
  return quoted_list(names);
}

}  // namespace

std::string_view to_string(Contents::Kind kind) {
  constexpr std::string_view kNames[] = {"model", "graph", "plan", "checkpoint", "tensors"};
  return kNames[static_cast<std::size_t>(kind)];
}

Contents load_contents(const std::string& path) {
  if (path.ends_with(".onnx")) return model_contents(path);
  if (path.ends_with(".hone")) return plan_contents(path);
  if (path.ends_with(".hir") or path == "-") return {.kind = Contents::Kind::kGraph, .path = path, .graph = parse_graph(read_file(path), path)};
  if (path.ends_with(".safetensors")) {
    Contents contents{.kind = Contents::Kind::kTensors, .path = path};
    add_tensors(contents.tensors, path, "");
    return contents;
  }
  if (is_folder(path)) return checkpoint_contents(path);
  throw Error(Code::kUsage, fmt::format("{}: expected a name that ends in .onnx, .hir, .hone or .safetensors, a checkpoint's folder, or - for a .hir graph from standard input", quoted(path)), {},
              {"give the file the ending of what is in it"});
}

std::string default_stage(const Contents& contents) { return contents.plan ? default_stage(*contents.plan) : ""; }

std::string default_stage(const plan::Plan& plan) { return plan.graphs.contains(plan::kTrainStep) ? plan::kTrainStep : plan::kPredict; }

std::string scheduled_entry(const plan::Plan& plan, const std::string& stage) {
  if (stage == kSchedule) return default_stage(plan);
  const std::string suffix = std::string(".") + kSchedule;
  return stage.ends_with(suffix) ? stage.substr(0, stage.size() - suffix.size()) : "";
}

const plan::Program& find_program(const plan::Plan& plan, const std::string& target) {
  if (target.empty()) return plan.programs.at(0);
  std::vector<std::string> targets;
  for (const plan::Program& program : plan.programs) {
    if (program.target == target) return program;
    targets.push_back(program.target);
  }
  throw Error(Code::kUsage, fmt::format("--target {}: the plan has no program for it", quoted(target)), {}, {did_you_mean(target, targets), "it has programs for " + quoted_list(targets)});
}

std::map<std::string, const std::string*> stages_of(const plan::Plan& plan, const plan::Program& program) {
  std::map<std::string, const std::string*> stages;
  const bool is_first = program.target == plan.programs.at(0).target;
  for (const auto& [name, text] : plan.graphs) {
    const auto owner = std::ranges::find_if(plan.programs, [&](const plan::Program& one) { return name.ends_with(stage_for("", one.target)); });
    if (owner == plan.programs.end() ? is_first or is_common(name) : owner->target == program.target)
      stages.emplace(owner == plan.programs.end() ? name : name.substr(0, name.size() - stage_for("", owner->target).size()), &text);
  }
  return stages;
}

const std::string* find_stage(const plan::Plan& plan, const plan::Program& program, const std::string& stage) {
  const auto stages = stages_of(plan, program);
  const auto found = stages.find(stage);
  return found == stages.end() ? nullptr : found->second;
}

std::string stage_text(const plan::Plan& plan, const std::string& stage, const std::string& target) {
  const plan::Program& program = find_program(plan, target);
  if (const std::string* text = find_stage(plan, program, stage)) return *text;
  if (const std::string entry = scheduled_entry(plan, stage); stage == kSchedule or program.find(entry) != nullptr) return schedule_text(program, stage == kSchedule ? "" : entry);
  std::vector<std::string> names = {kSchedule};
  for (const auto& [name, text] : stages_of(plan, program)) names.push_back(name);
  throw Error(Code::kUsage, fmt::format("--stage {}: the plan has no such stage for {}", quoted(stage), printable(program.target, 100)), {},
              {did_you_mean(stage, names), "it has: " + quoted_list(names), names.size() > 2 ? "" : "older plans keep stages of their first program alone: compile the model again"});
}

Graph graph_of(const Contents& contents, const std::string& stage, const std::string& target) {
  if (contents.model) return contents.model->graph.clone();
  if (contents.graph) return contents.graph->clone();
  if (not contents.plan)
    throw Error(Code::kUsage, fmt::format("{}: there is no graph in it, only tensors", quoted(contents.path)), {}, {"--as text and --as json list them"});
  const std::string name = stage.empty() ? default_stage(contents) : stage;
  const std::string text = stage_text(*contents.plan, name, target);
  if (not is_graph(text))
    throw Error(Code::kUsage, fmt::format("--stage {}: this stage is no graph", quoted(name)), {},
                {why_no_graph(name), "graphs of the plan: " + graphs_among(stages_of(*contents.plan, find_program(*contents.plan, target))), "--as text shows any stage"});
  return parse_graph(text, contents.path + ":" + name);
}

}  // namespace hone
