// The metadata of a plan as protobuf, and back. Bytes (weights, code, the model, texts) stay outside, as numbered sections of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/diag.h"
#include "runtime/plan/plan.h"

namespace hone::plan {

/// Puts bytes into the file being written and returns their section number, which is never 0. The bytes must hold still until the file is written.
using AddBlob = std::function<std::uint32_t(std::span<const std::byte>)>;
/// The bytes of a section; throws Error kPlanFormat when there is no such section, or it is not a blob.
using ReadBlob = std::function<std::span<const std::byte>(std::uint32_t)>;

/// kPlanFormat with a way out, for what no compiler writes.
Error unsound_plan(const std::string& what);

/// The same plan always gives the same bytes.
std::string write_metadata(const Plan& plan, const AddBlob& add_blob);

/// Structure only; check() looks at what the numbers refer to. Throws Error kPlanFormat.
Plan read_metadata(std::span<const std::byte> bytes, const ReadBlob& read_blob);

}  // namespace hone::plan
