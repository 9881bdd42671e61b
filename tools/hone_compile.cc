// hone-compile: a model and a recipe become a training plan.
#include <fmt/format.h>


#include "api/code_levels.h"
#include "backends/check_model.h"
#include "backends/compile.h"
#include "backends/llvm/object_cache.h"
#include "backends/targets.h"
#include "base/files.h"
#include "base/output_kind.h"
#include "base/text.h"
#include "formats/npy.h"
#include "frontend/onnx/examine.h"
#include "frontend/recipe_toml.h"
#include "ir/print.h"
#include "ir/samples.h"
#include "runtime/train/json_line.h"
#include "tools/command_line.h"
#include "tools/compile/precision_report.h"
#include "tools/output_file.h"

namespace hone {
namespace {

struct Arguments {
  std::string model, recipe, out, target = "cpu", levels = join(CodeLevels().cpu, ",") + "," + join(CodeLevels().gpu, ","), passes;
  std::vector<std::string> set, emit, dim, bind;
  std::string new_head, gradients_of, wrt, memory_limit, kernel_cache;
  std::int64_t batch = 0;
  PrecisionReportFlags compared;
  bool precision_report = false;
  std::optional<std::string> why;  // of which node; "": of all
  bool check = false, check_grad = false, json = false, no_training_info = false;
};

/// A recipe, and whether it says anything of the values that training begins with.
struct Settings {
  Recipe recipe;
  bool initializes = false;
  std::optional<std::int64_t> batch = {};  ///< onnx::ImportOptions::batch
};

Settings read_settings(const Arguments& arguments) {
  if (lower_case(arguments.recipe).ends_with(".onnx"))
    throw Error(Code::kUsage, fmt::format("-r {}: a recipe is a .toml file, and this is a model", quoted(arguments.recipe)), {}, {"the model stands alone: hone-compile MODEL.onnx -r RECIPE.toml -o PLAN.hone"});
  RecipeSource source = arguments.recipe.empty() ? RecipeSource{} : read_recipe(arguments.recipe);
  for (const std::string& assignment : arguments.set) add_override(source, assignment);
  if (not arguments.new_head.empty() and not arguments.new_head.starts_with("classes="))
    throw Error(Code::kUsage, fmt::format("--new-head {}: expected classes=C", quoted(arguments.new_head)), {}, {"for example --new-head classes=5"});
  if (not arguments.new_head.empty()) add_override(source, "model.new_head." + arguments.new_head);
  const bool has_loss = source.values.contains("loss.kind"), has_optimizer = source.values.contains("optimizer.kind");
  if (not arguments.gradients_of.empty() and has_loss and not has_optimizer) add_override(source, "optimizer.kind=sgd");  // gradients take none, but a recipe must have both
  Settings settings{source.values.empty() ? Recipe{} : resolve(source), source.values.contains("model.initialize")};
  if (not arguments.new_head.empty() and settings.recipe.model.new_head_classes == 0)
    throw Error(Code::kUsage, fmt::format("--new-head {}: a head has one class at least", quoted(arguments.new_head)), {}, {"for example --new-head classes=5; leave it out for the file's own layer"});
  if (settings.recipe.can_train()) settings.batch = source.values.contains("data.batch_size") ? settings.recipe.data.batch_size : 0;
  return settings;
}

onnx::ImportOptions import_options(const Arguments& arguments, const Settings& settings) {
  std::vector<std::string> sizes = arguments.dim;
  std::map<std::string, std::string> equal = take_equal_sizes(sizes);
  const DimBindings dims = sizes_of_flag(sizes);
  onnx::ImportOptions options{.dims = {dims.begin(), dims.end()},
                              .equal_dims = std::move(equal),
                              .output = settings.recipe.model.output,
                              .batch = settings.batch,
                              .mend = onnx::mend_options(settings.recipe),
                              .own_training = not settings.recipe.can_train() and not arguments.no_training_info,
                              .own_first_values = not settings.initializes};
  for (const std::string& item : arguments.bind) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos or equals == 0 or equals + 1 == item.size())
      throw Error(Code::kUsage, fmt::format("--bind {}: expected NAME=FILE.npy", quoted(item)), {}, {"for example --bind axes=axes.npy"});
    options.bind.insert_or_assign(item.substr(0, equals), read_npy(item.substr(equals + 1)));
  }
  return options;
}

