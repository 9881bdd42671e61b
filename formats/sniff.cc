#include "formats/sniff.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hone {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kExportTorch = "export it with torch.onnx.export(model, inputs, \"model.onnx\")";
constexpr std::string_view kExportKeras = "export it with model.export(\"model.onnx\", format=\"onnx\") in Keras 3";
constexpr std::string_view kExportTf = "convert it with `python -m tf2onnx.convert --tflite model.tflite --output model.onnx`";

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  std::string_view advice;
};

/// The first that fits counts.
constexpr std::array kSignatures = {
    Signature{0, "version https://git-lfs.github.com"sv, "a Git LFS pointer, not the file itself", "fetch the file with `git lfs pull`"},
    Signature{0, "PK\x03\x04"sv, "a zip archive, perhaps a PyTorch .pt, a Keras .keras or a NumPy .npz file",
              "a PyTorch model: export it with torch.onnx.export(model, inputs, \"model.onnx\"); a Keras model: model.export(\"model.onnx\", format=\"onnx\")"},
    Signature{0, "PK\x05\x06"sv, "an empty zip archive", ""},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file, perhaps Keras weights (.h5)", kExportKeras},
    Signature{4, "TFL3"sv, "a TensorFlow Lite model", kExportTf},
    Signature{4, "ORTM"sv, "an ONNX Runtime model (.ort)", "give the .onnx file it was made from"},
    Signature{0, "HONEPLAN"sv, "a plan of Hone's", "plans are for hone-run and hone-dump; give the .onnx file that it was compiled from"},
    Signature{0, "\x93NUMPY"sv, "a NumPy .npy file", ""},
    Signature{0, "GGUF"sv, "a GGUF weight file", ""},
    Signature{0, "\x80\x02"sv, "a Python pickle, perhaps an old PyTorch .pt file", kExportTorch},
    Signature{0, "\x80\x03"sv, "a Python pickle", kExportTorch},
    Signature{0, "\x80\x04"sv, "a Python pickle", kExportTorch},
    Signature{0, "\x80\x05"sv, "a Python pickle", kExportTorch},
    Signature{0, "\x1f\x8b"sv, "gzip-compressed", "unpack it with `gunzip`"},
    Signature{0, "\x28\xb5\x2f\xfd"sv, "zstd-compressed", "unpack it with `unzstd`"},
    Signature{0, "BZh"sv, "bzip2-compressed", "unpack it with `bunzip2`"},
    Signature{0,
              "\xfd"
              "7zXZ"sv,
              "xz-compressed", "unpack it with `unxz`"},
    Signature{257, "ustar"sv, "a tar archive", "unpack it with `tar xf`"},
    Signature{0,
              "\x7f"
              "ELF"sv,
              "a program or shared library", ""},
    Signature{0, "\x89PNG"sv, "a PNG image", ""},
    Signature{0, "\xff\xd8\xff"sv, "a JPEG image", ""},
    Signature{0, "%PDF"sv, "a PDF document", ""},
    Signature{0, "PAR1"sv, "a Parquet file", ""},
    Signature{0, "ARROW1"sv, "an Arrow file", ""},
};

std::string_view first_text(std::span<const std::byte> bytes, std::size_t count) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), count)};
}

const Signature* find_signature(std::span<const std::byte> bytes) {
  const std::string_view start = first_text(bytes, 512);
  const auto found = std::find_if(kSignatures.begin(), kSignatures.end(), [&](const Signature& signature) {
    return start.size() > signature.offset and start.substr(signature.offset).starts_with(signature.bytes);
  });
  return found == kSignatures.end() ? nullptr : &*found;
}

/// safetensors begin with the length of a JSON header as 8 bytes, then the header.
bool is_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 or bytes[8] != std::byte{'{'}) return false;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length >= 2 and length <= bytes.size() - 8;
}

/// What onnx.printer.to_text writes begins with the model's header: < ir_version: 10, ... >
bool is_onnx_text(std::string_view start) {
  const std::size_t text = start.find_first_not_of(" \t\r\n");
  return text != std::string_view::npos and start[text] == '<' and start.find("ir_version:") != std::string_view::npos;
}

bool is_text(std::string_view start) {
  return std::all_of(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : c == '\n' or c == '\r' or c == '\t' or c == '\f';
  });
}

}  // namespace

std::string describe_content(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "empty";
  if (const Signature* signature = find_signature(bytes)) return std::string(signature->what);
  if (is_safetensors(bytes)) return "a safetensors file, which holds weights but no model";
  const std::string_view start = first_text(bytes, 512);
  if (std::all_of(start.begin(), start.end(), [](char c) { return c == '\0'; })) return "nothing but zero bytes, as after an interrupted download or copy";
  if (not is_text(start)) return "";
  const std::size_t text = start.find_first_not_of(" \t\r\n");
  if (text == std::string_view::npos) return "text";
  if (is_onnx_text(start)) return "a model in ONNX's text syntax";
  if (start[text] == '<') return "HTML or XML text, perhaps an error page instead of a download";
  if (start[text] == '{') return "JSON text";
  return "text";
}

std::string onnx_advice(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "the export or download did not finish; do it again";
  const Signature* signature = find_signature(bytes);
  if (signature != nullptr and not signature->advice.empty()) return std::string(signature->advice);
  if (is_onnx_text(first_text(bytes, 512))) return "write the model itself: onnx.save(onnx.parser.parse_model(open(\"model.txt\").read()), \"model.onnx\"), or give the file that the text was printed from";
  if (is_safetensors(bytes)) return "export the model that these weights belong to, with `optimum-cli export onnx` or torch.onnx.export";
  return "give the .onnx file that your framework's exporter wrote (torch.onnx.export, model.export of Keras, tf2onnx)";
}

}  // namespace hone
