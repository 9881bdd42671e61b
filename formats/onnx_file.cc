#include "formats/onnx_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <exception>
#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/diag.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/onnx_external.h"
#include "formats/onnx_wire.h"
#include "formats/sniff.h"

namespace hone {

namespace {

constexpr std::size_t kDataAlignment = 4096;  // a page: what the format recommends, so that data can be mapped

[[noreturn]] void not_onnx(std::span<const std::byte> bytes, const std::string& name, std::string_view damage) {
  const std::string content = describe_content(bytes);
  const std::string file = printable(name, 1000);
  std::vector<std::string> notes;
  if (content.empty()) {
    notes.push_back("if it was an ONNX file, export, copy or download it again");
    throw Error(Code::kNotOnnx, fmt::format("{} is not an ONNX file, or a damaged one: {}", file, damage), {}, std::move(notes));
  }
  if (std::string advice = onnx_advice(bytes); not advice.empty()) notes.push_back(std::move(advice));
  throw Error(Code::kNotOnnx, fmt::format("{} is not an ONNX file: it is {}", file, content), {}, std::move(notes));
}

onnx::ModelProto parse_protobuf(std::span<const std::byte> bytes, const std::string& name) {
  onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(limits::kProtobufDepth + 1);
  if (not model.ParseFromCodedStream(&stream) or not stream.ConsumedEntireMessage()) not_onnx(bytes, name, "its fields do not fit the format");
  return model;
}

/// What a walk over all tensors still has to look at.
using Part = std::variant<onnx::GraphProto*, onnx::NodeProto*, onnx::AttributeProto*, onnx::SparseTensorProto*, onnx::TensorProto*>;

template <typename Repeated>
void add_all(std::vector<Part>* parts, Repeated* items) {
  for (auto& item : *items) parts->emplace_back(&item);
}

void add_parts(onnx::GraphProto* graph, std::vector<Part>* parts) {
  add_all(parts, graph->mutable_node());
  add_all(parts, graph->mutable_initializer());
  add_all(parts, graph->mutable_sparse_initializer());
}

void add_parts(onnx::NodeProto* node, std::vector<Part>* parts) { add_all(parts, node->mutable_attribute()); }

void add_parts(onnx::AttributeProto* attribute, std::vector<Part>* parts) {
  if (attribute->has_t()) parts->emplace_back(attribute->mutable_t());
  if (attribute->has_g()) parts->emplace_back(attribute->mutable_g());
  if (attribute->has_sparse_tensor()) parts->emplace_back(attribute->mutable_sparse_tensor());
  add_all(parts, attribute->mutable_tensors());
  add_all(parts, attribute->mutable_graphs());
  add_all(parts, attribute->mutable_sparse_tensors());
}

void add_parts(onnx::SparseTensorProto* tensor, std::vector<Part>* parts) {
  if (tensor->has_values()) parts->emplace_back(tensor->mutable_values());
  if (tensor->has_indices()) parts->emplace_back(tensor->mutable_indices());
}

void add_parts(onnx::TensorProto*, std::vector<Part>*) {}

std::vector<Part> top_parts(onnx::ModelProto& model) {
  std::vector<Part> parts;
  if (model.has_graph()) parts.emplace_back(model.mutable_graph());
  for (onnx::TrainingInfoProto& training : *model.mutable_training_info()) {
    if (training.has_initialization()) parts.emplace_back(training.mutable_initialization());
    if (training.has_algorithm()) parts.emplace_back(training.mutable_algorithm());
  }
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    add_all(&parts, function.mutable_node());
    add_all(&parts, function.mutable_attribute_proto());
  }
  return parts;
}

/// Hands protobuf's bytes on to the file; an exception waits until protobuf has returned.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(AtomicFile& file) : file_(file) {}
  bool Write(const void* bytes, int count) override {
    try {
      file_.write(std::span(static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)));
    } catch (...) { failure_ = std::current_exception(); }
    return failure_ == nullptr;
  }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  AtomicFile& file_;
  std::exception_ptr failure_;
};

void write_protobuf(const onnx::ModelProto& model, const std::string& path) {
  if (const std::uint64_t size = model.ByteSizeLong(); size > limits::kProtobufBytes) {
    throw Error(Code::kTooLarge, fmt::format("cannot write {}: without its large weights the model still has {}, where an ONNX file ends at 2 GiB",
                                             printable(path, 1000), human_bytes(size)));
  }
  write_file_atomically(path, [&](AtomicFile& file) {
    FileStream stream(file);
    bool written = false;
    {
      google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&stream, 1 << 18);
      written = model.SerializeToZeroCopyStream(&adaptor) and adaptor.Flush();
    }
    stream.rethrow();
    HONE_CHECK(written, "protobuf does not write a model");
  });
}

/// Is `name` one of the data files that save_model() made for `model_name`: "model.onnx.3.data"?
bool is_own_data_name(std::string_view name, std::string_view model_name) {
  if (not name.starts_with(model_name) or not name.ends_with(".data") or name.size() <= model_name.size() + 6) return false;
  const std::string_view number = name.substr(model_name.size(), name.size() - model_name.size() - 5);
  return number[0] == '.' and number.size() > 1 and std::all_of(number.begin() + 1, number.end(), [](char c) { return c >= '0' and c <= '9'; });
}

