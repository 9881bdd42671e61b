// TensorProtos of low precision, and sparse tensors: what a file may hold, and what damaged and hostile files hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/diag.h"
#include "formats/elements.h"
#include "formats/onnx_file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tensor_values.h"

namespace hone {
namespace {

using onnx::TensorProto;
using test::elements;
using test::expect_error;
using test::TempFolder;
using Shape = std::vector<std::int64_t>;
using testing::HasSubstr;

const Loc kPackedLoc{.file = "m.onnx", .node = {}, .layer = {}, .derived = {}, .line = 0};

TensorProto packed_proto(std::int32_t type, const Shape& shape, const std::string& raw = {}) {
  TensorProto proto;
  proto.set_name("w");
  proto.set_data_type(type);
  proto.mutable_dims()->Assign(shape.begin(), shape.end());
  if (not raw.empty()) proto.set_raw_data(raw);
  return proto;
}

Tensor read_packed(const TensorProto& proto, const std::string& folder = ".") { return tensor_of(proto, folder, kPackedLoc); }

using Values = std::vector<double>;

TEST(OnnxPacked, TheFirstElementIsInTheLowestBits) {
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::INT4, {3}, "\x87\x0f"))), (Values{7, -8, -1}));
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::UINT4, {3}, "\x87\xff"))), (Values{7, 8, 15}));
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::INT2, {5}, "\xe4\x02"))), (Values{0, 1, -2, -1, -2}));
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::UINT2, {5}, "\xe4\x02"))), (Values{0, 1, 2, 3, 2}));
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::FLOAT4E2M1, {2}, "\xf1"))), (Values{0.5, -6}));
  EXPECT_EQ(elements(read_packed(packed_proto(TensorProto::FLOAT8E5M2, {2}, "\x3c\xc0"))), (Values{1, -2}));
}

TEST(OnnxPacked, TypedFieldsHoldBytes) {
  TensorProto packed = packed_proto(TensorProto::INT4, {3});
  packed.add_int32_data(0x87), packed.add_int32_data(0x0f);
  EXPECT_EQ(elements(read_packed(packed)), (Values{7, -8, -1}));
  TensorProto codes = packed_proto(TensorProto::FLOAT8E4M3FN, {2});
  codes.add_int32_data(0x38), codes.add_int32_data(0xb8);
  EXPECT_EQ(elements(read_packed(codes)), (Values{1, -1}));
}

TEST(OnnxPacked, EveryCodeRoundTrips) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (info(dtype).bits > 4) continue;
    std::string every;
    for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
    const std::int64_t count = 256 * 8 / info(dtype).bits;
    for (const std::int64_t missing : {0, 1}) {
      const TensorProto proto = packed_proto(onnx_of_dtype(dtype), {count - missing}, every);
      TensorProto again = packed_proto(TensorProto::FLOAT, {});
      store_tensor(&again, read_packed(proto));
      EXPECT_EQ(again.raw_data().substr(0, 255), every.substr(0, 255)) << to_string(dtype);
      EXPECT_EQ(again.raw_data().size(), 256U);
      EXPECT_EQ(elements(read_packed(again)), elements(read_packed(proto)));
    }
  }
}

TEST(OnnxPacked, ExternalData) {
  const TempFolder folder;
  folder.write("w.bin", "skip\x87\x0f");
  TensorProto proto = packed_proto(TensorProto::INT4, {3});
  proto.set_data_location(TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", "w.bin"}, std::pair{"offset", "4"}, std::pair{"length", "2"}}) {
    proto.add_external_data()->set_key(key);
    proto.mutable_external_data()->rbegin()->set_value(value);
  }
  EXPECT_EQ(elements(read_packed(proto, folder.path())), (Values{7, -8, -1}));
  proto.set_dims(0, 5);
  expect_error(Code::kBadWeight, "needs 3 bytes, but its external data are 2 long", [&] { read_packed(proto, folder.path()); });
}

