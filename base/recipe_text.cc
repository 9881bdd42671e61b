// The recipe's two text forms beside TOML: --set KEY=VALUE, and JSON, in which a resolved recipe travels.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/recipe_tables.h"
#include "base/text.h"
#include "base/untrusted_json.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;
using Kind = RecipeValue::Kind;

constexpr std::string_view kIgnoreIndex = "loss.ignore_index";  // the one key that may be absent from a resolved recipe

/// `text`, if all of it is a number.
template <typename T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} or end != text.data() + text.size() or text.empty()) return std::nullopt;
  return number;
}

std::string unquoted(std::string_view text) {
  const bool in_quotes = text.size() >= 2 and (text.front() == '"' or text.front() == '\'') and text.back() == text.front();
  return std::string(in_quotes ? text.substr(1, text.size() - 2) : text);
}

/// The pieces between commas that stand in no quotes and no brackets; a last empty one (trailing comma, empty list) is left out.
std::vector<std::string> list_items(std::string_view text) {
  std::vector<std::string> items(1);
  char quote = 0;
  int depth = 0;
  for (const char c : text) {
    if (quote != 0) quote = c == quote ? 0 : quote;
    else if (c == '"' or c == '\'') quote = c;
    else if (c == '[' or c == '{') ++depth;
    else if (c == ']' or c == '}') --depth;
    if (c == ',' and quote == 0 and depth == 0) items.emplace_back();
    else items.back() += c;
  }
  for (std::string& item : items) item = std::string(trim(item));
  if (items.back().empty()) items.pop_back();
  return items;
}

/// A list of texts; of numbers, if all are.
RecipeValue list_from_text(std::string_view text) {
  RecipeValue value{.kind = Kind::kStrings};
  for (const std::string& item : list_items(text)) {
    if (const auto number = number_in<double>(item)) value.number_list.push_back(*number);
    value.strings.push_back(unquoted(item));
  }
  if (value.strings.empty() or value.number_list.size() < value.strings.size()) return {.kind = Kind::kStrings, .strings = value.strings};
  return {.kind = Kind::kNumberList, .number_list = value.number_list};
}

RecipeValue value_from_text(std::string_view text) {
  RecipeValue value;
  if (text == "true" or text == "false") {
    value.kind = Kind::kBool;
    value.boolean = text == "true";
  } else if (const auto integer = number_in<std::int64_t>(text)) {
    value.kind = Kind::kInt;
    value.integer = *integer;
  } else if (const auto number = number_in<double>(text)) {
    value.kind = Kind::kFloat;
    value.number = *number;
  } else if (text.starts_with('[') and text.ends_with(']') and text.size() >= 2) {
    value = list_from_text(text.substr(1, text.size() - 2));
  } else {
    value.kind = Kind::kString;
    value.string = unquoted(text);
  }
  return value;
}

/// A key such as data.scale.images: the key data.scale and the name in it.
std::optional<std::pair<std::string, std::string>> name_in_table(std::string_view key) {
  for (const RecipeKey& known : recipe_keys())
    if (known.kind == Kind::kNumbers and key.size() > known.name.size() + 1 and key.starts_with(known.name) and key[known.name.size()] == '.')
      return std::pair(std::string(known.name), unquoted(key.substr(known.name.size() + 1)));
  return std::nullopt;
}

Json json_of(const RecipeValue& value) {
  switch (value.kind) {
    case Kind::kBool: return value.boolean;
    case Kind::kInt: return value.integer;
    case Kind::kFloat: return value.number;
    case Kind::kString: return value.string;
    case Kind::kStrings: return value.strings;
    case Kind::kNumbers: return value.numbers.empty() ? Json::object() : Json(value.numbers);
    case Kind::kNumberList: return value.number_list;
  }
  return nullptr;
}

std::optional<RecipeValue> value_of_json(const Json& json) {
  RecipeValue value;
  if (json.is_boolean()) {
    value.boolean = json.get<bool>();
  } else if (json.is_number_integer()) {
    value.kind = Kind::kInt;
    value.integer = json.get<std::int64_t>();
  } else if (json.is_number()) {
    value.kind = Kind::kFloat;
    value.number = json.get<double>();
  } else if (json.is_string()) {
    value.kind = Kind::kString;
    value.string = json.get<std::string>();
  } else if (json.is_array() and not json.empty() and json.front().is_number()) {
    value.kind = Kind::kNumberList;
    for (const Json& item : json) {
      if (not item.is_number()) return std::nullopt;
      value.number_list.push_back(item.get<double>());
    }
  } else if (json.is_array()) {
    value.kind = Kind::kStrings;
    for (const Json& item : json) {
      if (not item.is_string()) return std::nullopt;
      value.strings.push_back(item.get<std::string>());
    }
  } else if (json.is_object()) {
    value.kind = Kind::kNumbers;
    for (const auto& [name, number] : json.items()) {
      if (not number.is_number()) return std::nullopt;
      value.numbers[name] = number.get<double>();
    }
  } else {
    return std::nullopt;
  }
  return value;
}

