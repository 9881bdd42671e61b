// Which nodes need f32 for training in a narrow type (train.precision) to stay near f32's, found by training: no rule over a graph knows it, because it is a matter of numbers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "ir/own_training.h"

namespace hone {

/// The loss of each step of a training of its own, always over the same batches. `moved`: it begins with trained weights that are moved by this share of their values, up and down in turn; 0: as they are.
/// What is no number counts as far away.
using LossesOf = std::function<std::vector<double>(const Recipe&, double moved)>;

struct PrecisionReport {
  /// Nodes that stayed in f32, and how far that training ended from f32's: the larger share of the last loss and of the mean of the last five.
  struct Trial {
    std::vector<std::string> kept;
    double distance = 0;
  };
  double last_loss = 0;        ///< in f32
  double f32_spread = 0;       ///< how far f32 ends from itself, with weights that were moved in their last place: less cannot be asked of any precision
  double rounded_spread = 0;   ///< the same with weights that were moved as far as a rounding to the narrow type moves them on average: by a quarter of its last place. 0 where that was not asked
  Trial narrow;                ///< all that can be narrow is
  std::vector<Trial> singles;  ///< one node kept each, the best first; empty where nothing needs to be kept
  std::vector<Trial> sets;     ///< the best that were found of two nodes, of three, and so on
  std::size_t tried = 0;       ///< choices of nodes that were trained with
  bool holds = false;          ///< is `chosen` within the tolerance?
  Trial chosen;                ///< as few nodes as were found; the best of all that were tried, where none suffices
  std::vector<Trial> without;  ///< `chosen` but for one of its nodes each, in their order; empty for a single one, or where none suffices
  double chosen_moved = 0;     ///< how far `chosen` ends with weights that were moved in their last place
};

/// Trains in f32, in recipe.train.precision, and where that ends further away than `tolerance` with each node kept by itself; where none suffices, the best ones with one more of the promising ones each, up to
/// four nodes, and then all of the promising ones together, one more each time; last it leaves out again whatever is not needed. That is at most 77 trainings and three a node. What recipe.train.keep_f32
/// names stays kept. `tell` is called with a sentence after each training.
PrecisionReport report_precision(const Graph& imported, const Recipe& recipe, const OwnTraining* own, double tolerance, const LossesOf& losses, const std::function<void(const std::string&)>& tell);

/// What a person wants to know of it, ending in the line for the recipe.
std::string to_text(const PrecisionReport& report, const Recipe& recipe, double tolerance);

}  // namespace hone