TEST(OnnxPacked, SaysWhatIsWrong) {
  const auto with = [](std::int32_t type, const Shape& shape, const std::function<void(TensorProto&)>& change) {
    TensorProto proto = packed_proto(type, shape);
    change(proto);
    return [proto] { read_packed(proto); };
  };
  expect_error(Code::kBadWeight, "INT4[3] needs 2 bytes, but raw_data has 3", with(TensorProto::INT4, {3}, [](auto& p) { p.set_raw_data("123"); }));
  expect_error(Code::kBadWeight, "UINT2[9] needs 3 bytes, but raw_data has 2", with(TensorProto::UINT2, {9}, [](auto& p) { p.set_raw_data("12"); }));
  expect_error(Code::kBadWeight, "INT4[3] needs 2 values, but int32_data has 3", with(TensorProto::INT4, {3}, [](auto& p) { p.mutable_int32_data()->Resize(3, 0); }));
  expect_error(Code::kBadWeight, "value 0 is 256, which INT4 cannot hold", with(TensorProto::INT4, {2}, [](auto& p) { p.add_int32_data(256); }));
  expect_error(Code::kBadWeight, "value 0 is -1, which FLOAT8E8M0 cannot hold", with(TensorProto::FLOAT8E8M0, {1}, [](auto& p) { p.add_int32_data(-1); }));
  expect_error(Code::kBadWeight, "stand in float_data", with(TensorProto::FLOAT8E5M2, {1}, [](auto& p) { p.add_float_data(1); }));
  expect_error(Code::kBadWeight, "no values, where FLOAT4E2M1[3] needs 2 bytes", with(TensorProto::FLOAT4E2M1, {3}, [](auto&) {}));
  expect_error(Code::kTooLarge, "negative", with(TensorProto::INT2, {-1}, [](auto& p) { p.set_raw_data("1"); }));
  expect_error(Code::kTooLarge, "2^40", with(TensorProto::INT2, {1LL << 41}, [](auto& p) { p.set_raw_data("1"); }));
}

TEST(Elements, PackAndUnpack) {
  const std::vector<std::byte> elements = {std::byte{1}, std::byte{0xff}, std::byte{0xf8}};
  EXPECT_EQ(pack_elements(DType::kI4, elements), "\xf1\x08");
  std::vector<std::byte> back(3);
  unpack_elements(DType::kI4, std::as_bytes(std::span("\xf1\x08", 2)), back);
  EXPECT_EQ(back, elements);
}

// Sparse tensors.

struct Sparse {
  Shape dims;
  std::vector<float> values;
  Shape index_shape;
  std::vector<std::int64_t> indices;
};

onnx::ModelProto model_with(const Sparse& sparse, const std::function<void(onnx::SparseTensorProto&)>& change = {}) {
  onnx::ModelProto model;
  onnx::SparseTensorProto& proto = *model.mutable_graph()->add_sparse_initializer();
  proto.mutable_dims()->Assign(sparse.dims.begin(), sparse.dims.end());
  store_tensor(proto.mutable_values(), Tensor::of<float>({static_cast<std::int64_t>(sparse.values.size())}, std::span(sparse.values)));
  proto.mutable_values()->set_name("w");
  TensorProto indices = packed_proto(TensorProto::INT64, sparse.index_shape);  // the shape may be wrong
  indices.mutable_int64_data()->Assign(sparse.indices.begin(), sparse.indices.end());
  *proto.mutable_indices() = indices;
  if (change) change(proto);
  return model;
}

TEST(OnnxSparse, BecomesDense) {
  for (const Sparse& sparse : {Sparse{{2, 3}, {5, 7}, {2}, {1, 5}}, Sparse{{2, 3}, {5, 7}, {2, 2}, {0, 1, 1, 2}}}) {
    onnx::ModelProto model = model_with(sparse);
    const onnx::GraphProto& graph = model.graph();
    Diags diags;
    make_dense(model, ".", kPackedLoc, diags);
    EXPECT_FALSE(diags.has_errors());
    EXPECT_EQ(graph.sparse_initializer_size(), 0);
    ASSERT_EQ(graph.initializer_size(), 1);
    EXPECT_EQ(graph.initializer(0).name(), "w");
    EXPECT_EQ(elements(read_packed(graph.initializer(0))), (Values{0, 5, 0, 0, 0, 7}));
  }
}

