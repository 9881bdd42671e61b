// The model's outputs for a data set, or for tensors as they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/named_tensors.h"
#include "runtime/train/means.h"

namespace hone {

/// The outputs of `entry` for every sample of `data`, by ONNX output name, batch by batch. Outputs have a row for each sample, in order; pre-batched: a slice
/// for each slice. Throws kDataLength when the model's fixed batch size leaves samples out, kPlanMismatch for an output that has no sample axis.
NamedTensors predict(StepRunner& runner, const plan::Entry& entry, const BoundArrays& data, std::int64_t batch_size);

/// One call of `entry` with the tensors exactly as they are. Throws kDataName for a name that is missing, unknown or given twice, and what the session throws.
NamedTensors call(StepRunner& runner, const plan::Entry& entry, const NamedArrays& inputs);

}  // namespace hone
