// hone-dump --summary: a model as a table, and what training it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inspect/describe.h"

namespace hone {

/// Keras's table (output shapes with None for sizes that are open, parameters), and the arithmetic of each layer. Of a plan also: whether a gradient flows through it, the arithmetic of the
/// backward pass, what is kept of it for that, and what runs it; then totals, the memory of a training step at the batch, and the largest batch that fits into `memory_limit` bytes.
std::string summary_text(const Contents& contents, const DescribeOptions& options, std::optional<std::int64_t> memory_limit = std::nullopt);

}  // namespace hone