TEST(OnnxSparse, InBodiesAndConstants) {
  onnx::ModelProto model;
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::NodeProto& loop = *graph.add_node();
  *loop.add_attribute()->mutable_g() = model_with({{4}, {1}, {1}, {3}}).graph();
  onnx::NodeProto& constant = *graph.add_node();
  constant.set_op_type("Constant");
  onnx::AttributeProto& attribute = *constant.add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor() = model_with({{}, {3}, {1}, {0}}).graph().sparse_initializer(0);
  *model.add_functions()->add_node() = constant;
  Diags diags;
  make_dense(model, ".", kPackedLoc, diags);
  EXPECT_EQ(elements(read_packed(graph.node(0).attribute(0).g().initializer(0))), (Values{0, 0, 0, 1}));
  EXPECT_EQ(graph.node(1).attribute(0).name(), "value");
  EXPECT_EQ(graph.node(1).attribute(0).type(), onnx::AttributeProto::TENSOR);
  EXPECT_EQ(elements(read_packed(graph.node(1).attribute(0).t())), (Values{3}));
  EXPECT_EQ(elements(read_packed(model.functions(0).node(0).attribute(0).t())), (Values{3}));
}

TEST(OnnxSparse, SaysWhatIsWrong) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 39;
  const struct {
    Sparse sparse;
    std::string_view says;
  } cases[] = {
      {{{2, 3}, {5, 7}, {2}, {1, 6}}, "index 6 is outside of 6 elements"},
      {{{2, 3}, {5, 7}, {2}, {-1, 5}}, "index -1 is outside"},
      {{{2, 3}, {5, 7}, {2, 2}, {0, 3, 1, 2}}, "index 3 is outside of 3 elements"},
      {{{2, 3}, {5, 7}, {2, 2}, {INT64_MAX, 0, 1, 2}}, "is outside of 2 elements"},
      {{{2, 3}, {5, 7}, {2}, {5, 1}}, "do not ascend at value 1"},
      {{{2, 3}, {5, 7}, {2}, {4, 4}}, "do not ascend"},
      {{{2, 3}, {5, 7}, {1}, {4}}, "indices have shape [1]"},
      {{{2, 3}, {5, 7}, {2, 3}, {0, 0, 0, 0, 0, 0}}, "indices have shape [2,3]"},
      {{{2, 0}, {5}, {1}, {0}}, "index 0 is outside of 0 elements"},
      {{{kHuge}, {5}, {1}, {0}}, "too large for a sparse tensor"},
      {{{kHuge, kHuge}, {5}, {1}, {0}}, "2^40"},
      {{{-3}, {5}, {1}, {0}}, "negative"},
  };
  for (const auto& [sparse, says] : cases) {
    onnx::ModelProto model = model_with(sparse);
    const onnx::GraphProto& graph = model.graph();
    Diags diags;
    make_dense(model, ".", kPackedLoc, diags);
    ASSERT_TRUE(diags.has_errors()) << says;
    EXPECT_THAT(diags.all().front().message, HasSubstr(std::string(says)));
    EXPECT_EQ(graph.sparse_initializer_size(), 1);
  }
}

TEST(OnnxSparse, IndicesAreLongIntegers) {
  onnx::ModelProto model = model_with({{2}, {5}, {1}, {0}}, [](auto& sparse) {
    *sparse.mutable_indices() = packed_proto(TensorProto::INT32, {1});
    sparse.mutable_indices()->add_int32_data(0);
  });
  Diags diags;
  make_dense(model, ".", kPackedLoc, diags);
  ASSERT_TRUE(diags.has_errors());
  EXPECT_THAT(diags.all().front().message, HasSubstr("its indices are i32"));
}

}  // namespace
}  // namespace hone
