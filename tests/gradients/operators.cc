// The operators whose gradients are to be proved.
#include "tests/gradients/gradient_cases.h"

namespace hone::test {

namespace {

// clang-format off
constexpr std::string_view kOpset17[] = {
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "BatchNormalization", "Cast", "CastLike", "Celu", "Clip", "Compress",
    "Concat", "Conv", "ConvTranspose", "Cos", "Cosh", "CumSum", "DFT", "DepthToSpace", "Det", "Div", "Dropout", "Einsum", "Elu", "Erf", "Exp", "Expand",
    "Flatten", "GRU", "Gather", "GatherElements", "GatherND", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GridSample", "HardSigmoid",
    "HardSwish", "Identity", "InstanceNormalization", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "LpPool",
    "MatMul", "Max", "MaxPool", "MaxRoiPool", "MaxUnpool", "Mean", "MeanVarianceNormalization", "Min", "Mod", "Mul", "Neg", "NegativeLogLikelihoodLoss",
    "PRelu", "Pad", "Pow", "RNN", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize", "ReverseSequence", "RoiAlign", "STFT", "ScatterElements", "ScatterND", "Selu",
    "Shrink", "Sigmoid", "Sin", "Sinh", "Slice", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Squeeze",
    "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where"};
constexpr std::string_view kLater[] = {
    "Attention", "CausalConvWithState", "CenterCropPad", "Col2Im", "CumProd", "DeformConv", "Gelu", "GroupNormalization", "LinearAttention", "Mish",
    "RMSNormalization", "RotaryEmbedding", "SwiGLU", "Swish", "TensorScatter", "AffineGrid"};
constexpr std::string_view kControlFlow[] = {"If", "Loop", "Scan"};
// clang-format on

}  // namespace

std::span<const std::string_view> opset17_operators() { return kOpset17; }
std::span<const std::string_view> later_operators() { return kLater; }
std::span<const std::string_view> control_flow_operators() { return kControlFlow; }

}  // namespace hone::test
