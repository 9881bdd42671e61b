#include "runtime/train/export_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/plan/metadata.h"

namespace hone {

namespace {

using TensorsByName = std::map<std::string, onnx::TensorProto*, std::less<>>;

/// Initializers of the main graph and of training algorithms, and the values of Constant nodes of the main graph under the names of their outputs.
TensorsByName named_tensors(onnx::ModelProto& model) {
  TensorsByName tensors;
  onnx::GraphProto& graph = *model.mutable_graph();
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) tensors.emplace(tensor.name(), &tensor);
  for (onnx::TrainingInfoProto& training : *model.mutable_training_info()) {
    if (not training.has_algorithm()) continue;
    for (onnx::TensorProto& tensor : *training.mutable_algorithm()->mutable_initializer()) tensors.emplace(tensor.name(), &tensor);
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (node.op_type() != "Constant" or node.output_size() != 1) continue;
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.name() == "value" and attribute.has_t()) tensors.emplace(node.output(0), attribute.mutable_t());
  }
  return tensors;
}

std::vector<std::int64_t> shape_of_proto(const onnx::TensorProto& tensor) { return {tensor.dims().begin(), tensor.dims().end()}; }

bool has_values(onnx::TensorProto& tensor) {
  const bool external = tensor.data_location() == onnx::TensorProto::EXTERNAL;
  return external or not tensor.raw_data().empty() or tensor.float_data_size() > 0 or tensor.int32_data_size() > 0 or tensor.int64_data_size() > 0 or
         tensor.double_data_size() > 0 or tensor.uint64_data_size() > 0 or tensor.string_data_size() > 0;
}

bool is_empty(const onnx::TensorProto& tensor) {
  for (const std::int64_t extent : tensor.dims())
    if (extent == 0) return true;
  return false;
}

/// A tensor of the model, and what stands for it in the program.
struct Place {
  onnx::TensorProto* proto;
  const plan::Persistent* persistent;
};

/// Of everything that is written back. Throws kPlanFormat where the model lacks it, or has a tensor without values that is none of it.
std::vector<Place> places_in(onnx::ModelProto& model, const plan::Program& program) {
  TensorsByName tensors = named_tensors(model);
  std::vector<Place> places;
  for (const plan::Persistent& persistent : program.persistents) {
    if (not persistent.in_model) continue;
    const auto found = tensors.find(persistent.name);
    if (found == tensors.end()) throw plan::unsound_plan(fmt::format("the model in the plan has no tensor {}", quoted(persistent.name)));
    const onnx::TensorProto& proto = *found->second;
    if (not dtype_of_onnx(proto.data_type()) or checked_element_count(shape_of_proto(proto)) != persistent.initial.element_count())
      throw plan::unsound_plan(fmt::format("the model in the plan has {} as {}{}, which {}{} cannot become", quoted(persistent.name), onnx_type_name(proto.data_type()),
                                shape_text(shape_of_proto(proto)), to_string(persistent.initial.dtype()), shape_text(persistent.initial.shape())));
    places.push_back({found->second, &persistent});
    tensors.erase(found);
  }
  for (const auto& [name, tensor] : tensors)
    if (not has_values(*tensor) and not is_empty(*tensor)) throw plan::unsound_plan(fmt::format("the tensor {} of the model in the plan has no values", quoted(name)));
  return places;
}

}  // namespace

void check_model(std::span<const std::byte> onnx_model, const plan::Program& program) {
  if (std::ranges::none_of(program.persistents, &plan::Persistent::in_model)) return;
  onnx::ModelProto model = parse_model(onnx_model, "the model in the plan");
  (void)places_in(model, program);
}

onnx::ModelProto trained_model(std::span<const std::byte> onnx_model, const plan::Program& program, const ReadWeight& read) {
  onnx::ModelProto model = parse_model(onnx_model, "the model in the plan");
  for (const auto& [proto, persistent] : places_in(model, program)) {
    const std::vector<std::int64_t> shape = shape_of_proto(*proto);  // before the tensor is written
    store_tensor(proto, read(persistent->name).cast(*dtype_of_onnx(proto->data_type())).reshaped(shape));
  }
  return model;
}

void export_onnx(std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader) {
  onnx::ModelProto model = trained_model(onnx_model, session.program(), read_for_others(session, read_by(session, reader)));
  if (reader.confirm) reader.confirm();
  save_model(std::move(model), path);
}

StoredWeights weights_in_onnx(const std::string& path) {
  const auto model = std::make_shared<onnx::ModelProto>(load_model(path));
  StoredWeights weights;
  for (const auto& [name, tensor] : named_tensors(*model)) {
    const auto dtype = dtype_of_onnx(tensor->data_type());
    weights[name] = {.dtype = dtype,
                     .type_name = dtype ? std::string(to_string(*dtype)) : onnx_type_name(tensor->data_type()),
                     .shape = shape_of_proto(*tensor),
                     .read = [model, proto = tensor, path] { return tensor_of(*proto, folder_of(path), {.file = path}); }};
  }
  return weights;
}

}  // namespace hone
