// What a caller gives at each call, held against what the entry declares. Data are not trusted: all of this is checked at every call.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/session.h"

namespace hone {

using NamedFeeds = std::span<const std::pair<std::string, TensorView>>;

/// A tensor of its own with what the view shows.
Tensor copy_of(const TensorView& view);

/// Finds each of the entry's feeds among `feeds`, in the entry's order, in `matched` (as long as entry.feeds).
/// One of kind kFirstSample may be left out: 0 stands for it.
/// Throws Error kDataName (missing, unknown, given twice) or kDataType.
void match_feeds(const plan::Entry& entry, NamedFeeds feeds, std::span<const TensorView*> matched);

/// Throws Error kDataShape for an equation of the entry whose sizes are all in `sizes`, and which does not hold.
void check_equations(const plan::Entry& entry, const DimBindings& sizes);

/// Checks every element of a feed that has bounds. Throws Error kDataRange naming the first one outside.
void check_bounds(const plan::Feed& feed, const TensorView& tensor);

}  // namespace hone
