// docs/operators.md: every operator of ONNX, from the importer's table, the cases that prove gradients, and the rows of the CPU target.
// The page must be up to date; with HONE_WRITE_OPERATORS set (scripts/operators) it is written instead.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "backends/cpu/cpu_target.h"
#include "base/text.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/standard.h"
#include "frontend/onnx/versions.h"
#include "ir/op.h"
#include "passes/passes.h"
#include "tests/gradients/gradient_cases.h"
#include "tests/support/backend_cases/backend_case.h"

namespace hone::test {
namespace {

constexpr std::string_view kIntroduction = R"(# Operators

Every operator of ONNX's default domain and of its training domain. `scripts/operators` writes it from the importer's table, the gradient cases in
`tests/gradients` and the CPU's library rows; a test fails when it is stale.

- **opsets**: where the operator changed; a minus means deprecated from there on. Import takes opset {} to {}.
- **gradient**: how many cases hold it against central differences in double; "-" where nothing differentiable goes through, which the note explains.
- **CPU**: the library row that takes the node where it fits; every other node has a generated kernel or is lowered to some. On GPUs the same
  holds, with products of cuBLASLt and convolutions of cuDNN where they are large enough: `hone-compile --target cuda --why` says which.

| operator | opsets | import | gradient | CPU | note |
|---|---|---|---|---|---|
)";

/// The opsets of each operator, as versions.txt lists them.
std::map<std::string, std::string> read_versions() {
  std::map<std::string, std::string> versions;
  std::ifstream file(std::string(HONE_SOURCE_DIR) + "/tests/gradients/versions.txt");
  for (std::string line; std::getline(file, line);) {
    const std::size_t blank = line.find(' ');
    if (line.starts_with('#') or blank == std::string::npos) continue;
    versions[line.substr(0, blank)] = join(split(line.substr(blank + 1), ','), ", ");
  }
  return versions;
}

struct Proved {
  int cases = 0;
  std::set<std::string> rows;
};

/// The library rows that the nodes of a case get.
void add_rows(const GradientCase& one, std::set<std::string>& rows) {
  static const CpuTarget target;
  try {
    Graph graph = model_of(one).import().graph;
    (void)expand(graph);
    for (std::size_t i = 0; i < graph.node_count(); ++i)
      if (const std::string row = target.choose_row(graph, NodeId(i)).row; not row.empty()) rows.insert(row);
  } catch (const Error&) {}  // an operator that is not there yet
}

std::map<std::string, Proved> proved_operators() {
  std::map<std::string, Proved> proved;
  for (const GradientCase& one : gradient_cases()) {
    if (not onnx::is_supported(one.op)) continue;
    Proved& entry = proved[one.op];
    ++entry.cases;
    add_rows(one, entry.rows);
  }
  return proved;
}

/// Why no gradient goes through an operator: what its ops say in the graph of `one`, or that no float goes in or comes out.
std::string reason_without_gradient(const BackendCase& one) {
  const Graph graph = onnx::import_model(one.model, one.name, ".", {.dims = one.dims}).graph;
  const auto takes_float = [&](const Input& input) { return is_float(graph.type(input.value).dtype); };
  const auto gives_float = [&](const Output& output) { return is_float(graph.type(output.value).dtype); };
  std::set<std::string> reasons;
  for (const Node& node : graph.nodes())
    if (not node.op->grad.reason.empty() and is_float(graph.type(node.results[0]).dtype)) reasons.emplace(node.op->grad.reason);
  if (std::none_of(graph.outputs().begin(), graph.outputs().end(), gives_float)) return "its result is no float";
  if (std::none_of(graph.inputs().begin(), graph.inputs().end(), takes_float)) return "no float goes in";
  return join(std::vector(reasons.begin(), reasons.end()), "; ");
}

/// For each operator that ONNX has a case of a single node of.
std::map<std::string, std::string> reasons_without_gradient(const std::map<std::string, Proved>& proved) {
  std::map<std::string, std::string> reasons;
  for (const std::string& name : backend_case_names()) {
    try {
      BackendCase one = load_backend_case(name);
      const std::string& op = one.model.graph().node(0).op_type();
      if (one.model.graph().node_size() != 1 or proved.contains(op) or not reasons[op].empty()) continue;
      fix_small_inputs(one);
      reasons[op] = reason_without_gradient(one);
    } catch (const Error&) {}  // refused, and said so elsewhere
  }
  return reasons;
}

std::string reason_against(const std::string& name) {
  for (const onnx::RefusedOperator& refused : onnx::refused_operators())
    if (refused.name == name) return std::string(refused.reason);
  return "";
}

std::string page() {
  std::string text = fmt::format(fmt::runtime(kIntroduction), onnx::kOldestOpset, onnx::kNewestOpset);
  std::map<std::string, std::string> versions = read_versions();
  for (const std::string_view name : onnx::standard_operators()) versions.try_emplace(std::string(name), "");
  const std::map<std::string, Proved> proved = proved_operators();
  const std::map<std::string, std::string> reasons = reasons_without_gradient(proved);
  for (const auto& [name, opsets] : versions) {
    text += fmt::format("| {} | {} |", name, opsets);
    const std::size_t dot = name.rfind('.');
    if (not onnx::is_supported(name.substr(dot + 1), dot == std::string::npos ? "" : name.substr(0, dot))) {
      text += fmt::format(" no | | | {} |\n", reason_against(name));
      continue;
    }
    const auto found = proved.find(name);
    const bool differentiable = found != proved.end();
    const std::string rows = differentiable ? join(std::vector(found->second.rows.begin(), found->second.rows.end()), ", ") : "";
    const auto reason = reasons.find(name.substr(dot + 1));
    text += fmt::format(" yes | {} | {} | {} |\n", differentiable ? fmt::format("{} cases", found->second.cases) : "-", rows.empty() ? "generated" : rows,
                        differentiable or reason == reasons.end() ? "" : reason->second);
  }
  return text;
}

TEST(OperatorsPage, IsUpToDate) {
  if (backend_case_names().empty()) GTEST_SKIP() << "ONNX's backend cases are not beside the repository: they tell why operators have no gradient";
  const std::string path = std::string(HONE_SOURCE_DIR) + "/docs/operators.md", wanted = page();
  if (std::getenv("HONE_WRITE_OPERATORS") != nullptr) std::ofstream(path) << wanted;
  std::stringstream there;
  there << std::ifstream(path).rdbuf();
  EXPECT_TRUE(there.str() == wanted) << "docs/operators.md is stale: run scripts/operators";
}

}  // namespace
}  // namespace hone::test
