// cuDNN, NVIDIA's library of convolutions, attention and recurrent layers, loaded when it is used. It is called through its graph API of descriptors and attributes, which has no recurrent layers: these have functions
// of their own. The declarations are the library's ABI (cudnn_graph.h, cudnn_ops.h, cudnn_adv.h); a test holds them against the headers where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/cuda_library.h"
#include "runtime/device/shared_library.h"

namespace hone::cudnn {

using Status = int;  // 0: success
using Handle = struct OpaqueHandle*;
using RawDescriptor = void*;
using RawRnn = struct OpaqueRnn*;
using RawRnnData = struct OpaqueRnnData*;
using RawTensor = struct OpaqueTensor*;

inline constexpr Status kInternalError = 4000;

// cudnnBackendDescriptorType_t
enum class Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kForward = 10,
  kWeightGradient = 11,
  kInputGradient = 12,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kDeviceProperties = 38,
};

// cudnnBackendAttributeType_t
enum class Type : int { kHandle = 0, kDataType = 1, kBool = 2, kInt64 = 3, kFloat = 4, kPointer = 6, kConvolutionMode = 7, kHeuristicsMode = 8, kNumericalNote = 11, kPointwiseMode = 14, kDescriptor = 15, kReductionOperator = 18, kChar = 24 };

// cudnnBackendAttributeName_t
enum class Attribute : int {
  kPointwiseMode = 0,
  kPointwiseComputeType = 1,
  kPointwiseAxis = 9,
  kComputeType = 100,
  kConvolutionMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPadsEnd = 104,
  kPadsBegin = 105,
  kSpatialAxes = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kHeuristicsDevice = 204,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kForwardAlpha = 700,
  kInputGradientAlpha = 706,
  kWeightGradientAlpha = 712,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
  kMatmulComputeType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionComputeType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
  kDeviceHandle = 2701,
  kDeviceJson = 2702,
};

inline constexpr int kFloat = 0, kHalf = 2, kInt32 = 4, kBFloat16 = 9, kBoolean = 11;  // cudnnDataType_t
inline constexpr int kReduceAdd = 0, kReduceMax = 3;                                  // cudnnReduceTensorOp_t
// cudnnPointwiseMode_t
enum class Pointwise : int { kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kGreaterEqual = 303, kIndex = 501, kSelect = 601 };
inline constexpr int kCrossCorrelation = 1;                                           // cudnnConvolutionMode_t
inline constexpr int kHeuristicsFallback = 2, kHeuristicsBest = 3;                    // cudnnBackendHeurMode_t
// cudnnBackendNumericalNote_t
enum class Note : int { kTensorCores = 0, kNarrowsInputs = 1, kNarrowsSums = 2, kFft = 3, kNonDeterministic = 4, kWinograd = 5, kWinograd4 = 6, kWinograd6 = 7, kWinograd13 = 8 };

// Of recurrent layers; the cell is base/recurrent_cell.h's.
inline constexpr int kStandardAlgorithm = 0, kPersistentAlgorithm = 1, kSmallPersistentAlgorithm = 3;  // cudnnRNNAlgo_t
inline constexpr int kTwoBiases = 2, kOneDirection = 0, kMultipliesInput = 0;         // cudnnRNNBiasMode_t, cudnnDirectionMode_t, cudnnRNNInputMode_t
inline constexpr int kInference = 0, kTraining = 1;                                   // cudnnForwardMode_t
inline constexpr int kPackedSteps = 1;                                                // cudnnRNNDataLayout_t: one step after the other, without gaps
inline constexpr int kAddsGradients = 0;                                              // cudnnWgradMode_t
inline constexpr int kMayBeTf32 = 0, kIsF32 = 3;                                      // cudnnMathType_t: of f32 factors

