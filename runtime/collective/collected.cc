#include "runtime/collective/collected.h"

namespace hone {

void Collected::add(std::int64_t bucket, std::span<const ExchangedTensor> term) {
  if (over_ == Over::kOneBatch) batch_[bucket].add(term);
  else batches_[bucket].add(shard_, term);
}

void Collected::take(std::int64_t bucket, std::span<const ExchangedTensor> to) {
  if (over_ == Over::kOneBatch) batch_[bucket].take(shards_, to);
  else batches_[bucket].take(shards_, to);
}

void Collected::clear() {
  shard_ = 0;
  batch_.clear();
  batches_.clear();
}

}  // namespace hone
