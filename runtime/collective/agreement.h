// What processes make sure of before and while they train together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diag.h"
#include "runtime/collective/communicator.h"

namespace hone {

/// Throws kPeer, the same on all replicas, if one of these hashes is not the same everywhere: which ranks have another one than most (of two ranks, the second), and what they have ("another plan"). At most 8.
void require_same(Communicator& all, std::span<const std::pair<std::string, std::uint64_t>> hashes);

/// Throws kPeer if one of the replicas of this process has another hash of `what` than most.
void require_same_here(std::span<const std::uint64_t> hashes, std::string_view what);

/// The numbers of each process, one process's behind the other's, by rank. All give as many, 8 at most.
std::vector<std::uint64_t> numbers_of_all(Communicator& all, std::span<const std::uint64_t> own);

/// The text that the first one has.
std::string text_of_first(Communicator& all, std::string text);

}  // namespace hone
