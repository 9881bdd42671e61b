#include "tests/support/backend_cases/backend_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "formats/onnx_file.h"
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
  if (const char* pattern = std::getenv("HONE_CASES")) std::erase_if(names, [&](const std::string& name) { return not glob_match(pattern, name); });
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

std::vector<Tensor> run_interpreted(const onnx::Imported& model, const Feeds& feeds) {
  Graph graph = model.graph.clone();
  verify(graph);
  if (expand(graph) == Changed::kYes) verify(graph);
  std::vector<Tensor> outputs;
  for (const NamedTensor& output : interpret(graph, feeds).outputs) outputs.push_back(output.value);
  return outputs;
}

namespace {

Outcome run(const BackendCase& one, const RunModel& run_model) {
  const onnx::Imported imported = onnx::import_model(one.model, one.name, ".");
  Feeds feeds;
  for (int i = 0; i < one.model.graph().input_size() and i < static_cast<int>(one.inputs.size()); ++i) {
    const Input* input = imported.graph.find_input(one.model.graph().input(i).name());
    if (input != nullptr and input->role == Role::kInput) feeds.emplace(input->name, one.inputs[static_cast<std::size_t>(i)]);
  }
  Outcome outcome{.found = run_model(imported, feeds), .expected = one.outputs};
  for (std::size_t i = 0; i < one.outputs.size() and outcome.what.empty(); ++i)
    if (const std::string what = difference(outcome.found.at(i), one.outputs[i]); not what.empty())
      outcome = {.kind = Outcome::Kind::kFailed,
                 .what = fmt::format("output {} {}", imported.graph.outputs()[i].name, what),
                 .found = outcome.found,
                 .expected = one.outputs};
  return outcome;
}

}  // namespace

Outcome outcome_of(const std::string& name, const RunModel& run_model) {
  BackendCase one;
  try {
    one = load_backend_case(name);
  } catch (const Error& error) { return {.kind = Outcome::Kind::kUnsupported, .what = error.what()}; }
  try {
    try {
      return run(one, run_model);
    } catch (const Error& error) {
      if (error.diags().front().code != Code::kDynamic) throw;
      fix_small_inputs(one);
      Outcome outcome = run(one, run_model);
      outcome.was_fixed = true;
      return outcome;
    }
  } catch (const Error& error) {
    const bool is_unsupported =
        std::any_of(error.diags().begin(), error.diags().end(), [](const Diag& diag) { return diag.code == Code::kUnknownOp or diag.code == Code::kOpset; });
    return {.kind = is_unsupported ? Outcome::Kind::kUnsupported : Outcome::Kind::kFailed, .what = error.what()};
  } catch (const std::exception& error) { return {.kind = Outcome::Kind::kFailed, .what = error.what()}; }
}

}  // namespace hone::test
