// tensor_of() and store_tensor(): the values of initializers, in every form.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/files.h"
#include "formats/onnx_file.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

using onnx::TensorProto;
using test::expect_error;
using test::TempFolder;
using Shape = std::vector<std::int64_t>;

const Loc kLoc{.file = "m.onnx", .node = {}, .layer = {}, .derived = {}, .line = 0};

TensorProto proto_of(std::int32_t type, const Shape& shape) {
  TensorProto proto;
  proto.set_name("fc.weight");
  proto.set_data_type(type);
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  return proto;
}

void set_external(TensorProto* proto, const std::string& location, const std::string& offset = "", const std::string& length = "") {
  proto->set_data_location(TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location}, {"offset", offset}, {"length", length}}) {
    if (value.empty()) continue;
    proto->add_external_data()->set_key(key);
    proto->mutable_external_data()->rbegin()->set_value(value);
  }
}

Tensor read(const TensorProto& proto, const std::string& folder = ".") { return tensor_of(proto, folder, kLoc); }

TEST(OnnxTensor, StoresAndReadsEveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::vector<int> numbers = {0, 1, 2, 3, 4, 5};
    const Tensor tensor = Tensor::of<int>({2, 3}, numbers).cast(dtype);
    TensorProto proto = proto_of(TensorProto::FLOAT, {7});
    proto.set_doc_string("kept");
    proto.add_float_data(1);
    set_external(&proto, "gone");
    store_tensor(&proto, tensor);
    const Tensor back = read(proto);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), (Shape{2, 3}));
    EXPECT_EQ(std::memcmp(back.bytes().data(), tensor.bytes().data(), tensor.byte_count()), 0);
    EXPECT_EQ(proto.doc_string(), "kept");
    EXPECT_EQ(dtype_of_onnx(onnx_of_dtype(dtype)), dtype);
  }
}

TEST(OnnxTensor, ReadsTypedFields) {
  TensorProto floats = proto_of(TensorProto::FLOAT, {2});
  floats.add_float_data(1.5f), floats.add_float_data(-2);
  EXPECT_EQ(read(floats).at(1), -2);
  TensorProto doubles = proto_of(TensorProto::DOUBLE, {1});
  doubles.add_double_data(0.1);
  EXPECT_EQ(read(doubles).at(0), 0.1);
  TensorProto longs = proto_of(TensorProto::INT64, {1});
  longs.add_int64_data(INT64_MIN);
  EXPECT_EQ(read(longs).int_at(0), INT64_MIN);
  TensorProto unsigned_longs = proto_of(TensorProto::UINT64, {1});
  unsigned_longs.add_uint64_data(UINT64_MAX);
  EXPECT_EQ(read(unsigned_longs).data<std::uint64_t>()[0], UINT64_MAX);
  TensorProto unsigned_ints = proto_of(TensorProto::UINT32, {1});
  unsigned_ints.add_uint64_data(UINT32_MAX);
  EXPECT_EQ(read(unsigned_ints).int_at(0), UINT32_MAX);
  struct Case {
    std::int32_t type;
    std::int32_t stored;
    double value;
  };
  for (const Case& c :
       {Case{TensorProto::INT32, -7, -7}, Case{TensorProto::INT16, -7, -7}, Case{TensorProto::INT8, -128, -128}, Case{TensorProto::UINT16, 65535, 65535},
        Case{TensorProto::UINT8, 255, 255}, Case{TensorProto::BOOL, 1, 1}, Case{TensorProto::FLOAT16, 0x3e00, 1.5}, Case{TensorProto::BFLOAT16, 0x3fc0, 1.5}}) {
    TensorProto ints = proto_of(c.type, {});
    ints.add_int32_data(c.stored);
    EXPECT_EQ(read(ints).at(0), c.value) << onnx_type_name(c.type);
  }
}

TEST(OnnxTensor, EmptyTensorsNeedNoValues) {
  EXPECT_EQ(read(proto_of(TensorProto::FLOAT, {0})).element_count(), 0);
  EXPECT_EQ(read(proto_of(TensorProto::INT64, {3, 0})).shape(), (Shape{3, 0}));
}

TEST(OnnxTensor, BoolsBecomeZeroOrOne) {
  TensorProto proto = proto_of(TensorProto::BOOL, {2});
  proto.set_raw_data("\x02\x01");
  EXPECT_EQ(read(proto).int_at(0), 1);
}

