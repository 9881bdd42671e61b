// Do replicas that see each other's tensors exchange the same ones?
#pragma once

#include <span>

#include "runtime/collective/communicator.h"
#include "runtime/collective/thread_meeting.h"

namespace hone {

/// `tensors` by replica, as all of them see it. Throws InternalError in each of them if number, types, sizes or buckets differ: sums of what is not the same would read past the end.
void require_same_tensors(std::span<const std::span<const ExchangedTensor>> tensors, ThreadMeeting& meeting);

}  // namespace hone
