// What each host function takes: every one has its rules beside it. A step that comes from a file is held against them before the function runs, which relies on them.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/call_rules.h"
#include "host/functions.h"

namespace hone {

/// Types and sizes, without data; null: absent.
using HostTypes = std::span<const HostTensor* const>;

struct HostRules {
  CallRules call;
  /// Of a call that they allow: "", or which sizes and attributes do not go together.
  std::string (*fits)(const HostAttributes& attributes, HostTypes operands, HostTypes results);
};

/// Of the function of that name; null if there is none.
const HostRules* find_host_rules(std::string_view function);

}  // namespace hone

namespace hone::host {
#define HONE_DECLARE_HOST_RULES(name) extern const HostRules name##_rules;
HONE_HOST_FUNCTIONS(HONE_DECLARE_HOST_RULES)
#undef HONE_DECLARE_HOST_RULES

// The types that functions are written for.
inline constexpr DTypes kHeldTypes = {DType::kF32, DType::kF64, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool};
inline constexpr DTypes kPositions = {DType::kI64};
inline constexpr AttributeRule kAxisRule = {.name = "axis", .least = 0};
inline constexpr AttributeRule flag_rule(std::string_view name) { return {.name = name, .least = 0, .most = 1}; }

/// "", or that there is no such axis.
std::string why_no_axis(const HostAttributes& attributes, const HostTensor& x);
/// "", or that the tensor, unless it is absent, has not so many elements.
std::string why_no_count(std::string_view name, const HostTensor* tensor, std::int64_t count);
/// "", or that the two have different shapes.
std::string why_no_same_shape(std::string_view name, const HostTensor* tensor, const HostTensor& like);
/// The first that says something.
std::string first_of(std::initializer_list<std::string> reasons);
/// Null where it is left out at the end, too.
inline const HostTensor* at(HostTypes tensors, std::size_t i) { return i < tensors.size() ? tensors[i] : nullptr; }
/// "", or that results which nobody reads are left out, not absent: the function counts on the number of them.
std::string why_no_results(HostTypes results, std::size_t count);
}  // namespace hone::host