void read_key(const std::string& name, const Json& json, Recipe* recipe) {
  const RecipeKey* key = find_recipe_key(name);
  if (key == nullptr)
    throw Error(Code::kRecipeKey, fmt::format("the stored recipe has the key {}, which this version does not know", hone::quoted(name)), {},
                {"use the version of Hone that wrote it, or compile again"});
  const auto value = value_of_json(json);
  const auto converted = value ? convert(*value, key->kind) : std::nullopt;
  if (not converted)
    throw Error(Code::kRecipeValue, fmt::format("in the stored recipe {} is not {}", name, describe(key->kind)), {}, {"the file is damaged; compile again"});
  const bool is_default = to_text(*converted) == to_text(key->get(Recipe{}));  // keys that an optimizer has not are as they were made
  if (auto problem = is_default ? std::nullopt : problem_of(*key, *converted)) {
    std::erase(problem->notes, "");
    problem->notes.emplace_back("the recipe was stored so; the file is damaged, or another version wrote it: compile again");
    throw Error(Code::kRecipeValue, std::move(problem->message), {}, std::move(problem->notes));
  }
  key->set(*recipe, *converted);
}

bool is_inline_table(std::string_view text) { return text.size() >= 2 and text.starts_with('{') and text.ends_with('}'); }

/// KEY={a=1,b=2}: KEY.a=1 and KEY.b=2, and nothing else below KEY.
void add_inline_table(RecipeSource& source, const std::string& key, std::string_view table) {
  const RecipeKey* known = find_recipe_key(key);
  source.values.erase(key);
  std::erase_if(source.values, [&](const auto& value) { return value.first.starts_with(key + "."); });
  const bool has_keys_below = std::ranges::any_of(recipe_keys(), [&](const RecipeKey& each) { return each.name.starts_with(key + "."); });
  if (known != nullptr or not has_keys_below) source.values[key] = {.kind = Kind::kNumbers}, source.lines.erase(key);  // where no table belongs, it is refused as one
  for (const std::string& item : list_items(table)) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos or is_inline_table(trim(std::string_view(item).substr(equals + 1))))
      throw Error(Code::kUsage, fmt::format("--set {}: {} is no NAME=VALUE within {{ }}", hone::quoted(key), hone::quoted(item)), {}, {fmt::format("for example --set '{}={{NAME=0.5}}', or --set {}.NAME=0.5", key, key)});
    add_override(source, fmt::format("{}.{}", key, item));
  }
}

}  // namespace

void add_override(RecipeSource& source, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string key(trim(assignment.substr(0, equals)));
  if (equals == std::string_view::npos or key.empty())
    throw Error(Code::kUsage, fmt::format("--set {}: expected KEY=VALUE", hone::quoted(assignment)), {}, {"for example --set optimizer.learning_rate=0.01"});
  const std::string_view text = trim(assignment.substr(equals + 1));
  if (is_inline_table(text)) return add_inline_table(source, key, text.substr(1, text.size() - 2));
  const RecipeValue value = value_from_text(text);
  const auto in_table = name_in_table(key);
  const auto number = convert(value, Kind::kFloat);
  if (in_table and number) {
    RecipeValue& table = source.values[in_table->first];
    table.kind = Kind::kNumbers;
    table.numbers[in_table->second] = number->number;
    source.lines.erase(in_table->first);
    return;
  }
  source.values[key] = value;
  source.lines.erase(key);  // the line in the file is no longer what counts
}

std::string to_json(const Recipe& recipe) {
  Json json;
  for (const RecipeKey& key : recipe_keys()) {
    if (key.name == kIgnoreIndex and not recipe.loss.has_ignore_index) continue;
    const std::size_t dot = key.name.find('.');
    json[std::string(key.name.substr(0, dot))][std::string(key.name.substr(dot + 1))] = json_of(key.get(recipe));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

Recipe recipe_from_json(std::string_view text) {
  const Json json = parse_untrusted_json<Json>(text);
  if (not json.is_object()) throw Error(Code::kRecipeSyntax, "the stored recipe is no JSON object", {}, {"the file is damaged; compile again"});
  Recipe recipe;
  for (const auto& [section, keys] : json.items()) {
    if (not keys.is_object())
      throw Error(Code::kRecipeSyntax, fmt::format("the stored recipe has {} where a section belongs", hone::quoted(section)), {},
                  {"the file is damaged; compile again"});
    for (const auto& [name, value] : keys.items()) read_key(section + "." + name, value, &recipe);
  }
  return recipe;
}

}  // namespace hone