/// The data files of ours that the model now at `path` uses; nothing if that cannot be found out.
std::optional<std::set<std::string>> own_data_files(const std::string& path) {
  const std::string folder = folder_of(path), model_name = file_name_of(path);
  const auto own = [&](const std::string& name) { return is_own_data_name(name, model_name); };
  std::set<std::string> result;
  try {
    const std::vector<std::string> names = list_folder(folder);
    const bool is_there = std::find(names.begin(), names.end(), model_name) != names.end();
    if (not is_there or std::none_of(names.begin(), names.end(), own)) return result;
    onnx::ModelProto model = load_model(path);
    for (const onnx::TensorProto* tensor : all_tensors(model))
      for (const onnx::StringStringEntryProto& entry : tensor->external_data())
        if (entry.key() == "location" and own(entry.value())) result.insert(folder + "/" + entry.value());
    return result;
  } catch (const Error& error) {
    if (error.diags().front().code == Code::kNotOnnx) return result;
    return std::nullopt;
  }
}

/// For files that are of no use any more; that one stays behind is no reason to fail.
void remove_quietly(const std::string& path) {
  try {
    remove_file(path);
  } catch (const Error&) {}
}

std::string new_data_name(const std::string& path) {
  const std::vector<std::string> names = list_folder(folder_of(path));
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}.{}.data", file_name_of(path), number);
    if (not std::binary_search(names.begin(), names.end(), name)) return name;
  }
}

/// The tensors whose bytes go into a data file: those that came from one and, in a model that is too long, the large ones.
std::vector<onnx::TensorProto*> choose_external(onnx::ModelProto& model, const SaveModelOptions& options) {
  const bool too_long = model.ByteSizeLong() > options.longest_file;
  std::vector<onnx::TensorProto*> chosen;
  for (onnx::TensorProto* tensor : all_tensors(model)) {
    if (is_external(*tensor)) {
      chosen.push_back(tensor);
    } else if (too_long and tensor->ByteSizeLong() >= options.shortest_external and dtype_of_onnx(tensor->data_type()) and not tensor->has_segment()) {
      if (tensor->raw_data().empty()) store_tensor(tensor, tensor_of(*tensor, options.source_folder, {}));
      chosen.push_back(tensor);
    } else if (too_long and tensor->raw_data().size() >= options.shortest_external) {
      chosen.push_back(tensor);  // an element type we do not know is still bytes
    }
  }
  return chosen;
}

void write_data_file(const std::vector<onnx::TensorProto*>& tensors, const std::string& path, const SaveModelOptions& options) {
  write_file_atomically(path, [&](AtomicFile& file) {
    for (onnx::TensorProto* tensor : tensors) {
      file.pad_to(kDataAlignment);
      const std::uint64_t offset = file.position();
      if (is_external(*tensor)) {
        const ExternalBytes external = read_external(*tensor, options.source_folder, std::nullopt, Loc{});
        file.write(external.bytes);
      } else {
        file.write(tensor->raw_data());
      }
      set_external(tensor, file_name_of(path), offset, file.position() - offset);
    }
  });
}

}  // namespace

onnx::ModelProto load_model(const std::string& path) {
  const MappedFile file(path);
  return parse_model(file.bytes(), path == "-" ? "standard input" : path);
}

onnx::ModelProto parse_model(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) not_onnx(bytes, name, "");
  if (bytes.size() > limits::kProtobufBytes) {
    if (not describe_content(bytes).empty()) not_onnx(bytes, name, "");
    throw Error(Code::kTooLarge, fmt::format("{} is {} long, where an ONNX file ends at 2 GiB", printable(name, 1000), human_bytes(bytes.size())), {},
                {"save it with its weights in a file of their own: onnx.save(model, path, save_as_external_data=True)"});
  }
  if (const auto damage = find_wire_damage(bytes, name)) not_onnx(bytes, name, *damage);
  try {
    onnx::ModelProto model = parse_protobuf(bytes, name);
    if (not model.has_graph()) not_onnx(bytes, name, "it has no graph (a TensorFlow saved_model.pb looks like that)");
    if (model.graph().node_size() == 0) {
      throw Error(Code::kNotOnnx, fmt::format("{} has a graph without nodes: there is nothing to compute", printable(name, 1000)), {},
                  {"if it should have some, the export did not finish; do it again"});
    }
    return model;
  } catch (const std::bad_alloc&) {
    throw Error(Code::kMemory, fmt::format("{} ({}) does not fit into memory", printable(name, 1000), human_bytes(bytes.size())));
  }
}

void save_model(onnx::ModelProto model, const std::string& path, const SaveModelOptions& options) {
  const std::vector<onnx::TensorProto*> external = choose_external(model, options);
  if (path == "-" and not external.empty()) {
    throw Error(Code::kFileWrite, "cannot write the model to standard output: its weights need a file of their own", {}, {"name an output file"});
  }
  const auto outdated = path == "-" ? std::nullopt : own_data_files(path);
  const std::string data_path = external.empty() ? "" : folder_of(path) + "/" + new_data_name(path);
  try {
    if (not external.empty()) write_data_file(external, data_path, options);
    write_protobuf(model, path);
  } catch (...) {
    // The very last step, syncing the folder, can fail when the new model is in place already: then it needs its data.
    const auto used = own_data_files(path);
    if (not data_path.empty() and used and not used->contains(data_path)) remove_quietly(data_path);
    throw;
  }
  if (outdated) std::for_each(outdated->begin(), outdated->end(), remove_quietly);
}

std::vector<onnx::TensorProto*> all_tensors(onnx::ModelProto& model) {
  std::vector<onnx::TensorProto*> result;
  std::vector<Part> waiting = top_parts(model);  // a stack, the next one last
  std::reverse(waiting.begin(), waiting.end());
  std::vector<Part> inner;
  while (not waiting.empty()) {
    const Part part = waiting.back();
    waiting.pop_back();
    if (onnx::TensorProto* const* tensor = std::get_if<onnx::TensorProto*>(&part)) result.push_back(*tensor);
    inner.clear();
    std::visit([&](auto* item) { add_parts(item, &inner); }, part);
    waiting.insert(waiting.end(), inner.rbegin(), inner.rend());
  }
  return result;
}

}  // namespace hone
