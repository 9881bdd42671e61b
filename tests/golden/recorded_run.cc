#include "tests/golden/recorded_run.h"

#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "backends/compile.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "frontend/onnx/import.h"
#include "frontend/recipe_toml.h"
#include "runtime/session.h"
#include "runtime/train/replica_runner.h"
#include "tests/support/host_level.h"

namespace hone::test {

namespace {

using Json = nlohmann::json;
using Feeds = std::vector<std::pair<std::string, TensorView>>;
using Arrays = std::vector<std::pair<std::string, Tensor>>;

const std::string kModels = std::string(HONE_SHARED_DIR) + "/models/";
constexpr int kSmallNodes = 40;  // compiling takes most of a test's time, and grows with them

Json read_golden(const std::string& name) {
  std::ifstream file(kModels + name + "/golden.json");
  return Json::parse(file);
}

bool is_of_kind(const Json& golden, Recorded kind) {
  if (kind == Recorded::kModels) return true;
  int nodes = 0;
  for (const auto& [op_type, count] : golden["op_types"].items())
    if (op_type != "Constant") nodes += count.get<int>();
  return golden.contains("loss_f64") and (nodes <= kSmallNodes or kind == Recorded::kRuns);
}

/// The recipe that golden.json describes, as TOML.
std::string recipe_of(const Json& golden) {
  static const std::map<std::string, std::string> kKeys = {{"lr", "learning_rate"}, {"eps", "epsilon"}, {"alpha", "rho"}};
  const std::string loss = golden["loss"];
  std::string text = fmt::format("[model]\noutput = {}\ntrain_only = {}\n", golden["output"].dump(), golden["trainable"].dump());
  text += fmt::format("[loss]\nkind = \"{}\"\n", loss == "sparse_categorical_crossentropy_on_probabilities" ? "cross_entropy" : loss);
  text += fmt::format("[train]\nconvention = \"{}\"\n", golden["exporter"].get<std::string>().find("tf2onnx") == std::string::npos ? "torch" : "keras");
  text += fmt::format("[optimizer]\nkind = {}\n", golden["optimizer"]["name"].dump());
  for (const auto& [key, value] : golden["optimizer"].items()) {
    const bool is_default = value == 0.0 or value == false;
    const bool needed = key == "lr" or key == "eps" or key == "beta1" or key == "beta2" or key == "initial_accumulator_value";
    if ((value.is_number() or value.is_boolean()) and (needed or not is_default)) text += fmt::format("{} = {}\n", kKeys.contains(key) ? kKeys.at(key) : key, value.dump());
  }
  return text;
}

/// Slice `step` of an array with axes [step, batch, ...].
Tensor slice(const Tensor& all, std::int64_t step) {
  std::vector<std::int64_t> shape(all.shape().begin() + 1, all.shape().end());
  const auto bytes = static_cast<std::size_t>(checked_element_count(shape)) * size_of(all.dtype());
  return Tensor::copy(all.dtype(), shape, all.bytes().subspan(static_cast<std::size_t>(step) * bytes, bytes));
}

Arrays arrays_in(const std::string& path) {
  Arrays arrays;
  for (const auto& [key, array] : read_npz(path)) arrays.emplace_back(key, array);
  return arrays;
}

/// Are their plans the same?
bool is_compiled_alike(const Setting& a, const Setting& b) {
  const auto made_by = [](const Setting& setting) { return std::tie(setting.passes, setting.precision, setting.keep_f32, setting.target, setting.sync_batch_norm, setting.memory_limit); };
  return made_by(a) == made_by(b);
}

/// A compiled model and what its framework made of it. The plan stays for the next one of this process that is compiled alike: compiling takes longer than training.
class Run {
 public:
  Run(const std::string& name, const Setting& setting) : golden_(read_golden(name)), folder_(kModels + name + "/"), batches_(arrays_in(folder_ + "train.npz")) {
    static std::string last_name;
    static Setting last_setting;
    static plan::Plan plan;
    if (name != last_name or not is_compiled_alike(setting, last_setting)) plan = compiled(name, setting);
    last_name = name;
    last_setting = setting;
    replicas_.emplace(plan, setting.replicas, SessionOptions{.device = setting.target, .threads = setting.threads});
    session_ = &replicas_->session();
    if (replicas_->is_alone()) runner_ = std::make_unique<SessionRunner>(*session_);
    else runner_ = std::make_unique<ReplicaRunner>(*replicas_, plan.batch_symbol);
  }

  std::vector<RecordedMemory> memory() {
    std::vector<RecordedMemory> list;
    for (const plan::Entry& entry : session_->program().entries) {
      if (entry.name.starts_with("replica_") or entry.name.starts_with("idle_") or plan::is_sharded(entry.name) or entry.name == plan::kShardStep) continue;  // nobody runs them alone
      run(entry.name, batch(0));
      DimBindings sizes;
      for (const plan::Feed& feed : entry.feeds)
        for (std::size_t i = 0; i < feed.shape.size(); ++i)
          if (feed.shape[i].is_symbol()) sizes[feed.shape[i].text()] = shape_of_first(feed.name)[i];
      list.push_back({entry.name, session_->memory(entry.name), arena_size(entry, sizes).value()});
    }
    return list;
  }