/// The samples of a step for which sizes are told.
std::int64_t batch_of(const Arguments& arguments, const Recipe& recipe) { return arguments.batch > 0 ? arguments.batch : recipe.data.batch_size; }

/// What --memory-limit allows, for the batch that is reported.
std::optional<MemoryLimit> memory_limit_of(const Arguments& arguments, const Recipe& recipe) {
  if (arguments.memory_limit.empty()) return std::nullopt;
  return MemoryLimit{.bytes = bytes_of_flag("--memory-limit", arguments.memory_limit, "2GiB"), .batch = batch_of(arguments, recipe)};
}

std::string stage_of(const std::string& item) { return item.substr(0, item.find(':')); }
/// "" for standard output.
std::string file_of(const std::string& item) { return item.find(':') == std::string::npos ? "" : item.substr(item.find(':') + 1); }

/// A slip must not cost what is read, nor what else is written.
void check_files(const Arguments& arguments) {
  std::vector<std::string> inputs = {arguments.model, arguments.recipe};
  for (const std::string& item : arguments.bind) inputs.push_back(item.substr(item.find('=') + 1));
  std::vector<std::pair<std::string_view, std::string>> outputs = {{"-o", arguments.out}};
  for (const std::string& item : arguments.emit) outputs.emplace_back("--emit", file_of(item));
  for (const auto& [flag, path] : outputs)
    if (not path.empty()) check_is_no_input(flag, path, inputs);
  check_differ(outputs);
}

/// Where --emit STAGE[:FILE] wants its text.
void write_text(const std::string& item, const std::string& text) {
  if (const std::string file = file_of(item); file.empty()) print_data(text);
  else write_file_atomically(file, std::as_bytes(std::span(text)));
}

/// Are --passes to run over the imported graph and nothing else? With a plan, or a stage on the way to one, they are those that it is made with.
bool runs_passes_alone(const Arguments& arguments) {
  return arguments.out.empty() and not arguments.why and (arguments.emit.empty() or stage_of(arguments.emit[0]) == "hir");
}

/// --passes a,b,c with --emit hir: just these passes over the imported graph.
void emit_passes(const onnx::Imported& model, const Arguments& arguments) {
  Graph graph = model.graph.clone();
  run_named_passes(graph, arguments.passes);
  write_text(arguments.emit.empty() ? "hir" : arguments.emit[0], print(graph));
}

JsonLine json_of(std::string_view kind, const Diag& diag) {
  JsonLine line;
  line.text("kind", kind).text("code", to_string(diag.code)).text("message", diag.message).text("where", to_string(diag.loc)).text("way_out", join(diag.notes, "; "));
  return line;
}

/// One JSON object a line: operators, weights, dropout, warnings, problems, then the sum.
std::string to_json_lines(const CheckReport& report) {
  std::string text;
  const auto add = [&](const JsonLine& line) { text += line.str() + "\n"; };
  for (const CheckedOperator& checked : report.operators)
    add(JsonLine().text("kind", "operator").text("name", checked.name).integer("nodes", checked.nodes).text("import", checked.refusal.empty() ? "yes" : "no: " + checked.refusal)
            .text("gradient", checked.gradient).text("cpu", checked.kernels));
  for (const CheckedWeight& weight : report.weights)
    add(JsonLine().text("kind", "weight").text("name", weight.name).text("type", weight.type).boolean("trained", weight.trained).text("status", weight.status));
  for (const std::string& node : report.dropped_after) add(JsonLine().text("kind", "dropout").text("after", node).number("rate", report.dropout_rate));
  for (const Diag& warning : report.warnings) add(json_of("warning", warning));
  for (const Diag& problem : report.problems) add(json_of("problem", problem));
  add(JsonLine().text("kind", "summary").integer("problems", static_cast<std::int64_t>(report.problems.size())).integer("warnings", static_cast<std::int64_t>(report.warnings.size()))
          .integer("unreached", static_cast<std::int64_t>(report.unreached)));
  return text;
}

