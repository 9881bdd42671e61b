// hone-compile: a model and a recipe become a training plan.
#include <fmt/format.h>

#include "backends/check_model.h"
#include "backends/compile.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/npy.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "ir/print.h"
#include "tools/command_line.h"

namespace hone {
namespace {

struct Arguments {
  std::string model, recipe, out, target = "cpu", passes;
  std::vector<std::string> set, emit, dim, bind;
  std::int64_t batch = 0;
  bool check = false, check_grad = false, why = false;
};

Recipe read_settings(const Arguments& arguments) {
  RecipeSource source = arguments.recipe.empty() ? RecipeSource{} : read_recipe(arguments.recipe);
  for (const std::string& assignment : arguments.set) add_override(source, assignment);
  return source.values.empty() ? Recipe{} : resolve(source);
}

onnx::ImportOptions import_options(const Arguments& arguments) {
  onnx::ImportOptions options;
  for (const std::string& item : arguments.dim) {
    const std::size_t equals = item.find('=');
    const auto size = equals == std::string::npos or equals == 0 ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (not size) throw Error(Code::kUsage, fmt::format("--dim {}: expected NAME=NUMBER", quoted(item)), {}, {"for example --dim T=128"});
    options.dims[item.substr(0, equals)] = static_cast<std::int64_t>(*size);
  }
  for (const std::string& item : arguments.bind) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos or equals == 0 or equals + 1 == item.size())
      throw Error(Code::kUsage, fmt::format("--bind {}: expected NAME=FILE.npy", quoted(item)), {}, {"for example --bind axes=axes.npy"});
    options.bind.insert_or_assign(item.substr(0, equals), read_npy(item.substr(equals + 1)));
  }
  return options;
}

/// Where --emit STAGE[:FILE] wants its text.
void write_text(const std::string& item, const std::string& text) {
  const std::size_t colon = item.find(':');
  if (colon == std::string::npos) print_data(text);
  else write_file_atomically(item.substr(colon + 1), std::as_bytes(std::span(text)));
}

/// --passes a,b,c with --emit: just these passes over the imported graph.
void emit_passes(const onnx::Imported& model, const Arguments& arguments) {
  Graph graph = model.graph.clone();
  run_named_passes(graph, arguments.passes);
  write_text(arguments.emit.empty() ? "hir" : arguments.emit[0], print(graph));
}

int run(const Arguments& arguments) {
  if (arguments.out.empty() and arguments.emit.empty() and arguments.passes.empty() and not arguments.check and not arguments.check_grad and not arguments.why)
    throw Error(Code::kUsage, "nothing to do with the model", {},
                {"write a plan with -o PLAN.hone, look at a stage with --emit STAGE, or ask for a report with --check"});
  const Recipe recipe = read_settings(arguments);
  const onnx::Imported model = onnx::import_model(arguments.model, import_options(arguments));
  for (const Diag& warning : model.warnings) print_message(to_string(warning));
  if (arguments.check) {
    const CheckReport report = check_model(model.graph, model.warnings, recipe);
    print_data(report.text);
    if (not report.trainable) return exit_code(Code::kNoGradient);
  }
  if (arguments.check_grad) {
    const CheckReport report = check_model_gradients(model.graph, recipe, arguments.batch > 0 ? arguments.batch : 2);
    print_data(report.text);
    if (not report.trainable) return exit_code(Code::kGradientMismatch);
  }
  if (not arguments.passes.empty()) emit_passes(model, arguments);
  else
    for (const std::string& item : arguments.emit) write_text(item, emit_stage(model.graph, recipe, item.substr(0, item.find(':'))));
  if (arguments.out.empty() and not arguments.why) return 0;
  const std::string name = arguments.model.substr(arguments.model.rfind('/') + 1);
  const Compiled compiled = compile({model.graph, model.model, name}, recipe, {.targets = split(arguments.target, ','), .explain = arguments.why});
  for (const Diag& warning : compiled.warnings) print_message(to_string(warning));
  if (arguments.why) print_data(compiled.why);
  if (arguments.out.empty()) return 0;
  plan::save(compiled.plan, arguments.out);
  print_message(summary(compiled, arguments.out, arguments.batch > 0 ? arguments.batch : recipe.data.batch_size));
  return 0;
}

Tool make_tool(Arguments& a) {
  const std::vector<Flag> flags = {
      {"MODEL", "", "the .onnx file", &a.model, true},
      {"-r,--recipe", "RECIPE.toml", "how to train it; without one the plan can predict and be called, not train", &a.recipe},
      {"--set", "KEY=VALUE", "sets or overrides a key of the recipe; may be given several times", &a.set},
      {"-o,--out", "PLAN.hone", "where the plan goes", &a.out},
      {"--target", "T,...", "programs to put into the plan", &a.target},
      {"--check", "", "no plan: every node's import and gradient, every weight's way to the loss, all problems at once", &a.check},
      {"--check-grad", "", "the model's own gradients against central differences in double, node by node", &a.check_grad},
      {"--why", "", "which kernel each node got, and why not a faster one", &a.why},
      {"--emit", "STAGE[:FILE]", "print a stage: " + join(stage_names(), ", "), &a.emit},
      {"--passes", "a,b,c", "run just these passes over the imported graph and print it", &a.passes},
      {"--batch", "N", "batch size to report for and to check gradients with", &a.batch},
      {"--dim", "NAME=N", "fix a symbolic size; may be given several times", &a.dim},
      {"--bind", "NAME=FILE.npy", "make an input a constant, for what must be known when compiling; may be given several times", &a.bind},
  };
  return {.name = "hone-compile",
          .doc = "Compiles a model and a recipe into a training plan.",
          .commands = {{"", "", flags, [&a] { return run(a); }}},
          .not_yet = {{"--memory-limit", "recomputing activations"}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
