// What a C++ program includes to build, compile and run models.
//
//   hone::nn::Model model("digits");                                        // or any .onnx file
//   ...
//   hone::save_model(model, "digits.onnx");
//   hone::plan::Plan plan = hone::compile_model("digits.onnx", hone::read_recipe_file("train.toml"));
//   hone::Session session(plan, {.device = "cpu"});
//   session.run("train_step", feeds);                                       // feeds: model inputs, "target", "learning_rate" (f64[]); where a step draws
//                                                                           // random numbers "first_sample" (i64[]), if its batch is a part of a larger one
//   hone::save_trained_model(plan, session, "trained.onnx");
//
// Data come from a Dataset (docs/data.md): batches of it are fed by DatasetBatches.
//
// Everything throws hone::Error (base/diag.h) for what is wrong with model, recipe, data or files. No type of LLVM, oneDNN or protobuf appears here.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/diag.h"
#include "base/recipe.h"
#include "frontend/builder.h"
#include "runtime/pipeline/dataset.h"
#include "runtime/pipeline/dataset_batches.h"
#include "runtime/pipeline/text.h"
#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

/// Writes a model built in C++ as .onnx, atomically. Throws kUnknownOp for a layer that ONNX cannot say, kFileWrite.
void save_model(const nn::Model& model, const std::string& path);

/// A recipe from a TOML file, checked, with all defaults filled in. Throws kRecipeSyntax, kRecipeKey, kRecipeValue.
Recipe read_recipe_file(const std::string& path);
/// The same from TOML text.
Recipe read_recipe_text(const std::string& text);

/// Compiles an .onnx file; a recipe without a loss gives a plan that can only predict. `dims` fixes symbolic sizes by name.
plan::Plan compile_model(const std::string& onnx_path, const Recipe& recipe, const std::map<std::string, std::int64_t>& dims = {});

/// Writes the model that was compiled, with the session's weights: same names, same opset.
void save_trained_model(const plan::Plan& plan, const Session& session, const std::string& path);

}  // namespace hone
