#include "base/untrusted_json.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

std::string nested(int levels, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += "1";
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

TEST(UntrustedJson, IsReadAsItIs) {
  EXPECT_EQ(parse_untrusted_json<Json>(R"({"a":[1,{"b":"]}["}]})")["a"][1]["b"], "]}[");
  EXPECT_EQ(parse_untrusted_json<Json>("3"), 3);
  for (const char* text : {"", "[", "{\"a\":}", "nonsense", "]]]]", "\"\\"}) EXPECT_TRUE(parse_untrusted_json<Json>(text).is_discarded()) << text;
}

TEST(UntrustedJson, NestedTooDeeplyIsNone) {
  EXPECT_FALSE(parse_untrusted_json<Json>(nested(kJsonDepth, "[", "]")).is_discarded());
  EXPECT_FALSE(parse_untrusted_json<Json>(nested(kJsonDepth, "{\"a\":", "}")).is_discarded());
  for (const int levels : {kJsonDepth + 1, 1'000'000}) {
    EXPECT_TRUE(parse_untrusted_json<Json>(nested(levels, "[", "]")).is_discarded()) << levels;
    EXPECT_TRUE(parse_untrusted_json<Json>(nested(levels, "{\"a\":", "}")).is_discarded()) << levels;
  }
}

TEST(UntrustedJson, BracketsInTextsDoNotCount) {
  const std::string brackets = "[\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"]";
  EXPECT_FALSE(is_nested_deeper(brackets, 1));
  EXPECT_EQ(parse_untrusted_json<Json>(brackets)[0].get<std::string>().size(), 2001U);
}

}  // namespace
}  // namespace hone
