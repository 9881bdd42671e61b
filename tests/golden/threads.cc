#include "tests/golden/threads.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/compile.h"
#include "base/text.h"
#include "formats/npz.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "runtime/session.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/host_level.h"

namespace hone::test {
namespace {

using Arrays = std::vector<std::pair<std::string, Tensor>>;

struct Compiled {
  plan::Plan plan;
  double learning_rate = 0;
};

/// All passes but the one that gives work to the library.
PassChoice without_library() {
  std::vector<std::string> names = optional_passes();
  std::erase(names, "library");
  return PassChoice(join(names, ","));
}

Compiled compiled_plan(const std::string& name, const PassChoice& passes) {
  const TempFolder folder;
  write_recorded(folder, name);
  const Recipe recipe = resolve(read_recipe(folder / "train.toml"));
  const onnx::Imported model = onnx::import_model(folder / "model.onnx", {.mend = onnx::mend_options(recipe)});
  return {compile({model.graph, model.model, name}, recipe, {.levels = {.cpu = {host_level()}}, .passes = passes}).plan, recipe.optimizer.learning_rate};
}

/// Has a step the row?
bool calls(const plan::Entry& entry, std::string_view row) {
  return std::ranges::any_of(entry.steps, [row](const plan::Step& step) {
    if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) return library->row == row;
    const auto* region = std::get_if<plan::RegionStep>(&step.what);
    return region != nullptr and std::ranges::any_of(region->bodies, [row](const plan::Entry& body) { return calls(body, row); });
  });
}

/// All weights and states after some steps, of which the first try one thread and all.
Arrays trained(const Compiled& model, const std::vector<std::pair<std::string, Tensor>>& batches, int threads) {
  Session session(model.plan, {.device = "cpu", .threads = threads});
  const Tensor rate = Tensor::scalar(model.learning_rate);
  std::vector<Tensor> values;
  std::vector<std::pair<std::string, TensorView>> feeds;
  const auto& entry = session.entry(plan::kTrainStep);
  values.reserve(entry.feeds.size());
  for (const plan::Feed& feed : entry.feeds) {
    const auto found = std::ranges::find(batches, feed.name, &Arrays::value_type::first);
    if (found == batches.end()) {
      feeds.emplace_back(feed.name, rate);
      continue;
    }
    std::vector<std::int64_t> shape(found->second.shape().begin() + 1, found->second.shape().end());
    const std::size_t bytes = found->second.byte_count() / static_cast<std::size_t>(found->second.shape()[0]);
    values.push_back(Tensor::copy(found->second.dtype(), std::move(shape), found->second.bytes().first(bytes)).cast(feed.dtype));
    feeds.emplace_back(feed.name, values.back());
  }
  for (int step = 0; step < 4; ++step) session.run(plan::kTrainStep, feeds);
  Arrays after;
  for (const plan::Persistent& persistent : session.program().persistents) after.emplace_back(persistent.name, session.read(persistent.name));
  return after;
}

void expect_bits_of_one_thread(const Compiled& model, const std::string& name) {
  Arrays batches;
  for (const auto& [key, array] : read_npz(std::string(HONE_SHARED_DIR) + "/models/" + name + "/train.npz")) batches.emplace_back(key, array);
  const Arrays alone = trained(model, batches, 1);
  for (const int threads : {2, 3}) {
    const Arrays together = trained(model, batches, threads);
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(alone[i].second.bytes(), together[i].second.bytes())) << alone[i].first << " on " << threads << " threads";
  }
}

}  // namespace

void expect_same_bits_on_threads(const std::string& name, Library library) {
  if (not is_recorded(name)) GTEST_SKIP() << kNotRecorded;
  const Compiled model = compiled_plan(name, library == Library::kUsed ? PassChoice() : without_library());
  const plan::Entry& step = *model.plan.programs[0].find(plan::kTrainStep);
  if (calls(step, "onednn.conv_weight_grad"))
    GTEST_SKIP() << "oneDNN sums the weights' gradients of convolutions in as many parts as there are threads (LibraryRow::thread_sums)";
  if (not has_avx512() and calls(step, "onednn.matmul"))
    GTEST_SKIP() << "without AVX-512 oneDNN sums products in as many parts as there are threads (LibraryRow::thread_sums)";
  expect_bits_of_one_thread(model, name);
}

}  // namespace hone::test
