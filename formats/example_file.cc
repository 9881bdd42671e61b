#include "formats/example_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/diag.h"
#include "base/limits.h"
#include "base/text.h"
#include "formats/elements.h"

namespace hone {

namespace {

constexpr std::string_view kExampleMagic = "HONEXMPL";
constexpr std::uint32_t kExampleVersion = 2, kEnd = 0xffffffff;
constexpr std::uint64_t kHeaderBytes = 16, kFooterBytes = 12;
constexpr std::size_t kExampleBlockBytes = 256 * 1024;

template <typename T>
void put(AtomicFile& file, T number) {
  file.write(std::as_bytes(std::span(&number, 1)));
}

}  // namespace

ExampleFileWriter::ExampleFileWriter(const std::string& path, std::string_view of) : file_(path) {
  file_.write(kExampleMagic);
  put(file_, kExampleVersion);
  put(file_, static_cast<std::uint32_t>(of.size()));
  file_.write(of);
}

void ExampleFileWriter::add(const std::vector<std::pair<std::string, Tensor>>& example) {
  put(file_, static_cast<std::uint32_t>(example.size()));
  for (const auto& [name, tensor] : example) {
    put(file_, static_cast<std::uint32_t>(name.size()));
    file_.write(name);
    put(file_, static_cast<std::uint8_t>(tensor.dtype()));
    put(file_, static_cast<std::uint8_t>(tensor.shape().size()));
    for (const std::int64_t extent : tensor.shape()) put(file_, extent);
    file_.write(tensor.bytes());
  }
  ++count_;
}

void ExampleFileWriter::commit() {
  put(file_, kEnd);
  put(file_, count_);
  file_.commit();
}

ExampleFileReader::ExampleFileReader(const std::string& path) : file_(path) {
  if (file_.size() < kHeaderBytes + kFooterBytes) damaged();
  end_ = file_.size();
  std::string magic(kExampleMagic.size(), '\0');
  take_into(std::as_writable_bytes(std::span(magic)));
  if (magic != kExampleMagic or number<std::uint32_t>() != kExampleVersion) damaged();
  at_ = end_ - kFooterBytes;
  if (number<std::uint32_t>() != kEnd) damaged();
  count_ = number<std::uint64_t>();
  at_ = kHeaderBytes - sizeof(std::uint32_t);
  end_ -= kFooterBytes;
  const auto bytes = number<std::uint32_t>();
  if (bytes > left()) damaged();
  of_.resize(bytes);
  take_into(std::as_writable_bytes(std::span(of_)));
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
  return std::span(block_).subspan(at_ - bytes - block_at_, bytes);
}

void ExampleFileReader::take_into(std::span<std::byte> to) {
  if (to.size() > left()) damaged();
  if (to.size() <= kExampleBlockBytes) {
    const auto bytes = take(to.size());
    std::copy(bytes.begin(), bytes.end(), to.begin());
  } else {
    file_.read(at_, to);
    at_ += to.size();
  }
}

template <typename T>
T ExampleFileReader::number() {
  T result;
  std::memcpy(&result, take(sizeof(T)).data(), sizeof(T));
  return result;
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
  ++done_;
  return true;
}

std::uint64_t ExampleFileReader::skip(std::uint64_t count) {
  const std::uint64_t skipped = std::min(count, count_ - done_);
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
  for (std::uint64_t i = 0; i < skipped; ++i, ++done_)
    for (std::uint32_t left_over = tensor_count(); left_over > 0; --left_over) at_ += tensor_header(&name, &dtype, &shape);
  return skipped;
}

}  // namespace hone
