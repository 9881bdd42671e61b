#include "inspect/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "inspect/clean_text.h"
#include "inspect/scene.h"

namespace hone {

namespace {

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/// Hexadecimal digits as base64, for hashes in a policy.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  unsigned bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4 | static_cast<unsigned>(digit(c));
    for (count += 4; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

Json scenes_of(const Json& description) {
  Json scenes = Json::object();
  const auto graph = description.find("graph");
  if (graph == description.end()) return scenes;
  scenes["nodes"] = to_json(build_scene(pieces_of_graph(*graph)));
  if (description.contains("program"))
    for (const Json& entry : description["program"]["entries"])
      if (entry["name"] == description["stage"] and not entry["steps"].empty()) scenes["kernels"] = to_json(build_scene(pieces_of_schedule(entry, *graph)));
  return scenes;
}

}  // namespace

std::string json_for_page(const Json& json) {
  std::string safe;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<' or c == '>' or c == '&') safe += fmt::format("\\u{:04x}", static_cast<unsigned>(c));  // outside of strings JSON has none
    else safe += c;
  }
  return safe;
}

std::string to_html(const Json& description) {
  const std::string policy = fmt::format("default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'", base64_of_hex(kPage_style_sha256),
                                         base64_of_hex(kPage_script_sha256));
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta http-equiv=\"Content-Security-Policy\" content=\"" + policy + "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += "<title>" + markup_text(description["name"].get<std::string>()) + "</title>\n<style>" + std::string(kPage_style) + "</style>\n</head>\n<body>\n" + std::string(kPage_html);
  page += "<script type=\"application/json\" id=\"description\">" + json_for_page(description) + "</script>\n";
  page += "<script type=\"application/json\" id=\"scenes\">" + json_for_page(scenes_of(description)) + "</script>\n";
  return page + "<script>" + std::string(kPage_script) + "</script>\n</body>\n</html>\n";
}

}  // namespace hone
