// Weights in and out of files: .onnx, safetensors, checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/recipe.h"
#include "base/tensor.h"
#include "runtime/session.h"
#include "runtime/train/state_reader.h"

namespace hone {

class StepRunner;

/// A tensor of a file that has not been read yet.
struct StoredWeight {
  std::optional<DType> dtype;  ///< nothing for one that Hone does not have
  std::string type_name;       ///< for messages
  std::vector<std::int64_t> shape;
  std::function<Tensor()> read;  ///< the file is held open by it
};
using StoredWeights = std::map<std::string, StoredWeight, std::less<>>;

/// Gives a persistent tensor by name, in plain layout.
using ReadWeight = std::function<Tensor(const std::string& name)>;

/// As `reader` does; as the session has them, which it does not outlive, where that is empty.
ReadWeight read_by(const Session& session, const StateReader& reader);
/// The persistent as the model has it: in the type that it has outside, where the plan keeps it in fewer bytes (Persistent::narrowed).
Tensor read_widened(const ReadWeight& read, const plan::Persistent& persistent);
/// The session's weights as those want them who know nothing of adapters: with them added (plan::kMergedWeights, which is run here, where the plan has it: results of
/// earlier runs are gone). Those that are no such sums are read by `read`. It lives no longer than the session.
ReadWeight read_for_others(Session& session, ReadWeight read);

/// Gives the session the weights in `path`: an .onnx file with the plan's names, as save_weights() writes it, a .safetensors file, or a checkpoint's folder. Throws
/// kPlanMismatch that lists every weight which is missing there or has another shape or kind of type; then nothing has changed.
/// A file without adapters is of a model that is whole: those of the plan add nothing then. One that holds adapters alone, by PEFT's names, leaves all else as it is; they add what they add with
/// the alpha in adapter_config.json beside it, whatever `recipe`, the plan's, has. Throws what adapter_factor() throws.
void load_weights(Session& session, const Recipe& recipe, const std::string& path);

/// Writes the session's weights, as read_for_others() gives them, and running statistics, atomically: a name that ends in .safetensors gets them alone, by name; any other the model that came in
/// (Plan::onnx_model) with them in it. Throws what export_onnx() and write_safetensors() throw, and the reader.
void save_weights(std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader = {});

/// Throws Error kUsage where `path`, which `flag` (or a function) was given, is no name for what a training run leaves: it has the ending of another kind of file, or adapters alone are to go into what is no
/// .safetensors: nothing else holds them by PEFT's names.
void check_trained_file(std::string_view flag, const Recipe& recipe, const std::string& path);
/// What a training run leaves: save_weights(), or with lora.export = "separate" the adapters alone (runtime/train/adapter_files.h). Throws what check_trained_file() throws, too.
void save_trained(const Recipe& recipe, std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader = {});

/// The first weight or running statistic that training made infinite or NaN; "" if there is none. What began so (a mask in the file) may stay so.
std::string weight_gone(const Session& session);

/// Who reads a file: this plan again, which keeps frozen weights in less (plan::Persistent::narrowed), or others.
enum class For : std::uint8_t { kThisPlan, kOthers };
/// Writes those of the session's weights and states that `is_wanted` names, as `read` gives them, as .safetensors, atomically, if `confirm` agrees. Throws what write_safetensors() throws.
void save_persistents(const Session& session, const std::function<bool(const plan::Persistent&)>& is_wanted, const ReadWeight& read, For whom, const std::string& path, const std::function<void()>& confirm = {});

/// The key of `recipe_keys()` whose number the state holds, which steps read and none replaces; null for all others.
const RecipeKey* key_of(const plan::Persistent& persistent);
/// Gives the session what its steps read of a run's recipe: the seed of random numbers, and the numbers that may be changed when running (RecipeKey::When::kIfThere). A plan begins with those that it was compiled with.
void follow_recipe(Session& session, const Recipe& recipe);

/// Forgets the gradients of batches that never made an update: of a group that an error has ended.
void forget_accumulated(Session& session);

/// Puts the moving averages of weights (plan::kEmaSuffix), which `session`, the runner's first, has whole, in the weights' places, which the runner's other replicas get with the next step or save(). Those were compared when the run ended. False if there are none.
bool take_averages(const Session& session, StepRunner& runner);

}  // namespace hone
