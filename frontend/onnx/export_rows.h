// Rows of export_ops.cc that take more than some lines. Each writes the node, or writes nothing and returns false if, with these attributes, it has no ONNX form.
#pragma once

#include "frontend/onnx/exporter.h"

namespace hone::onnx {

// export_loops.cc
bool write_scan(Exporter& exporter, const Node& node);
bool write_while(Exporter& exporter, const Node& node);
bool write_branch(Exporter& exporter, const Node& node);

// export_windows.cc
bool write_conv(Exporter& exporter, const Node& node);
bool write_conv_input_grad(Exporter& exporter, const Node& node);
bool write_conv_weight_grad(Exporter& exporter, const Node& node);
bool write_conv_weight_grad_parts(Exporter& exporter, const Node& node);
bool write_max_pool(Exporter& exporter, const Node& node);
bool write_avg_pool(Exporter& exporter, const Node& node);

}  // namespace hone::onnx
