#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

#include "base/checked.h"
#include "tests/support/temp_folder.h"

namespace hone {
namespace {

const std::vector<std::string> kKeys = {"epochs", "batch_size", "learning_rate", "seed", "Relu", "x", "adamw", "adam"};

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("minst", "mnist"), 1u);  // one swap
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
}

TEST(Nearest, FindsTyposOnly) {
  EXPECT_EQ(nearest("epoch", kKeys), "epochs");
  EXPECT_EQ(nearest("batchsize", kKeys), "batch_size");
  EXPECT_EQ(nearest("leraning_rate", kKeys), "learning_rate");
  EXPECT_EQ(nearest("RELU", kKeys), "Relu");
  EXPECT_EQ(nearest("adam", kKeys), "adam");
  EXPECT_EQ(nearest("batch", kKeys), "batch_size");
  EXPECT_EQ(nearest("momentum", kKeys), std::nullopt);
  EXPECT_EQ(nearest("y", kKeys), std::nullopt);
  EXPECT_EQ(nearest("", kKeys), std::nullopt);
  EXPECT_EQ(nearest("a", {}), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'a'), kKeys), std::nullopt);
}

TEST(Nearest, BecomesAQuestion) {
  EXPECT_EQ(did_you_mean("sed", kKeys), "did you mean \"seed\"?");
  EXPECT_EQ(did_you_mean("momentum", kKeys), "");
}

TEST(Glob, Matches) {
  EXPECT_TRUE(glob_match("backbone.*", "backbone.0.weight"));
  EXPECT_TRUE(glob_match("backbone.*", "backbone."));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("*.bias", "fc.a/b.bias"));
  EXPECT_TRUE(glob_match("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(glob_match("layer?.w", "layer1.w"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("backbone.*", "backbone"));
  EXPECT_FALSE(glob_match("backbone", "backbone.0"));
  EXPECT_FALSE(glob_match("layer?.w", "layer12.w"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match("a*b", "ac"));
}

TEST(Glob, TakesNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(glob_match(pattern + "b", std::string(2000, 'a')));
}

TEST(HumanBytes, HasThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "0.98 KiB");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(std::uint64_t{2} << 30), "2 GiB");
  EXPECT_EQ(human_bytes(std::uint64_t{123} << 20), "123 MiB");
  EXPECT_EQ(human_bytes(~std::uint64_t{0}), "16 EiB");
}

TEST(HumanDuration, PicksUnits) {
  EXPECT_EQ(human_duration(850e-6), "850 us");
  EXPECT_EQ(human_duration(0.0123), "12.3 ms");
  EXPECT_EQ(human_duration(4.56), "4.56 s");
  EXPECT_EQ(human_duration(59.99), "1m 00s");
  EXPECT_EQ(human_duration(200), "3m 20s");
  EXPECT_EQ(human_duration(7500), "2h 05m");
  EXPECT_EQ(human_duration(3 * 86400 + 4 * 3600), "3d 04h");
  EXPECT_EQ(human_duration(0), "0 us");
  EXPECT_EQ(human_duration(1e300), "forever");
  EXPECT_EQ(human_duration(-1), "-1 s");
}

TEST(ParseBytes, KnowsTheUnits) {
  EXPECT_EQ(parse_bytes("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1.5 MB"), 1'500'000u);
  EXPECT_EQ(parse_bytes("2048"), 2048u);
  EXPECT_EQ(parse_bytes("512k"), 512u * 1024);
  EXPECT_EQ(parse_bytes("4g"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_bytes("10 B"), 10u);
  EXPECT_EQ(parse_bytes("3Ki"), 3072u);
  EXPECT_EQ(parse_bytes("1kB"), 1000u);
  for (const char* wrong : {"", "GiB", "-1", "1x", "1GiBB", "1 GiB 2", "nan", "inf", "1e30", "99999999PiB", "1iB", "1bB"})
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
}

TEST(ParseDuration, KnowsTheUnits) {
  EXPECT_EQ(parse_duration("60s"), 60.0);
  EXPECT_EQ(parse_duration("1.5m"), 90.0);
  EXPECT_EQ(parse_duration("2 h"), 7200.0);
  EXPECT_EQ(parse_duration("100ms"), 0.1);
  EXPECT_EQ(parse_duration("30"), 30.0);
  for (const char* wrong : {"", "s", "-1s", "1x", "1s2", "inf"}) EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
}

TEST(Quoted, MakesHostileTextHarmless) {
  EXPECT_EQ(quoted("fc1.weight"), "\"fc1.weight\"");
  EXPECT_EQ(quoted("a\"b\\c\n\t\r"), "\"a\\\"b\\\\c\\n\\t\\r\"");
  EXPECT_EQ(quoted(std::string_view("\x1b[31m\0", 6)), "\"\\x1b[31m\\x00\"");
  EXPECT_EQ(quoted("größe 重み 🙂"), "\"größe 重み 🙂\"");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\xe2\\x80\\xae"
            "abc");                                // right-to-left override
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // C1 control
}

TEST(Quoted, ShortensInTheMiddle) {
  EXPECT_EQ(printable("0123456789", 10), "0123456789");
  EXPECT_EQ(printable("0123456789a", 10), "0123...89a");
  EXPECT_EQ(quoted(std::string(1000, 'a')).size(), 202u);
  EXPECT_EQ(printable("ääääääääää", 11), "ää...ää");
}

TEST(Text, ShapesSplitJoinTrim) {
  EXPECT_EQ(shape_text(std::array<std::int64_t, 2>{60000, 784}), "[60000,784]");
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), std::vector<std::string>{""});
  EXPECT_EQ(join(split("a,b", ','), ", "), "a, b");
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(lower_case("ReLU_Ä"), "relu_Ä");
}

TEST(Checked, ThrowsInsteadOfWrapping) {
  EXPECT_EQ(checked_add<std::size_t>(2, 3, "sum"), 5u);
  EXPECT_EQ(checked_multiply<std::int64_t>(-2, 3, "product"), -6);
  EXPECT_EQ(checked_cast<std::uint8_t>(255, "byte"), 255);
  test::expect_error(Code::kTooLarge, "the data are larger than", [] { checked_multiply<std::uint64_t>(1ull << 40, 1ull << 40, "the data"); });
  test::expect_error(Code::kTooLarge, "sum", [] { checked_add<std::int64_t>(INT64_MAX, 1, "sum"); });
  test::expect_error(Code::kTooLarge, "byte", [] { checked_cast<std::uint8_t>(256, "byte"); });
  test::expect_error(Code::kTooLarge, "count", [] { checked_cast<std::uint64_t>(-1, "count"); });
}

}  // namespace
}  // namespace hone
