#include "api/hone.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "api/code_levels.h"
#include "backends/compile.h"
#include "base/files.h"
#include "base/output_kind.h"
#include "base/recipe_tables.h"
#include "base/text.h"
#include "frontend/onnx/export.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "ir/samples.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

void require_output(const nn::Model& model) {
  if (model.graph().outputs().empty())
    throw Error(Code::kBadGraph, fmt::format("the model {} has no output", quoted(model.graph().name)), {}, {"say what it computes with output()"});
}

}  // namespace

void save_model(const nn::Model& model, const std::string& path) {
  require_output(model);
  check_ending("save_model", path, kModelFile);
  onnx::save(model.graph(), path);
}

Recipe read_recipe_file(const std::string& path) { return resolve(read_recipe(path)); }
Recipe read_recipe_text(const std::string& text) { return resolve(parse_recipe(text, "recipe")); }

namespace {

/// One that a program filled in itself has zeros where its optimizer's numbers should be, and may have anything elsewhere.
void require_resolved(const Recipe& recipe) {
  check_recipe(recipe);
  const OptimizerKind* kind = find_optimizer(recipe.optimizer.kind);
  if (kind == nullptr) return;
  bool has_numbers = false;
  for (const OptimizerNumber& number : kind->numbers) {
    if (number.key == "learning_rate" or (number.torch == 0 and number.keras == 0)) continue;
    const RecipeValue value = find_recipe_key(fmt::format("optimizer.{}", number.key))->get(recipe);
    if (value.number != 0 or value.integer != 0 or value.boolean) return;
    has_numbers = true;
  }
  if (has_numbers)
    throw Error(Code::kUsage, fmt::format("compile_model: the recipe has the optimizer {}, and none of its numbers", recipe.optimizer.kind), {}, {"make it with read_recipe_text() or read_recipe_file(), which fill in what is not given, and change its members then"});
}

onnx::ImportOptions import_options(const Recipe& recipe, const CompileModelOptions& options) {
  const std::int64_t batch = recipe.data.batch_size == Recipe{}.data.batch_size ? 0 : recipe.data.batch_size;
  return {.dims = {options.dims.begin(), options.dims.end()}, .equal_dims = options.equal_dims, .output = recipe.model.output, .batch = batch, .mend = onnx::mend_options(recipe), .own_training = not recipe.can_train()};
}

plan::Plan compile_imported(onnx::Imported model, const std::string& name, const Recipe& recipe, const CompileModelOptions& options) {
  require_samples(model.graph);
  Compiled compiled = compile({model.graph, std::move(model.model), name, &model.own_training}, recipe, {.targets = options.targets, .levels = code_levels(options.levels)});
  for (const auto* warnings : {&model.warnings, &compiled.warnings})
    for (const Diag& warning : *warnings)
      if (options.warn) options.warn(warning);
      else std::fprintf(stderr, "%s\n", to_string(warning).c_str());
  return std::move(compiled.plan);
}

}  // namespace

plan::Plan compile_model(const std::string& onnx_path, const Recipe& recipe, const CompileModelOptions& options) {
  require_resolved(recipe);
  return compile_imported(onnx::import_model(onnx_path, import_options(recipe, options)), file_name_of(onnx_path), recipe, options);
}

plan::Plan compile_model(const nn::Model& model, const Recipe& recipe, const CompileModelOptions& options) {
  require_resolved(recipe);
  require_output(model);
  const std::string name = model.graph().name + ".onnx";
  return compile_imported(onnx::import_model(onnx::export_model(model.graph()), name, ".", import_options(recipe, options)), name, recipe, options);
}

plan::Plan compile_gradients(const std::string& onnx_path, const Recipe& recipe, const std::string& of, const std::vector<std::string>& wrt, const std::map<std::string, std::int64_t>& dims,
                            const std::map<std::string, std::string>& equal_dims) {
  Recipe checked = recipe;
  if (checked.optimizer.kind.empty() and checked.can_train()) checked.optimizer.kind = "sgd";  // gradients take none, but a recipe has both
  check_recipe(checked);
  onnx::Imported model = onnx::import_model(onnx_path, {.dims = dims, .equal_dims = equal_dims, .output = recipe.model.output, .mend = onnx::mend_options(recipe), .own_training = false});
  return compile({model.graph, std::move(model.model), file_name_of(onnx_path)}, recipe, {.gradients = GradientsOf{.of = of, .wrt = wrt}}).plan;
}

void save_trained_model(const plan::Plan& plan, Session& session, const std::string& path) {
  const auto is_same = [](const plan::Persistent& a, const plan::Persistent& b) { return a.name == b.name and a.in_model == b.in_model and a.initial.dtype() == b.initial.dtype() and a.initial.shape() == b.initial.shape(); };
  const plan::Program& trained = session.program();
  if (std::ranges::none_of(plan.programs, [&](const plan::Program& program) { return program.target == trained.target and std::ranges::equal(program.persistents, trained.persistents, is_same); }))
    throw Error(Code::kUsage, "save_trained_model: the session is of another plan than the one that is given", {}, {"give the plan that the session was made of: its model gets the session's weights"});
  save_trained(plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json), plan.onnx_model, session, path);
}

}  // namespace hone