  /// Moves each trained weight's values by a share of them, up and down in turn.
  void move_weights(double by) {
    for (const auto& [weight, norm] : golden_["param_norms_after"].items()) {
      const Tensor values = session_->read(weight);
      std::vector<double> moved;
      for (std::int64_t i = 0; i < values.element_count(); ++i) moved.push_back(values.at(i) * (1 + (i % 2 == 0 ? by : -by)));
      session_->write(weight, Tensor::of<double>(values.shape(), moved).cast(values.dtype()));
    }
  }

  /// Steps over the recorded batches, each with its loss.
  void train() {
    const Json& losses = golden_["loss_f64"];
    double spread = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      spread = std::fmax(spread, golden_["spread"]["loss_by_step"][i].get<double>());
      const double loss = step(i == 0 ? plan::kTrainStepNorms : plan::kTrainStep, batch(static_cast<std::int64_t>(i)));
      if (i == 0) expect_first_gradients();
      ASSERT_NO_FATAL_FAILURE(expect_loss(loss, losses[i], spread, fmt::format("at step {}", i)));
    }
  }

  /// One more step over a batch of another size, as at the end of an epoch.
  void train_last() {
    const double loss = step(plan::kTrainStep, arrays_in(folder_ + "train_last.npz"));
    expect_loss(loss, golden_["loss_last_f64"], golden_["spread"]["loss_last"], "for the smaller batch at the end");
  }

  /// The output of the inference model on the first batch. `key` names the file that it was written to, and how far rounding alone moved it.
  void expect_output(const std::string& key, double spread) {
    run(plan::kPredict, batch(0));
    const Tensor output = session_->result_tensor(golden_["output"].get<std::string>()), wanted = read_npy(folder_ + golden_["eval_output_" + key].get<std::string>());
    ASSERT_EQ(output.shape(), wanted.shape());
    double error = 0, scale = 1;
    for (std::int64_t i = 0; i < wanted.element_count(); ++i) {
      error = std::fmax(error, std::abs(output.at(i) - wanted.at(i)));
      scale = std::fmax(scale, std::abs(wanted.at(i)));
    }
    EXPECT_LE(error, 5 * spread + 1e-4 * scale) << "the output " << key << " training";
  }
  std::vector<double> losses() {
    std::vector<double> losses;
    for (std::size_t i = 0; i < golden_["loss_f64"].size(); ++i) losses.push_back(step(plan::kTrainStep, batch(static_cast<std::int64_t>(i))));
    return losses;
  }

  /// All steps, and the last batch of another size.
  std::vector<std::byte> weights_after_training() {
    for (std::size_t i = 0; i < golden_["loss_f64"].size(); ++i) (void)step(plan::kTrainStep, batch(static_cast<std::int64_t>(i)));
    (void)step(plan::kTrainStep, arrays_in(folder_ + "train_last.npz"));
    std::vector<std::byte> bytes;
    for (const plan::Persistent& persistent : session_->program().persistents) {
      if (persistent.role == plan::Persistent::Role::kConstant) continue;
      const Tensor value = session_->read(persistent.name);
      bytes.insert(bytes.end(), value.bytes().begin(), value.bytes().end());
    }
    return bytes;
  }

  void expect_output_before() { expect_output("before", 0); }
  void expect_output_after() { expect_output("after", golden_["spread"]["eval_after"]); }

  void expect_weights_after() {
    for (const auto& [weight, norm] : golden_["param_norms_after"].items()) {
      const Tensor values = session_->read(weight);
      double square = 0;
      for (std::int64_t i = 0; i < values.element_count(); ++i) square += values.at(i) * values.at(i);
      const double wanted = norm, spread = golden_["spread"]["param_norms_rel"][weight];
      EXPECT_NEAR(std::sqrt(square), wanted, (5 * spread + 1e-4) * wanted) << "norm of the trained " << weight;
    }
  }

 private:
  plan::Plan compiled(const std::string& name, const Setting& setting) const {
    Recipe recipe = resolve(parse_recipe(recipe_of(golden_), "golden.json"));
    recipe.model.sync_batch_norm = setting.sync_batch_norm;
    recipe.train.precision = setting.precision;
    recipe.train.keep_f32 = setting.keep_f32;
    onnx::Imported model = onnx::import_model(folder_ + "model.onnx", {.mend = onnx::mend_options(recipe)});
    if (setting.memory_limit > 0) model = onnx::import_model(folder_ + "model.onnx", {.dims = sizes_but_batch(model.graph), .mend = onnx::mend_options(recipe)});
    CompileOptions options = {.targets = {setting.target}, .levels = {.cpu = {host_level()}}, .passes = setting.passes};
    if (setting.memory_limit > 0) options.memory_limit = MemoryLimit{.bytes = setting.memory_limit, .batch = batches_.front().second.shape()[1]};
    return compile({model.graph, model.model, name}, recipe, options).plan;
  }

