// ONNX's backend node cases through import and interpreter: every case whose operators and element types are all supported passes, but for those
// listed with a reason. Cases of other operators are left out and counted. HONE_CASES=PATTERN ("test_conv_*") runs those cases only.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/text.h"
#include "formats/onnx_file.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/versions.h"
#include "tests/frontend/backend_case.h"

namespace hone::test {
namespace {

/// Passed when this was written; more operators, more cases.
constexpr int kAtLeast = 777;

struct Exception {
  std::string_view cases;  ///< a pattern
  std::string_view reason;
};
constexpr Exception kExceptions[] = {
    {"test_batchnorm_*_training_mode", "import gives inference with the running statistics; training with the batch's own is the recipe's choice"},
    {"test_training_dropout", "drops random elements of numpy's generator"},
    {"test_training_dropout_default", "drops random elements of numpy's generator"},
    {"test_training_dropout_default_mask", "drops random elements of numpy's generator"},
    {"test_training_dropout_mask", "drops random elements of numpy's generator"},
    {"test_maxpool_with_argmax_*", "the positions of the largest elements are no result of max_pool"},
    {"test_edge_pad", "only constant padding is there"},
    {"test_reflect_pad", "only constant padding is there"},
    {"test_wrap_pad", "only constant padding is there"},
};

/// The reason why the case need not pass; "" if there is none.
std::string_view exception_for(const std::string& name) {
  for (const Exception& exception : kExceptions)
    if (glob_match(exception.cases, name)) return exception.reason;
  return "";
}

bool is_supported_type(const onnx::ValueInfoProto& info) {
  return info.type().has_tensor_type() and dtype_of_onnx(info.type().tensor_type().elem_type()).has_value();
}

bool is_supported_case(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import())
    if (import.domain().empty() and import.version() < onnx::kOldestOpset) return false;
  const onnx::GraphProto& graph = model.graph();
  return std::all_of(graph.node().begin(), graph.node().end(),
                     [](const auto& node) { return node.domain().empty() and onnx::is_supported(node.op_type()); }) and
         std::all_of(graph.input().begin(), graph.input().end(), is_supported_type) and
         std::all_of(graph.output().begin(), graph.output().end(), is_supported_type);
}

enum class Contents { kFed, kFixed };

/// "" if the case passes. What must be known when compiling may be an input of the case; then it is fixed.
std::string outcome_of(const std::string& name, Contents& contents) {
  try {
    BackendCase one = load_backend_case(name);
    try {
      return run_backend_case(one);
    } catch (const Error& error) {
      if (error.diags().front().code != Code::kDynamic) throw;
      contents = Contents::kFixed;
      fix_small_inputs(one);
      return run_backend_case(one);
    }
  } catch (const std::exception& error) { return error.what(); }
}

TEST(BackendSuite, CasesOfSupportedOperatorsPass) {
  const char* pattern = std::getenv("HONE_CASES");
  std::vector<std::string> names = backend_case_names();
  if (names.empty()) GTEST_SKIP() << "ONNX's backend cases are not beside the repository";
  if (pattern != nullptr) std::erase_if(names, [&](const std::string& name) { return not glob_match(pattern, name); });
  int passed = 0, fixed = 0, left_out = 0, excepted = 0;
  for (const std::string& name : names) {
    if (not is_supported_case(load_model(backend_case_model(name)))) {
      ++left_out;
      continue;
    }
    Contents contents = Contents::kFed;
    const std::string problem = outcome_of(name, contents);
    if (const std::string_view reason = exception_for(name); not reason.empty()) {
      ++excepted;
      EXPECT_NE(problem, "") << name << " passes, and is excepted because \"" << reason << "\"";
      continue;
    }
    EXPECT_EQ(problem, "") << name;
    passed += problem.empty();
    fixed += problem.empty() and contents == Contents::kFixed;
  }
  fmt::print("{} of {} backend cases pass ({} of them with small inputs fixed when compiling); {} excepted, {} of unsupported operators or types\n", passed,
             names.size(), fixed, excepted, left_out);
  if (pattern == nullptr) EXPECT_GE(passed, kAtLeast);
}

}  // namespace
}  // namespace hone::test
