#include "tests/support/backend_cases/backend_case.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

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

Tensor parse_tensor(const std::string& bytes, const std::string& path) {
  onnx::TensorProto proto;
  if (not proto.ParseFromString(bytes)) throw Error(Code::kNotOnnx, path + " is no tensor");
  return tensor_of(proto, ".", Loc{.file = path});
}

/// Messages in `field` of a protobuf message: SequenceProto has its tensors in field 3, OptionalProto a tensor in 3 or a sequence in 5.
std::vector<std::string> messages_in(const std::string& bytes, int field) {
  using google::protobuf::internal::WireFormatLite;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  std::vector<std::string> messages;
  while (const std::uint32_t tag = stream.ReadTag()) {
    std::uint32_t length = 0;
    if (WireFormatLite::GetTagFieldNumber(tag) != field) WireFormatLite::SkipField(&stream, tag);
    else if (not stream.ReadVarint32(&length) or not stream.ReadString(&messages.emplace_back(), static_cast<int>(length))) break;
  }
  return messages;
}

/// The tensors of an input or output file.
std::vector<Tensor> read_tensors(const std::string& path, const onnx::TypeProto& type) {
  const MappedFile file(path);
  std::vector<std::string> tensors = {std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size())};
  if (type.has_optional_type()) {
    const bool is_sequence = type.optional_type().elem_type().has_sequence_type();
    tensors = messages_in(tensors[0], is_sequence ? 5 : 3);
    if (is_sequence and not tensors.empty()) tensors = messages_in(tensors[0], 3);
  } else if (type.has_sequence_type()) {
    tensors = messages_in(tensors[0], 3);
  }
  std::vector<Tensor> result;
  for (const std::string& bytes : tensors) result.push_back(parse_tensor(bytes, path));
  return result;
}

bool is_sequence(const onnx::TypeProto& type) { return type.has_sequence_type() or (type.has_optional_type() and type.optional_type().elem_type().has_sequence_type()); }

void append(std::vector<Tensor>& all, std::vector<Tensor> more) { std::move(more.begin(), more.end(), std::back_inserter(all)); }

/// Of a sequence, or of an optional one.
onnx::TypeProto::Tensor* element_type(onnx::TypeProto* type) {
  if (type->has_optional_type()) type = type->mutable_optional_type()->mutable_elem_type();
  return type->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type();
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
  const std::string data = suite_folder() + "/" + name + "/test_data_set_0/";
  BackendCase one{name, load_model(backend_case_model(name)), {}, {}, {}};
  const onnx::GraphProto& graph = one.model.graph();
  for (int i = 0; i < graph.input_size() and std::filesystem::exists(fmt::format("{}input_{}.pb", data, i)); ++i) {
    const onnx::ValueInfoProto& input = graph.input(i);
    std::vector<Tensor> tensors = read_tensors(fmt::format("{}input_{}.pb", data, i), input.type());
    if (not input.type().has_tensor_type()) one.dims[input.name()] = static_cast<std::int64_t>(tensors.size());
    for (std::size_t k = 0; k < tensors.size(); ++k)
      one.input_names.push_back(is_sequence(input.type()) ? fmt::format("{}.{}", input.name(), k) : input.name());
    append(one.inputs, std::move(tensors));
  }
  for (int i = 0; i < graph.output_size() and std::filesystem::exists(fmt::format("{}output_{}.pb", data, i)); ++i)
    append(one.outputs, read_tensors(fmt::format("{}output_{}.pb", data, i), graph.output(i).type()));
  return one;
}

void fix_small_inputs(BackendCase& one) {
  constexpr std::int64_t kSmall = 64, kFew = 8;
  onnx::GraphProto& graph = *one.model.mutable_graph();
  for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      const Tensor& value = one.inputs[i];
      if (is_sequence(input.type()) and one.input_names[i] == input.name() + ".0" and not element_type(input.mutable_type())->has_shape())
        for (std::size_t axis = 0; axis < value.shape().size(); ++axis) element_type(input.mutable_type())->mutable_shape()->add_dim();
      const bool is_few = value.shape().size() <= 1 and value.element_count() <= kFew;  // a float Range's start, limit and delta; Resize's scales
      if (one.input_names[i] != input.name() or (is_float(value.dtype()) and not is_few) or value.element_count() > kSmall) continue;
      onnx::TensorProto* initializer = graph.add_initializer();
      initializer->set_name(input.name());
      store_tensor(initializer, value);
    }
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
  const onnx::Imported imported = onnx::import_model(one.model, one.name, ".", {.dims = one.dims});
  Feeds feeds;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    const Input* input = imported.graph.find_input(one.input_names[i]);
    if (input != nullptr and input->role == Role::kInput) feeds.emplace(input->name, one.inputs[i]);
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
