#include "tests/backend_suite/compiled_suite.h"

#include "backends/compile.h"
#include "runtime/session.h"
#include "tests/support/host_level.h"

namespace hone::test {

namespace {

std::vector<Tensor> run_on(const std::string& target, const onnx::Imported& model, const Feeds& feeds) {
  const Compiled compiled = compile({model.graph, model.model}, Recipe{}, {.targets = {target}, .levels = {.cpu = {host_level()}}});
  Session session(compiled.plan, {.device = target, .threads = 1});
  std::vector<std::pair<std::string, TensorView>> views;
  for (const auto& [name, tensor] : feeds) views.emplace_back(name, tensor);
  session.run(plan::kPredict, views);
  std::vector<Tensor> outputs;
  for (const Output& output : model.graph.outputs()) outputs.push_back(session.result_tensor(output.name));
  return outputs;
}

}  // namespace

std::vector<Tensor> run_compiled(const onnx::Imported& model, const Feeds& feeds) { return run_on("cpu", model, feeds); }
std::vector<Tensor> run_simulated(const onnx::Imported& model, const Feeds& feeds) { return run_on("sim", model, feeds); }

std::vector<std::string> shard_of_cases(std::size_t shard, std::size_t shards) {
  const std::vector<std::string> names = backend_case_names();
  std::vector<std::string> chosen;
  for (std::size_t i = shard; i < names.size(); i += shards) chosen.push_back(names[i]);
  return chosen;
}

}  // namespace hone::test
