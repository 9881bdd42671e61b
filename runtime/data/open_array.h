// Which kind of file is opened how.
#pragma once

#include "runtime/data/array.h"
#include "runtime/data/spec.h"

namespace hone {

/// The array in one file (no pattern), all its rows. `streamed`: its bytes are read where they are wanted, not mapped, if the format allows. Throws what the
/// readers in formats/ throw, kDataFormat for a file whose length does not fit its part, kUsage for a part that says nothing.
Array open_npy_array(const DataSource& source, bool streamed);
Array open_npz_array(const DataSource& source, bool streamed);
Array open_idx_array(const DataSource& source, bool streamed);
Array open_csv_array(const DataSource& source, bool streamed);
Array open_safetensors_array(const DataSource& source, bool streamed);
/// FILE.tar:ENDING, as WebDataset has it: files that differ in what follows the first dot of their names are one sample; ENDING.npy holds arrays of one shape,
/// "cls", "id" and "index" integers as text, and ENDING:DTYPE:SHAPE raw elements.
Array open_tar_array(const DataSource& source, bool streamed);
/// FILE.bin:DTYPE:SHAPE, or one of these records:
///   cifar10:images|labels, cifar100:images|labels|coarse_labels    the CIFAR binary files
///   tokens:DTYPE:T[:STRIDE], next_tokens:DTYPE:T[:STRIDE]          windows [N,T] of a file of ids, STRIDE (T if not given) ids apart; next_tokens lie one id
///   further on
Array open_binary_array(const DataSource& source, bool streamed);

/// "file.npz:key": what messages call the source.
std::string label_of(const DataSource& source);
/// "60000x784". Throws kUsage.
std::vector<std::int64_t> shape_from(const std::string& text, const DataSource& source);
/// The bytes of a shape that a user has given; nothing where they are more than any file has.
std::optional<std::uint64_t> bytes_if_any_has(DType dtype, const std::vector<std::int64_t>& shape);
/// The same in words.
std::string text_of_bytes(std::optional<std::uint64_t> bytes);
/// "f32". Throws kUsage.
DType dtype_from(const std::string& text, const DataSource& source);

}  // namespace hone