/// --check: everything that is wrong with model and recipe at once.
int check(const Arguments& arguments) {
  std::vector<Diag> problems;
  std::optional<Settings> settings;
  try {
    settings = read_settings(arguments);
  } catch (const Error& error) {
    if (error.exit_code() != exit_code(Code::kRecipeValue)) throw;
    problems = error.diags();
  }
  onnx::Examined examined = onnx::examine_model(arguments.model, import_options(arguments, settings.value_or(Settings{})));
  std::vector<CheckedOperator> operators;
  for (onnx::OperatorUse& use : examined.operators) {
    CheckedOperator& checked = operators.emplace_back(CheckedOperator{.name = use.name, .nodes = use.nodes, .refusal = std::move(use.refusal)});
    for (const auto& [node, op_type] : examined.operator_of)
      if (op_type == use.name) checked.nodes_of.push_back(node);
  }
  problems.insert(problems.end(), examined.problems.begin(), examined.problems.end());
  const CheckReport report = check_model({examined.imported.graph, std::move(operators), std::move(problems), examined.imported.warnings, &examined.imported.own_training},
                                         settings ? std::optional(settings->recipe) : std::nullopt);
  print_data(arguments.json ? to_json_lines(report) : to_text(report));
  return report.problems.empty() ? 0 : exit_code(Code::kNothingToTrain);
}

int run(Arguments arguments) {
  if (arguments.model.empty() and arguments.why) arguments.model = std::exchange(*arguments.why, "");  // hone-compile --why model.onnx
  check_batch_flag(arguments.batch);
  if (arguments.model.empty()) throw Error(Code::kUsage, "MODEL is required", {}, {"hone-compile MODEL.onnx -r RECIPE.toml -o PLAN.hone; see hone-compile --help"});
  if (arguments.gradients_of.empty() != arguments.wrt.empty())
    throw Error(Code::kUsage, "--gradients-of and --wrt are given together: what is differentiated, and with respect to what", {}, {"for example --gradients-of loss --wrt x,dense/kernel"});
  if (not arguments.compared.train.empty() and not arguments.precision_report)
    throw Error(Code::kUsage, "--train is data for --precision-report, which is not asked for", {}, {"hone-run train PLAN --train ... trains the plan"});
  if (arguments.out.empty() and arguments.emit.empty() and arguments.passes.empty() and not arguments.check and not arguments.check_grad and not arguments.why and not arguments.precision_report)
    throw Error(Code::kUsage, "nothing to do with the model", {},
                {"write a plan with -o PLAN.hone, look at a stage with --emit STAGE, or ask for a report with --check"});
  check_files(arguments);
  if (not arguments.out.empty()) check_ending("-o", arguments.out, kPlanFile);
  if (arguments.check) {
    if (not std::exchange(arguments.out, "").empty()) print_message("note: --check writes no plan: leave it out, and -o does");
    if (const int code = check(arguments); code != 0 or (arguments.emit.empty() and not arguments.check_grad and not arguments.why)) return code;
  }
  if (not arguments.kernel_cache.empty()) setenv(kKernelCacheVariable, arguments.kernel_cache.c_str(), 1);
  const Settings settings = read_settings(arguments);
  const Recipe& recipe = settings.recipe;
  onnx::Imported model = onnx::import_model(arguments.model, import_options(arguments, settings));
  require_samples(model.graph);
  for (const Diag& warning : model.warnings) print_message(to_string(warning));
  if (arguments.check_grad) {
    GradientCheck report = check_model_gradients(model.graph, recipe, arguments.batch > 0 ? arguments.batch : 2);
    print_data(report.text);
    if (not report.problems.empty()) throw Error(std::move(report.problems));
  }
  if (arguments.precision_report)
    if (const int code = print_precision_report(model, recipe, arguments.compared); code != 0 or (arguments.out.empty() and arguments.emit.empty() and not arguments.why)) return code;
  if (not arguments.passes.empty() and runs_passes_alone(arguments)) return emit_passes(model, arguments), 0;
  CompileOptions options = {.targets = split(arguments.target, ','), .levels = code_levels(split(arguments.levels, ',')), .passes = {}, .explain = arguments.why.has_value(), .explain_node = arguments.why.value_or("")};
  if (not arguments.passes.empty()) options.passes = PassChoice(arguments.passes);
  if (not arguments.gradients_of.empty()) options.gradients = GradientsOf{.of = arguments.gradients_of, .wrt = split(arguments.wrt, ',')};
  options.memory_limit = memory_limit_of(arguments, recipe);
  for (const std::string& item : arguments.emit) write_text(item, emit_stage(model.graph, recipe, stage_of(item), &model.own_training, options));
  if (arguments.out.empty() and not arguments.why) return 0;
  const std::string name = arguments.model.substr(arguments.model.rfind('/') + 1);
  const Compiled compiled = compile({model.graph, std::move(model.model), name, &model.own_training}, recipe, options);
  for (const Diag& warning : compiled.warnings) print_message(to_string(warning));
  if (arguments.why) print_data(compiled.why);
  if (arguments.out.empty()) return 0;
  plan::save(compiled.plan, arguments.out);
  print_message(summary(compiled, arguments.out, batch_of(arguments, recipe)));
  if ((not arguments.recipe.empty() or not arguments.set.empty()) and arguments.gradients_of.empty() and compiled.plan.programs.front().find(plan::kTrainStep) == nullptr)
    print_message(fmt::format("note: {} has no [loss] and no [optimizer]: the plan can predict and be called, and not be trained", arguments.recipe.empty() ? "the recipe" : printable(arguments.recipe)));
  return 0;
}

