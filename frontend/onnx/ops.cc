#include "frontend/onnx/ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/onnx/body.h"
#include "frontend/onnx/ops/training.h"
#include "frontend/onnx/standard.h"
#include "ir/op.h"

namespace hone::onnx {

namespace {

/// The one list of all rows.
const std::vector<std::span<const Importer>>& all_rows() {
  static const std::vector<std::span<const Importer>> kRows = {
      elementwise_importers(),
      bitwise_importers(),
      constant_importers(),
      position_importers(),
      random_importers(),
      shape_importers(),
      slice_importers(),
      index_importers(),
      sort_importers(),
      reduce_importers(),
      cumulative_importers(),
      matmul_importers(),
      einsum_importers(),
      conv_importers(),
      pool_importers(),
      spatial_importers(),
      normalization_importers(),
      attention_importers(),
      linear_attention_importers(),
      loss_importers(),
      quantize_importers(),
      signal_importers(),
      recurrent_importers(),
      training_importers(),
      text_importers(),
      contrib_importers(),
  };
  return kRows;
}

const Importer* find_row(std::string_view op_type, std::string_view domain) {
  for (const std::span<const Importer> rows : all_rows()) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Importer& row) { return row.name == op_type and row.domain == domain; });
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

const ItemImporter* find_item_row(std::string_view op_type, std::string_view domain) {
  if (not domain.empty()) return nullptr;
  for (const ItemImporter& row : sequence_importers())
    if (row.name == op_type) return &row;
  return nullptr;
}

/// The op that is `op_type` under another name, with nothing to translate but the name.
const OpDef* find_same(std::string_view op_type, std::string_view domain) {
  if (not domain.empty()) return nullptr;
  for (const OpDef* op : all_ops())
    if (op->onnx == op_type and op->attrs.empty()) return op;
  return nullptr;
}

std::vector<Val> import_same(const ImportNode& node, const OpDef& op) {
  if (node.count() < op.required_operands() or (not op.is_variadic() and node.count() > op.inputs.size()))
    node.fail(Code::kBadGraph, fmt::format("has {} inputs, and needs {}", node.count(), op.required_operands()));
  return op.build_all(node.rest(0));
}

// All operators that the standard's default domain has or had, up to opset 28: a name that is not here is misspelled or from elsewhere.
// clang-format off
constexpr std::string_view kStandardOperators[] = {
    "Abs", "Acos", "Acosh", "Add", "AffineGrid", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "Attention",
    "AveragePool", "BatchNormalization", "Bernoulli", "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BlackmanWindow",
    "Cast", "CastLike", "CausalConvWithState", "Ceil", "Celu", "CenterCropPad", "Clip", "Col2Im", "Compress", "Concat", "ConcatFromSequence",
    "Constant", "ConstantOfShape", "Conv", "ConvInteger", "ConvTranspose", "Cos", "Cosh", "CumProd", "CumSum", "DFT", "DeformConv", "DepthToSpace",
    "DequantizeLinear", "Det", "Div", "Dropout", "DynamicQuantizeLinear", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten",
    "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool",
    "Greater", "GreaterOrEqual", "GridSample", "GroupNormalization", "HammingWindow", "HannWindow", "HardSigmoid", "HardSwish", "Hardmax", "Identity",
    "If", "ImageDecoder", "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual",
    "LinearAttention", "Log", "LogSoftmax", "Loop", "LpNormalization", "LpPool", "MatMul", "MatMulInteger", "Max", "MaxPool", "MaxRoiPool",
    "MaxUnpool", "Mean", "MeanVarianceNormalization", "MelWeightMatrix", "Min", "Mish", "Mod", "Mul", "Multinomial", "Neg",
    "NegativeLogLikelihoodLoss", "NonMaxSuppression", "NonZero", "Not", "OneHot", "Optional", "OptionalGetElement", "OptionalHasElement", "Or",
    "PRelu", "Pad", "Pow", "QLinearConv", "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "RNN", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "RegexFullMatch", "Relu", "Reshape", "Resize", "ReverseSequence", "RoiAlign",
    "RotaryEmbedding", "Round", "STFT", "Scan", "Scatter", "ScatterElements", "ScatterND", "Selu", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "Shape", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice",
    "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign", "SpaceToDepth", "Split", "SplitToSequence", "Sqrt", "Squeeze", "StringConcat",
    "StringNormalizer", "StringSplit", "Sub", "Sum", "SwiGLU", "Swish", "Tan", "Tanh", "TensorScatter", "TfIdfVectorizer", "ThresholdedRelu", "Tile",
    "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze", "Upsample", "Where", "Xor"};
// clang-format on

// Operators with body graphs: frontend/onnx/control.cc writes them.
constexpr std::string_view kWithBodies[] = {"If", "Loop", "Scan", "SequenceMap"};

bool has_bodies(std::string_view op_type, std::string_view domain) {
  if (domain == "ai.onnx.preview") return op_type == "FlexAttention";
  if (domain == kTrainingDomain) return op_type == "Gradient";
  return domain.empty() and std::find(std::begin(kWithBodies), std::end(kWithBodies), op_type) != std::end(kWithBodies);
}

// What Hone refuses on purpose.
constexpr RefusedOperator kRefused[] = {
    {"ImageDecoder", "Hone has no image formats; decode images before, and feed the pixels"},
    {"RegexFullMatch", "Hone has no strings; do this before the model"},
    {"StringConcat", "Hone has no strings; do this before the model"},
    {"StringNormalizer", "Hone has no strings; do this before the model"},
    {"StringSplit", "Hone has no strings; do this before the model"},
};

}  // namespace

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

