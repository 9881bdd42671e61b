// What a plan says of a call before sizes are known.
#pragma once

#include "base/call_rules.h"
#include "runtime/plan/plan.h"

namespace hone::plan {

CallTypes call_types(const Entry& entry, const LibraryStep& step);
CallTypes call_types(const Entry& entry, const LibraryStep::Epilogue& epilogue);
CallTypes call_types(const Entry& entry, const HostStep& step);

}  // namespace hone::plan
