// Operator versions, in one place: a node of an old opset takes its newest form before its importer sees it.
#pragma once

#include <cstdint>
#include <string_view>

#include "frontend/onnx/node.h"

namespace hone::onnx {

/// Opsets of the standard domain that can be imported.
inline constexpr std::int64_t kOldestOpset = 1;
inline constexpr std::int64_t kNewestOpset = 28;

/// Attribute that versions.cc gives to operators whose `axis` once meant "this axis and all behind it, as one".
inline constexpr std::string_view kOverAllAxesFrom = "over all axes from";

/// Attribute that versions.cc gives to resizing from before coordinates could be chosen: asymmetric ones, nearest by "simple" rounding.
inline constexpr std::string_view kSimpleResize = "simple resize";
/// Attribute that versions.cc gives to RoiAlign from before coordinates could be chosen.
inline constexpr std::string_view kOutputHalfPixel = "output half pixel";

/// Makes the newest form of `node`, which was written for `opset`. Throws Error for old forms that have no newer one.
void to_newest_form(ImportNode& node, std::int64_t opset);

}  // namespace hone::onnx
