// The model's outputs for a data set, or for tensors as they are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/named_tensors.h"
#include "runtime/train/means.h"

namespace hone {

/// The outputs of `entry` for every sample of `data`, by ONNX output name, batch by batch. Outputs have a row for each sample, in order; pre-batched: a slice
/// for each slice. Throws kDataLength when the model's fixed batch size leaves samples out, kPlanMismatch for an output that has no sample axis.
NamedTensors predict(StepRunner& runner, const plan::Entry& entry, const BoundArrays& data, std::int64_t batch_size);

/// Refuses an output of a run with `samples` that does not begin with them, by its shape and by what the entry declares: kPlanMismatch, with `way_out`. `is_fixed`: the plan is for one size of the batch.
void require_sample_axis(const plan::Entry& entry, std::string_view output, std::span<const std::int64_t> shape, std::int64_t samples, bool is_fixed, const char* way_out);

/// One call of `entry` with the tensors exactly as they are. Throws kDataName for a name that is missing, unknown or given twice, and what the session throws.
NamedTensors call(StepRunner& runner, const plan::Entry& entry, const NamedArrays& inputs);

}  // namespace hone
