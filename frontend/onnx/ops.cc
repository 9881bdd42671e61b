#include "frontend/onnx/ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op.h"

namespace hone::onnx {

namespace {

/// The one list of all rows.
const std::vector<std::span<const Importer>>& all_rows() {
  static const std::vector<std::span<const Importer>> kRows = {
      elementwise_importers(), constant_importers(), shape_importers(), slice_importers(),         reduce_importers(),
      matmul_importers(),      conv_importers(),     pool_importers(),  normalization_importers(),
  };
  return kRows;
}

const Importer* find_row(std::string_view op_type) {
  for (const std::span<const Importer> rows : all_rows()) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Importer& row) { return row.name == op_type; });
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

/// The op that is `op_type` under another name, with nothing to translate but the name.
const OpDef* find_same(std::string_view op_type) {
  for (const OpDef* op : all_ops())
    if (op->onnx == op_type and op->attrs.empty()) return op;
  return nullptr;
}

std::vector<Val> import_same(const ImportNode& node, const OpDef& op) {
  if (node.count() < op.required_operands() or (not op.is_variadic() and node.count() > op.inputs.size()))
    node.fail(Code::kBadGraph, fmt::format("has {} inputs, and needs {}", node.count(), op.required_operands()));
  return op.build_all(node.rest(0));
}

// What the standard's opset 28 has beyond the rows above; a row is removed here when one is added there.
constexpr std::string_view kNotYet[] = {"Acos",
                                        "Acosh",
                                        "AffineGrid",
                                        "ArrayFeatureExtractor",
                                        "Asin",
                                        "Asinh",
                                        "Atan",
                                        "Atanh",
                                        "Attention",
                                        "Bernoulli",
                                        "BitCast",
                                        "BitShift",
                                        "BitwiseAnd",
                                        "BitwiseNot",
                                        "BitwiseOr",
                                        "BitwiseXor",
                                        "BlackmanWindow",
                                        "CausalConvWithState",
                                        "Celu",
                                        "CenterCropPad",
                                        "Col2Im",
                                        "Compress",
                                        "ConcatFromSequence",
                                        "ConvInteger",
                                        "Cos",
                                        "Cosh",
                                        "CumProd",
                                        "CumSum",
                                        "DFT",
                                        "DeformConv",
                                        "DepthToSpace",
                                        "DequantizeLinear",
                                        "Det",
                                        "DynamicQuantizeLinear",
                                        "Einsum",
                                        "EyeLike",
                                        "FlexAttention",
                                        "GRU",
                                        "GatherElements",
                                        "GatherND",
                                        "Gelu",
                                        "GlobalLpPool",
                                        "GridSample",
                                        "GroupNormalization",
                                        "HammingWindow",
                                        "HannWindow",
                                        "Hardmax",
                                        "If",
                                        "ImageDecoder",
                                        "InstanceNormalization",
                                        "IsInf",
                                        "LRN",
                                        "LSTM",
                                        "LayerNormalization",
                                        "LinearAttention",
                                        "Loop",
                                        "LpNormalization",
                                        "LpPool",
                                        "MatMulInteger",
                                        "MaxRoiPool",
                                        "MaxUnpool",
                                        "MeanVarianceNormalization",
                                        "MelWeightMatrix",
                                        "Mish",
                                        "Mod",
                                        "Multinomial",
                                        "NegativeLogLikelihoodLoss",
                                        "NonMaxSuppression",
                                        "NonZero",
                                        "OneHot",
                                        "Optional",
                                        "OptionalGetElement",
                                        "OptionalHasElement",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "QuantizeLinear",
                                        "RMSNormalization",
                                        "RNN",
                                        "RandomNormal",
                                        "RandomNormalLike",
                                        "RandomUniform",
                                        "RandomUniformLike",
                                        "ReduceProd",
                                        "RegexFullMatch",
                                        "Resize",
                                        "ReverseSequence",
                                        "RoiAlign",
                                        "RotaryEmbedding",
                                        "Round",
                                        "STFT",
                                        "Scan",
                                        "Scatter",
                                        "ScatterElements",
                                        "ScatterND",
                                        "SequenceAt",
                                        "SequenceConstruct",
                                        "SequenceEmpty",
                                        "SequenceErase",
                                        "SequenceInsert",
                                        "SequenceLength",
                                        "SequenceMap",
                                        "Shrink",
                                        "Sin",
                                        "Sinh",
                                        "SoftmaxCrossEntropyLoss",
                                        "SpaceToDepth",
                                        "SplitToSequence",
                                        "StringConcat",
                                        "StringNormalizer",
                                        "StringSplit",
                                        "SwiGLU",
                                        "Swish",
                                        "Tan",
                                        "TensorScatter",
                                        "TfIdfVectorizer",
                                        "TopK",
                                        "Trilu",
                                        "Unique",
                                        "Upsample"};

}  // namespace

bool is_supported(std::string_view op_type) { return find_row(op_type) != nullptr or find_same(op_type) != nullptr; }

std::vector<Val> import_node(const ImportNode& node) {
  if (const Importer* row = find_row(node.op_type())) return row->import(node);
  const OpDef* same = find_same(node.op_type());
  HONE_CHECK(same != nullptr, "import_node() of an unsupported operator: " + node.op_type());
  return import_same(node, *same);
}

bool is_parameter(std::string_view op_type, int i) {
  const Importer* row = find_row(op_type);
  return row != nullptr and std::find(row->parameters.begin(), row->parameters.end(), i) != row->parameters.end();
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const std::span<const Importer> rows : all_rows())
    for (const Importer& row : rows) names.emplace_back(row.name);
  for (const OpDef* op : all_ops())
    if (not op->onnx.empty() and op->attrs.empty() and find_row(op->onnx) == nullptr) names.emplace_back(op->onnx);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_standard_operator(std::string_view op_type) {
  return is_supported(op_type) or std::find(std::begin(kNotYet), std::end(kNotYet), op_type) != std::end(kNotYet);
}

}  // namespace hone::onnx
