#include "runtime/device/shared_exchange.h"

namespace hone {

template <typename Work>
void SharedExchange::meet(Stream stream, std::span<const ExchangedTensor> tensors, Work work) {
  device_.synchronize(stream);
  const auto size = static_cast<std::size_t>(replicas_.size()), rank = static_cast<std::size_t>(replicas_.rank());
  std::vector<std::int64_t> addresses(tensors.size() * size);  // the sum of one and zeros
  for (std::size_t i = 0; i < tensors.size(); ++i) addresses[i * size + rank] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensors[i].data));
  const ExchangedTensor table = {DType::kI64, static_cast<std::int64_t>(addresses.size()), addresses.data()};
  replicas_.all_reduce({&table, 1});
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
