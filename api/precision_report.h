// Which nodes need f32 for training in a narrow type (train.precision) to stay near f32's, found by training: no rule over a graph knows it, because it is a matter of numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/recipe.h"
#include "ir/graph.h"
#include "ir/own_training.h"

namespace hone {

/// The loss of each step of a training of its own, always over the same batches. `kNudged`: it begins with weights that are moved in their last place. What is no number counts as far away.
enum class Start : std::uint8_t { kAsGiven, kNudged };
using LossesOf = std::function<std::vector<double>(const Recipe&, Start)>;

struct PrecisionReport {
  /// Nodes that stayed in f32, and how far that training ended from f32's: the larger share of the last loss and of the mean of the last five.
  struct Trial {
    std::vector<std::string> kept;
    double distance = 0;
  };
  double last_loss = 0;        ///< in f32
  double f32_spread = 0;       ///< how far f32 ends from itself, with weights that were moved in their last place: less cannot be asked of any precision
  Trial narrow;                ///< all that can be narrow is
  std::vector<Trial> singles;  ///< one node kept each, the best first; empty where nothing needs to be kept
  bool holds = false;          ///< is `chosen` within the tolerance?
  Trial chosen;                ///< as few nodes as were found; all that were tried, where they do not suffice
};

/// Trains in f32, in recipe.train.precision, and where that ends further away than `tolerance` with each node kept by itself; then with the best of them together, one more each time, until the
/// distance is within the tolerance; last it leaves out again whatever is not needed. What recipe.train.keep_f32 names stays kept. `tell` is called with a sentence after each training.
PrecisionReport report_precision(const Graph& imported, const Recipe& recipe, const OwnTraining* own, double tolerance, const LossesOf& losses, const std::function<void(const std::string&)>& tell);

/// What a person wants to know of it, ending in the line for the recipe.
std::string to_text(const PrecisionReport& report, const Recipe& recipe, double tolerance);

}  // namespace hone
