// Sparse tensors in a model, made dense: nothing behind the file knows them.
#include <fmt/format.h>

#include <cstring>

#include "base/diag.h"
#include "base/text.h"
#include "formats/elements.h"
#include "formats/onnx_file.h"

namespace hone {

namespace {

/// What all sparse tensors of a model may take when dense: a few bytes of a file can ask for any amount.
constexpr std::uint64_t kMostDenseBytes = std::uint64_t{1} << 31;

class SparseReader {
 public:
  SparseReader(const onnx::SparseTensorProto& proto, const std::string& folder, const Loc& loc) : proto_(proto), folder_(folder), loc_(loc) {}

  /// `budget`: the bytes that are left; what the tensor takes is subtracted.
  Tensor read(std::uint64_t& budget) const {
    const Tensor values = tensor_of(proto_.values(), folder_, loc_), indices = tensor_of(proto_.indices(), folder_, loc_);
    const std::vector<std::int64_t> shape(proto_.dims().begin(), proto_.dims().end());
    const std::size_t bytes = bytes_of_shape(values.dtype(), shape, label(), loc_);
    if (bytes > budget)
      throw Error(Code::kTooLarge, fmt::format("{}: shape {} is too large for a sparse tensor, which is made dense", label(), shape_text(shape)), loc_,
                  {fmt::format("all sparse tensors of a model may take {} together", human_bytes(kMostDenseBytes))});
    if (values.shape().size() != 1) fail(fmt::format("its values have shape {}, and must be a vector", shape_text(values.shape())));
    if (indices.dtype() != DType::kI64) fail(fmt::format("its indices are {}, and must be i64", to_string(indices.dtype())));
    budget -= bytes;
    return Tensor::make(values.dtype(), shape, [&](std::span<std::byte> dense) { place(values, positions(indices, shape, values.element_count()), dense); });
  }

 private:
  std::string label() const { return fmt::format("sparse tensor {}", quoted(proto_.values().name())); }
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Code::kBadWeight, fmt::format("{}: {}", label(), why), loc_, {"the file is damaged; export the model again"});
  }

  /// Of each value, its place in the dense tensor: ascending.
  std::vector<std::int64_t> positions(const Tensor& indices, const std::vector<std::int64_t>& shape, std::int64_t count) const {
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::vector<std::int64_t>& form = indices.shape();
    const bool linear = form.size() == 1;
    if (not(linear ? form[0] == count : form.size() == 2 and form[0] == count and form[1] == rank))
      fail(fmt::format("its indices have shape {}, which does not fit {} values in shape {}", shape_text(form), count, shape_text(shape)));
    const auto numbers = indices.data<std::int64_t>();
    const std::int64_t extent = checked_element_count(shape);
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t position = linear ? checked(numbers[static_cast<std::size_t>(i)], extent) : 0;
      for (std::int64_t axis = 0; not linear and axis < rank; ++axis) {
        const std::int64_t along = shape[static_cast<std::size_t>(axis)];
        position = position * along + checked(numbers[static_cast<std::size_t>(i * rank + axis)], along);
      }
      if (not positions.empty() and position <= positions.back()) fail(fmt::format("its indices do not ascend at value {}", i));
      positions.push_back(position);
    }
    return positions;
  }

  std::int64_t checked(std::int64_t index, std::int64_t extent) const {
    if (index < 0 or index >= extent) fail(fmt::format("index {} is outside of {} elements", index, extent));
    return index;
  }

  static void place(const Tensor& values, const std::vector<std::int64_t>& positions, std::span<std::byte> dense) {
    const std::size_t size = size_of(values.dtype());
    for (std::size_t i = 0; i < positions.size(); ++i) std::memcpy(&dense[static_cast<std::size_t>(positions[i]) * size], &values.bytes()[i * size], size);
  }

  const onnx::SparseTensorProto& proto_;
  const std::string& folder_;
  const Loc& loc_;
};

class Densifier {
 public:
  Densifier(const std::string& folder, const Loc& file, Diags& diags) : folder_(folder), file_(file), diags_(diags) {}

  void model(onnx::ModelProto& model) {
    graph(*model.mutable_graph());
    for (onnx::TrainingInfoProto& training : *model.mutable_training_info()) {
      if (training.has_initialization()) graph(*training.mutable_initialization());
      if (training.has_algorithm()) graph(*training.mutable_algorithm());
    }
    for (onnx::FunctionProto& function : *model.mutable_functions()) nodes(*function.mutable_node());
  }

 private:
  void graph(onnx::GraphProto& graph) {
    google::protobuf::RepeatedPtrField<onnx::SparseTensorProto> left;
    for (const onnx::SparseTensorProto& sparse : graph.sparse_initializer()) {
      onnx::TensorProto dense;
      dense.set_name(sparse.values().name());
      if (fill(sparse, &dense)) *graph.add_initializer() = std::move(dense);
      else *left.Add() = sparse;
    }
    graph.mutable_sparse_initializer()->Swap(&left);
    nodes(*graph.mutable_node());
  }

  void nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
    for (onnx::NodeProto& node : nodes) {
      for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) graph(*attribute.mutable_g());
        for (onnx::GraphProto& body : *attribute.mutable_graphs()) graph(body);
        if (node.op_type() == "Constant" and attribute.name() == "sparse_value" and attribute.has_sparse_tensor()) constant(attribute);
      }
    }
  }

  void constant(onnx::AttributeProto& attribute) {
    onnx::TensorProto dense;
    if (not fill(attribute.sparse_tensor(), &dense)) return;
    attribute.clear_sparse_tensor();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = std::move(dense);
  }

  bool fill(const onnx::SparseTensorProto& sparse, onnx::TensorProto* dense) {
    try {
      store_tensor(dense, SparseReader(sparse, folder_, file_).read(budget_));
      return true;
    } catch (const Error& error) { diags_.append(error); }
    return false;
  }

  const std::string& folder_;
  const Loc& file_;
  Diags& diags_;
  std::uint64_t budget_ = kMostDenseBytes;
};

}  // namespace

void make_dense(onnx::ModelProto& model, const std::string& model_folder, const Loc& file, Diags& diags) { Densifier(model_folder, file, diags).model(model); }

}  // namespace hone
