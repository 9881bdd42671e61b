// The values in a TensorProto.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/by_dtype.h"
#include "base/check.h"
#include "base/diag.h"
#include "base/text.h"
#include "formats/elements.h"
#include "formats/onnx_external.h"
#include "formats/onnx_file.h"

namespace hone {

namespace {

/// The field that holds values which are not raw.
enum class Form : std::uint8_t { kFloats, kInt32s, kInt64s, kDoubles, kUint64s, kNone };

struct OnnxType {
  std::string_view name;
  std::optional<DType> dtype;
  Form form;
};

/// By element type number.
constexpr std::array kOnnxTypes = {
    OnnxType{"UNDEFINED", std::nullopt, Form::kNone},                 OnnxType{"FLOAT", DType::kF32, Form::kFloats},
    OnnxType{"UINT8", DType::kU8, Form::kInt32s},                     OnnxType{"INT8", DType::kI8, Form::kInt32s},
    OnnxType{"UINT16", DType::kU16, Form::kInt32s},                   OnnxType{"INT16", DType::kI16, Form::kInt32s},
    OnnxType{"INT32", DType::kI32, Form::kInt32s},                    OnnxType{"INT64", DType::kI64, Form::kInt64s},
    OnnxType{"STRING", std::nullopt, Form::kNone},                    OnnxType{"BOOL", DType::kBool, Form::kInt32s},
    OnnxType{"FLOAT16", DType::kF16, Form::kInt32s},                  OnnxType{"DOUBLE", DType::kF64, Form::kDoubles},
    OnnxType{"UINT32", DType::kU32, Form::kUint64s},                  OnnxType{"UINT64", DType::kU64, Form::kUint64s},
    OnnxType{"COMPLEX64", std::nullopt, Form::kNone},                 OnnxType{"COMPLEX128", std::nullopt, Form::kNone},
    OnnxType{"BFLOAT16", DType::kBF16, Form::kInt32s},                OnnxType{"FLOAT8E4M3FN", DType::kF8E4M3FN, Form::kInt32s},
    OnnxType{"FLOAT8E4M3FNUZ", DType::kF8E4M3FNUZ, Form::kInt32s},    OnnxType{"FLOAT8E5M2", DType::kF8E5M2, Form::kInt32s},
    OnnxType{"FLOAT8E5M2FNUZ", DType::kF8E5M2FNUZ, Form::kInt32s},    OnnxType{"UINT4", DType::kU4, Form::kInt32s},
    OnnxType{"INT4", DType::kI4, Form::kInt32s},                      OnnxType{"FLOAT4E2M1", DType::kF4E2M1, Form::kInt32s},
    OnnxType{"FLOAT8E8M0", DType::kF8E8M0, Form::kInt32s},            OnnxType{"UINT2", DType::kU2, Form::kInt32s},
    OnnxType{"INT2", DType::kI2, Form::kInt32s},
};

const OnnxType* find_type(std::int32_t number) {
  return number < 0 or number >= static_cast<std::int32_t>(kOnnxTypes.size()) ? nullptr : &kOnnxTypes[static_cast<std::size_t>(number)];
}

class TensorReader {
 public:
  TensorReader(const onnx::TensorProto& proto, const std::string& model_folder, const Loc& loc) : proto_(proto), folder_(model_folder), loc_(loc) {}

  Tensor read() {
    const OnnxType* const type = find_type(proto_.data_type());
    if (type == nullptr or not type->dtype) refuse_type();
    type_ = type;
    dtype_ = *type->dtype;
    if (proto_.has_segment()) fail("it is one segment of a tensor in several parts", "no exporter in use writes that; save the model again with onnx.save");
    shape_.assign(proto_.dims().begin(), proto_.dims().end());
    count_ = bytes_of_shape(dtype_, shape_, tensor_label(proto_), loc_) / size_of(dtype_);
    byte_count_ = packed_bytes(dtype_, count_);
    check_one_form();
    if (is_external(proto_)) {
      const ExternalBytes external = read_external(proto_, folder_, byte_count_, loc_);
      return from_bytes(external.bytes);
    }
    if (not proto_.raw_data().empty()) return from_raw();
    switch (type->form) {
      case Form::kFloats: return from_numbers(proto_.float_data(), "float_data");
      case Form::kInt32s: return from_numbers(proto_.int32_data(), "int32_data");
      case Form::kInt64s: return from_numbers(proto_.int64_data(), "int64_data");
      case Form::kDoubles: return from_numbers(proto_.double_data(), "double_data");
      case Form::kUint64s: return from_numbers(proto_.uint64_data(), "uint64_data");
      case Form::kNone: break;
    }
    internal_error(__FILE__, __LINE__, "an element type without a form");
  }

 private:
  [[noreturn]] void fail(std::string_view why, std::string_view note = "the file is damaged; export the model again") const {
    throw Error(Code::kBadWeight, fmt::format("{}: {}", tensor_label(proto_), why), loc_, {std::string(note)});
  }

  [[noreturn]] void refuse_type() const {
    if (proto_.data_type() == onnx::TensorProto::STRING)
      fail("it holds strings, where numbers are expected", "do what works on text before the model, in the data");
    fail(fmt::format("its element type is {}, which Hone does not have", onnx_type_name(proto_.data_type())),
         "export the model with float32 weights");
  }

  std::string wanted() const { return onnx_type_name(proto_.data_type()) + shape_text(shape_); }

