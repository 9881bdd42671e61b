// The stages behind a data set's methods; runtime/pipeline/dataset.h says what each does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/stage.h"

namespace hone {

/// A function of an example, its number in the pass, and the pass.
using ExampleFunction = std::function<Example(Example example, std::int64_t number, std::uint64_t pass)>;

StagePointer map_stage(StagePointer from, ExampleFunction function, int threads);
StagePointer filter_stage(StagePointer from, std::function<bool(const Example&)> function);
StagePointer shuffle_stage(StagePointer from, std::int64_t buffer, std::int64_t seed);

struct BatchOptions {
  std::int64_t size = 1;
  bool drop_remainder = false;
  std::optional<std::map<std::string, double>> padding = {};  ///< by a tensor's name, 0 for others; nothing: examples have to be of one shape
  PartOfBatch part = {};                                      ///< in_parts(), where the number of examples is known
};
StagePointer batch_stage(StagePointer from, BatchOptions options);
StagePointer repeat_stage(StagePointer from, std::optional<std::int64_t> count);
/// Examples first, first + step, first + 2 step, ..., `count` of them at most.
StagePointer slice_stage(StagePointer from, std::int64_t first, std::int64_t step, std::optional<std::int64_t> count);
StagePointer memory_cache_stage(StagePointer from);
/// `of`: what the examples are of, in words (Dataset::order()).
StagePointer file_cache_stage(StagePointer from, std::string path, std::string of);
StagePointer prefetch_stage(StagePointer from, std::int64_t examples, std::int64_t most_examples);
StagePointer zip_stage(std::vector<StagePointer> from);
StagePointer concatenate_stage(StagePointer first, StagePointer second);
StagePointer unbatch_stage(StagePointer from);
StagePointer interleave_stage(StagePointer from, std::function<StagePointer(const Example&)> open, std::int64_t cycle, std::int64_t block);

}  // namespace hone
