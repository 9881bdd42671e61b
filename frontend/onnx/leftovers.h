// Operators that an exporter could not convert and left in the file as they were.
#pragma once

#include "base/diag.h"
#include "formats/onnx.pb.h"

namespace hone::onnx {

/// Nodes of the standard's domain that bear the name of a function of TensorFlow, which tf2onnx leaves there where it has no conversion (Keras's gelu is full
/// of Erfc), become ONNX's own operators, with a warning: in the model itself, so that the trained one can be read by others, too.
void write_leftovers(ModelProto& model, const Loc& file, Diags& diags);

}  // namespace hone::onnx
