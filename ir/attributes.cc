#include "ir/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hone {

namespace {
struct Printer {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }  // shortest text that reads back to the same double
  std::string operator()(const std::string& v) const {
    std::string quoted = "\"";
    for (const char c : v) quoted += (c == '"' or c == '\\' ? "\\" : "") + std::string(1, c);
    return quoted + "\"";
  }
  std::string operator()(DType v) const { return std::string(to_string(v)); }
  std::string operator()(const Ints& v) const { return fmt::format("[{}]", fmt::join(v, ",")); }
  std::string operator()(const Shape& v) const { return "[" + to_string(v) + "]"; }
};
bool is_empty(const AttrValue& value) {
  return std::visit([](const auto& v) { return v == std::decay_t<decltype(v)>{}; }, value) and value.index() != static_cast<std::size_t>(AttrKind::kDType);
}
}  // namespace

std::string to_string(const AttrValue& value) { return std::visit(Printer{}, value); }

std::map<std::string, std::vector<Dim>> attribute_lists(const Attrs& attrs) {
  std::map<std::string, std::vector<Dim>> lists;
  for (const auto& [name, attr] : attrs) {
    std::vector<Dim>& list = lists[std::string(name)];
    if (const auto* ints = std::get_if<Ints>(&attr.value)) list.assign(ints->begin(), ints->end());
    else if (const auto* number = std::get_if<std::int64_t>(&attr.value)) list = {*number};
    else if (const auto* flag = std::get_if<bool>(&attr.value)) list = {*flag ? 1 : 0};
    else if (const auto* dims = std::get_if<Shape>(&attr.value)) list = *dims;
    else lists.erase(std::string(name));
  }
  return lists;
}

std::string Attrs::text() const {
  std::string text;
  for (const auto& [name, attr] : values_)
    if (not is_empty(attr.value)) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, to_string(attr.value));
  return text.empty() ? "" : "{" + text + "}";
}

}  // namespace hone