std::string target_names() {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends()) names.emplace_back(backend->name());
  return join(names, ", ");
}

Tool make_tool(Arguments& a) {
  const std::vector<Flag> flags = {
      {"MODEL", "", "the .onnx file", &a.model},
      {"-r,--recipe", "RECIPE.toml", "how to train it; without one as the model says itself, else the plan can only predict and be called", &a.recipe},
      {"--set", "KEY=VALUE", "sets or overrides a key of the recipe; may be given several times", &a.set},
      {"--new-head", "classes=C", "replaces the last layer by a fresh one for so many classes", &a.new_head},
      {"--gradients-of", "NAME", "a plan that only gives gradients, for hone-run call: of the recipe's mean loss (loss), or of the sum of one of the model's outputs", &a.gradients_of},
      {"--wrt", "NAME,...", "the inputs and weights with respect to which; the gradients are called NAME_grad", &a.wrt},
      {"-o,--out", "PLAN.hone", "where the plan goes", &a.out},
      {"--target", "T,...", "programs to put into the plan: " + target_names(), &a.target},
      {"--levels", "L,...", "kinds of x86 processors, and of GPUs, that the plan has code for; each takes its time to compile. native: this processor alone", &a.levels},
      {"--check", "", "no plan: every operator's import, gradient and kernels, every weight's way to the loss, all problems at once", &a.check},
      {"--json", "", "with --check: one JSON object a line", &a.json, false, "--check"},
      {"--check-grad", "", "the model's own gradients against central differences in double, node by node", &a.check_grad},
      {"--precision-report", "", "train in f32 and in train.precision, on --train, and say which nodes must stay in f32 for the loss to come near", &a.precision_report},
      {"--train", "NAME=FILE,...", "with --precision-report: data to train on, as for hone-run train", &a.compared.train},
      {"--steps", "N", "with --precision-report: so many steps are compared", &a.compared.steps, false, "--precision-report"},
      {"--tolerance", "SHARE", "with --precision-report: how far the losses may be apart", &a.compared.tolerance, false, "--precision-report"},
      {"--pre-batched", "", "with --precision-report: the first axis of the data is the batch's number", &a.compared.pre_batched, false, "--precision-report"},
      {"--why", "[NODE]", "which kernel each node got, and why not a faster one; what was fused, and what not and why. With the name of a node: its whole story, from the file to the step that runs it", &a.why},
      {"--emit", "STAGE[:FILE]", "print a stage: " + join(stage_names(), ", ") + "; behind --passes also hir; the last three are of each kind of processor that --levels names", &a.emit},
      {"--passes", "a,b,c", "run just these: of the passes that make the plan, or, with --emit hir, over the imported graph, which is printed", &a.passes},
      {"--no-training-info", "", "leave aside what the model says of its own training (TrainingInfoProto)", &a.no_training_info},
      {"--memory-limit", "BYTES", "what training may take, 2GiB for example: activations that do not fit are made again in the backward pass", &a.memory_limit},
      {"--kernel-cache", "FOLDER", "keeps machine code there, for the next time that the same kernels are compiled: of a model whose recipe changed a little most are", &a.kernel_cache},
      {"--batch", "N", "batch size to report for, to fit into --memory-limit and to check gradients with", &a.batch},
      {"--dim", "NAME=N", "fix a symbolic size, or say which other one it is: --dim M=N; may be given several times", &a.dim},
      {"--bind", "NAME=FILE.npy", "make an input a constant, for what must be known when compiling; may be given several times", &a.bind},
  };
  return {.name = "hone-compile",
          .doc = "Compiles a model and a recipe into a training plan.",
          .commands = {{"", "", flags, [&a] { return run(a); }}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
