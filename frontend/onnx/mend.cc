#include "frontend/onnx/mend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/module_names.h"
#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

// --- Weights that were merged without a trace ---

/// The readers of one weight that belong to one layer: a layer that is called twice reads its weight twice.
struct Place {
  std::string layer;
  std::vector<Reader> readers;
};

/// A vector along one axis, whichever: [C], or [C,1,1] where a channel comes first.
bool is_vector(const Tensor& values) {
  const auto& shape = values.shape();
  return values.element_count() > 1 and std::count_if(shape.begin(), shape.end(), [](std::int64_t extent) { return extent != 1; }) == 1;
}

bool is_scale_or_bias(const NodeProto& node, const Reader& reader, const Tensor& values) {
  const bool may_be_scale = (node.op_type() == "Mul" or node.op_type() == "Add") and is_vector(values);
  return may_be_scale or is_weight_position(node, reader.operand);
}

/// The module that has the weight where the layer is a call of it: the first, or one whose name no parameters have.
std::string layer_of_reader(const MendModel& m, const std::string& weight, const NodeProto& reader) {
  std::string layer = m.loc(reader).layer;
  if (m.has_numbered_modules()) return layer;
  if (std::string called = without_calls(layer); is_folded_name(weight) and m.has_layer(called)) return called;
  const std::string called = module_name(layer), module = ancestor_like(weight, called);
  return not module.empty() and (called == module or (is_further_call(called, module) and not m.has_parameters_of(called))) ? module : layer;
}

std::vector<Place> places_of(const MendModel& m, const std::string& weight, const Tensor& values) {
  std::map<std::string, std::size_t> index;
  std::vector<Place> places;
  for (const Reader& reader : m.readers(weight)) {
    if (reader.node < 0) continue;
    const NodeProto& node = m.graph().node(reader.node);
    if (not is_scale_or_bias(node, reader, values)) continue;
    const std::string layer = layer_of_reader(m, weight, node);
    const bool is_told = not layer.empty() or node.name().starts_with('/');  // "/Add" is in the model's own module
    const std::string key = fmt::format("{} {} {}", is_told ? layer : fmt::format("node {}", reader.node), node.op_type(), reader.operand);
    const auto [found, is_new] = index.emplace(key, places.size());
    if (is_new) places.push_back({layer, {}});
    places[found->second].readers.push_back(reader);
  }
  // The place that the name belongs to keeps it; else the first.
  const auto own = std::find_if(places.begin(), places.end(), [&](const Place& place) { return not place.layer.empty() and weight.starts_with(place.layer + "."); });
  if (own != places.end()) std::iter_swap(places.begin(), own);
  return places;
}

/// "ln2.weight" for the "ln1.weight" that layer ln2 reads; where that does not work, "ln1.weight@NODE".
std::string own_name(const MendModel& m, const std::string& weight, const Place& place) {
  const std::size_t dot = weight.rfind('.');
  if (not place.layer.empty() and dot != std::string::npos)
    if (std::string name = place.layer + weight.substr(dot); m.is_free(name)) return name;
  const std::string name = fmt::format("{}@{}", weight, m.loc(m.graph().node(place.readers[0].node)).node);
  return m.is_free(name) ? name : fmt::format("{}:{}", name, place.readers[0].operand);
}

/// Do recurrent layers read it as their bias, each beside a weight of its own? Fresh ones differ in nothing else: zeros, and ones for the forget gate.
bool is_bias_of_recurrent_layers(const MendModel& m, const std::string& weight) {
  std::set<std::string> beside;
  for (const Reader& reader : m.readers(weight)) {
    if (reader.node < 0 or reader.operand != kRecurrentBias or not is_recurrent(m.graph().node(reader.node))) return false;
    beside.insert(m.graph().node(reader.node).input(kRecurrentWeight));
  }
  return beside.size() == m.readers(weight).size();
}

/// Do all readers' calls take the parameter that the weight is, by the exporter's record?
bool is_told_to_be_one(const MendModel& m, const std::string& weight) {
  const std::set<std::string>& own = m.program().parameters_in(weight);
  const auto takes_it = [&](const Reader& reader) { return reader.node >= 0 and m.program().parameters_of(m.graph().node(reader.node)).contains(*own.begin()); };
  return own.size() == 1 and std::all_of(m.readers(weight).begin(), m.readers(weight).end(), takes_it);
}