  /// Of the recorded batches: what a limit must know.
  std::map<std::string, std::int64_t> sizes_but_batch(const Graph& graph) const {
    std::map<std::string, std::int64_t> sizes;
    for (const Input& input : graph.inputs()) {
      const Shape& shape = graph.type(input.value).shape;
      const std::vector<std::int64_t> recorded = shape_of_first(input.name);
      for (std::size_t axis = 1; axis < shape.size() and axis < recorded.size(); ++axis)
        if (shape[axis].is_symbol()) sizes[shape[axis].text()] = recorded[axis];
    }
    return sizes;
  }

  std::vector<std::int64_t> shape_of_first(const std::string& feed) const {
    for (const auto& [name, tensor] : batch(0))
      if (name == feed) return tensor.shape();
    return {};
  }

  Arrays batch(std::int64_t step) const {
    Arrays sliced;
    for (const auto& [key, array] : batches_) sliced.emplace_back(key, slice(array, step));
    return sliced;
  }

  void run(std::string_view entry, Arrays data) {
    Feeds feeds;
    const Tensor rate = Tensor::scalar(golden_["optimizer"]["lr"].get<double>());
    for (const plan::Feed& feed : session_->entry(entry).feeds) {
      const auto found = std::find_if(data.begin(), data.end(), [&](const auto& item) { return item.first == feed.name; });
      if (found != data.end()) found->second = found->second.cast(feed.dtype);
      feeds.emplace_back(feed.name, found == data.end() ? rate : found->second);
    }
    if (entry == plan::kPredict) session_->run(entry, feeds);  // by the first replica
    else runner_->run(entry, feeds);
  }

  /// The mean loss of the batch before its step.
  double step(std::string_view entry, Arrays data) {
    run(entry, std::move(data));
    return scalar_result(*runner_, plan::kLossSum) / scalar_result(*runner_, plan::kTargetCount);
  }

  static void expect_loss(double loss, double wanted, double spread, const std::string& where) {
    ASSERT_NEAR(loss, wanted, 5 * spread + 2e-5 * std::fmax(1, std::abs(wanted))) << where;
  }

  void expect_first_gradients() {
    const Json& norms = golden_["grad_norms_first"];
    double largest = 0;
    for (const auto& [weight, norm] : norms.items()) largest = std::fmax(largest, norm.get<double>());
    for (const auto& [weight, norm] : norms.items()) {
      const double found = scalar_result(*runner_, plan::kGradNormPrefix + weight), wanted = norm;
      EXPECT_NEAR(found, wanted, 1e-3 * wanted + 1e-5 * largest) << "norm of the first gradient of " << weight;
    }
  }

  Json golden_;
  std::string folder_;
  Arrays batches_;
  std::optional<Replicas> replicas_;
  Session* session_ = nullptr;  // of the first one
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace

std::vector<std::string> recorded(Recorded kind) {
  std::vector<std::string> names;
  if (std::filesystem::exists(kModels))
    for (const auto& entry : std::filesystem::directory_iterator(kModels)) {
      const std::string name = entry.path().filename().string();
      if (is_recorded(name) and is_of_kind(read_golden(name), kind)) names.push_back(name);
    }
  std::sort(names.begin(), names.end());
  if (names.empty()) names.emplace_back("none");
  return names;
}

bool is_recorded(const std::string& name) { return std::filesystem::exists(kModels + name + "/golden.json"); }

void write_recorded(const TempFolder& folder, const std::string& name) {
  std::filesystem::copy_file(kModels + name + "/model.onnx", folder / "model.onnx");
  folder.write("train.toml", recipe_of(read_golden(name)));
}

namespace {

/// Number `nudge` of the ways to move weights in their last places; 0: they stay.
void train_as_recorded(const std::string& name, const Setting& setting, int nudge) {
  Run run(name, setting);
  const int places = (nudge + 1) / 2;
  if (nudge > 0) run.move_weights((nudge % 2 == 1 ? places : -places) * 0x1p-23);
  run.expect_output_before();
  ASSERT_NO_FATAL_FAILURE(run.train());
  run.expect_output_after();
  run.expect_weights_after();
  run.train_last();
}

}  // namespace

void expect_trains_as_recorded(const std::string& name, const Setting& setting) {
  for (int run = 1; run < setting.tries; ++run) {
    testing::TestPartResultArray failures;
    {
      const testing::ScopedFakeTestPartResultReporter collected(testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
      train_as_recorded(name, setting, run - 1);
    }
    if (failures.size() == 0) return;
    fmt::print("run {} left the recorded one: {}\n", run, failures.GetTestPartResult(0).message());
  }
  train_as_recorded(name, setting, setting.tries - 1);
}

std::vector<double> losses_of_training(const std::string& name, const Setting& setting) {
  Run run(name, setting);
  if (setting.moved != 0) run.move_weights(setting.moved);
  return run.losses();
}

std::vector<std::byte> trained_weights(const std::string& name, const Setting& setting) { return Run(name, setting).weights_after_training(); }

std::vector<RecordedMemory> memory_of_recorded(const std::string& name, const Setting& setting) { return Run(name, setting).memory(); }

}  // namespace hone::test
