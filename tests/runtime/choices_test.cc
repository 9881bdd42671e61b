// Choices by timing: the fastest call is taken, and remembered; what the file holds is believed only where it is whole; without timing the library's first recommendation is taken.
#include "runtime/device/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/diag.h"
#include "base/files.h"
#include "tests/runtime/clocked_device.h"
#include "tests/support/temp_folder.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A call that takes its time, or fails, and writes down who was put.
struct Slow {
  int milliseconds = 0;
  bool fails = false;
  std::size_t scratch = 0;
  int puts = 0;
};

class SlowCall final : public DeviceCall {
 public:
  SlowCall(Slow& slow, std::int64_t& clock) : slow_(slow), clock_(clock) {}
  std::size_t scratch_bytes() const override { return slow_.scratch; }
  void put(Stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override {
    EXPECT_EQ(operands.size(), 2U);
    EXPECT_EQ(operands[1], nullptr) << "an absent operand";
    EXPECT_EQ(results.size(), 1U);
    EXPECT_NE(scratch, nullptr);
    ++slow_.puts;
    clock_ += slow_.milliseconds;
    if (slow_.fails) throw Error(Code::kDeviceLost, "this way does not work");
  }

 private:
  Slow& slow_;
  std::int64_t& clock_;
};

class ChoicesTest : public testing::Test {
 protected:
  ChoicesTest() {
    spec_.operands = {TensorType{DType::kF32, {4, 4}}, std::nullopt};
    spec_.results = {TensorType{DType::kF32, {4, 4}}};
  }

  /// The name of the way that is chosen; "" if none is.
  std::string chosen(Choices& choices, const std::string& question = "a question") {
    std::vector<Candidate> candidates;
    std::map<const DeviceCall*, std::string> names;
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      candidates.push_back({"way " + std::to_string(i), std::make_unique<SlowCall>(ways_[i], clock_)});
      names[candidates.back().call.get()] = candidates.back().name;
      ways_[i].puts = 0;
    }
    const auto call = choices.choose(device_, question, spec_, std::move(candidates));
    return call == nullptr ? "" : names.at(call.get());
  }
  bool was_tried() const { return std::ranges::any_of(ways_, [](const Slow& way) { return way.puts > 0; }); }
  Choices by_timing() const { return Choices(Choices::By::kTiming, file_); }

  const TempFolder folder_;
  const std::string file_ = folder_.path() + "/cache/choices.json";
  std::int64_t clock_ = 0;  ///< milliseconds
  ClockedDevice device_{clock_, 1 << 20};
  LibrarySpec spec_;
  std::vector<Slow> ways_ = {{.milliseconds = 8}, {.milliseconds = 1, .scratch = 64}, {.milliseconds = 4}};
};

TEST_F(ChoicesTest, TheFastestIsTakenAndRemembered) {
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices), "way 1");
  EXPECT_TRUE(was_tried());
  ways_ = {{.milliseconds = 2}, {.milliseconds = 4}, {}};
  EXPECT_EQ(chosen(choices), "way 1");
  EXPECT_FALSE(was_tried()) << "it is known";
  EXPECT_EQ(chosen(choices, "another question"), "way 2");
  EXPECT_THAT(choices.note(), IsEmpty());
  Choices later = by_timing();
  EXPECT_EQ(chosen(later), "way 1");
  EXPECT_EQ(chosen(later, "another question"), "way 2");
  EXPECT_FALSE(was_tried()) << "the file has it";
}

TEST_F(ChoicesTest, ByRuleTheFirstIsTakenUntried) {
  Choices choices;
  EXPECT_EQ(chosen(choices), "way 0");
  EXPECT_FALSE(was_tried());
  Choices with_file(Choices::By::kRule, file_);
  EXPECT_EQ(chosen(with_file), "way 0");
  EXPECT_FALSE(file_exists(file_));
  ways_.clear();
  EXPECT_EQ(chosen(choices), "");
}

