// Every ONNX operator that is differentiable in floats: its gradient against central differences, element by element, and by the dot test, in double.
// HONE_CASES=PATTERN runs those cases only whose operator or name ("Conv: strides of 2") it matches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/text.h"
#include "frontend/onnx/ops.h"
#include "ir/verify.h"
#include "passes/passes.h"
#include "tests/gradients/gradient_cases.h"
#include "tests/support/gradients/gradient_check.h"

namespace hone::test {
namespace {

constexpr int kCasesEach = 10;

bool is_chosen(const GradientCase& one) {
  const char* pattern = std::getenv("HONE_CASES");
  return pattern == nullptr or glob_match(pattern, one.op) or glob_match(pattern, one.name());
}

/// Has the case no failure?
bool passes(const GradientCase& one) {
  SCOPED_TRACE(one.name());
  const auto* result = testing::UnitTest::GetInstance()->current_test_info()->result();
  const int before = result->total_part_count();
  try {
    Graph graph = model_of(one).import().graph;
    verify(graph);
    Feeds feeds = feeds_of(one);
    EXPECT_FALSE(variables_of(graph).empty()) << "the case has no variable";
    Graph forward = graph.clone();
    (void)expand(forward);
    const DimBindings sizes = interpret(forward, feeds, Precision::kDouble).bindings;
    project(graph, one.varying_outputs, Projection::kLinear, feeds, sizes);
    expect_gradients_match(graph, feeds, sizes);
  } catch (const std::exception& error) { ADD_FAILURE() << error.what(); }
  return result->total_part_count() == before;
}

struct Proof {
  int cases = 0, passed = 0;
  bool holds() const { return cases >= kCasesEach and passed == cases; }
};
using Proofs = std::map<std::string, Proof, std::less<>>;

/// How many of `operators` are proved; the others go to `missing`, each with what it lacks.
int count_proved(std::span<const std::string_view> operators, const Proofs& proofs, std::vector<std::string>& missing) {
  int proved = 0;
  for (const std::string_view op : operators) {
    const auto found = proofs.find(op);
    const Proof proof = found == proofs.end() ? Proof() : found->second;
    proved += proof.holds();
    if (not onnx::is_supported(op)) missing.push_back(fmt::format("{} (no import)", op));
    else if (not proof.holds()) missing.push_back(fmt::format("{} ({} of {} cases pass)", op, proof.passed, std::max(proof.cases, kCasesEach)));
  }
  return proved;
}

TEST(Gradients, OfEveryOperatorAreProved) {
  Proofs proofs;
  int cases = 0;
  for (const GradientCase& one : gradient_cases()) {
    if (not is_chosen(one) or (not one.nodes and not onnx::is_supported(one.op))) continue;
    Proof& proof = proofs[one.op];
    ++cases;
    ++proof.cases;
    proof.passed += passes(one);
  }
  std::vector<std::string> missing;
  const auto opset17 = opset17_operators(), later = later_operators(), control = control_flow_operators();
  const int proved = count_proved(opset17, proofs, missing), later_proved = count_proved(later, proofs, missing), control_proved = count_proved(control, proofs, missing);
  if (std::getenv("HONE_CASES") != nullptr) {
    for (const auto& [op, proof] : proofs) fmt::print("{}: {} of {} cases pass\n", op, proof.passed, proof.cases);
    return;
  }
  fmt::print("gradients: {}/{} operators proved ({} cases); {}/{} operators of later opsets; {}/{} with bodies\n", proved, opset17.size(), cases, later_proved,
             later.size(), control_proved, control.size());
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST(Gradients, CasesAreDistinctAndOfKnownOperators) {
  std::set<std::string> seen;
  for (const GradientCase& one : gradient_cases()) {
    EXPECT_TRUE(seen.insert(one.name()).second) << one.name() << " comes twice";
    EXPECT_TRUE(onnx::is_standard_operator(one.op)) << one.op;
  }
}

/// The list that the goal is stated in, where it is at hand.
TEST(Gradients, OperatorsAreThoseOfTheSharedList) {
  std::ifstream file(std::string(HONE_SHARED_DIR) + "/gradients.txt");
  if (not file) GTEST_SKIP() << "the list is not beside the repository";
  std::vector<std::string> opset17, later;
  for (std::string line; std::getline(file, line);) {
    const bool is_later = line.starts_with("# Later");
    if (line.starts_with("#") and not is_later) continue;
    std::istringstream words(is_later ? line.substr(line.find(':') + 1) : line);
    for (std::string word; words >> word;) (is_later ? later : opset17).push_back(word);
  }
  EXPECT_TRUE(std::equal(opset17.begin(), opset17.end(), opset17_operators().begin(), opset17_operators().end()));
  for (const std::string& name : later)  // ours may have more
    EXPECT_NE(std::find(later_operators().begin(), later_operators().end(), name), later_operators().end()) << name;
}

}  // namespace
}  // namespace hone::test
