// What ONNX itself has.
#pragma once

#include <span>
#include <string_view>

namespace hone::onnx {

/// Operators that the standard's default domain has or had, supported or not, sorted.
std::span<const std::string_view> standard_operators();

}  // namespace hone::onnx
