// Files of examples, one after the other, each a list of named tensors: what a data set keeps in a cache file. Hone's own format; nobody else reads it.
//
//   "HONEXMPL", u32 version, u32 bytes of what the examples are of, that text; per example u32 tensors, per tensor u32 bytes of the
//   name, the name, u8 dtype, u8 rank, i64 extents, the elements, behind them the example's u64 hash; at the end u32 0xffffffff, u64 examples and the u64 hash
//   of what they are of and how many. All little-endian. A hash goes over the pieces one by one, each with that of what was before as its seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/streamed_file.h"
#include "base/tensor.h"

namespace hone {

class ExampleFileWriter {
 public:
  /// `of` is what the examples are of, in words, so that nobody takes them for others. Throws kFileOpen, kFileWrite.
  ExampleFileWriter(const std::string& path, std::string_view of);
  void add(const std::vector<std::pair<std::string, Tensor>>& example);
  /// Makes the file visible, whole.
  void commit();

 private:
  void put(std::span<const std::byte> bytes);
  template <typename T>
  void put_number(T number);
  void put_hash();

  AtomicFile file_;
  const std::uint64_t of_hash_;
  std::uint64_t hash_ = 0;  // of what put() was given since the last put_hash()
  std::uint64_t count_ = 0;
};

/// Reads examples from front to back in bounded memory.
class ExampleFileReader {
 public:
  /// Throws kFileOpen, kFileRead, kDataFormat (no such file, or of another version).
  explicit ExampleFileReader(const std::string& path);
  std::uint64_t count() const { return count_; }
  const std::string& of() const { return of_; }
  /// False at the end. Throws kDataFormat for a damaged file (sizes that cannot be are found before memory is asked for).
  bool next(std::vector<std::pair<std::string, Tensor>>* example);
  /// Passes over `count` examples, whose elements are not looked at; how many there were.
  std::uint64_t skip(std::uint64_t count);

 private:
  template <typename T>
  T number();
  std::span<const std::byte> take(std::size_t bytes);
  void take_into(std::span<std::byte> to);
  /// Reads the hash of what was taken since hash_ was 0.
  void check_hash();
  [[noreturn]] void damaged() const;
  std::uint64_t left() const { return end_ - at_; }
  /// Reads a tensor's name, type and shape; how many bytes its elements take.
  std::uint64_t tensor_header(std::string* name, DType* dtype, std::vector<std::int64_t>* shape);
  std::uint32_t tensor_count();

  StreamedFile file_;
  std::string of_;
  std::uint64_t at_ = 0, end_ = 0;  // where it is, and where the examples end
  std::uint64_t count_ = 0, done_ = 0;
  std::uint64_t hash_ = 0;
  std::vector<std::byte> block_;
  std::uint64_t block_at_ = 0;
};

}  // namespace hone
