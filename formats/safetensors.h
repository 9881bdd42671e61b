// Safetensors: named tensors in one file: the length of a JSON header, the header, the elements one tensor after the other.
// https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"

namespace hone {

/// One tensor of a file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  ///< of its first element, from the start of the file
  std::uint64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in the order of their elements
  std::map<std::string, std::string> metadata;  ///< what stands under "__metadata__"
};

/// Checks the whole header of a file: sizes, types, names, and that the tensors fill the file without gaps and overlaps. `path` is for messages.
/// Throws kDataFormat, kDataType (an element type that tensors cannot have), kTooLarge.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& path);

/// One tensor of a file whose header was read. Bools become 0 or 1.
Tensor read_entry(std::span<const std::byte> file, const SafetensorsEntry& entry);

/// The tensor `name`. Throws kFileOpen, kDataName, naming the nearest name, and what read_safetensors_header() throws.
Tensor read_safetensors(const std::string& path, const std::string& name);
/// All tensors in the file's order.
std::vector<std::pair<std::string, Tensor>> read_safetensors(const std::string& path);

/// A tensor to be written, which is made when its turn has come: a file may be larger than what is in memory at once.
struct SafetensorsSource {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::function<Tensor()> read;
};

/// Writes tensors under their names, atomically. `confirm` is called when all have been read, before there is a file: it throws where there must be none.
/// Throws kDataName (a name twice, or "__metadata__"), kDataType (a type that the format does not have), kFileOpen, kFileWrite.
void write_safetensors(const std::string& path, std::span<const SafetensorsSource> tensors, const std::map<std::string, std::string>& metadata = {}, const std::function<void()>& confirm = {});

}  // namespace hone
