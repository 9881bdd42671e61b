// One case of ONNX's backend test suite: a model of a node or a few, with inputs and the outputs it must give.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "formats/onnx.pb.h"
#include "frontend/onnx/import.h"
#include "ir/kernel/interpret.h"

namespace hone::test {

struct BackendCase {
  std::string name;
  onnx::ModelProto model;
  std::vector<Tensor> inputs, outputs;   ///< in the graph's order; the tensors of a sequence one after another
  std::vector<std::string> input_names;  ///< of the graph that is imported: "x", "sequence.0"
  std::map<std::string, std::int64_t> dims = {};  ///< how many tensors sequences and optionals hold
};

/// The suite's node cases, sorted by name, or those that the environment's HONE_CASES=PATTERN matches; none when the suite is not there.
std::vector<std::string> backend_case_names();

/// The model file of a case.
std::string backend_case_model(const std::string& name);
/// Reads a case. Throws Error for what is no tensor, or of an element type that Hone does not have.
BackendCase load_backend_case(const std::string& name);

/// Inputs that are small integer tensors become initializers, and sequences without a shape get the number of axes of their first tensor: what is known only when running becomes
/// known when compiling.
void fix_small_inputs(BackendCase& one);

/// What differs between a tensor and what was expected, at the suite's tolerance; "" if nothing does.
std::string difference(const Tensor& actual, const Tensor& expected, double relative = 1e-3, double absolute = 1e-7);

/// A way to run an imported model: its outputs, in its order.
using RunModel = std::function<std::vector<Tensor>(const onnx::Imported& model, const Feeds& feeds)>;
/// Through the interpreter.
std::vector<Tensor> run_interpreted(const onnx::Imported& model, const Feeds& feeds);

struct Outcome {
  enum class Kind { kPassed, kFailed, kUnsupported };
  Kind kind = Kind::kPassed;
  std::string what = {};                          ///< what differs, or was refused
  bool was_fixed = false;                         ///< small inputs had to be known when compiling
  std::vector<Tensor> found = {}, expected = {};  ///< outputs, where there are any
};
/// Imports the case and runs it: first with all inputs fed, then, if something must be known when compiling, with the small ones fixed.
Outcome outcome_of(const std::string& name, const RunModel& run);

}  // namespace hone::test
