#include "runtime/device/shared_exchange.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "base/hash.h"

namespace hone {
namespace {

/// The same for tensors that may be added up.
std::int64_t content_of(const ExchangedTensor& tensor) {
  const std::array<std::int64_t, 3> content = {static_cast<std::int64_t>(tensor.dtype), tensor.count, tensor.bucket};
  return static_cast<std::int64_t>(hash_of(std::as_bytes(std::span(content))));
}

}  // namespace

template <typename Work>
void SharedExchange::meet(Stream stream, std::span<const ExchangedTensor> tensors, Work work) {
  device_.synchronize(stream);
  const auto size = static_cast<std::size_t>(replicas_.size()), rank = static_cast<std::size_t>(replicas_.rank());
  std::vector<std::int64_t> addresses(tensors.size() * size), contents(tensors.size() * size);  // sums of one and zeros
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    addresses[i * size + rank] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensors[i].data));
    contents[i * size + rank] = content_of(tensors[i]);
  }
  const ExchangedTensor tables[] = {{DType::kI64, std::ssize(addresses), addresses.data()}, {DType::kI64, std::ssize(contents), contents.data()}};
  replicas_.all_reduce(tables);
  for (std::size_t i = 0; i < contents.size(); ++i)
    HONE_CHECK(contents[i] == contents[i / size * size], fmt::format("replicas that share a device exchange different tensors: number {} of {} differs in replica {}; all must exchange the same buckets in the same order", i / size, tensors.size(), i % size));
  std::vector<std::byte*> places(size);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t from = 0; from < size; ++from) places[from] = reinterpret_cast<std::byte*>(static_cast<std::intptr_t>(addresses[i * size + from]));
    if (tensors[i].count > 0) work(tensors[i], places);
  }
  device_.synchronize(stream);
  replicas_.barrier();
}

void SharedExchange::all_reduce(Stream stream, std::span<const ExchangedTensor> tensors) {
  meet(stream, tensors, [&](const ExchangedTensor& tensor, const std::vector<std::byte*>& places) {
    const std::vector<const std::byte*> terms(places.begin(), places.end());
    device_.sum(stream, tensor.dtype, terms, piece(tensor, static_cast<std::size_t>(replicas_.rank())), places);
  });
}

void SharedExchange::reduce_scatter(Stream stream, std::span<const ExchangedTensor> tensors) {
  meet(stream, tensors, [&](const ExchangedTensor& tensor, const std::vector<std::byte*>& places) {
    const auto rank = static_cast<std::size_t>(replicas_.rank());
    const std::vector<const std::byte*> terms(places.begin(), places.end());
    device_.sum(stream, tensor.dtype, terms, piece(tensor, rank), {&places[rank], 1});
  });
}

void SharedExchange::all_gather(Stream stream, std::span<const ExchangedTensor> tensors) {
  meet(stream, tensors, [&](const ExchangedTensor& tensor, const std::vector<std::byte*>& places) {
    const auto rank = static_cast<std::size_t>(replicas_.rank());
    for (std::size_t from = 0; from < places.size(); ++from) {
      const RangePiece range = piece(tensor, from);
      const std::size_t begin = static_cast<std::size_t>(range.begin) * size_of(tensor.dtype), end = static_cast<std::size_t>(range.end) * size_of(tensor.dtype);
      if (from != rank and begin < end) device_.copy_from_other(stream, places[rank] + begin, places[from] + begin, end - begin);
    }
  });
}

}  // namespace hone
