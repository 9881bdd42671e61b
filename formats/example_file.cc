#include "formats/example_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/diag.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/elements.h"

namespace hone {

namespace {

constexpr std::string_view kExampleMagic = "HONEXMPL";
constexpr std::uint32_t kExampleVersion = 3, kEnd = 0xffffffff;
constexpr std::uint64_t kHeaderBytes = 16, kHashBytes = 8, kFooterBytes = 12 + kHashBytes;
constexpr std::size_t kExampleBlockBytes = 256 * 1024;

}  // namespace

void ExampleFileWriter::put(std::span<const std::byte> bytes) {
  file_.write(bytes);
  hash_ = hash_of(bytes, hash_);
}

template <typename T>
void ExampleFileWriter::put_number(T number) {
  put(std::as_bytes(std::span(&number, 1)));
}

void ExampleFileWriter::put_hash() {
  put_number(hash_);
  hash_ = 0;
}

ExampleFileWriter::ExampleFileWriter(const std::string& path, std::string_view of) : file_(path), of_hash_(hash_of(of)) {
  file_.write(kExampleMagic);
  put_number(kExampleVersion);
  put_number(static_cast<std::uint32_t>(of.size()));
  file_.write(of);
  hash_ = 0;
}

void ExampleFileWriter::add(const std::vector<std::pair<std::string, Tensor>>& example) {
  put_number(static_cast<std::uint32_t>(example.size()));
  for (const auto& [name, tensor] : example) {
    put_number(static_cast<std::uint32_t>(name.size()));
    put(std::as_bytes(std::span(name)));
    put_number(static_cast<std::uint8_t>(tensor.dtype()));
    put_number(static_cast<std::uint8_t>(tensor.shape().size()));
    for (const std::int64_t extent : tensor.shape()) put_number(extent);
    put(tensor.bytes());
  }
  put_hash();
  ++count_;
}

void ExampleFileWriter::commit() {
  hash_ = of_hash_;
  put_number(kEnd);
  put_number(count_);
  put_hash();
  file_.commit();
}

ExampleFileReader::ExampleFileReader(const std::string& path) : file_(path) {
  if (file_.size() < kHeaderBytes + kFooterBytes) damaged();
  end_ = file_.size();
  std::string magic(kExampleMagic.size(), '\0');
  take_into(std::as_writable_bytes(std::span(magic)));
  if (magic != kExampleMagic or number<std::uint32_t>() != kExampleVersion) damaged();
  const auto bytes = number<std::uint32_t>();
  if (bytes > left() - kFooterBytes) damaged();
  of_.resize(bytes);
  take_into(std::as_writable_bytes(std::span(of_)));
  const std::uint64_t begin = std::exchange(at_, end_ - kFooterBytes);
  hash_ = hash_of(of_);
  if (number<std::uint32_t>() != kEnd) damaged();
  count_ = number<std::uint64_t>();
  check_hash();
  at_ = begin;
  end_ -= kFooterBytes;
}

void ExampleFileReader::damaged() const {
  throw Error(Code::kDataFormat, fmt::format("{} is no file of cached examples, or a damaged one", printable(file_.path(), 1000)), {},
              {"remove it, and the data set makes it again"});
}

std::span<const std::byte> ExampleFileReader::take(std::size_t bytes) {
  if (bytes > left()) damaged();
  if (at_ < block_at_ or at_ + bytes > block_at_ + block_.size()) {
    block_.resize(std::max<std::uint64_t>(bytes, std::min<std::uint64_t>(kExampleBlockBytes, left())));
    file_.read(at_, block_);
    block_at_ = at_;
  }
  at_ += bytes;
  const auto taken = std::span(block_).subspan(at_ - bytes - block_at_, bytes);
  hash_ = hash_of(taken, hash_);
  return taken;
}

void ExampleFileReader::take_into(std::span<std::byte> to) {
  if (to.size() > left()) damaged();
  if (to.size() <= kExampleBlockBytes) {
    const auto bytes = take(to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
  } else {
    file_.read(at_, to);
    at_ += to.size();
    hash_ = hash_of(to, hash_);
  }
}

template <typename T>
T ExampleFileReader::number() {
  T result;
  std::memcpy(&result, take(sizeof(T)).data(), sizeof(T));
  return result;
}

void ExampleFileReader::check_hash() {
  const std::uint64_t hash = hash_;
  if (number<std::uint64_t>() != hash) damaged();
}

std::uint32_t ExampleFileReader::tensor_count() {
  const auto tensors = number<std::uint32_t>();
  if (tensors > left()) damaged();
  return tensors;
}

std::uint64_t ExampleFileReader::tensor_header(std::string* name, DType* dtype, std::vector<std::int64_t>* shape) {
  const auto name_bytes = number<std::uint32_t>();
  if (name_bytes > limits::kNameBytes or name_bytes > left()) damaged();
  name->resize(name_bytes);
  take_into(std::as_writable_bytes(std::span(*name)));
  const auto type = number<std::uint8_t>(), rank = number<std::uint8_t>();
  if (type >= kDTypeCount or rank > limits::kRank) damaged();
  *dtype = static_cast<DType>(type);
  shape->clear();
  for (int axis = 0; axis < rank; ++axis) shape->push_back(number<std::int64_t>());
  const std::uint64_t bytes = bytes_of_shape(*dtype, *shape, printable(file_.path(), 1000));
  if (bytes > left()) damaged();
  return bytes;
}

bool ExampleFileReader::next(std::vector<std::pair<std::string, Tensor>>* example) {
  if (done_ == count_) return false;
  example->clear();
  hash_ = 0;
  const std::uint32_t tensors = tensor_count();
  for (std::uint32_t i = 0; i < tensors; ++i) {
    std::string name;
    DType dtype{};
    std::vector<std::int64_t> shape;
    tensor_header(&name, &dtype, &shape);
    Tensor tensor = Tensor::make(dtype, std::move(shape), [&](std::span<std::byte> to) {
      take_into(to);
      if (dtype == DType::kBool) normalize_bools(to);
    });
    example->emplace_back(std::move(name), std::move(tensor));
  }
  check_hash();
  ++done_;
  return true;
}

std::uint64_t ExampleFileReader::skip(std::uint64_t count) {
  const std::uint64_t skipped = std::min(count, count_ - done_);
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
  for (std::uint64_t i = 0; i < skipped; ++i, ++done_) {
    for (std::uint32_t left_over = tensor_count(); left_over > 0; --left_over) at_ += tensor_header(&name, &dtype, &shape);
    take(kHashBytes);
  }
  return skipped;
}

}  // namespace hone
