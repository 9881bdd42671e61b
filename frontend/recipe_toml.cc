#include "frontend/recipe_toml.h"

#include <algorithm>

#define TOML_ENABLE_FORMATTERS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/files.h"
#include "base/text.h"

namespace hone {

namespace {

using Kind = RecipeValue::Kind;

constexpr std::string_view kSections[] = {"model", "lora", "loss", "optimizer", "schedule", "metrics", "data", "train"};

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

class Reader {
 public:
  explicit Reader(std::string file) { source_.file = std::move(file); }

  void read_sections(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (const toml::table* section = node.as_table()) read_section(name, *section, line_of(node));
      else refuse_outside_section(name, line_of(node));
    }
  }
  RecipeSource take() {
    diags_.throw_if_errors();
    return std::move(source_);
  }

 private:
  Loc at(int line) const {
    Loc loc;
    loc.file = source_.file;
    loc.line = line;
    return loc;
  }
  void refuse_outside_section(const std::string& name, int line);
  void read_section(const std::string& name, const toml::table& section, int line);
  void read_keys(const std::string& name, const toml::table& table);
  bool read_value(const std::string& key, const toml::node& node, RecipeValue* value);
  bool read_list(const std::string& key, const toml::array& list, RecipeValue* value);
  bool refuse(const std::string& key, const toml::node& what, std::string_view expected);

  RecipeSource source_;
  Diags diags_;
};

void Reader::refuse_outside_section(const std::string& name, int line) {
  std::string hint = "keys stand in sections: [model], [lora], [loss], [optimizer], [schedule], [metrics], [data], [train]";
  for (const RecipeKey& key : recipe_keys())
    if (key.name.substr(key.name.find('.') + 1) == name) hint = fmt::format("it belongs into [{}]", key.name.substr(0, key.name.find('.')));
  diags_.error(Code::kRecipeKey, fmt::format("{} stands outside of any section", quoted(name)), at(line), {hint});
}

void Reader::read_section(const std::string& name, const toml::table& section, int line) {
  if (std::find(std::begin(kSections), std::end(kSections), name) == std::end(kSections)) {
    const std::vector<std::string> all(std::begin(kSections), std::end(kSections));
    const std::string hint = did_you_mean(name, all);
    diags_.error(Code::kRecipeKey, fmt::format("the recipe has no section {}", quoted(name)), at(line),
                 {hint.empty() ? "the sections are " + join(all, ", ") : hint});
    return;
  }
  read_keys(name, section);
}

/// Is `name` a group of keys, such as model.dropout?
bool has_keys_below(const std::string& name) {
  const auto& keys = recipe_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const RecipeKey& key) { return key.name.starts_with(name + "."); });
}

void Reader::read_keys(const std::string& name, const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string full = name + "." + std::string(key.str());
    if (const toml::table* group = node.as_table(); group != nullptr and has_keys_below(full)) {
      read_keys(full, *group);
      continue;
    }
    RecipeValue value;
    if (not read_value(full, node, &value)) continue;
    source_.values[full] = std::move(value);
    source_.lines[full] = line_of(node);
  }
}

bool Reader::refuse(const std::string& key, const toml::node& what, std::string_view expected) {
  diags_.error(Code::kRecipeValue, fmt::format("{}: {} cannot stand here", key, expected), at(line_of(what)),
               {"a value is a number, true or false, a \"text\", a list of texts or of numbers, or { name = number }"});
  return false;
}

/// A list is one of numbers if its first item is.
bool Reader::read_list(const std::string& key, const toml::array& list, RecipeValue* value) {
  const auto is_number = [](const toml::node& item) { return item.is_integer() or item.is_floating_point(); };
  const bool of_numbers = not list.empty() and is_number(*list.get(0));
  value->kind = of_numbers ? Kind::kNumberList : Kind::kStrings;
  for (const toml::node& item : list) {
    if (of_numbers and not is_number(item)) return refuse(key, item, "an item that is no number");
    if (not of_numbers and not item.is_string()) return refuse(key, item, "an item that is no text");
    if (of_numbers) value->number_list.push_back(*item.value<double>());
    else value->strings.push_back(*item.value<std::string>());
  }
  return true;
}

bool Reader::read_value(const std::string& key, const toml::node& node, RecipeValue* value) {
  if (const auto boolean = node.as_boolean()) {
    *value = {.kind = Kind::kBool, .boolean = boolean->get()};
  } else if (const auto integer = node.as_integer()) {
    *value = {.kind = Kind::kInt, .integer = integer->get()};
  } else if (const auto number = node.as_floating_point()) {
    *value = {.kind = Kind::kFloat, .number = number->get()};
  } else if (const auto text = node.as_string()) {
    *value = {.kind = Kind::kString, .string = text->get()};
  } else if (const toml::array* list = node.as_array()) {
    return read_list(key, *list, value);
  } else if (const toml::table* table = node.as_table()) {
    value->kind = Kind::kNumbers;
    for (const auto& [name, item] : *table) {
      const auto number = item.value<double>();
      if (not number or item.is_string() or item.is_boolean()) return refuse(key, item, "a table entry that is no number");
      value->numbers[std::string(name.str())] = *number;
    }
  } else {
    return refuse(key, node, "a date or time");
  }
  return true;
}

}  // namespace

RecipeSource parse_recipe(std::string_view text, const std::string& name) {
  Reader reader(name);
  try {
    reader.read_sections(toml::parse(text, name));
  } catch (const toml::parse_error& problem) {
    Loc loc;
    loc.file = name;
    loc.line = static_cast<int>(problem.source().begin.line);
    throw Error(Code::kRecipeSyntax, fmt::format("not TOML: {}", printable(problem.description())), std::move(loc),
                {"texts stand in double quotes, sections in [brackets]; see https://toml.io"});
  }
  return reader.take();
}

RecipeSource read_recipe(const std::string& path) { return parse_recipe(read_file(path), path == "-" ? "standard input" : path); }

}  // namespace hone
