// Recorded models that are fine-tuned through low-rank adapters, against PyTorch (adapters.json, which make_adapters.py writes).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "backends/compile.h"
#include "base/files.h"
#include "formats/npz.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "runtime/library/arena.h"
#include "runtime/plan/adapters.h"
#include "runtime/session.h"
#include "runtime/train/weights.h"
#include "tests/golden/recorded_run.h"
#include "tests/support/host_level.h"

namespace hone::test {
namespace {

using Json = nlohmann::json;
using Feeds = std::vector<std::pair<std::string, TensorView>>;
using Arrays = std::vector<std::pair<std::string, Tensor>>;

constexpr std::size_t kCases = 3;

Json adapter_case(std::size_t number) { return Json::parse(read_file(std::string(HONE_SOURCE_DIR) + "/tests/golden/adapters.json")).at(number); }

plan::Plan compiled(const std::string& path, const Recipe& recipe) {
  const onnx::Imported model = onnx::import_model(path, {.mend = onnx::mend_options(recipe)});
  return compile({model.graph, model.model, "model"}, recipe, {.levels = {.cpu = {host_level()}}}).plan;
}

/// As first_a of make_adapters.py: both sides can write it down.
Tensor first_a(std::uint64_t number, std::int64_t rank, std::int64_t inputs) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(rank * inputs); ++i) {
    const double fraction = static_cast<double>((i * 2654435761U + (number + 1) * 40503U) % (std::uint64_t{1} << 32U)) / std::ldexp(1, 32);
    values.push_back(static_cast<float>((2 * fraction - 1) / std::sqrt(static_cast<double>(inputs))));
  }
  return Tensor::of<float>({rank, inputs}, values);
}

/// Slice `step` of each array with axes [step, batch, ...].
Arrays batch_of(const Arrays& all, std::size_t step) {
  Arrays batch;
  for (const auto& [name, array] : all) {
    const std::vector<std::int64_t> shape(array.shape().begin() + 1, array.shape().end());
    const std::size_t bytes = static_cast<std::size_t>(checked_element_count(shape)) * size_of(array.dtype());
    batch.emplace_back(name, Tensor::copy(array.dtype(), shape, array.bytes().subspan(step * bytes, bytes)));
  }
  return batch;
}

class Adapters : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    golden_ = adapter_case(GetParam());
    const std::string name = golden_["model"];
    if (not is_recorded(name)) GTEST_SKIP() << kNotRecorded;
    folder_ = std::string(HONE_SHARED_DIR) + "/models/" + name + "/";
    recipe_ = resolve(parse_recipe(golden_["recipe"].get<std::string>(), "adapters.toml"));
    for (const auto& [key, array] : read_npz(folder_ + "train.npz")) batches_.emplace_back(key, array);
  }

  /// What the entry wants of that batch. `data` holds the values.
  Feeds feeds_of(const plan::Entry& entry, Arrays& data) const {
    Feeds feeds;
    for (const plan::Feed& feed : entry.feeds) {
      const auto found = std::find_if(data.begin(), data.end(), [&](const auto& item) { return item.first == feed.name; });
      if (found == data.end()) continue;
      found->second = found->second.cast(feed.dtype);
      feeds.emplace_back(feed.name, found->second);
    }
    return feeds;
  }

  void run(Session& session, std::string_view entry, std::size_t step) const {
    Arrays data = batch_of(batches_, step);
    data.emplace_back("learning_rate", Tensor::scalar(recipe_.optimizer.learning_rate));
    session.run(entry, feeds_of(session.entry(entry), data));
  }

  Tensor prediction(Session& session) const {
    run(session, plan::kPredict, 0);
    return session.result_tensor(recipe_.model.output);
  }

  void begin_as_recorded(Session& session) const {
    std::uint64_t number = 0;  // items() is in the order of the names
    for (const auto& [weight, inputs] : golden_["inputs"].items()) session.write(weight + plan::kAdapterA, first_a(number++, golden_["rank"], inputs));
  }

  void train_as_recorded(Session& session) const {
    for (std::size_t i = 0; i < golden_["losses"].size(); ++i) {
      run(session, plan::kTrainStep, i);
      const double loss = session.result_tensor(plan::kLossSum).at(0) / session.result_tensor(plan::kTargetCount).at(0);
      const double wanted = golden_["losses"][i];
      ASSERT_NEAR(loss, wanted, 2e-5 * std::fmax(1, std::abs(wanted))) << "at step " << i;
    }
  }

  std::int64_t arena_of_step(const plan::Plan& plan) const {
    const auto& entries = plan.programs.at(0).entries;
    const auto entry = std::find_if(entries.begin(), entries.end(), [](const plan::Entry& each) { return each.name == plan::kTrainStep; });
    Arrays data = batch_of(batches_, 0);
    data.emplace_back("learning_rate", Tensor::scalar(recipe_.optimizer.learning_rate));
    return arena_size(*entry, bind_sizes(*entry, feeds_of(*entry, data))).value().bytes;
  }

  Json golden_;
  std::string folder_;
  Recipe recipe_;
  Arrays batches_;
};

void expect_close(const Tensor& found, const Tensor& wanted) {
  ASSERT_EQ(found.shape(), wanted.shape());
  double error = 0, scale = 0;
  for (std::int64_t i = 0; i < wanted.element_count(); ++i) {
    error = std::fmax(error, std::abs(found.at(i) - wanted.at(i)));
    scale = std::fmax(scale, std::abs(wanted.at(i)));
  }
  EXPECT_LE(error, 1e-5 * scale);
}

TEST_P(Adapters, TrainAsInPyTorchAndMergeIntoTheSavedModel) {
  const plan::Plan plan = compiled(folder_ + "model.onnx", recipe_);
  Session session(plan, {.device = "cpu", .threads = 1});
  begin_as_recorded(session);
  ASSERT_NO_FATAL_FAILURE(train_as_recorded(session));
  const Tensor with_adapters = prediction(session);
  const TempFolder folder;
  save_weights(plan.onnx_model, session, folder / "merged.onnx");
  Session merged(compiled(folder / "merged.onnx", resolve(parse_recipe("", "none.toml"))), {.device = "cpu", .threads = 1});
  expect_close(prediction(merged), with_adapters);
}

/// A state belongs to the weight whose name it begins with.
bool is_of(const plan::Persistent& state, const plan::Persistent& weight) { return weight.role == plan::Persistent::Role::kWeight and state.name.starts_with(weight.name); }

TEST_P(Adapters, FrozenWeightsHaveNoStatesAndTakeNoGradients) {
  const plan::Plan plan = compiled(folder_ + "model.onnx", recipe_);
  const auto& persistents = plan.programs.at(0).persistents;
  std::size_t moments = 0;
  for (const plan::Persistent& state : persistents) {
    if (state.role != plan::Persistent::Role::kState) continue;
    const auto belongs = [&](bool trained) { return std::any_of(persistents.begin(), persistents.end(), [&](const auto& weight) { return weight.trained == trained and is_of(state, weight); }); };
    if (belongs(true)) ++moments;
    else EXPECT_FALSE(belongs(false)) << state.name;
  }
  EXPECT_EQ(moments, 2 * golden_["norms"].size());
  Recipe whole = recipe_;
  whole.lora = {};
  whole.model.train_only.clear();
  EXPECT_LT(arena_of_step(plan), arena_of_step(compiled(folder_ + "model.onnx", whole)));
}

INSTANTIATE_TEST_SUITE_P(, Adapters, testing::Range<std::size_t>(0, kCases), [](const auto& info) { return "case_" + std::to_string(info.param); });

}  // namespace
}  // namespace hone::test
