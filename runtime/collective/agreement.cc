#include "runtime/collective/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/text.h"

namespace hone {

namespace {

/// Which have another hash than most; of two, the second.
std::vector<std::string> others_than_most(std::span<const std::uint64_t> hashes) {
  std::map<std::uint64_t, std::size_t> votes;
  for (const std::uint64_t hash : hashes) ++votes[hash];
  std::uint64_t right = hashes.front();
  for (const auto& [hash, number] : votes)
    if (number > votes[right]) right = hash;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    if (hashes[i] != right) others.push_back(std::to_string(i));
  return others;
}

/// "rank 1 of 4 has another plan".
std::string who_has(std::string_view who, const std::vector<std::string>& others, std::size_t all, std::string_view what) {
  const bool one = others.size() == 1;
  return fmt::format("{}{} {} of {} {} {}", who, one ? "" : "s", join(others, ", "), all, one ? "has" : "have", what);
}

}  // namespace

void require_same(Communicator& all, std::span<const std::pair<std::string, std::uint64_t>> hashes) {
  const std::size_t size = static_cast<std::size_t>(all.size()), count = hashes.size();
  std::vector<std::uint64_t> own, of_ranks(size);
  for (const auto& [what, hash] : hashes) own.push_back(hash);
  const std::vector<std::uint64_t> gathered = numbers_of_all(all, own);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t rank = 0; rank < size; ++rank) of_ranks[rank] = gathered[rank * count + i];
    const std::vector<std::string> others = others_than_most(of_ranks);
    if (others.empty()) continue;
    try {  // who has failed says so, which overtakes what it sent before: so none fails until all have the hashes
      all.barrier();
    } catch (const Error&) {  // another has gone on from it and failed: it had them all, and so has this one
    }
    throw Error(Code::kPeer, who_has("rank", others, size, hashes[i].first), {},
                {"all processes must train the same plan with the same recipe on the same data, and so have the same weights", "a run folder's checkpoints are sound: start again with --resume"});
  }
}

void require_same_here(std::span<const std::uint64_t> hashes, std::string_view what) {
  const std::vector<std::string> others = others_than_most(hashes);
  if (others.empty()) return;
  throw Error(Code::kPeer, who_has("replica", others, hashes.size(), fmt::format("{} in this process", what)), {},
              {"memory that was written from elsewhere, or that is faulty: all replicas make the same updates", "a run folder's checkpoints are sound: start again with --resume"});
}

std::vector<std::uint64_t> numbers_of_all(Communicator& all, std::span<const std::uint64_t> own) {
  HONE_CHECK(own.size() <= 8, "more numbers at a time than all_gather deals out one by one");
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(all.size()) * own.size());
  std::ranges::copy(own, numbers.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(all.rank()) * own.size()));
  const ExchangedTensor tensor = {DType::kI64, static_cast<std::int64_t>(numbers.size()), numbers.data()};
  all.all_gather({&tensor, 1});
  return numbers;
}

std::string text_of_first(Communicator& all, std::string text) {
  auto length = static_cast<std::int64_t>(text.size());
  const ExchangedTensor length_tensor = {DType::kI64, 1, &length};
  all.broadcast({&length_tensor, 1}, 0);
  text.resize(static_cast<std::size_t>(length));
  const ExchangedTensor bytes = {DType::kU8, length, text.data()};
  all.broadcast({&bytes, 1}, 0);
  return text;
}

}  // namespace hone
