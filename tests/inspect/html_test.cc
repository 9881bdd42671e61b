// The HTML page as a file: it holds the description, and asks for nothing outside of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/tools/run_tool.h"
#include "tests/support/tools/small_files.h"

namespace hone::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// What stands between the tags of the script with this id.
std::string data_of(const std::string& page, const std::string& id) {
  const std::string tag = "id=\"" + id + "\">";
  const std::size_t begin = page.find(tag) + tag.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(DumpHtml, HoldsTheDescription) {
  TempFolder folder;
  write_conv_plan(folder);
  const std::string page = run_well(folder.path(), "hone-dump conv.hone --as html").out;
  EXPECT_EQ(json::parse(data_of(page, "description")), json::parse(run_well(folder.path(), "hone-dump conv.hone --as json").out));
}

TEST(DumpHtml, AsksForNothingOutsideOfItself) {
  TempFolder folder;
  write_conv_net(folder);
  const std::string page = run_well(folder.path(), "hone-dump conv.onnx --as html").out;
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const std::string way : {"http://", "https://", "src=", "@import", "url(", "fetch(", "XMLHttpRequest"}) EXPECT_THAT(page, Not(HasSubstr(way)));
}

}  // namespace
}  // namespace hone::test
