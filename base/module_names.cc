#include "base/module_names.h"

#include <algorithm>

#include "base/text.h"

namespace hone {

namespace {

/// "fc" for "fc_1" and "fc_1_2"; a name that is a number and nothing else stays.
std::string_view without_number(std::string_view name) {
  for (std::size_t line = name.rfind('_'); line != std::string_view::npos and line > 0 and line + 1 < name.size(); line = name.rfind('_')) {
    if (name.find_first_not_of("0123456789", line + 1) != std::string_view::npos) break;
    name = name.substr(0, line);
  }
  return name;
}

}  // namespace

std::string without_calls(std::string_view layer) {
  std::string result;
  for (const std::string& name : split(layer, '/')) result += (result.empty() ? "" : "/") + std::string(without_number(name));
  return result;
}

std::string module_name(std::string_view layer) {
  std::string result, before;
  for (const std::string& name : split(layer, '/')) {
    const bool repeats = not before.empty() and name.starts_with(before + ".");
    result += (result.empty() ? "" : ".") + (repeats ? name.substr(before.size() + 1) : name);
    before = without_number(name);
  }
  return result;
}

bool is_further_call(std::string_view called, std::string_view module) {
  const std::vector<std::string> calls = split(called, '.'), names = split(module, '.');
  if (calls == names or calls.size() != names.size()) return false;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (calls[i] != names[i] and (not calls[i].starts_with(names[i] + "_") or without_number("x" + calls[i].substr(names[i].size())) != "x")) return false;
  return true;
}

std::string ancestor_like(std::string_view parameter, std::string_view module) {
  auto depth = std::count(module.begin(), module.end(), '.') + 1;
  for (std::size_t i = 0; i < parameter.size(); ++i)
    if (parameter[i] == '.' and --depth == 0) return std::string(parameter.substr(0, i));
  return {};
}

}  // namespace hone
