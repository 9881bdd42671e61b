// Stages that examples come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/data/array.h"
#include "runtime/pipeline/stage.h"

namespace hone {

/// Row i of every array is example i. Throws kDataLength for arrays of different length or without rows, kDataName for a name given twice.
StagePointer rows_stage(NamedArrays arrays);

/// Gives examples until it gives nothing.
using Generator = std::function<std::optional<Example>()>;
/// `start` begins each pass anew.
StagePointer generator_stage(std::function<Generator()> start);

/// The lines of text files, one file after the other: u8[bytes], without line ends, called "line". Throws kFileOpen.
StagePointer lines_stage(std::vector<std::string> paths);

}  // namespace hone
