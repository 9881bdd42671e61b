// Files as ONNX.
#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "frontend/onnx/export.h"
#include "frontend/onnx/export_training.h"
#include "inspect/forms.h"
#include "passes/pipeline.h"
#include "runtime/train/export_onnx.h"

namespace hone {

namespace {

/// What a model does not say of a recipe.
void say_what_is_lost(const Recipe& recipe, std::vector<std::string>& lost) {
  std::vector<std::string> parts;
  if (recipe.schedule.kind != "constant" or recipe.schedule.warmup_steps > 0) parts.push_back("the learning rate's schedule");
  if (not recipe.data.scale.empty()) parts.emplace_back("data.scale");
  if (not parts.empty()) lost.push_back("ONNX has no place for " + join(parts, " and ") + ": it is left out");
}

onnx::ModelProto model_of(const plan::Plan& plan, const std::string& folder, std::vector<std::string>& lost) {
  const plan::Program& program = plan.programs.at(0);
  onnx::ModelProto model = trained_model(plan.onnx_model, program, [&](const std::string& name) {
    return std::find_if(program.persistents.begin(), program.persistents.end(), [&](const plan::Persistent& one) { return one.name == name; })->initial;
  });
  const Recipe recipe = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  if (not recipe.can_train()) return model;  // with the training that it came with, if any
  const onnx::Imported imported = onnx::import_model(model, plan.model_name, folder, {.mend = onnx::mend_options(recipe), .own_training = false});
  const ExportedStep step = build_exported_step(imported.graph, recipe);
  onnx::add_training_info(model, step.forward, step.step, recipe.optimizer.learning_rate);
  say_what_is_lost(recipe, lost);
  return model;
}

}  // namespace

std::string onnx_form(const Contents& contents, std::vector<std::string>& lost) {
  if (contents.plan) return model_of(*contents.plan, folder_of(contents.path), lost).SerializeAsString();
  if (contents.graph) return onnx::export_model(*contents.graph).SerializeAsString();
  throw Error(Code::kUsage, contents.model ? "--as onnx: the file is ONNX already" : "--as onnx: the file holds tensors, and no graph", {}, {"it is for .hone and .hir files"});
}

}  // namespace hone
