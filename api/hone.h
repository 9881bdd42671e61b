// What a C++ program includes to build, compile and run models.
//
//   hone::nn::Model model("digits");                                        // or any .onnx file
//   ...
//   hone::plan::Plan plan = hone::compile_model(model, hone::read_recipe_file("train.toml"));   // or compile_model("digits.onnx", ...)
//   hone::Dataset data = hone::Dataset::from_files({"x=images.npy", "y=labels.npy"});
//   hone::Trainer trainer(plan);
//   trainer.fit(data.skip(1000).shuffle(5000).batch(32), {.valid = data.take(1000).batch(32), .epochs = 5, .run_dir = "run"});
//   trainer.save("trained.onnx");
//
// Or step by step, with a Session, Means and DatasetBatches (examples/newswire.cc):
//
//   hone::Session session(plan, {.device = "cpu"});
//   session.run("train_step", feeds);                                       // feeds: model inputs, "target", "learning_rate" (f64[]); where a step draws
//                                                                           // random numbers "first_sample" (i64[]), if its batch is a part of a larger one
//   hone::save_trained_model(plan, session, "trained.onnx");
//
// Everything throws hone::Error (base/diag.h) for what is wrong with model, recipe, data or files. No type of LLVM, oneDNN or protobuf appears here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/diag.h"
#include "base/recipe.h"
#include "frontend/builder.h"
#include "runtime/collective/mpi_communicator.h"
#include "runtime/device/devices.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/dataset_batches.h"
#include "runtime/pipeline/text.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"
#include "runtime/train/progress.h"
#include "runtime/train/stop_signals.h"
#include "runtime/train/trainer.h"

namespace hone {

/// Writes a model built in C++ as .onnx, atomically; others read it, and so does compile_model(). Throws kBadGraph for a model without outputs, kUnknownOp for a layer that ONNX cannot say, kFileWrite.
void save_model(const nn::Model& model, const std::string& path);

/// A recipe from a TOML file, checked, with all defaults filled in. Throws kRecipeSyntax, kRecipeKey, kRecipeValue.
Recipe read_recipe_file(const std::string& path);
/// The same from TOML text.
Recipe read_recipe_text(const std::string& text);

struct CompileModelOptions {
  std::map<std::string, std::int64_t> dims = {};  ///< fixes symbolic sizes by name
  std::map<std::string, std::string> equal_dims = {};  ///< sizes that are another one: {"M", "N"} where an exporter gave two inputs' samples names of their own
  std::function<void(const Diag&)> warn = {};     ///< gets what is worth a look; without one it is printed on standard error
  std::vector<std::string> targets = {"cpu"};     ///< a program for each comes into the plan; those of hone-compile
  std::vector<std::string> levels = {};           ///< processors and GPUs that its code is for, as --levels of hone-compile names them; {}: the usual ones, {"native"}: this machine's processor alone, in less than half of the time
};

/// Compiles an .onnx file; a recipe without a loss gives a plan that can only predict. Throws kUsage for a target or a level that there is not, and for a recipe without its optimizer's numbers (read_recipe_text() fills them in); kRecipeKey, kRecipeValue for one whose members were given what a file may not say.
plan::Plan compile_model(const std::string& onnx_path, const Recipe& recipe, const CompileModelOptions& options = {});

/// The same of a model built in C++, as save_model() would write it. Throws what that throws, too.
plan::Plan compile_model(const nn::Model& model, const Recipe& recipe, const CompileModelOptions& options = {});

/// Compiles an .onnx file into a plan that trains nothing: its entry `predict` gives `of` ("loss", the recipe's mean loss, or an output, whose elements are summed) and, for each input or weight
/// of `wrt`, d(of)/d(NAME) as NAME_grad, as evaluation computes them. `dims` and `equal_dims` are those of CompileModelOptions. Feeds are the model's inputs and, for a loss, "target". Throws kUsage for unknown names, kNoGradient.
plan::Plan compile_gradients(const std::string& onnx_path, const Recipe& recipe, const std::string& of, const std::vector<std::string>& wrt, const std::map<std::string, std::int64_t>& dims = {},
                            const std::map<std::string, std::string>& equal_dims = {});

/// Writes the model that was compiled, with the session's weights: same names, same opset. A name that ends in .safetensors gets the weights alone; with lora.export = "separate" the adapters alone.
/// Throws kUsage for a session of another plan.
void save_trained_model(const plan::Plan& plan, Session& session, const std::string& path);

}  // namespace hone
