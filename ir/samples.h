// Where the samples of a batch lie.
#pragma once

#include "ir/graph.h"

namespace hone {

/// The extent of the samples' axis: the first axis of the first fed input that has a symbol there, or of the first one if all are numbers; 0 if there is none.
Dim samples_of(const Graph& graph);
/// Throws Error kShape where that is 0 for every input that has one: no batch would ever fit.
void require_samples(const Graph& graph);

}  // namespace hone