/// Is it the scale or shift of a normalization that has none, by the exporter's record: does each call take the input alone?
bool is_told_to_have_none(const MendModel& m, const Place& place) {
  constexpr std::size_t kNames = 2;  // of the result and the input
  return std::all_of(place.readers.begin(), place.readers.end(), [&](const Reader& reader) {
    const NodeProto& node = m.graph().node(reader.node);
    return node.op_type().ends_with("Normalization") and value_names(metadata_of(node, kProgramCall)).size() == kNames;
  });
}

void keep_layers_apart(MendModel& m) {
  for (const std::string& weight : m.weights()) {
    if (m.readers(weight).size() < 2 or m.is_tied_by_name(weight) or is_told_to_be_one(m, weight)) continue;
    const auto values = m.values(weight);
    if (not values) continue;
    const bool has_equal_elements = all_elements_equal(*values);
    if (not has_equal_elements and not is_bias_of_recurrent_layers(m, weight)) continue;
    const std::vector<Place> places = places_of(m, weight, *values);
    if (places.size() < 2) continue;
    std::vector<std::string> names;
    for (std::size_t i = 1; i < places.size(); ++i) {
      const std::string name = own_name(m, weight, places[i]);
      if (is_told_to_have_none(m, places[i])) {
        m.copy_as(weight, name, Origin::kConstant, {});
      } else {
        m.copy_weight(weight, name);
        names.push_back(name);
      }
      for (const Reader& reader : places[i].readers) m.redirect(reader, name);
    }
    if (names.empty()) continue;
    m.warn(fmt::format("the weight {} {} and is read by {} layers: it is trained apart for each, as {} too", quoted(weight),
                       has_equal_elements ? "has equal elements only" : "is a bias", names.size() + 1, list_of(names)),
           {"exporters merge weights that are equal when they export, such as the scales of a fresh model",
            fmt::format("if it is one weight, say so: [model] tie = [{}]", quoted(weight))});
  }
}

// --- What batch normalization was folded into ---

bool names_batch_norm(const std::string& name) {
  const std::string lower = lower_case(name);
  for (const std::string_view word : {"batchnorm", "batch_norm", "_fused_bn"})
    if (lower.find(word) != std::string::npos) return true;
  for (const std::string& piece : split(lower, '/'))
    for (const std::string& word : split(piece, '.'))
      if (word == "bn" or (word.starts_with("bn") and word.find_first_not_of("0123456789", 2) == std::string::npos)) return true;
  return false;
}

/// Keeps one channel apart from the next: [C,1,1] or [1,C,1,1].
bool is_per_channel(const Tensor& values) {
  const auto& shape = values.shape();
  return shape.size() >= 3 and values.element_count() == shape[shape.size() == 3 ? 0 : 1] and shape.back() == 1;
}

/// Keras's form of it: Conv, Mul and Add by constants of one number a channel.
bool is_scaled_and_shifted(const MendModel& m, const NodeProto& conv) {
  const std::string* value = &conv.output(0);
  for (const std::string_view op : {"Mul", "Add"}) {
    const std::vector<Reader>& readers = m.readers(*value);
    if (readers.size() != 1 or readers[0].node < 0) return false;
    const NodeProto& node = m.graph().node(readers[0].node);
    if (node.op_type() != op or node.input_size() != 2 or node.output_size() != 1) return false;
    const auto values = m.values(node.input(1 - readers[0].operand));
    if (not values or not is_per_channel(*values)) return false;
    value = &node.output(0);
  }
  return true;
}

bool is_folded(const MendModel& m, const NodeProto& conv) {
  const std::string weight = conv.input_size() > 1 ? conv.input(1) : "", bias = conv.input_size() > 2 ? conv.input(2) : "";
  if (is_scaled_and_shifted(m, conv)) return true;
  if (bias.empty() or not m.is_weight(weight)) return false;
  const bool renamed = weight.starts_with("onnx::Conv_") and bias.starts_with("onnx::Conv_");  // PyTorch gives that name to what it changed: both of them here, and the weight alone where that is normalized
  return renamed or bias == weight + "_bias" or names_batch_norm(weight) or names_batch_norm(bias);
}

