#include "tests/frontend/backend_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/text.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/import.h"
#include "ir/kernel/interpret.h"
#include "ir/verify.h"
#include "passes/passes.h"

namespace hone::test {

namespace {

std::string suite_folder() { return std::string(HONE_SHARED_DIR) + "/onnx-backend-tests/node"; }

Tensor read_tensor(const std::string& path) {
  const MappedFile file(path);
  onnx::TensorProto proto;
  if (not proto.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size()))) throw Error(Code::kNotOnnx, path + " is no tensor");
  return tensor_of(proto, ".", Loc{.file = path});
}

std::vector<Tensor> read_tensors(const std::string& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int i = 0; std::filesystem::exists(fmt::format("{}/{}_{}.pb", folder, prefix, i)); ++i)
    tensors.push_back(read_tensor(fmt::format("{}/{}_{}.pb", folder, prefix, i)));
  return tensors;
}

}  // namespace

std::vector<std::string> backend_case_names() {
  std::vector<std::string> names;
  if (not std::filesystem::exists(suite_folder())) return names;
  for (const auto& entry : std::filesystem::directory_iterator(suite_folder())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string backend_case_model(const std::string& name) { return suite_folder() + "/" + name + "/model.onnx"; }

BackendCase load_backend_case(const std::string& name) {
  const std::string folder = suite_folder() + "/" + name;
  return {name, load_model(backend_case_model(name)), read_tensors(folder + "/test_data_set_0", "input"), read_tensors(folder + "/test_data_set_0", "output")};
}

void fix_small_inputs(BackendCase& one) {
  constexpr std::int64_t kSmall = 64;
  onnx::GraphProto& graph = *one.model.mutable_graph();
  for (int i = 0; i < graph.input_size() and i < static_cast<int>(one.inputs.size()); ++i) {
    const Tensor& value = one.inputs[static_cast<std::size_t>(i)];
    const bool is_number = value.shape().empty();  // start, limit and delta of a float Range
    if ((is_float(value.dtype()) and not is_number) or value.element_count() > kSmall) continue;
    onnx::TensorProto* initializer = graph.add_initializer();
    initializer->set_name(graph.input(i).name());
    store_tensor(initializer, value);
  }
}

std::string difference(const Tensor& actual, const Tensor& expected, double relative, double absolute) {
  if (actual.dtype() != expected.dtype()) return fmt::format("is {}, not {}", to_string(actual.dtype()), to_string(expected.dtype()));
  if (actual.shape() != expected.shape()) return fmt::format("has shape {}, not {}", shape_text(actual.shape()), shape_text(expected.shape()));
  for (std::int64_t i = 0; i < actual.element_count(); ++i) {
    const double a = actual.at(i), e = expected.at(i);
    if (a == e or (std::isnan(a) and std::isnan(e))) continue;
    if (is_float(actual.dtype()) and std::abs(a - e) <= absolute + relative * std::abs(e) and not std::isinf(e)) continue;
    return fmt::format("is {} at element {}, not {}", a, i, e);
  }
  return "";
}

std::string run_backend_case(const BackendCase& one) {
  Graph graph = onnx::import_model(one.model, one.name, ".").graph;
  verify(graph);
  if (expand(graph) == Changed::kYes) verify(graph);
  Feeds feeds;
  std::map<std::string, const Tensor*> given;
  for (int i = 0; i < one.model.graph().input_size() and i < static_cast<int>(one.inputs.size()); ++i)
    given[one.model.graph().input(i).name()] = &one.inputs[static_cast<std::size_t>(i)];
  for (const Input& input : graph.inputs())
    if (input.role == Role::kInput and given.contains(input.name)) feeds.emplace(input.name, *given.at(input.name));
  const GraphResults results = interpret(graph, feeds);
  for (std::size_t i = 0; i < one.outputs.size(); ++i) {
    const NamedTensor& output = results.outputs.at(i);
    if (const std::string what = difference(output.value, one.outputs[i]); not what.empty()) return fmt::format("output {} {}", output.name, what);
  }
  return "";
}

}  // namespace hone::test
