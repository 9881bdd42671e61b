// One case of ONNX's backend test suite: a model of a node or a few, with inputs and the outputs it must give.
#pragma once

#include <string>
#include <vector>

#include "base/tensor.h"
#include "formats/onnx.pb.h"

namespace hone::test {

struct BackendCase {
  std::string name;
  onnx::ModelProto model;
  std::vector<Tensor> inputs, outputs;  ///< in the graph's order
};

/// The suite's node cases, sorted by name; none when the suite is not there.
std::vector<std::string> backend_case_names();

/// The model file of a case.
std::string backend_case_model(const std::string& name);
/// Reads a case. Throws Error for what is no tensor, or of an element type that Hone does not have.
BackendCase load_backend_case(const std::string& name);

/// Inputs that are small integer tensors become initializers: what is known only when running becomes known when compiling.
void fix_small_inputs(BackendCase& one);

/// What differs between a tensor and what was expected, at the suite's tolerance; "" if nothing does.
std::string difference(const Tensor& actual, const Tensor& expected, double relative = 1e-3, double absolute = 1e-7);

/// Imports the case, expands it and runs it through the interpreter. "" if all outputs are as expected, else what differs; Errors pass through.
std::string run_backend_case(const BackendCase& one);

}  // namespace hone::test
