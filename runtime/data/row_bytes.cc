#include "runtime/data/row_bytes.h"

#include <cstring>

namespace hone {

std::uint64_t RowBytes::size() const {
  if (const auto* tensor = std::get_if<Tensor>(&owner_)) return tensor->byte_count();
  if (const auto* file = std::get_if<MappedFile>(&owner_)) return file->size();
  return std::get<StreamedFile>(owner_).size();
}

const std::byte* RowBytes::data() const {
  if (const auto* tensor = std::get_if<Tensor>(&owner_)) return tensor->bytes().data();
  if (const auto* file = std::get_if<MappedFile>(&owner_)) return file->bytes().data();
  return nullptr;
}

void RowBytes::read(std::uint64_t offset, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (const std::byte* bytes = data()) std::memcpy(to.data(), bytes + offset, to.size());
  else std::get<StreamedFile>(owner_).read(offset, to);
}

std::shared_ptr<const RowBytes> open_row_bytes(const std::string& path, bool streamed) {
  if (streamed) return std::make_shared<const RowBytes>(StreamedFile(path));
  return std::make_shared<const RowBytes>(MappedFile(path));
}

}  // namespace hone
