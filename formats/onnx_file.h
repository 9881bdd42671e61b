// ONNX models as files: reading, writing, and the weights in them, wherever the file keeps their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/tensor.h"
#include "formats/onnx.pb.h"

namespace hone {

struct Loc;
class Diags;

/// Reads a model ("-": standard input). The result has a graph with at least one node; nothing else about it is checked.
/// Throws kNotOnnx, which says what the file is instead or where it is damaged, kTooLarge, kFileOpen or kFileRead.
onnx::ModelProto load_model(const std::string& path);
/// The same from bytes; `name` is what messages call them.
onnx::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& name);

struct SaveModelOptions {
  /// The folder that the model's external data are relative to: that of the file it was loaded from.
  std::string source_folder = ".";
  /// A model that would be longer than this is written with its large weights in a data file beside it. Protobuf ends at 2 GiB.
  std::uint64_t longest_file = 0x7fff'0000;
  /// Weights shorter than this stay in the model file all the same, unless they were external when they came.
  std::uint64_t shortest_external = 1024;
};

/// Writes a model atomically: under `path` there is always either the old model or the new one, each with its data. Tensors
/// with external data, and large ones if the file would become too long, go to a new file PATH.N.data beside it, which is
/// complete before the model appears; the .N.data that the old model used is removed after. Throws kFileOpen, kFileRead, kFileWrite,
/// kBadWeight (external data that are not there).
void save_model(onnx::ModelProto model, const std::string& path, const SaveModelOptions& options = {});

/// The tensor's values, from whichever form the file stores them in: raw_data, one of the typed fields, or an external file in
/// `model_folder` (see folder_of() in base/files.h; never outside it, never through a symbolic link). `loc` says where the tensor stands; its name is added.
/// Throws kBadWeight for data that do not fit the shape, an element type that Hone does not have, strings, segments,
/// and external data outside the folder or beyond their file's end; kTooLarge for a shape that no memory holds.
Tensor tensor_of(const onnx::TensorProto& proto, const std::string& model_folder, const Loc& loc);

/// Puts shape, element type and values of `tensor` into `proto` as raw_data, replacing whatever form was there; name, doc and
/// metadata stay. Large models get external files in save_model().
void store_tensor(onnx::TensorProto* proto, const Tensor& tensor);

/// Makes every sparse initializer of the model, those of bodies and of training information included, an ordinary one, and every sparse_value of a Constant a value. What does not fit
/// (kBadWeight, kTooLarge) is reported and left as it is. Bodies are nested no deeper than parsing allows.
void make_dense(onnx::ModelProto& model, const std::string& model_folder, const Loc& file, Diags& diags);

/// The DType of an ONNX element type number, or nothing for those that Hone does not have (strings, complex).
std::optional<DType> dtype_of_onnx(std::int32_t data_type);
/// The ONNX element type number of a DType.
std::int32_t onnx_of_dtype(DType dtype);
/// "FLOAT16" of 10; "element type 99" of a number that the format does not have.
std::string onnx_type_name(std::int32_t data_type);

/// Every TensorProto in the model, bodies, functions and sparse tensors included, in file order.
std::vector<onnx::TensorProto*> all_tensors(onnx::ModelProto& model);

}  // namespace hone
