#include "frontend/onnx/training_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "frontend/onnx/body.h"
#include "ir/ops/ops.h"
#include "ir/samples.h"

namespace hone::onnx {

namespace {

using Bindings = google::protobuf::RepeatedPtrField<StringStringEntryProto>;

class InfoReader {
 public:
  InfoReader(const ModelProto& model, const Loc& file, Diags& diags) : main_(model.graph()), info_(model.training_info(0)), file_(file), diags_(diags) {
    for (const TensorProto& tensor : main_.initializer()) initializers_.emplace(tensor.name(), Role::kWeight);
    for (const TensorProto& tensor : info_.algorithm().initializer()) initializers_.emplace(tensor.name(), Role::kState);
    for (const GraphProto* graph : {&main_, &info_.algorithm()})
      for (const ValueInfoProto& output : graph->output()) outputs_.insert(output.name());
  }

  TrainingInfo read() {
    std::set<std::string> computed;
    for (const ValueInfoProto& output : info_.initialization().output()) computed.insert(output.name());
    made_.updates = bindings(info_.update_binding(), "update_binding", outputs_, "output of the algorithm or of the model");
    made_.first_values = bindings(info_.initialization_binding(), "initialization_binding", computed, "output of the initialization graph");
    made_.initialization = info_.initialization();
    assign_roles();
    add_losses();
    combine();
    return std::move(made_);
  }

 private:
  /// Initializers and what each becomes.
  std::map<std::string, std::string> bindings(const Bindings& entries, const char* list, const std::set<std::string>& values, const char* what) {
    std::map<std::string, std::string> bound;
    std::vector<std::string> keys;
    for (const auto& [name, role] : initializers_) keys.push_back(name);
    for (const StringStringEntryProto& entry : entries) {
      const auto refuse = [&](const std::string& problem, const std::string& name, const std::vector<std::string>& names) {
        std::vector<std::string> notes;
        if (const std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(hint);
        diags_.error(Code::kBadGraph, fmt::format("{} gives {} the value {}: {}", list, quoted(entry.key()), quoted(entry.value()), problem), file_, std::move(notes));
      };
      if (not initializers_.contains(entry.key())) refuse(fmt::format("there is no initializer {}", quoted(entry.key())), entry.key(), keys);
      else if (not values.contains(entry.value())) refuse(fmt::format("there is no {} of that name", what), entry.value(), {values.begin(), values.end()});
      else if (not bound.emplace(entry.key(), entry.value()).second) refuse("it is bound twice", "", {});
    }
    return bound;
  }

  void assign_roles() {
    const auto is_float_tensor = [](const TensorProto& tensor) {
      const auto dtype = dtype_of_onnx(tensor.data_type());
      return dtype and is_float(*dtype);
    };
    for (const TensorProto& tensor : main_.initializer())
      if (made_.updates.contains(tensor.name())) made_.roles.of[tensor.name()] = is_float_tensor(tensor) ? Role::kWeight : Role::kState;
    for (const TensorProto& tensor : info_.algorithm().initializer())
      made_.roles.of.emplace(tensor.name(), made_.updates.contains(tensor.name()) ? Role::kState : Role::kConstant);
  }

  void add_losses() {
    for (const NodeProto& node : info_.algorithm().node())
      if (not referred_names(node).empty())
        for (const AttributeProto& attribute : node.attribute())
          if (attribute.name() == "y") made_.losses.push_back(attribute.s());
    std::set<std::string> updates;
    for (const auto& [key, value] : made_.updates) updates.insert(value);
    for (const ValueInfoProto& output : info_.algorithm().output())
      if (not updates.contains(output.name())) made_.outputs.push_back(output.name());
  }

  /// As the standard says: every list of the model's graph, then the algorithm's. Inputs that the algorithm names again are the model's.
  void combine() {
    GraphProto& step = made_.step;
    step.set_name("training");
    std::set<std::string> given;
    for (const GraphProto* graph : {&main_, &info_.algorithm()}) {
      step.mutable_node()->MergeFrom(graph->node());
      for (const TensorProto& tensor : graph->initializer()) {
        TensorProto& named = *step.add_initializer();
        named.set_name(tensor.name());
        named.set_data_type(tensor.data_type());
        *named.mutable_dims() = tensor.dims();
      }
      for (const ValueInfoProto& input : graph->input())
        if (graph == &main_ or not given.contains(input.name())) *step.add_input() = input;
      for (const ValueInfoProto& input : graph->input()) given.insert(input.name());
      for (const TensorProto& tensor : graph->initializer()) given.insert(tensor.name());
      for (const NodeProto& node : graph->node()) given.insert(node.output().begin(), node.output().end());
    }
    std::set<std::string> listed;
    const auto add_output = [&](const std::string& name) {
      if (listed.insert(name).second) step.add_output()->set_name(name);
    };
    for (const std::string& name : made_.outputs) add_output(name);
    for (const auto& [key, value] : made_.updates) add_output(value);
    for (const std::string& name : made_.losses) add_output(name);
  }

  const GraphProto& main_;
  const TrainingInfoProto& info_;
  const Loc& file_;
  Diags& diags_;
  std::map<std::string, Role> initializers_;
  std::set<std::string> outputs_;
  TrainingInfo made_;
};

bool is_number(const Type& type) {
  return is_float(type.dtype) and std::all_of(type.shape.begin(), type.shape.end(), [](const Dim& extent) { return extent.is_constant(1); });
}

/// The outputs of a step as the trainer reads them: sums over the batch.
class Outputs {
 public:
  Outputs(Graph& step, const TrainingInfo& info) : step_(step), info_(info), builder_(step) {}

