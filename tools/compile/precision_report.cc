#include "tools/compile/precision_report.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "api/precision_report.h"
#include "backends/compile.h"
#include "base/text.h"
#include "runtime/data/batches.h"
#include "runtime/data/spec.h"
#include "runtime/device/cpu.h"
#include "runtime/session.h"
#include "runtime/train/training_loop.h"
#include "runtime/train/weights.h"
#include "tools/command_line.h"

namespace hone {

namespace {

void check_flags(const Recipe& recipe, const PrecisionReportFlags& flags) {
  const auto refuse = [](bool wrong, const char* what, const char* way_out) {
    if (wrong) throw Error(Code::kUsage, what, {}, {way_out});
  };
  refuse(flags.train.empty(), "--precision-report trains, and has no data", "give some with --train x=images.npy,y=labels.npy, as for hone-run train");
  refuse(not recipe.can_train(), "--precision-report compares losses, and the recipe has none", "add loss.kind and optimizer.kind, -r or --set");
  refuse(recipe.train.precision == "f32", "--precision-report compares with f32, and train.precision is f32 itself", "ask for bf16 or f16: --set train.precision=bf16");
  refuse(recipe.train.precision == "tf32", "--precision-report trains on the CPU, where tf32 is f32", "ask for bf16 or f16: --set train.precision=bf16");
  refuse(flags.steps < 1, "--steps is how many steps are compared: at least 1", "leave it out for 50");
  refuse(not(flags.tolerance > 0), "--tolerance is a share of the loss, more than 0", "leave it out for 0.03");
}

/// Weights that are trained, moved by a share of their values, up and down in turn.
void move_weights(Session& session, double by) {
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (not persistent.trained) continue;
    const Tensor value = session.read(persistent.name);
    std::vector<double> moved;
    for (std::int64_t i = 0; i < value.element_count(); ++i) moved.push_back(value.at(i) * (1 + (i % 2 == 0 ? by : -by)));
    session.write(persistent.name, Tensor::of<double>(value.shape(), moved).cast(value.dtype()));
  }
}

/// The loss of each step; where one is not finite, NaN from there on.
std::vector<double> losses_of_training(const plan::Plan& plan, const Recipe& recipe, const PrecisionReportFlags& flags, double moved) {
  Session session(plan, {});
  if (moved != 0) move_weights(session, moved);
  follow_recipe(session, recipe);
  const plan::Entry& step = session.entry(plan::kTrainStep);
  const std::vector<DataSource> sources = parse_data("--train", flags.train);
  const BoundArrays data(step, sources, {.flag = "--train", .batch_symbol = plan.batch_symbol, .pre_batched = flags.pre_batched, .scale = recipe.data.scale});
  BatchReader batches(data, recipe.data.batch_size, {.shuffle = not flags.pre_batched, .buffer = recipe.data.shuffle_buffer, .seed = recipe.train.seed});
  Recipe endless = recipe;
  endless.train.epochs = flags.steps;  // an epoch has a step at least
  endless.train.early_stopping_monitor.clear();
  endless.train.max_seconds = 0;
  if (endless.schedule.kind == "plateau") endless.schedule.kind = "constant";  // nothing is validated
  std::vector<double> losses;
  SessionRunner runner(session);
  Progress quiet(ProgressMode::kQuiet, [](std::string_view) {});
  const TrainEntries entries = {.step = &step, .step_norms = nullptr, .accumulate = session.has_entry(plan::kAccumulateStep) ? &session.entry(plan::kAccumulateStep) : nullptr, .evaluate = nullptr};
  TrainOptions options;
  options.steps = flags.steps;
  options.log_every = 0;
  options.on_step = [&](const StepRecord& record) { losses.push_back(record.loss); };
  try {
    TrainingLoop(runner, entries, endless, batches, nullptr, options, quiet).run();
  } catch (const Error& error) {
    if (error.diags().front().code != Code::kNotFinite) throw;
    losses.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  return losses;
}

}  // namespace

int print_precision_report(const onnx::Imported& model, const Recipe& recipe, const PrecisionReportFlags& flags) {
  check_flags(recipe, flags);
  const LossesOf losses = [&](const Recipe& wanted, double moved) {
    const CompileOptions options = {.levels = {.cpu = {std::string(to_string(host_cpu_level()))}}};
    return losses_of_training(compile({model.graph, model.model, "model"}, wanted, options).plan, wanted, flags, moved);
  };
  const PrecisionReport report = report_precision(model.graph, recipe, nullptr, flags.tolerance, losses, [](const std::string& sentence) { print_message(sentence); });
  print_data(to_text(report, recipe, flags.tolerance));
  return report.holds ? 0 : exit_code(Code::kNotFinite);
}

}  // namespace hone