TEST_F(ChoicesTest, OneAloneIsTakenUntried) {
  ways_.resize(1);
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices), "way 0");
  EXPECT_FALSE(was_tried());
}

TEST_F(ChoicesTest, WaysThatFailAreNotTaken) {
  ways_[1].fails = true;
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices), "way 2");
  for (Slow& way : ways_) way.fails = true;
  EXPECT_EQ(chosen(choices, "another question"), "") << "the plan's own kernel does it";
}

TEST_F(ChoicesTest, WhatIsNoLongerOfferedIsChosenAnew) {
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices), "way 1");
  ways_.pop_back();
  ways_.pop_back();
  ways_.insert(ways_.begin(), Slow{.milliseconds = 1});
  Choices later = by_timing();
  EXPECT_EQ(chosen(later), "way 1") << "the name tells, whatever lies behind it";
  ways_.resize(1);
  ways_.push_back({.milliseconds = 2});
  write_file_atomically(file_, R"({"hone_choices": 1, "choices": {"a question": {"choice": "way 7", "microseconds": 1}}})");
  Choices again = by_timing();
  EXPECT_EQ(chosen(again), "way 0");
  EXPECT_TRUE(was_tried());
}

TEST_F(ChoicesTest, ADeviceWithoutMemoryToTryThemTakesTheFirst) {
  spec_.results = {TensorType{DType::kF32, {1024, 1024}}};
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices), "way 0");
  EXPECT_FALSE(was_tried());
  spec_.results = {TensorType{DType::kF32, {4, 4}}};
  EXPECT_EQ(chosen(choices), "way 1") << "nothing was remembered";
}

TEST_F(ChoicesTest, AFileThatIsNoneIsLeftAloneWithANote) {
  make_folders(folder_of(file_));
  for (const std::string content : {"", "{", "[]", "null", R"({"hone_choices": 2, "choices": {}})", R"({"hone_choices": 1})", R"({"hone_choices": 1, "choices": {"a question": 3}})",
                                    R"({"hone_choices": 1, "choices": {"a question": {"choice": 1, "microseconds": 2}}})", R"({"hone_choices": 1, "choices": {"a question": {"choice": "way 0", "microseconds": -1}}})"}) {
    write_file_atomically(file_, content);
    Choices choices = by_timing();
    EXPECT_THAT(choices.note(), HasSubstr("choices.json")) << content;
    EXPECT_EQ(chosen(choices), "way 1") << content;
    EXPECT_EQ(read_file(file_), content) << "it may be something else of the user's";
  }
  write_file_atomically(file_, std::string(100'000, '['));
  EXPECT_THAT(by_timing().note(), HasSubstr("choices.json")) << "deeply nested";
}

TEST_F(ChoicesTest, AFileThatCannotBeWrittenIsDoneWithout) {
  Choices choices(Choices::By::kTiming, "/proc/nothing/choices.json");
  EXPECT_EQ(chosen(choices), "way 1");
  EXPECT_THAT(choices.note(), HasSubstr("not kept"));
}

TEST_F(ChoicesTest, HostileQuestionsAreKeptAsText) {
  const std::string question = "\"},{\x01\xff</script>\n" + std::string(1 << 20, 'q');
  Choices choices = by_timing();
  EXPECT_EQ(chosen(choices, question), "way 1");
  EXPECT_TRUE(nlohmann::json::parse(read_file(file_)).at("choices").is_object());
}

TEST_F(ChoicesTest, TwoSessionsKeepWhatBothHaveMeasured) {
  Choices first = by_timing(), second = by_timing();
  EXPECT_EQ(chosen(first, "of the first"), "way 1");
  EXPECT_EQ(chosen(second, "of the second"), "way 1");
  Choices both = by_timing();
  (void)chosen(both, "of the first");
  EXPECT_FALSE(was_tried());
  (void)chosen(both, "of the second");
  EXPECT_FALSE(was_tried());
}

}  // namespace
}  // namespace hone::test