  /// False if there is no loss.
  bool write() {
    const std::optional<std::string> loss = find_loss();
    if (not loss) return false;
    const Builder::Scope scope(builder_, Loc{.derived = "loss of the model's training"}, Part::kLoss);
    const Dim samples = samples_of(step_);
    const Val count = samples.is_constant(0) ? builder_.scalar(1) : size_value(builder_, samples, DType::kF32);
    std::vector<std::pair<std::string, Val>> sums = {{"loss_sum", of_batch(*loss, count)}, {"target_count", count}};
    for (const std::string& name : info_.outputs)
      if (const Output* output = step_.find_output(name); name != *loss and output != nullptr and is_number(step_.type(output->value)))
        sums.emplace_back("metric:" + name, of_batch(name, count));
    builder_.clear_outputs();
    for (const auto& [name, value] : sums) builder_.output(name, value);
    return true;
  }

 private:
  std::optional<std::string> find_loss() const {
    for (const std::vector<std::string>* names : {&info_.losses, &info_.outputs})
      for (const std::string& name : *names)
        if (const Output* output = step_.find_output(name); output != nullptr and is_number(step_.type(output->value))) return name;
    return std::nullopt;
  }
  Val of_batch(const std::string& name, Val count) { return cast(reshape(builder_.val(step_.find_output(name)->value), {}), DType::kF32) * count; }

  Graph& step_;
  const TrainingInfo& info_;
  Builder builder_;
};

}  // namespace

std::optional<TrainingInfo> read_training_info(const ModelProto& model, const Loc& file, Diags& diags) {
  if (model.training_info_size() == 0) return std::nullopt;
  if (model.training_info_size() > 1) {
    diags.error(Code::kBadGraph, fmt::format("the model carries {} training algorithms, each to see what the one before updated; Hone takes one", model.training_info_size()), file,
                {"say with a recipe how to train it, or leave it untrained with --no-training-info"});
    return std::nullopt;
  }
  TrainingInfo info = InfoReader(model, file, diags).read();
  if (info.updates.empty() and not diags.has_errors())
    diags.warn(Code::kModelWarning, "the training algorithm that the model carries (TrainingInfoProto) updates nothing", file, {"say with a recipe how to train it"});
  return info;
}

void bind_updates(Graph& step, const TrainingInfo& info, const Loc& file, Diags& diags) {
  Builder builder(step);
  for (const auto& [name, value] : info.updates) {
    const Input* state = step.find_input(name);
    const Output* next = step.find_output(value);
    if (state == nullptr or next == nullptr) continue;  // as was reported
    const Type &old_type = step.type(state->value), &new_type = step.type(next->value);
    if (old_type == new_type) builder.alias(builder.val(state->value), builder.val(next->value));
    else diags.error(Code::kShape, fmt::format("update_binding gives {}, which is {}, the value {}, which is {}", quoted(name), to_string(old_type), quoted(value), to_string(new_type)), file,
                     {"an update has the type of what it replaces"});
  }
  if (diags.has_errors()) return;
  if (not Outputs(step, info).write())
    diags.error(Code::kBadGraph, "the training algorithm that the model carries gives no loss: no Gradient node of it differentiates one number, and no other output of it is one", file,
                {"give the algorithm's graph the loss as an output, or say with a recipe how to train the model"});
}

void bind_first_values(Graph& initialization, const Graph& step, const TrainingInfo& info, const Loc& file, Diags& diags) {
  Builder builder(initialization);
  for (const Input& input : initialization.inputs())
    if (input.role == Role::kInput)
      diags.error(Code::kBadGraph, fmt::format("the initialization graph takes the input {}, and must take none", quoted(input.name)), file, {"nothing is there to feed it when training begins"});
  std::vector<std::pair<std::string, Val>> values;
  for (const auto& [name, value] : info.first_values) {
    const Input* state = step.find_input(name);
    const Output* first = initialization.find_output(value);
    if (state == nullptr or first == nullptr) continue;
    const Type &wanted = step.type(state->value), &given = initialization.type(first->value);
    if (wanted == given) values.emplace_back(name, builder.val(first->value));
    else diags.error(Code::kShape, fmt::format("initialization_binding gives {}, which is {}, the value {}, which is {}", quoted(name), to_string(wanted), quoted(value), to_string(given)), file,
                     {"a first value has the type of what it is for"});
  }
  builder.clear_outputs();
  for (const auto& [name, value] : values) builder.output(name, value);
}

}  // namespace hone::onnx
