// cuDNN, NVIDIA's library of convolutions and attention, loaded when it is used. It is called through its graph API of descriptors and attributes. The declarations are the library's ABI (cudnn_graph.h); a test
// holds them against the header where it is.
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
  X(cudnnBackendExecute, execute, Status, (Handle handle, RawDescriptor plan, RawDescriptor pack))
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

inline const Library* library(std::string* why) { return library_of_machine<Library>(why); }

/// What the library said no to. It is an answer, not a mistake: there are sizes that it does not take.
struct Refused {
  Status status = 0;
  std::string what;
};

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
  void check(Status status, const char* call) const;

  const Library* library_ = nullptr;
  RawDescriptor raw_ = nullptr;
};

/// What there is to know of a device: of the one of the handle, or of one that is described in the library's own words (a JSON object), and need not be here. Throws Refused.
Descriptor device_properties(const Library& library, Handle handle);
Descriptor device_properties(const Library& library, const std::string& json);

}  // namespace hone::cudnn
