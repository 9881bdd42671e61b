// Pictures of a run: how loss, metrics and learning rate went.
#pragma once

#include <string>

#include "runtime/train/run_history.h"

namespace hone {

/// An SVG document that any browser shows: a panel for the loss and for each metric, training and validation in one, by epoch; one for the loss of the logged
/// steps and one for the learning rate. Values that are not finite are gaps. However long the run, some 100 kB at most for ten metrics.
std::string curves_svg(const RunHistory& history);

}  // namespace hone
