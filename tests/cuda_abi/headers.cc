// What is declared of NVIDIA's libraries without their headers, against the headers, where they are installed: one that another version changes is found when this is compiled.
#include <gtest/gtest.h>

#if defined(HONE_CUDA_HEADERS)
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nccl.h>
#endif

#include <type_traits>

#include "base/recurrent_cell.h"
#include "runtime/device/cublaslt.h"
#include "runtime/device/cuda_library.h"
#include "runtime/device/cudnn.h"
#include "runtime/device/nccl.h"

namespace hone {
namespace {

#if defined(HONE_CUDA_HEADERS)

/// Do two function types pass the same arguments the same way: pointers, and whole numbers of the same size?
template <typename A, typename B>
constexpr bool passes_alike() {
  if constexpr (std::is_pointer_v<A> or std::is_pointer_v<B>) return std::is_pointer_v<A> and std::is_pointer_v<B>;
  else if constexpr (std::is_void_v<A> or std::is_void_v<B>) return std::is_void_v<A> and std::is_void_v<B>;
  else if constexpr (std::is_class_v<A> or std::is_class_v<B>) return std::is_class_v<A> and std::is_class_v<B> and sizeof(A) == sizeof(B);
  else return std::is_floating_point_v<A> == std::is_floating_point_v<B> and sizeof(A) == sizeof(B);
}
template <typename A, typename B>
struct SameAbi : std::false_type {};
template <typename A, typename... As, typename B, typename... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameAbi<A (*)(As...), B (*)(Bs...)> : std::bool_constant<passes_alike<A, B>() and (passes_alike<As, Bs>() and ...)> {};

#define HONE_CHECK_CUDA(symbol, name, arguments) static_assert(SameAbi<decltype(cuda::Library::name), decltype(&::symbol)>::value, #symbol);
HONE_CUDA_FUNCTIONS(HONE_CHECK_CUDA)
#define HONE_CHECK_ABI(library, symbol, name) static_assert(SameAbi<decltype(library::Library::name), decltype(&::symbol)>::value, #symbol);
#define HONE_CHECK_CUBLASLT(symbol, name, result, arguments) HONE_CHECK_ABI(cublaslt, symbol, name)
HONE_CUBLASLT_FUNCTIONS(HONE_CHECK_CUBLASLT)
#define HONE_CHECK_CUDNN(symbol, name, result, arguments) HONE_CHECK_ABI(cudnn, symbol, name)
HONE_CUDNN_FUNCTIONS(HONE_CHECK_CUDNN)
#define HONE_CHECK_NCCL(symbol, name, result, arguments) HONE_CHECK_ABI(nccl, symbol, name)
HONE_NCCL_FUNCTIONS(HONE_CHECK_NCCL)

#define HONE_SAME(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)

HONE_SAME(cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
HONE_SAME(cuda::kNotReady, CUDA_ERROR_NOT_READY);
HONE_SAME(cuda::kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
HONE_SAME(cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
HONE_SAME(cuda::kInvalidPtx, CUDA_ERROR_INVALID_PTX);
HONE_SAME(cuda::kNoJitCompiler, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
HONE_SAME(cuda::kUnsupportedPtx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
HONE_SAME(cuda::kJitDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED);
HONE_SAME(cuda::kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
HONE_SAME(cuda::kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
HONE_SAME(cuda::kProcessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
HONE_SAME(cuda::kComputeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
HONE_SAME(cuda::kProhibited, CU_COMPUTEMODE_PROHIBITED);
HONE_SAME(cuda::kClock, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
HONE_SAME(cuda::kMemoryClock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
HONE_SAME(cuda::kMemoryBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);

HONE_SAME(cublaslt::kF32, CUDA_R_32F);
HONE_SAME(cublaslt::kF16, CUDA_R_16F);
HONE_SAME(cublaslt::kBF16, CUDA_R_16BF);
HONE_SAME(cublaslt::kComputeF32, CUBLAS_COMPUTE_32F);
HONE_SAME(cublaslt::kComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
HONE_SAME(cublaslt::kTransposed, CUBLAS_OP_T);
HONE_SAME(cublaslt::kDescTransA, CUBLASLT_MATMUL_DESC_TRANSA);
HONE_SAME(cublaslt::kDescTransB, CUBLASLT_MATMUL_DESC_TRANSB);
HONE_SAME(cublaslt::kDescEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
HONE_SAME(cublaslt::kDescBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
HONE_SAME(cublaslt::kDescBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
HONE_SAME(cublaslt::kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
HONE_SAME(cublaslt::kEpilogueReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
HONE_SAME(cublaslt::kEpilogueBiasGradA, CUBLASLT_EPILOGUE_BGRADA);
HONE_SAME(cublaslt::kEpilogueBiasGradB, CUBLASLT_EPILOGUE_BGRADB);
HONE_SAME(cublaslt::kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
HONE_SAME(cublaslt::kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
HONE_SAME(cublaslt::kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
HONE_SAME(cublaslt::kReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
HONE_SAME(cublaslt::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
HONE_SAME(cublaslt::kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
HONE_SAME(cublaslt::kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
HONE_SAME(cublaslt::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
HONE_SAME(cublaslt::kReductionInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
HONE_SAME(sizeof(cublaslt::Algorithm), sizeof(cublasLtMatmulAlgo_t));
HONE_SAME(sizeof(cublaslt::Heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
HONE_SAME(offsetof(cublaslt::Heuristic, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
HONE_SAME(offsetof(cublaslt::Heuristic, status), offsetof(cublasLtMatmulHeuristicResult_t, state));

HONE_SAME(cudnn::Kind::kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kWeightGradient, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kInputGradient, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
HONE_SAME(cudnn::Kind::kReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
HONE_SAME(static_cast<int>(RecurrentCell::kTanh), CUDNN_RNN_TANH);
HONE_SAME(static_cast<int>(RecurrentCell::kLstm), CUDNN_LSTM);
HONE_SAME(static_cast<int>(RecurrentCell::kGru), CUDNN_GRU);
HONE_SAME(cudnn::kStandardAlgorithm, CUDNN_RNN_ALGO_STANDARD);
HONE_SAME(cudnn::kPersistentAlgorithm, CUDNN_RNN_ALGO_PERSIST_STATIC);
HONE_SAME(cudnn::kSmallPersistentAlgorithm, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H);
HONE_SAME(cudnn::kTwoBiases, CUDNN_RNN_DOUBLE_BIAS);
HONE_SAME(cudnn::kOneDirection, CUDNN_UNIDIRECTIONAL);
HONE_SAME(cudnn::kMultipliesInput, CUDNN_LINEAR_INPUT);
HONE_SAME(cudnn::kInference, CUDNN_FWD_MODE_INFERENCE);
HONE_SAME(cudnn::kTraining, CUDNN_FWD_MODE_TRAINING);
HONE_SAME(cudnn::kPackedSteps, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED);
HONE_SAME(cudnn::kAddsGradients, CUDNN_WGRAD_MODE_ADD);
HONE_SAME(cudnn::kMayBeTf32, CUDNN_DEFAULT_MATH);
HONE_SAME(cudnn::kIsF32, CUDNN_FMA_MATH);
HONE_SAME(cudnn::Type::kHandle, CUDNN_TYPE_HANDLE);
HONE_SAME(cudnn::Type::kDataType, CUDNN_TYPE_DATA_TYPE);
HONE_SAME(cudnn::Type::kInt64, CUDNN_TYPE_INT64);
HONE_SAME(cudnn::Type::kFloat, CUDNN_TYPE_FLOAT);
HONE_SAME(cudnn::Type::kPointer, CUDNN_TYPE_VOID_PTR);
HONE_SAME(cudnn::Type::kConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
HONE_SAME(cudnn::Type::kHeuristicsMode, CUDNN_TYPE_HEUR_MODE);
HONE_SAME(cudnn::Type::kNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
HONE_SAME(cudnn::Type::kDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
HONE_SAME(cudnn::Type::kBool, CUDNN_TYPE_BOOLEAN);
HONE_SAME(cudnn::Type::kPointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
HONE_SAME(cudnn::Type::kReductionOperator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
HONE_SAME(cudnn::Attribute::kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
HONE_SAME(cudnn::Attribute::kPointwiseComputeType, CUDNN_ATTR_POINTWISE_MATH_PREC);
HONE_SAME(cudnn::Attribute::kPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
HONE_SAME(cudnn::Attribute::kPointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
HONE_SAME(cudnn::Attribute::kPointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
HONE_SAME(cudnn::Attribute::kPointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
HONE_SAME(cudnn::Attribute::kPointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
HONE_SAME(cudnn::Attribute::kPointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
HONE_SAME(cudnn::Attribute::kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
HONE_SAME(cudnn::Attribute::kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
HONE_SAME(cudnn::Attribute::kMatmulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
HONE_SAME(cudnn::Attribute::kMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
HONE_SAME(cudnn::Attribute::kMatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
HONE_SAME(cudnn::Attribute::kMatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
HONE_SAME(cudnn::Attribute::kMatmulDescriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC);
HONE_SAME(cudnn::Attribute::kReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
HONE_SAME(cudnn::Attribute::kReductionComputeType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
HONE_SAME(cudnn::Attribute::kReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
HONE_SAME(cudnn::Attribute::kReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
HONE_SAME(cudnn::Attribute::kReductionDescriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
HONE_SAME(cudnn::Attribute::kReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
HONE_SAME(cudnn::Attribute::kReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
HONE_SAME(cudnn::kInt32, CUDNN_DATA_INT32);
HONE_SAME(cudnn::kBoolean, CUDNN_DATA_BOOLEAN);
HONE_SAME(cudnn::kReduceAdd, CUDNN_REDUCE_TENSOR_ADD);
HONE_SAME(cudnn::kReduceMax, CUDNN_REDUCE_TENSOR_MAX);
HONE_SAME(cudnn::Pointwise::kAdd, CUDNN_POINTWISE_ADD);
HONE_SAME(cudnn::Pointwise::kMul, CUDNN_POINTWISE_MUL);
HONE_SAME(cudnn::Pointwise::kDiv, CUDNN_POINTWISE_DIV);
HONE_SAME(cudnn::Pointwise::kSub, CUDNN_POINTWISE_SUB);
HONE_SAME(cudnn::Pointwise::kExp, CUDNN_POINTWISE_EXP);
HONE_SAME(cudnn::Pointwise::kLog, CUDNN_POINTWISE_LOG);
HONE_SAME(cudnn::Pointwise::kGreaterEqual, CUDNN_POINTWISE_CMP_GE);
HONE_SAME(cudnn::Pointwise::kIndex, CUDNN_POINTWISE_GEN_INDEX);
HONE_SAME(cudnn::Pointwise::kSelect, CUDNN_POINTWISE_BINARY_SELECT);
HONE_SAME(cudnn::Type::kChar, CUDNN_TYPE_CHAR);
HONE_SAME(cudnn::Attribute::kComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
HONE_SAME(cudnn::Attribute::kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
HONE_SAME(cudnn::Attribute::kDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
HONE_SAME(cudnn::Attribute::kStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
HONE_SAME(cudnn::Attribute::kPadsEnd, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
HONE_SAME(cudnn::Attribute::kPadsBegin, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
HONE_SAME(cudnn::Attribute::kSpatialAxes, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
HONE_SAME(cudnn::Attribute::kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
HONE_SAME(cudnn::Attribute::kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
HONE_SAME(cudnn::Attribute::kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
HONE_SAME(cudnn::Attribute::kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
HONE_SAME(cudnn::Attribute::kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
HONE_SAME(cudnn::Attribute::kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
HONE_SAME(cudnn::Attribute::kPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
HONE_SAME(cudnn::Attribute::kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
HONE_SAME(cudnn::Attribute::kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
HONE_SAME(cudnn::Attribute::kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
HONE_SAME(cudnn::Attribute::kTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE);
HONE_SAME(cudnn::Attribute::kTensorExtents, CUDNN_ATTR_TENSOR_DIMENSIONS);
HONE_SAME(cudnn::Attribute::kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
HONE_SAME(cudnn::Attribute::kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
HONE_SAME(cudnn::Attribute::kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
HONE_SAME(cudnn::Attribute::kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
HONE_SAME(cudnn::Attribute::kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
HONE_SAME(cudnn::Attribute::kEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
HONE_SAME(cudnn::Attribute::kDeviceHandle, CUDNN_ATTR_DEVICEPROP_HANDLE);
HONE_SAME(cudnn::Attribute::kDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
// The six of an operation follow each other: alpha, beta, the window, the weight, x, y.
HONE_SAME(static_cast<int>(cudnn::Attribute::kForwardAlpha) + 1, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
HONE_SAME(static_cast<int>(cudnn::Attribute::kForwardAlpha) + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
HONE_SAME(static_cast<int>(cudnn::Attribute::kForwardAlpha) + 3, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
HONE_SAME(static_cast<int>(cudnn::Attribute::kForwardAlpha) + 4, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
HONE_SAME(static_cast<int>(cudnn::Attribute::kForwardAlpha) + 5, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
HONE_SAME(static_cast<int>(cudnn::Attribute::kInputGradientAlpha) + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
HONE_SAME(static_cast<int>(cudnn::Attribute::kInputGradientAlpha) + 3, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
HONE_SAME(static_cast<int>(cudnn::Attribute::kInputGradientAlpha) + 4, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
HONE_SAME(static_cast<int>(cudnn::Attribute::kInputGradientAlpha) + 5, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
HONE_SAME(static_cast<int>(cudnn::Attribute::kWeightGradientAlpha) + 2, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
HONE_SAME(static_cast<int>(cudnn::Attribute::kWeightGradientAlpha) + 3, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
HONE_SAME(static_cast<int>(cudnn::Attribute::kWeightGradientAlpha) + 4, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
HONE_SAME(static_cast<int>(cudnn::Attribute::kWeightGradientAlpha) + 5, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
HONE_SAME(cudnn::kFloat, CUDNN_DATA_FLOAT);
HONE_SAME(cudnn::kHalf, CUDNN_DATA_HALF);
HONE_SAME(cudnn::kBFloat16, CUDNN_DATA_BFLOAT16);
HONE_SAME(cudnn::kCrossCorrelation, CUDNN_CROSS_CORRELATION);
HONE_SAME(cudnn::kHeuristicsFallback, CUDNN_HEUR_MODE_FALLBACK);
HONE_SAME(cudnn::kHeuristicsBest, CUDNN_HEUR_MODE_A);
HONE_SAME(cudnn::Note::kTensorCores, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
HONE_SAME(cudnn::Note::kNarrowsInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
HONE_SAME(cudnn::Note::kNarrowsSums, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
HONE_SAME(cudnn::Note::kFft, CUDNN_NUMERICAL_NOTE_FFT);
HONE_SAME(cudnn::Note::kNonDeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
HONE_SAME(cudnn::Note::kWinograd, CUDNN_NUMERICAL_NOTE_WINOGRAD);
HONE_SAME(cudnn::Note::kWinograd13, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);

HONE_SAME(nccl::kInProgress, ncclInProgress);
HONE_SAME(nccl::kSum, ncclSum);
HONE_SAME(nccl::kU8, ncclUint8);
HONE_SAME(nccl::kI32, ncclInt32);
HONE_SAME(nccl::kI64, ncclInt64);
HONE_SAME(nccl::kF16, ncclFloat16);
HONE_SAME(nccl::kF32, ncclFloat32);
HONE_SAME(nccl::kF64, ncclFloat64);
HONE_SAME(nccl::kBF16, ncclBfloat16);
HONE_SAME(sizeof(nccl::UniqueId), sizeof(ncclUniqueId));
HONE_SAME(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
HONE_SAME(offsetof(nccl::Config, clusters), offsetof(ncclConfig_t, cgaClusterSize));
HONE_SAME(offsetof(nccl::Config, network), offsetof(ncclConfig_t, netName));
HONE_SAME(offsetof(nccl::Config, split_share), offsetof(ncclConfig_t, splitShare));
HONE_SAME(INT_MIN, NCCL_CONFIG_UNDEF_INT);

TEST(CudaAbi, IsThatOfTheHeaders) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(theirs.magic, nccl::Config().magic);
}

#else

TEST(CudaAbi, IsThatOfTheHeaders) { GTEST_SKIP() << "no headers of CUDA, cuDNN and NCCL when this was built: what is declared of their libraries was not compared"; }

#endif

}  // namespace
}  // namespace hone
