// IDX files, the format of the MNIST data sets ("train-images-idx3-ubyte"), plain or gzipped.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/tensor.h"

namespace hone {

/// The array in the file: u8, i8, i16, i32, f32 or f64 in this machine's byte order. Gzip is recognized by its content, not
/// its name. Throws kFileOpen, kDataFormat (wrong magic number, fewer or more bytes than the shape needs, damaged gzip), kTooLarge.
Tensor read_idx(const std::string& path);
/// The same from bytes; `name` is what messages call them.
Tensor parse_idx(std::span<const std::byte> bytes, const std::string& name);

/// Is this path spelled like an IDX file: "*-ubyte", "*.idx", "*idx3-ubyte.gz", "*.idx.gz"?
bool is_idx_path(const std::string& path);

}  // namespace hone