// name in the library, its own name here, result, arguments
// clang-format off
#define HONE_CUDNN_FUNCTIONS(X)                                                                                                    \
  X(cudnnGetVersion, get_version, std::size_t, ())                                                                                 \
  X(cudnnGetErrorString, status_text, const char*, (Status status))                                                                \
  X(cudnnGetLastErrorString, last_error, void, (char* text, std::size_t bytes))                                                    \
  X(cudnnCreate, create, Status, (Handle* handle))                                                                                 \
  X(cudnnDestroy, destroy, Status, (Handle handle))                                                                                \
  X(cudnnSetStream, set_stream, Status, (Handle handle, cuda::StreamHandle stream))                                                \
  X(cudnnBackendCreateDescriptor, descriptor_create, Status, (Kind kind, RawDescriptor* descriptor))                               \
  X(cudnnBackendDestroyDescriptor, descriptor_destroy, Status, (RawDescriptor descriptor))                                         \
  X(cudnnBackendFinalize, descriptor_finalize, Status, (RawDescriptor descriptor))                                                 \
  X(cudnnBackendSetAttribute, descriptor_set, Status, (RawDescriptor descriptor, Attribute attribute, Type type, std::int64_t count, const void* values)) \
  X(cudnnBackendGetAttribute, descriptor_get, Status, (RawDescriptor descriptor, Attribute attribute, Type type, std::int64_t room, std::int64_t* count, void* values)) \
  X(cudnnBackendExecute, execute, Status, (Handle handle, RawDescriptor plan, RawDescriptor pack))                                 \
  X(cudnnCreateTensorDescriptor, tensor_create, Status, (RawTensor* tensor))                                                       \
  X(cudnnDestroyTensorDescriptor, tensor_destroy, Status, (RawTensor tensor))                                                      \
  X(cudnnSetTensorNdDescriptor, tensor_set, Status, (RawTensor tensor, int type, int axes, const int* extents, const int* strides)) \
  X(cudnnGetTensorNdDescriptor, tensor_get, Status, (RawTensor tensor, int room, int* type, int* axes, int* extents, int* strides)) \
  X(cudnnCreateRNNDescriptor, rnn_create, Status, (RawRnn* rnn))                                                                   \
  X(cudnnDestroyRNNDescriptor, rnn_destroy, Status, (RawRnn rnn))                                                                  \
  X(cudnnSetRNNDescriptor_v8, rnn_set, Status, (RawRnn rnn, int algorithm, int cell, int biases, int directions, int input, int type, int compute_type, int math, std::int32_t features, std::int32_t hidden, std::int32_t projected, std::int32_t layers, void* dropout, std::uint32_t flags)) \
  X(cudnnCreateRNNDataDescriptor, rnn_data_create, Status, (RawRnnData* data))                                                     \
  X(cudnnDestroyRNNDataDescriptor, rnn_data_destroy, Status, (RawRnnData data))                                                    \
  X(cudnnSetRNNDataDescriptor, rnn_data_set, Status, (RawRnnData data, int type, int layout, int steps, int samples, int features, const int* lengths, void* padding)) \
  X(cudnnGetRNNWeightSpaceSize, rnn_weight_bytes, Status, (Handle handle, RawRnn rnn, std::size_t* bytes))                         \
  X(cudnnGetRNNWeightParams, rnn_weight, Status, (Handle handle, RawRnn rnn, std::int32_t layer, std::size_t bytes, const void* space, std::int32_t number, RawTensor matrix, void** matrix_at, RawTensor bias, void** bias_at)) \
  X(cudnnGetRNNTempSpaceSizes, rnn_temporary_bytes, Status, (Handle handle, RawRnn rnn, int mode, RawRnnData x, std::size_t* work, std::size_t* kept)) \
  X(cudnnRNNForward, rnn_forward, Status, (Handle handle, RawRnn rnn, int mode, const std::int32_t* lengths, RawRnnData x_type, const void* x, RawRnnData y_type, void* y, RawTensor h_type, const void* h, void* last_h, RawTensor c_type, const void* c, void* last_c, std::size_t weight_bytes, const void* weights, std::size_t work_bytes, void* work, std::size_t kept_bytes, void* kept)) \
  X(cudnnRNNBackwardData_v8, rnn_backward_data, Status, (Handle handle, RawRnn rnn, const std::int32_t* lengths, RawRnnData y_type, const void* y, const void* dy, RawRnnData x_type, void* dx, RawTensor h_type, const void* h, const void* dlast_h, void* dh, RawTensor c_type, const void* c, const void* dlast_c, void* dc, std::size_t weight_bytes, const void* weights, std::size_t work_bytes, void* work, std::size_t kept_bytes, void* kept)) \
  X(cudnnRNNBackwardWeights_v8, rnn_backward_weights, Status, (Handle handle, RawRnn rnn, int mode, const std::int32_t* lengths, RawRnnData x_type, const void* x, RawTensor h_type, const void* h, RawRnnData y_type, const void* y, std::size_t weight_bytes, void* dweights, std::size_t work_bytes, void* work, std::size_t kept_bytes, void* kept))