TEST(OnnxTensor, SaysWhatIsWrong) {
  const auto with = [](std::int32_t type, const Shape& shape, const std::function<void(TensorProto&)>& change) {
    TensorProto proto = proto_of(type, shape);
    change(proto);
    return [proto] { read(proto); };
  };
  expect_error(Code::kBadWeight, "initializer \"fc.weight\": FLOAT[2,3] needs 24 bytes, but raw_data has 5",
               with(TensorProto::FLOAT, {2, 3}, [](auto& p) { p.set_raw_data("12345"); }));
  expect_error(Code::kBadWeight, "in m.onnx", with(TensorProto::FLOAT, {2, 3}, [](auto& p) { p.set_raw_data("12345"); }));
  expect_error(Code::kBadWeight, "FLOAT[2] needs 2 values, but float_data has 1", with(TensorProto::FLOAT, {2}, [](auto& p) { p.add_float_data(1); }));
  expect_error(Code::kBadWeight, "no values, where FLOAT[2] needs 8 bytes", with(TensorProto::FLOAT, {2}, [](auto&) {}));
  expect_error(Code::kBadWeight, "stand in int32_data", with(TensorProto::FLOAT, {1}, [](auto& p) { p.add_int32_data(1); }));
  expect_error(Code::kBadWeight, "twice, in raw_data and in float_data",
               with(TensorProto::FLOAT, {1}, [](auto& p) { p.set_raw_data("1234"), p.add_float_data(1); }));
  expect_error(Code::kBadWeight, "value 0 is 256, which UINT8 cannot hold", with(TensorProto::UINT8, {1}, [](auto& p) { p.add_int32_data(256); }));
  expect_error(Code::kBadWeight, "value 0 is -1, which UINT16 cannot hold", with(TensorProto::UINT16, {1}, [](auto& p) { p.add_int32_data(-1); }));
  expect_error(Code::kBadWeight, "UINT32 cannot hold", with(TensorProto::UINT32, {1}, [](auto& p) { p.add_uint64_data(1ull << 32); }));
  expect_error(Code::kBadWeight, "strings", with(TensorProto::STRING, {1}, [](auto& p) { p.add_string_data("a"); }));
  expect_error(Code::kBadWeight, "COMPLEX64", with(TensorProto::COMPLEX64, {1}, [](auto& p) { p.set_raw_data("1"); }));
  expect_error(Code::kBadWeight, "element type 99", with(99, {1}, [](auto& p) { p.set_raw_data("1"); }));
  expect_error(Code::kBadWeight, "element type -1", with(-1, {1}, [](auto& p) { p.set_raw_data("1"); }));
  expect_error(Code::kBadWeight, "UNDEFINED", with(0, {1}, [](auto& p) { p.set_raw_data("1"); }));
  expect_error(Code::kBadWeight, "segment", with(TensorProto::FLOAT, {1}, [](auto& p) { p.mutable_segment()->set_begin(0); }));
  expect_error(Code::kTooLarge, "2^40", with(TensorProto::FLOAT, {1ll << 32, 1ll << 32}, [](auto&) {}));
  expect_error(Code::kTooLarge, "negative", with(TensorProto::FLOAT, {-1}, [](auto&) {}));
  expect_error(Code::kBadWeight, "needs 4398046511104 bytes", with(TensorProto::FLOAT, {1ll << 40}, [](auto& p) { p.set_raw_data("1234"); }));
}

TEST(OnnxTensor, ReadsExternalData) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "data");
  folder.write("data/w.bin", std::string("skip\1\0\0\0\2\0\0\0tail", 16));
  for (const char* location : {"data/w.bin", "./data/w.bin", "data//w.bin"}) {
    TensorProto proto = proto_of(TensorProto::INT32, {2});
    set_external(&proto, location, "4", "8");
    EXPECT_EQ(read(proto, folder.path()).int_at(1), 2);
  }
  TensorProto no_length = proto_of(TensorProto::INT32, {2});
  set_external(&no_length, "data/w.bin", "4");
  EXPECT_EQ(read(no_length, folder.path()).int_at(0), 1);
}

TEST(OnnxTensor, ExternalDataStayInTheFolder) {
  const TempFolder outside;
  const std::string secret = outside.write("secret", "12345678");
  const TempFolder folder;
  folder.write("w.bin", "12345678");
  std::filesystem::create_symlink(secret, folder / "link");
  std::filesystem::create_directory_symlink(outside.path(), folder / "links");
  std::filesystem::create_directories(folder / "sub");
  const auto with = [&](const std::string& location, const std::string& offset = "", const std::string& length = "") {
    TensorProto proto = proto_of(TensorProto::INT32, {2});
    set_external(&proto, location, offset, length);
    return [proto, path = folder.path()] { read(proto, path); };
  };
  ASSERT_NO_THROW(with("w.bin")());
  expect_error(Code::kBadWeight, "an absolute path", with(secret));
  expect_error(Code::kBadWeight, "outside of the model's folder", with("../" + file_name_of(outside.path()) + "/secret"));
  expect_error(Code::kBadWeight, "outside of the model's folder", with("sub/../w.bin"));
  expect_error(Code::kBadWeight, "a symbolic link", with("link"));
  expect_error(Code::kBadWeight, "a symbolic link", with("links/secret"));
  expect_error(Code::kBadWeight, "no file name", with(std::string("w.bin\0x", 7)));
  expect_error(Code::kBadWeight, "is not a file", with("sub"));
  expect_error(Code::kBadWeight, "is not a file", with("."));
  expect_error(Code::kBadWeight, "cannot be read in folder", with("missing.bin"));
  expect_error(Code::kBadWeight, "no location", with(""));
  expect_error(Code::kBadWeight, "bytes 4 to 12 of \"w.bin\", which has 8", with("w.bin", "4"));
  expect_error(Code::kBadWeight, "begin at byte 9", with("w.bin", "9"));
  expect_error(Code::kBadWeight, "begin at byte 18446744073709551615", with("w.bin", "18446744073709551615"));
  expect_error(Code::kBadWeight, "needs 8 bytes, but its external data are 4 long", with("w.bin", "0", "4"));
  expect_error(Code::kBadWeight, "\"-1\", not a number", with("w.bin", "-1"));
  expect_error(Code::kBadWeight, "not a number", with("w.bin", "0x10"));
  expect_error(Code::kBadWeight, "not a number", with("w.bin", "0", "99999999999999999999999"));
}

TEST(OnnxTensor, TypesHaveTheFormatsNumbers) {
  EXPECT_EQ(onnx_of_dtype(DType::kBF16), 16);
  EXPECT_EQ(onnx_type_name(16), "BFLOAT16");
  EXPECT_EQ(onnx_type_name(26), "INT2");
  EXPECT_EQ(onnx_type_name(1000), "element type 1000");
  EXPECT_EQ(dtype_of_onnx(TensorProto::STRING), std::nullopt);
  EXPECT_EQ(dtype_of_onnx(1000), std::nullopt);
}

}  // namespace
}  // namespace hone
