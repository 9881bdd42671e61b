#include "base/call_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/text.h"

namespace hone {

namespace {

using Tensors = std::vector<std::optional<CallTypes::Tensor>>;

std::string names_of(const DTypes& types) {
  std::vector<std::string> names;
  for (const DType dtype : types) names.emplace_back(to_string(dtype));
  return join(names, ", ");
}

std::string range_text(std::size_t least, std::size_t most) { return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most); }

const CallTypes::Tensor* tensor_at(const Tensors& tensors, int number) {
  const auto i = static_cast<std::size_t>(number);
  return number >= 0 and i < tensors.size() and tensors[i] ? &*tensors[i] : nullptr;
}

/// `operands`: what `like` and `rank_like` mean.
std::string why_no_tensor(const TensorRule& rule, std::string_view kind, const CallTypes::Tensor& tensor, const Tensors& operands) {
  const std::string which = fmt::format("{} {}", kind, rule.name);
  if (const auto* like = tensor_at(operands, rule.like); like != nullptr and tensor.dtype != like->dtype and not(rule.or_f32 and tensor.dtype == DType::kF32))
    return fmt::format("{} is {}, and must be {}{}", which, to_string(tensor.dtype), to_string(like->dtype), rule.or_f32 and like->dtype != DType::kF32 ? " or f32" : "");
  if (not rule.types.empty() and std::find(rule.types.begin(), rule.types.end(), tensor.dtype) == rule.types.end())
    return fmt::format("{} is {}, and must be one of {}", which, to_string(tensor.dtype), names_of(rule.types));
  if (tensor.rank < rule.least_rank or tensor.rank > rule.most_rank) return fmt::format("{} has {} axes, and must have {}", which, tensor.rank, range_text(rule.least_rank, rule.most_rank));
  if (const auto* like = tensor_at(operands, rule.rank_like); like != nullptr and tensor.rank != like->rank) return fmt::format("{} has {} axes, and must have {}", which, tensor.rank, like->rank);
  return "";
}

std::string why_no_tensors(std::span<const TensorRule> rules, std::string_view kind, const Tensors& tensors, const Tensors& operands) {
  if (tensors.size() > rules.size()) return fmt::format("there are {} {}s, and must be at most {}", tensors.size(), kind, rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const bool is_there = i < tensors.size() and tensors[i].has_value();
    if (not is_there and not rules[i].optional) return fmt::format("{} {} is missing", kind, rules[i].name);
    if (not is_there) continue;
    if (std::string why = why_no_tensor(rules[i], kind, *tensors[i], operands); not why.empty()) return why;
  }
  return "";
}

std::string why_no_attribute(const AttributeRule& rule, const CallTypes& call) {
  const auto found = call.attributes.find(rule.name);
  if (found == call.attributes.end()) return rule.required ? fmt::format("attribute {} is missing", rule.name) : "";
  const CallTypes::Tensor* const first = tensor_at(call.operands, 0);
  const std::size_t count = rule.count == AttributeRule::Count::kOne ? 1 : first != nullptr and first->rank > 2 ? first->rank - 2 : 0;
  if (rule.count != AttributeRule::Count::kAny and found->second.size() != count) return fmt::format("attribute {} has {} numbers, and must have {}", rule.name, found->second.size(), count);
  for (const std::optional<std::int64_t>& number : found->second)
    if (number and (*number < rule.least or *number > rule.most)) return fmt::format("attribute {} is {}, and must be {} to {}", rule.name, *number, rule.least, rule.most);
  return "";
}

}  // namespace

std::string why_not(const CallRules& rules, const CallTypes& call) {
  if (std::string why = why_no_tensors({rules.operands.begin(), rules.operands.end()}, "operand", call.operands, call.operands); not why.empty()) return why;
  if (std::string why = why_no_tensors({rules.results.begin(), rules.results.end()}, "result", call.results, call.operands); not why.empty()) return why;
  for (const AttributeRule& rule : rules.attributes)
    if (std::string why = why_no_attribute(rule, call); not why.empty()) return why;
  return "";
}

}  // namespace hone
