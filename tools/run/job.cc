#include "tools/run/job.h"

#include <fmt/format.h>

#include "base/diag.h"
#include "runtime/train/weights.h"

namespace hone {

Job::Job(const Arguments& arguments)
    : plan(plan::load(arguments.plan)), session(plan, {.device = arguments.device, .threads = static_cast<int>(arguments.threads)}), runner(session) {
  plan.programs.clear();  // the session has what it needs of them
  if (not arguments.weights.empty()) load_weights(session, arguments.weights);
}

Recipe recipe_for(const plan::Plan& plan, const Arguments& arguments) {
  const Recipe stored = plan.recipe_json.empty() ? Recipe{} : recipe_from_json(plan.recipe_json);
  RecipeSource changes;
  for (const std::string& assignment : arguments.set) add_override(changes, assignment);
  const bool own_training = not stored.can_train() and not plan.recipe_json.empty();
  for (const auto& [key, value] : changes.values)
    if (own_training and (key.starts_with("optimizer.") or key.starts_with("schedule.")))
      throw Error(Code::kRecipeKey, fmt::format("{} is set, and the plan trains as its model says itself, which decides the learning rate", key), {},
                  {"compile the model with a recipe that has a loss and an optimizer, or change the model's training algorithm"});
  if (arguments.epochs) add_override(changes, fmt::format("train.epochs={}", *arguments.epochs));
  if (arguments.batch) add_override(changes, fmt::format("data.batch_size={}", *arguments.batch));
  if (arguments.max_time) add_override(changes, fmt::format("train.max_seconds={}", *arguments.max_time));
  if (arguments.seed) add_override(changes, fmt::format("train.seed={}", *arguments.seed));
  return change_at_run_time(stored, changes);
}

const plan::Entry& entry_with_loss(const Job& job, const char* name) {
  if (job.session.has_entry(name)) return job.session.entry(name);
  throw Error(Code::kPlanEntry, fmt::format("the plan was compiled without a recipe: it can predict, but it has no {}", name), {},
              {"compile it again: hone-compile MODEL.onnx -r train.toml -o PLAN.hone"});
}

BoundArrays open_data(const Job& job, const Recipe& recipe, const plan::Entry& entry, const char* flag, const std::vector<DataSource>& sources, bool pre_batched) {
  return {entry, sources, {.flag = flag, .batch_symbol = job.plan.batch_symbol, .pre_batched = pre_batched, .scale = recipe.data.scale}};
}

void say_notes(Progress& progress, const BoundArrays& data) {
  for (const std::string& note : data.notes()) progress.say("note: " + note);
  if (data.fixed_batch() > 0 and data.length() % data.fixed_batch() != 0)
    progress.say(
        fmt::format("note: the model takes exactly {} samples at a time; the last {} are left out", data.fixed_batch(), data.length() % data.fixed_batch()));
}

}  // namespace hone
