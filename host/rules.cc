#include "host/rules.h"

#include <fmt/format.h>

#include "base/text.h"

namespace hone {

const HostRules* find_host_rules(std::string_view function) {
#define HONE_HOST_RULES(each) \
  if (host::each.name == function) return &host::each##_rules;
  HONE_HOST_FUNCTIONS(HONE_HOST_RULES)
#undef HONE_HOST_RULES
  return nullptr;
}

namespace host {

std::string why_no_axis(const HostAttributes& attributes, const HostTensor& x) {
  const std::int64_t axis = attributes.integer("axis"), rank = static_cast<std::int64_t>(x.shape.size());
  return axis >= 0 and axis < rank ? "" : fmt::format("axis {} of {}", axis, rank);
}

std::string why_no_count(std::string_view name, const HostTensor* tensor, std::int64_t count) {
  if (tensor == nullptr or tensor->element_count() == count) return "";
  return fmt::format("{} has {} elements, and must have {}", name, tensor->element_count(), count);
}

std::string why_no_same_shape(std::string_view name, const HostTensor* tensor, const HostTensor& like) {
  if (tensor == nullptr or tensor->shape == like.shape) return "";
  return fmt::format("{} is {}, and must be {}", name, shape_text(tensor->shape), shape_text(like.shape));
}

std::string why_no_results(HostTypes results, std::size_t count) { return results.size() == count ? "" : fmt::format("there are {} results, and must be {}", results.size(), count); }

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (not reason.empty()) return reason;
  return "";
}

}  // namespace host

}  // namespace hone
