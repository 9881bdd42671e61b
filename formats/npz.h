// NumPy's .npz files: a zip archive of .npy files, stored or deflated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor.h"
#include "formats/npy.h"

namespace hone {

/// One array of an .npz file. The data_offset of `info` counts from the start of the unpacked entry.
struct NpzEntry {
  std::string key;  ///< the name without ".npy"
  NpyInfo info;
};

/// The arrays in the file, in its order, each with dtype and shape; no element is read. Throws kFileOpen, kDataFormat (not a zip archive, damaged), kDataType.
std::vector<NpzEntry> list_npz(const std::string& path);

/// The array `key`. Throws kDataName, naming the nearest key, when there is none, and whatever read_npy() throws; the checksum is verified.
Tensor read_npz(const std::string& path, const std::string& key);
/// All arrays in the file's order.
std::vector<std::pair<std::string, Tensor>> read_npz(const std::string& path);

/// Writes arrays under their names, not compressed, atomically; NumPy reads the result. Names are unique. Throws kDataName, kFileOpen, kFileWrite.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace hone
