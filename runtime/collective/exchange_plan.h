// How the tensors of one call travel between processes: each replica's part of them in chunks, of which large tensors have many, and many small ones share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collective/communicator.h"

namespace hone {

/// Elements [begin, end) of a tensor, which lie at `offset` bytes in a packed chunk.
struct ExchangedRun {
  std::size_t tensor = 0;
  std::int64_t begin = 0, end = 0;
  std::size_t offset = 0;
};

/// What travels as one message.
struct ExchangedChunk {
  std::size_t first_run = 0, runs = 0;
  std::size_t bytes = 0;
};

/// The same on all replicas, since all have tensors of the same types and sizes. Its memory is kept for the next call.
class ExchangePlan {
 public:
  /// Part p is what is replica p's own in reduce_scatter.
  void cut_into_parts(std::span<const ExchangedTensor> tensors, int size);
  /// Part p is everything, in one chunk, for each p.
  void keep_whole(std::span<const ExchangedTensor> tensors, int size);

  std::span<const ExchangedChunk> part(int rank) const;
  std::span<const ExchangedRun> runs(const ExchangedChunk& chunk) const { return std::span(runs_).subspan(chunk.first_run, chunk.runs); }

  /// The chunk's elements where they lie; null where they are not in one piece and must be packed.
  std::byte* in_place(const ExchangedChunk& chunk) const;
  void pack(const ExchangedChunk& chunk, std::byte* to) const;
  void unpack(const ExchangedChunk& chunk, const std::byte* from) const;

 private:
  void clear(std::span<const ExchangedTensor> tensors);
  void add(std::size_t tensor, std::int64_t begin, std::int64_t end);
  void end_part();

  std::span<const ExchangedTensor> tensors_;  // the caller's
  std::vector<ExchangedRun> runs_;
  std::vector<ExchangedChunk> chunks_;
  std::vector<std::size_t> ends_;  // of the parts, in chunks_
  bool whole_ = false;
  bool open_ = false;  // the last chunk may get more
};

}  // namespace hone
