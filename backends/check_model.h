// hone-compile --check and --check-grad: reports for people, no plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "ir/own_training.h"

namespace hone {

/// An operator of the file and what becomes of its nodes.
struct CheckedOperator {
  std::string name;
  int nodes = 0;
  std::string refusal;             ///< why it cannot be imported; "" if it can
  std::vector<std::string> nodes_of;  ///< Loc::node of those in the main graph
  std::string gradient;            ///< "yes", "not needed" (integers, constants), or what stops it; filled in by check_model()
  std::string kernels;             ///< of the CPU: library rows and "generated"; filled in by check_model()
};

struct CheckedWeight {
  std::string name;
  std::string type;
  bool trained = false;
  std::string status;  ///< "yes", or why it is not trained
  std::string also_called = {};  ///< passes/weight_names.h; "" if nothing
};

/// What is known of a model before it is checked: the importer's report in words of this layer.
struct CheckedModel {
  const Graph& graph;  ///< as far as it could be imported
  std::vector<CheckedOperator> operators;
  std::vector<Diag> problems;
  std::vector<Diag> warnings;
  const OwnTraining* own = nullptr;
};

struct CheckReport {
  std::vector<CheckedOperator> operators;
  std::vector<CheckedWeight> weights;
  double dropout_rate = 0;
  std::vector<std::string> dropped_after;  ///< nodes after which the recipe puts dropout
  std::vector<std::string> precision;  ///< where train.precision is not f32: what each product of the training step runs in, and why
  std::vector<Diag> problems;  ///< each with a way out; none: the model can be trained
  std::vector<Diag> warnings;
  std::size_t unreached = 0;  ///< weights that no gradient reaches
};

/// For each operator how often it occurs, whether it can be imported and differentiated, and its kernels; for each weight whether it is trained, and if no
/// gradient reaches it the node that cuts it off; every problem of the file, of the recipe, and of the two together. Without a loss in the recipe the model's
/// own training counts, else the mean square of an output stands for it. `recipe`: nothing if it could not be read, which is among the problems.
CheckReport check_model(CheckedModel model, const std::optional<Recipe>& recipe);
/// The report as tables.
std::string to_text(const CheckReport& report);

struct GradientCheck {
  std::string text;
  std::vector<Diag> problems;  ///< none: all agree
};
/// The gradients of the training graph against central differences in double, at `batch` samples (passes/check_gradients.h).
GradientCheck check_model_gradients(const Graph& imported, const Recipe& recipe, std::int64_t batch);

}  // namespace hone