  /// Exactly one form may hold values, and it must be the one for the element type.
  void check_one_form() const {
    struct Held {
      std::string_view name;
      bool present;
      bool fits;
    };
    const std::array<Held, 8> forms = {{{"external data", is_external(proto_), true},
                                        {"raw_data", not proto_.raw_data().empty(), true},
                                        {"float_data", proto_.float_data_size() > 0, type_->form == Form::kFloats},
                                        {"int32_data", proto_.int32_data_size() > 0, type_->form == Form::kInt32s},
                                        {"int64_data", proto_.int64_data_size() > 0, type_->form == Form::kInt64s},
                                        {"double_data", proto_.double_data_size() > 0, type_->form == Form::kDoubles},
                                        {"uint64_data", proto_.uint64_data_size() > 0, type_->form == Form::kUint64s},
                                        {"string_data", proto_.string_data_size() > 0, false}}};
    const Held* first = nullptr;
    for (const Held& form : forms) {
      if (not form.present) continue;
      if (first != nullptr) fail(fmt::format("it has values twice, in {} and in {}", first->name, form.name));
      if (not form.fits) fail(fmt::format("its values stand in {}, where {} does not keep them", form.name, wanted()));
      first = &form;
    }
    if (first == nullptr and byte_count_ > 0)
      fail(fmt::format("it has no values, where {} needs {} bytes", wanted(), byte_count_), "was the model saved without its weights?");
  }

  Tensor from_bytes(std::span<const std::byte> bytes) const {
    return Tensor::make(dtype_, shape_, [&](std::span<std::byte> destination) {
      if (info(dtype_).bits < 8) return unpack_elements(dtype_, bytes, destination);
      std::copy(bytes.begin(), bytes.end(), destination.begin());
      if (dtype_ == DType::kBool) normalize_bools(destination);
    });
  }

  Tensor from_raw() const {
    const std::string& raw = proto_.raw_data();
    if (raw.size() != byte_count_) fail(fmt::format("{} needs {} bytes, but raw_data has {}", wanted(), byte_count_, raw.size()));
    return from_bytes(std::as_bytes(std::span(raw)));
  }

  template <typename Values>
  Tensor from_numbers(const Values& values, std::string_view field) const {
    const bool packed = info(dtype_).bits < 8;  // a value is a byte then
    const std::size_t count = packed ? byte_count_ : count_;
    if (static_cast<std::size_t>(values.size()) != count) fail(fmt::format("{} needs {} values, but {} has {}", wanted(), count, field, values.size()));
    if (packed) {
      std::vector<std::byte> bytes(byte_count_);
      store<std::uint8_t>(values, bytes);
      return from_bytes(bytes);
    }
    return Tensor::make(dtype_, shape_, [&](std::span<std::byte> destination) {
      // A float without a C++ type comes as its code: that of one byte, or of two.
      if (not has_cpp_type(dtype_)) return size_of(dtype_) == 2 ? store<std::uint16_t>(values, destination) : store<std::uint8_t>(values, destination);
      by_dtype(dtype_, [&]<typename T>() { store<T>(values, destination); });
    });
  }

  template <typename T, typename Values>
  void store(const Values& values, std::span<std::byte> destination) const {
    using Value = typename Values::value_type;
    for (int i = 0; i < values.size(); ++i) {
      const Value value = values.Get(i);
      if constexpr (std::is_integral_v<Value> and std::is_integral_v<T> and not std::is_same_v<T, bool>) {
        if (value < static_cast<Value>(std::numeric_limits<T>::min()) or
            (sizeof(T) < sizeof(Value) and value > static_cast<Value>(std::numeric_limits<T>::max())))
          fail(fmt::format("value {} is {}, which {} cannot hold", i, value, onnx_type_name(proto_.data_type())));
      }
      const auto element = static_cast<T>(value);
      std::memcpy(destination.data() + static_cast<std::size_t>(i) * sizeof(T), &element, sizeof(T));
    }
  }

  const onnx::TensorProto& proto_;
  const std::string& folder_;
  const Loc& loc_;
  const OnnxType* type_ = nullptr;
  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_;
  std::size_t count_ = 0;
  std::size_t byte_count_ = 0;  ///< in the file
};

}  // namespace

Tensor tensor_of(const onnx::TensorProto& proto, const std::string& model_folder, const Loc& loc) { return TensorReader(proto, model_folder, loc).read(); }

void store_tensor(onnx::TensorProto* proto, const Tensor& tensor) {
  clear_values(proto);
  proto->clear_segment();
  proto->mutable_dims()->Assign(tensor.shape().begin(), tensor.shape().end());
  proto->set_data_type(onnx_of_dtype(tensor.dtype()));
  if (info(tensor.dtype()).bits < 8) proto->set_raw_data(pack_elements(tensor.dtype(), tensor.bytes()));
  else proto->set_raw_data(tensor.bytes().data(), tensor.byte_count());
}

std::optional<DType> dtype_of_onnx(std::int32_t data_type) {
  const OnnxType* const type = find_type(data_type);
  return type == nullptr ? std::nullopt : type->dtype;
}

std::int32_t onnx_of_dtype(DType dtype) {
  const auto found = std::find_if(kOnnxTypes.begin(), kOnnxTypes.end(), [&](const OnnxType& type) { return type.dtype == dtype; });
  HONE_CHECK(found != kOnnxTypes.end(), "a dtype that ONNX does not have");
  return static_cast<std::int32_t>(found - kOnnxTypes.begin());
}

std::string onnx_type_name(std::int32_t data_type) {
  const OnnxType* const type = find_type(data_type);
  return type == nullptr ? fmt::format("element type {}", data_type) : std::string(type->name);
}

}  // namespace hone