void name_folded(MendModel& m) {
  std::vector<std::string> convolutions;
  for (const NodeProto& node : m.graph().node())
    if ((node.op_type() == "Conv" or node.op_type() == "ConvTranspose") and node.output_size() > 0 and is_folded(m, node)) convolutions.push_back(m.loc(node).node);
  if (convolutions.empty()) return;
  m.warn(fmt::format("batch normalization is folded into {} convolution{}: {}; they train as plain ones", convolutions.size(), convolutions.size() == 1 ? "" : "s",
                     list_of(convolutions)),
         {"to train with batch statistics, export the model in training mode (PyTorch: training=TrainingMode.PRESERVE with do_constant_folding=False, and optimize=False where dynamo=True)"});
}

// --- What the exporter says that initializers are ---

/// Would it be taken for a weight? One element is, where models keep what they learn.
bool looks_like_weight(const TensorProto& tensor, const std::set<std::string_view>& learned) {
  const auto dtype = dtype_of_onnx(tensor.data_type());
  const std::int64_t most = tensor.dims_size() == 0 ? 0 : *std::max_element(tensor.dims().begin(), tensor.dims().end());
  return dtype and is_float(*dtype) and info(*dtype).bits >= 16 and (most > 1 or (most == 1 and learned.contains(tensor.name())));
}

