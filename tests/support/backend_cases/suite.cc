#include "tests/support/backend_cases/suite.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "base/text.h"

namespace hone::test {

namespace {

using Held = Exception::Held;

constexpr std::string_view kNoStrings = "Hone has no strings", kRandom = "the elements dropped or drawn are those of numpy's generator";
constexpr std::string_view kNoMachineLearning = "the domain ai.onnx.ml holds classical models, not tensor programs that are trained by gradients";

constexpr Exception kExceptions[] = {
    {"test_ai_onnx_ml_*", Held::kRefused, kNoMachineLearning},
    {"test_equal_string*", Held::kRefused, kNoStrings},
    {"test_regex_full_match_*", Held::kRefused, kNoStrings},
    {"test_string_concat*", Held::kRefused, kNoStrings},
    {"test_string_split_*", Held::kRefused, kNoStrings},
    {"test_strnormalizer_*", Held::kRefused, kNoStrings},
    {"test_image_decoder_*", Held::kRefused, "Hone has no image formats"},
    {"test_bernoulli*", Held::kRandom, kRandom},
    {"test_dft_inverse*", Held::kFailing, "the expected zeros hold the rounding errors of numpy's transform in f32, up to 1.5e-6; ours are nearer to 0"},
    {"test_training_dropout", Held::kRandom, kRandom},
    {"test_training_dropout_default", Held::kRandom, kRandom},
    {"test_training_dropout_default_mask", Held::kRandom, kRandom},
    {"test_training_dropout_mask", Held::kRandom, kRandom},
};

const Exception* exception_for(const std::string& name) {
  for (const Exception& exception : kExceptions)
    if (glob_match(exception.cases, name)) return &exception;
  return nullptr;
}

/// What `found` has that a random tensor like `expected` cannot have; "" if nothing. Elements may be 0 where others were drawn, and all be scaled by
/// one factor: an entry that predicts drops and scales nothing.
std::string random_difference(const Tensor& found, const Tensor& expected) {
  if (found.dtype() != expected.dtype()) return fmt::format("is {}, not {}", to_string(found.dtype()), to_string(expected.dtype()));
  if (found.shape() != expected.shape()) return fmt::format("has shape {}, not {}", shape_text(found.shape()), shape_text(expected.shape()));
  std::optional<double> scale;
  for (std::int64_t i = 0; i < found.element_count(); ++i) {
    if (found.at(i) == 0 or expected.at(i) == 0) continue;
    if (not scale) scale = found.at(i) / expected.at(i);
    if (std::abs(found.at(i) - *scale * expected.at(i)) > 1e-3 * std::abs(found.at(i)))
      return fmt::format("is {} at element {}, not {} or 0", found.at(i), i, *scale * expected.at(i));
  }
  return "";
}

void expect_exception_holds(const Exception& exception, const std::string& name, const Outcome& outcome) {
  EXPECT_NE(outcome.kind == Outcome::Kind::kPassed and exception.held != Held::kRandom, true)
      << name << " passes, and is excepted because \"" << exception.reason << "\"";
  if (exception.held == Held::kRefused) {
    EXPECT_TRUE(outcome.found.empty() and not outcome.what.empty()) << name << " is not refused";
  }
  if (exception.held != Held::kRandom) return;
  EXPECT_FALSE(outcome.found.empty()) << name << ": " << outcome.what;
  for (std::size_t i = 0; i < outcome.expected.size() and i < outcome.found.size(); ++i)
    EXPECT_EQ(random_difference(outcome.found[i], outcome.expected[i]), "") << name << ", output " << i;
}

}  // namespace

std::span<const Exception> backend_exceptions() { return kExceptions; }

Tally& Tally::operator+=(const Tally& other) {
  passed += other.passed, fixed += other.fixed, excepted += other.excepted, unsupported += other.unsupported;
  return *this;
}

std::string Tally::text() const {
  return fmt::format("{} of {} backend cases pass ({} of them with small inputs fixed when compiling); {} excepted, {} of operators that are not there", passed,
                     passed + excepted + unsupported, fixed, excepted, unsupported);
}

Tally expect_cases_pass(std::span<const std::string> names, const RunModel& run) {
  const bool lists = std::getenv("HONE_LIST") != nullptr or std::getenv("HONE_CASES") != nullptr;
  Tally tally;
  for (const std::string& name : names) {
    const Outcome outcome = outcome_of(name, run);
    if (const Exception* exception = exception_for(name)) {
      ++tally.excepted;
      expect_exception_holds(*exception, name, outcome);
    } else if (outcome.kind == Outcome::Kind::kUnsupported) {
      ++tally.unsupported;
      if (lists) fmt::print("unsupported: {}: {}\n", name, outcome.what);
    } else {
      EXPECT_EQ(outcome.what, "") << name;
      tally.passed += outcome.what.empty();
      tally.fixed += outcome.what.empty() and outcome.was_fixed;
      if (lists and outcome.was_fixed) fmt::print("fixed: {}\n", name);
    }
  }
  return tally;
}

}  // namespace hone::test
