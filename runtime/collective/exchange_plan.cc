#include "runtime/collective/exchange_plan.h"

#include <algorithm>
#include <cstring>

#include "base/alignment.h"
#include "runtime/device/team.h"

namespace hone {
namespace {

/// Large enough that a message's own cost is nothing beside its bytes, small enough that the chunks of some replicas stay in a core's cache until they are summed.
constexpr std::size_t kChunkBytes = std::size_t{512} << 10;
/// A tensor's piece of that size does not share a chunk: packing would cost more than a message.
constexpr std::size_t kAlone = std::size_t{64} << 10;
constexpr std::size_t kRunAlignment = 8;  // of runs in a packed chunk: the largest element's


}  // namespace

void ExchangePlan::clear(std::span<const ExchangedTensor> tensors) {
  tensors_ = tensors;
  runs_.clear();
  chunks_.clear();
  ends_.clear();
  open_ = false;
}

void ExchangePlan::end_part() {
  ends_.push_back(chunks_.size());
  open_ = false;
}

void ExchangePlan::add(std::size_t tensor, std::int64_t begin, std::int64_t end) {
  const std::size_t element = size_of(tensors_[tensor].dtype);
  const bool alone = not whole_ and static_cast<std::size_t>(end - begin) * element >= kAlone;
  if (alone) open_ = false;
  while (begin < end) {
    std::size_t offset = open_ ? round_up(chunks_.back().bytes, kRunAlignment, "a chunk") : 0;
    if (not whole_ and offset + element > kChunkBytes) open_ = false, offset = 0;
    if (not open_) chunks_.push_back({runs_.size(), 0, 0});
    const std::int64_t room = whole_ ? end - begin : static_cast<std::int64_t>((kChunkBytes - offset) / element);
    const std::int64_t until = std::min(end, begin + room);
    runs_.push_back({tensor, begin, until, offset});
    ++chunks_.back().runs;
    chunks_.back().bytes = offset + static_cast<std::size_t>(until - begin) * element;
    open_ = true;
    begin = until;
  }
  if (alone) open_ = false;
}

void ExchangePlan::cut_into_parts(std::span<const ExchangedTensor> tensors, int size) {
  clear(tensors);
  whole_ = false;
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const RangePiece piece = piece_of(tensors[i].count, size, rank);
      add(i, piece.begin, piece.end);
    }
    end_part();
  }
}

void ExchangePlan::keep_whole(std::span<const ExchangedTensor> tensors, int size) {
  clear(tensors);
  whole_ = true;
  for (std::size_t i = 0; i < tensors.size(); ++i) add(i, 0, tensors[i].count);
  ends_.assign(static_cast<std::size_t>(size), chunks_.size());
}

std::span<const ExchangedChunk> ExchangePlan::part(int rank) const {
  const std::size_t number = static_cast<std::size_t>(rank), begin = whole_ or rank == 0 ? 0 : ends_[number - 1];
  return std::span(chunks_).subspan(begin, ends_[number] - begin);
}

std::byte* ExchangePlan::in_place(const ExchangedChunk& chunk) const {
  if (whole_ or chunk.runs > 1) return nullptr;  // a whole one is summed where others still read it
  const ExchangedRun& run = runs_[chunk.first_run];
  return static_cast<std::byte*>(tensors_[run.tensor].data) + static_cast<std::size_t>(run.begin) * size_of(tensors_[run.tensor].dtype);
}

void ExchangePlan::pack(const ExchangedChunk& chunk, std::byte* to) const {
  for (const ExchangedRun& run : runs(chunk)) {
    const std::size_t element = size_of(tensors_[run.tensor].dtype);
    std::memcpy(to + run.offset, static_cast<const std::byte*>(tensors_[run.tensor].data) + static_cast<std::size_t>(run.begin) * element,
                static_cast<std::size_t>(run.end - run.begin) * element);
  }
}

void ExchangePlan::unpack(const ExchangedChunk& chunk, const std::byte* from) const {
  for (const ExchangedRun& run : runs(chunk)) {
    const std::size_t element = size_of(tensors_[run.tensor].dtype);
    std::memcpy(static_cast<std::byte*>(tensors_[run.tensor].data) + static_cast<std::size_t>(run.begin) * element, from + run.offset,
                static_cast<std::size_t>(run.end - run.begin) * element);
  }
}

}  // namespace hone
