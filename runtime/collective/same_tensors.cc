#include "runtime/collective/same_tensors.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"

namespace hone {
namespace {

std::string text_of(const ExchangedTensor& tensor) {
  return fmt::format("{} elements of {}{}", tensor.count, to_string(tensor.dtype), tensor.bucket < 0 ? "" : fmt::format(" in bucket {}", tensor.bucket));
}

/// Of another replica's from the first one's; "": none.
std::string difference(std::span<const ExchangedTensor> first, std::span<const ExchangedTensor> others, std::size_t other) {
  if (first.size() != others.size()) return fmt::format("replica 0 has {}, replica {} has {}", first.size(), other, others.size());
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i].dtype != others[i].dtype or first[i].count != others[i].count or first[i].bucket != others[i].bucket)
      return fmt::format("of {} number {} is {} in replica 0, and {} in replica {}", first.size(), i, text_of(first[i]), text_of(others[i]), other);
  return "";
}

}  // namespace

void require_same_tensors(std::span<const std::span<const ExchangedTensor>> tensors, ThreadMeeting& meeting) {
  for (std::size_t other = 1; other < tensors.size(); ++other) {
    const std::string what = difference(tensors.front(), tensors[other], other);
    if (what.empty()) continue;
    meeting.meet();  // all have seen it, and nobody looks at the others' tensors any more
    throw InternalError("replicas exchange different tensors: " + what + "; all must exchange the same buckets in the same order");
  }
}

}  // namespace hone