// clang-format on

/// The library's functions; never unloaded once it is there.
struct Library {
#define HONE_CUDNN_FUNCTION(symbol, name, result, arguments) result(*name) arguments = nullptr;
  HONE_CUDNN_FUNCTIONS(HONE_CUDNN_FUNCTION)
#undef HONE_CUDNN_FUNCTION
  static constexpr const char* kFiles[] = {"libcudnn.so.9"};
  /// The first version that knows devices by their properties, with or without one at hand.
  static constexpr std::size_t kOldest = 90800;
  /// From an open library; false, and *why, if it lacks one.
  bool find_functions(void* library, std::string* why);
  std::size_t number() const;  ///< of its version

  std::string version() const { return version_text(number()); }  ///< "9.19.0"
  /// "CUDNN_STATUS_BAD_PARAM (2000): ..." with what the library says of the last failure.
  std::string text(Status status) const;
};

/// The machine's; null, and *why (which may be null), if there is none.
const Library* library(std::string* why);

/// What the library said no to. It is an answer, not a mistake: there are sizes that it does not take.
struct Refused {
  Status status = 0;
  std::string what;
};

/// Throws it where the library did not say 0.
void check(const Library& library, Status status, const char* call);
/// What was put into a stream and did not go: throws Error kDeviceLost.
[[noreturn]] void lose_device(const Refused& refused);

/// A descriptor: attributes are set, it is finalized, and then they can be read. All functions throw Refused.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Library& library, Kind kind);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(raw_, other.raw_);
    return *this;
  }

  RawDescriptor raw() const { return raw_; }
  template <typename T>
  void set(Attribute attribute, Type type, std::span<const T> values) { set_raw(attribute, type, static_cast<std::int64_t>(values.size()), values.data()); }
  template <typename T>
  void set(Attribute attribute, Type type, const T& value) { set_raw(attribute, type, 1, &value); }
  void set(Attribute attribute, const std::vector<std::int64_t>& values) { set(attribute, Type::kInt64, std::span<const std::int64_t>(values)); }
  void set(Attribute attribute, const Descriptor& other) { set(attribute, Type::kDescriptor, other.raw_); }
  void finalize();

  /// How many values there are.
  std::int64_t count(Attribute attribute, Type type) const { return get_raw(attribute, type, 0, nullptr); }
  /// Into values that lie there, at most `room`; how many they are.
  std::int64_t get_raw(Attribute attribute, Type type, std::int64_t room, void* values) const;

 private:
  void set_raw(Attribute attribute, Type type, std::int64_t count, const void* values);
  void check(Status status, const char* call) const { cudnn::check(*library_, status, call); }

  const Library* library_ = nullptr;
  RawDescriptor raw_ = nullptr;
};

/// What there is to know of a device: of the one of the handle, or of one that is described in the library's own words (a JSON object), and need not be here. Throws Refused.
Descriptor device_properties(const Library& library, Handle handle);
Descriptor device_properties(const Library& library, const std::string& json);

}  // namespace hone::cudnn