/// Where recurrent layers begin. Zeros there are what frameworks begin with, and the size of the batch is one of their axes where it was fixed when exporting.
bool is_first_state(const MendModel& m, const std::string& name) {
  const std::vector<Reader>& readers = m.readers(name);
  const auto begins = [&](const Reader& reader) { return reader.node >= 0 and reader.operand >= kRecurrentFirstState and reader.operand <= kRecurrentFirstState + 1 and is_recurrent(m.graph().node(reader.node)); };
  if (readers.empty() or not std::all_of(readers.begin(), readers.end(), begins)) return false;
  const auto values = m.values(name);
  return values and std::all_of(values->bytes().begin(), values->bytes().end(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// Those who read its elements, also behind nodes that only move them; nothing if they are too many to look at.
std::optional<std::vector<Reader>> readers_of_elements(const MendModel& m, const std::string& name) {
  constexpr std::string_view kMoving[] = {"Slice", "Gather", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Tile", "Transpose", "Cast", "Identity"};
  constexpr std::size_t kMost = 256;
  std::vector<Reader> all = m.readers(name), found;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > kMost) return std::nullopt;
    const NodeProto* node = all[i].node < 0 ? nullptr : &m.graph().node(all[i].node);
    if (node == nullptr or all[i].operand != 0 or std::find(std::begin(kMoving), std::end(kMoving), node->op_type()) == std::end(kMoving)) {
      found.push_back(all[i]);
      continue;
    }
    const std::vector<Reader>& behind = m.readers(node->output(0));
    all.insert(all.end(), behind.begin(), behind.end());
  }
  return found;
}

/// Is it added to scores, or chosen instead of them, to leave some out? No parameter is infinite, or 0 and one large negative number.
bool is_mask(const MendModel& m, const std::string& name) {
  constexpr double kLargestMasking = -100;  // Swin's; others have -1e4, -1e9 or the least number there is
  const auto masks = [&](const Reader& reader) {
    constexpr std::string_view kMasking[] = {"Add", "Sub", "Where", "Min", "Max"};
    return reader.node >= 0 and std::find(std::begin(kMasking), std::end(kMasking), m.graph().node(reader.node).op_type()) != std::end(kMasking);
  };
  const auto readers = readers_of_elements(m, name);
  if (not readers or readers->empty() or not std::all_of(readers->begin(), readers->end(), masks)) return false;
  const auto values = m.values(name);
  if (not values) return false;
  bool has_zero = false;
  double masking = 0;
  for (std::int64_t i = 0; i < values->element_count(); ++i) {
    const double value = values->at(i);
    if (std::isinf(value)) return true;
    if (value == 0) has_zero = true;
    else if (masking == 0 and value <= kLargestMasking) masking = value;
    else if (value != masking) return false;
  }
  return has_zero and masking < 0;
}

/// Does a convolution add up windows with it, channel by channel, as jax2onnx writes average pooling? No weights are all 1.
bool is_window_of_ones(const MendModel& m, const std::string& name) {
  constexpr int kWeight = 1, kBias = 2;
  const auto adds_up = [&](const Reader& reader) {
    if (reader.node < 0 or reader.operand != kWeight) return false;
    const NodeProto& node = m.graph().node(reader.node);
    return node.op_type() == "Conv" and (node.input_size() <= kBias or node.input(kBias).empty());
  };
  const std::vector<Reader>& readers = m.readers(name);
  if (readers.empty() or not std::all_of(readers.begin(), readers.end(), adds_up)) return false;
  const auto values = m.values(name);
  return values and values->shape().size() > 2 and values->shape()[1] == 1 and values->element_count() > 1 and all_elements_equal(*values) and values->at(0) == 1;
}

/// The 3 of Keras's hard_sigmoid and hard_swish, which tf2onnx gives the axes of the convolution in front: relu6(x + 3).
bool is_shift_of_relu6(const MendModel& m, const std::string& name) {
  constexpr double kShift = 3, kMost = 6;
  const auto values = m.is_from_keras() ? m.values(name) : std::nullopt;
  if (not values or values->element_count() != 1 or values->at(0) != kShift) return false;
  const auto is = [&](const std::string& bound, double value) {
    const auto number = m.values(bound);
    return number and number->element_count() == 1 and number->at(0) == value;
  };
  const auto clips = [&](const Reader& reader) {
    const NodeProto* node = reader.node < 0 ? nullptr : &m.graph().node(reader.node);
    return node != nullptr and node->op_type() == "Clip" and node->input_size() == 3 and is(node->input(1), 0) and is(node->input(2), kMost);
  };
  const auto shifts = [&](const Reader& reader) {
    const NodeProto* node = reader.node < 0 ? nullptr : &m.graph().node(reader.node);
    return node != nullptr and node->op_type() == "Add" and not m.readers(node->output(0)).empty() and std::all_of(m.readers(node->output(0)).begin(), m.readers(node->output(0)).end(), clips);
  };
  const std::vector<Reader>& readers = m.readers(name);
  return not readers.empty() and std::all_of(readers.begin(), readers.end(), shifts);
}

/// Did TensorFlow make it of a constant divisor, the deviations of a Normalization layer for example? Keras's layers divide by nothing that they learn.
bool is_reciprocal(const MendModel& m, const std::string& name) { return m.is_from_keras() and name.starts_with("ConstantFolding/") and name.ends_with("_recip:0"); }

/// Does TensorFlow call it as it calls what a program writes down: operands that are numbers ("mul/y:0"), constants, ranges and bands? Variables go by the node that read them.
bool is_written_in_code(const MendModel& m, const std::string& name) {
  if (not m.is_from_keras() or name.find('/') == std::string::npos) return false;
  std::string_view last = std::string_view(name).substr(name.rfind('/') + 1);
  last = last.substr(0, last.find(':'));
  if (const std::size_t number = last.find_last_not_of("0123456789"); number != std::string_view::npos and last[number] == '_') last = last.substr(0, number);
  constexpr std::string_view kWritten[] = {"x", "y", "Const", "range", "MatrixBandPart"};
  return std::ranges::find(kWritten, last) != std::end(kWritten);
}

/// Initializers that are no weights by what they hold and who reads them, where the exporter tells nothing.
struct Look {
  bool (*fits)(const MendModel&, const std::string&);
  std::string_view of_one, of_several;  ///< what is said of them, by name
};
constexpr Look kLooks[] = {
    {is_first_state, "recurrent layers begin with {}, which is zero", "recurrent layers begin with {}, which are zero"},
    {is_mask, "{} has infinite elements, or 0 and one large negative number, as masks have", "{} have infinite elements, or 0 and one large negative number, as masks have"},
    {is_window_of_ones, "{} is all ones, and a convolution adds up each window with it, as average pooling does", "{} are all ones, and convolutions add up each window with them, as average pooling does"},
    {is_shift_of_relu6, "{} is the 3 of a hard sigmoid or hard swish", "{} are the 3 of a hard sigmoid or hard swish"},
    {is_written_in_code, "{} is a constant by the name that TensorFlow gave it, no variable", "{} are constants by the names that TensorFlow gave them, no variables"},
    {is_reciprocal, "{} is one over a constant that the model divides by, such as the deviations of a Normalization layer",
     "{} are one over constants that the model divides by, such as the deviations of a Normalization layer"},
};

Roles told_roles(const MendModel& m) {
  Roles roles;
  std::vector<std::string> constants, scalars, found[std::size(kLooks)];
  const std::set<std::string_view> learned = learned_places(m.graph());  // weights as they are
  for (const TensorProto& tensor : m.graph().initializer()) {
    const std::string& name = tensor.name();
    const Origin origin = m.program().origin_of(name);
    const auto dtype = dtype_of_onnx(tensor.data_type());
    if (origin == Origin::kParameter and dtype and is_float(*dtype) and info(*dtype).bits >= 16) roles.of.emplace(name, Role::kWeight);
    const bool statistic = m.is_read_by(name, "BatchNormalization", 3) or m.is_read_by(name, "BatchNormalization", 4);  // moved by the forward pass
    if (m.is_scalar_of_module(tensor) and (tensor.dims_size() == 0 or not learned.contains(name))) {
      roles.of.emplace(name, Role::kWeight);
      scalars.push_back(name);
    }
    if (m.is_trained_by_name(name)) continue;
    const bool looks_trained = looks_like_weight(tensor, learned);
    for (std::size_t i = 0; looks_trained and origin == Origin::kUnknown and i < std::size(kLooks); ++i) {
      if (not kLooks[i].fits(m, name)) continue;
      roles.of.emplace(name, Role::kConstant);
      found[i].push_back(name);
    }
    if (is_setting(m, name)) roles.of.emplace(name, Role::kConstant);
    if (origin != Origin::kConstant or statistic or not looks_trained) continue;
    roles.of.emplace(name, Role::kConstant);
    constants.push_back(name);
  }
  if (not scalars.empty())
    m.warn(fmt::format("taken for {} of one number, as {} keeps temperatures and gates, and trained: {}", scalars.size() == 1 ? "a parameter" : "parameters",
                       m.is_from_keras() ? "Keras" : "PyTorch", list_of(scalars)),
           {"if it is a buffer, say so: model.freeze"});
  for (std::size_t i = 0; i < std::size(kLooks); ++i)
    if (not found[i].empty())
      m.warn(fmt::format(fmt::runtime(found[i].size() == 1 ? kLooks[i].of_one : kLooks[i].of_several), list_of(found[i])) + "; not trained", {"model.train_only may name what is to be learned all the same"});
  if (not constants.empty())
    m.warn(fmt::format("by the exporter's account {} no parameter{} of the model: {}; not trained", constants.size() == 1 ? "this is" : "these are", constants.size() == 1 ? "" : "s",
                       list_of(constants)),
           {"they are buffers and constants, as PyTorch calls them; model.train_only may name them to train them"});
  return roles;
}

}  // namespace

Roles mend_weights(ModelProto& model, const std::string& file, const std::string& folder, const MendOptions& options, Diags& diags) {
  if (options.new_head.classes > 0) replace_head(model, options.new_head, diags);
  MendModel m(model, file, folder, options, diags);
  lift_constants(m);
  m.finish();
  const std::vector<std::string> names_to_tie = m.checked_names_to_tie();
  // PyTorch's older exporter leaves such a name for every weight that it merged: what layers share without one is shared.
  const bool tells_merged = keep_aliases_apart(m) and m.is_from_torchscript();
  m.finish();
  tie_calls(m);
  m.finish();
  restore_biases(m);
  m.finish();
  keep_parameters_apart(m);
  m.finish();
  if (not tells_merged) keep_layers_apart(m);
  m.finish();
  keep_statistics_apart(m);
  m.finish();
  tie_equal(m);
  m.finish();
  restore_views(m);
  m.finish();
  m.warn_of_idle_ties(names_to_tie);
  add_biases(m, options.add_bias);
  m.finish();
  if (options.fill_weights) fill_weights(m);
  m.finish();
  name_folded(m);
  name_quantized(m);
  if (options.trains) name_idle_dropout(m);
  Roles roles = told_roles(m);
  if (m.is_from_keras()) name_keras(m, roles);
  return roles;
}

}  // namespace hone::onnx