bool is_supported(std::string_view op_type, std::string_view domain) {
  domain = canonical_domain(domain);
  return find_row(op_type, domain) != nullptr or find_same(op_type, domain) != nullptr or find_item_row(op_type, domain) != nullptr or
         has_bodies(op_type, domain);
}

std::vector<Item> import_node(const ImportNode& node) {
  const std::string_view domain = canonical_domain(node.domain());
  if (const ItemImporter* row = find_item_row(node.op_type(), domain)) return row->import(node);
  const Importer* row = find_row(node.op_type(), domain);
  const OpDef* same = row == nullptr ? find_same(node.op_type(), domain) : nullptr;
  HONE_CHECK(row != nullptr or same != nullptr, "import_node() of an unsupported operator: " + node.op_type());
  const std::vector<Val> results = row != nullptr ? row->import(node) : import_same(node, *same);
  return {results.begin(), results.end()};
}

bool is_parameter(std::string_view op_type, int i) {
  const Importer* row = find_row(op_type, {});
  return row != nullptr and std::find(row->parameters.begin(), row->parameters.end(), i) != row->parameters.end();
}

std::vector<std::string> supported_operators(std::string_view domain) {
  std::vector<std::string> names;
  for (const std::span<const Importer> rows : all_rows())
    for (const Importer& row : rows)
      if (row.domain == domain) names.emplace_back(row.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names(std::begin(kWithBodies), std::end(kWithBodies));
  for (const std::span<const Importer> rows : all_rows())
    for (const Importer& row : rows)
      if (row.domain.empty() and is_standard_operator(row.name)) names.emplace_back(row.name);
  for (const ItemImporter& row : sequence_importers()) names.emplace_back(row.name);
  for (const OpDef* op : all_ops())
    if (not op->onnx.empty() and op->attrs.empty() and find_row(op->onnx, {}) == nullptr) names.emplace_back(op->onnx);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_standard_operator(std::string_view op_type) { return std::binary_search(std::begin(kStandardOperators), std::end(kStandardOperators), op_type); }

std::span<const std::string_view> standard_operators() { return kStandardOperators; }

std::span<const RefusedOperator> refused_operators() { return kRefused; }

}  // namespace hone::onnx
