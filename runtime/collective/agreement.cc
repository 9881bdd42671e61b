#include "runtime/collective/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace hone {

void require_same(Communicator& all, std::span<const std::pair<std::string, std::uint64_t>> hashes) {
  HONE_CHECK(hashes.size() <= 8, "more hashes at a time than all_gather deals out one by one");
  const std::size_t size = static_cast<std::size_t>(all.size()), count = hashes.size();
  std::vector<std::int64_t> gathered(size * count);
  for (std::size_t i = 0; i < count; ++i) gathered[static_cast<std::size_t>(all.rank()) * count + i] = static_cast<std::int64_t>(hashes[i].second);
  const ExchangedTensor tensor = {DType::kI64, static_cast<std::int64_t>(gathered.size()), gathered.data()};
  all.all_gather({&tensor, 1});
  for (std::size_t i = 0; i < count; ++i) {
    std::map<std::int64_t, std::size_t> votes;
    for (std::size_t rank = 0; rank < size; ++rank) ++votes[gathered[rank * count + i]];
    if (votes.size() == 1) continue;
    std::int64_t right = gathered[i];
    for (const auto& [hash, number] : votes)
      if (number > votes[right]) right = hash;
    std::vector<std::string> others;
    for (std::size_t rank = 0; rank < size; ++rank)
      if (gathered[rank * count + i] != right) others.push_back(std::to_string(rank));
    try {  // who has failed says so, which overtakes what it sent before: so none fails until all have the hashes
      all.barrier();
    } catch (const Error&) {  // another has gone on from it and failed: it had them all, and so has this one
    }
    throw Error(Code::kPeer, fmt::format("rank{} {} of {} {} {}", others.size() == 1 ? "" : "s", join(others, ", "), size, others.size() == 1 ? "has" : "have", hashes[i].first), {},
                {"all processes must train the same plan with the same recipe on the same data, and so have the same weights", "a run folder's checkpoints are sound: start again with --resume"});
  }
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

Error with_note(const Error& error, std::string note) {
  std::vector<Diag> diags = error.diags();
  diags.front().notes.push_back(std::move(note));
  return Error(std::move(diags));
}

}  // namespace hone
