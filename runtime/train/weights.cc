#include "runtime/train/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/diag.h"
#include "base/files.h"
#include "base/kept_weight.h"
#include "base/output_kind.h"
#include "base/recipe_tables.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "runtime/not_finite.h"
#include "runtime/plan/adapters.h"
#include "runtime/train/adapter_files.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/export_onnx.h"
#include "runtime/train/means.h"

namespace hone {

namespace {

bool is_safetensors(const std::string& path) { return lower_case(path).ends_with(".safetensors"); }

StoredWeights weights_in_safetensors(const std::string& path) {
  const auto file = std::make_shared<MappedFile>(path);
  StoredWeights weights;
  for (const SafetensorsEntry& entry : read_safetensors_header(file->bytes(), path).entries)
    weights[entry.name] = {.dtype = entry.dtype, .type_name = std::string(to_string(entry.dtype)), .shape = entry.shape, .read = [file, entry] { return read_entry(file->bytes(), entry); }};
  return weights;
}

StoredWeights weights_in(const std::string& path) {
  refuse_run_folder(path);
  if (is_checkpoint(path)) check_checkpoint(path);  // because nothing else would see a bit that is not what was written
  if (is_folder(path)) return weights_in_safetensors(path + "/model.safetensors");
  return is_safetensors(path) ? weights_in_safetensors(path) : weights_in_onnx(path);
}

/// What others have a weight as.
DType type_outside(const plan::Persistent& persistent) { return persistent.narrowed ? persistent.narrowed->outside : persistent.initial.dtype(); }

/// The file's tensor as the session wants it; what does not fit goes to `problems`.
std::optional<Tensor> weight_from(const StoredWeight& stored, const plan::Persistent& wanted, const std::string& name, std::vector<std::string>* problems) {
  const Tensor& initial = wanted.initial;
  const bool same_kind = stored.dtype and (is_float(*stored.dtype) == is_float(type_outside(wanted)) or *stored.dtype == initial.dtype());
  if (stored.shape != initial.shape() or not same_kind) {
    problems->push_back(fmt::format("{} is {}{} there, and {}{} in the plan", quoted(name), stored.type_name, shape_text(stored.shape), to_string(initial.dtype()),
                                    shape_text(initial.shape())));
    return std::nullopt;
  }
  const Tensor value = stored.read();
  return value.dtype() == initial.dtype() or wanted.narrowed ? value : value.cast(initial.dtype());
}

/// Gives it to the session, which may keep it in less.
void write_weight(Session& session, const plan::Persistent& persistent, const Tensor& value) {
  if (not persistent.narrowed or value.dtype() == persistent.initial.dtype()) return session.write(persistent.name, value);
  const KeptWeight kept = keep_as(value, persistent.initial.dtype(), persistent.narrowed->axis);
  session.write(persistent.name, kept.stored);
  if (not persistent.narrowed->scales.empty()) session.write(persistent.narrowed->scales, kept.scales);
}

/// The factor of an adapter without which it adds nothing.
bool is_added(const plan::Persistent& adapter) { return std::string_view(adapter.name).ends_with(plan::kAdapterB); }

bool is_adapter_of_file(std::string_view name) { return name.starts_with(plan::kExportedPrefix) and name.find(".lora_") != std::string_view::npos; }

Tensor multiplied(const Tensor& tensor, double factor) {
  if (factor == 1) return tensor;
  std::vector<double> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.at(i) * factor);
  return Tensor::of<double>(tensor.shape(), std::span<const double>(values)).cast(tensor.dtype());
}

/// Of a file that holds adapters alone: all of them must be the plan's, and what they add is multiplied.
std::vector<std::pair<std::string, Tensor>> adapters_from(const StoredWeights& stored, const plan::Program& program, double factor, std::vector<std::string>* problems) {
  std::vector<std::pair<std::string, Tensor>> values;
  std::set<std::string_view> known;
  for (const plan::Persistent& persistent : program.persistents) {
    if (persistent.exported_as.empty()) continue;
    const auto found = stored.find(persistent.exported_as);
    known.insert(persistent.exported_as);
    if (found != stored.end()) {
      if (auto value = weight_from(found->second, persistent, persistent.exported_as, problems))
        values.emplace_back(persistent.name, plan::is_adapter(persistent) and is_added(persistent) ? multiplied(*value, factor) : std::move(*value));
    } else if (persistent.trained) {
      problems->push_back(fmt::format("{} is missing there", quoted(persistent.exported_as)));
    }
  }
  for (const auto& [name, tensor] : stored)
    if (not known.contains(name)) problems->push_back(fmt::format("{} is nothing that the plan has", quoted(name)));
  if (not problems->empty())
    problems->emplace_back(known.empty() ? "it holds adapters alone, and the plan has none: compile the model with the [lora] section that they were trained with"
                                         : "it holds adapters alone: those that the plan has follow from lora.targets and lora.rank, and are called by the modules of the model");
  return values;
}

}  // namespace

ReadWeight read_by(const Session& session, const StateReader& reader) {
  if (reader.read) return reader.read;
  return [&session](const std::string& name) { return session.read(name); };
}

Tensor read_widened(const ReadWeight& read, const plan::Persistent& persistent) {
  const Tensor stored = read(persistent.name);
  if (not persistent.narrowed) return stored;
  const auto& [outside, scales, axis] = *persistent.narrowed;
  return widened({stored, scales.empty() ? Tensor{} : read(scales)}, axis, outside);
}

ReadWeight read_for_others(Session& session, ReadWeight read) {
  std::set<std::string> merged;
  if (session.has_entry(plan::kMergedWeights)) {
    session.run(plan::kMergedWeights, {});
    for (const plan::Result& result : session.entry(plan::kMergedWeights).results) merged.insert(result.name);
  }
  return [&session, merged = std::move(merged), read = std::move(read)](const std::string& name) {
    if (merged.contains(name)) return session.result_tensor(name);
    return read_widened(read, *std::ranges::find(session.program().persistents, name, &plan::Persistent::name));
  };
}

void load_weights(Session& session, const Recipe& recipe, const std::string& path) {
  const StoredWeights stored = weights_in(path);
  std::vector<std::string> problems;
  std::vector<std::pair<std::string, Tensor>> values;
  const bool adapters_alone = std::ranges::any_of(stored, [](const auto& weight) { return is_adapter_of_file(weight.first); });
  if (adapters_alone) values = adapters_from(stored, session.program(), adapter_factor(recipe, path), &problems);
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (adapters_alone or not plan::is_of_model(persistent)) continue;
    const auto found = stored.find(persistent.name);
    if (found == stored.end() and plan::is_scale(persistent)) continue;  // which follows from its weight
    if (found == stored.end() and plan::is_adapter(persistent)) {
      if (is_added(persistent)) values.emplace_back(persistent.name, Tensor::zeros(persistent.initial.dtype(), persistent.initial.shape()));
    } else if (found == stored.end()) {
      problems.push_back(fmt::format("{} is missing there", quoted(persistent.name)));
    } else if (auto value = weight_from(found->second, persistent, persistent.name, &problems)) {
      values.emplace_back(persistent.name, std::move(*value));
    }
  }
  if (not problems.empty()) {
    if (not adapters_alone) problems.emplace_back("weights are found by name: take a file that hone-run train wrote with --out, a checkpoint, or the model that the plan was compiled from");
    throw Error(Code::kPlanMismatch, fmt::format("the weights in {} do not fit the plan", quoted(path)), {}, std::move(problems));
  }
  for (const auto& [name, value] : values) write_weight(session, *std::ranges::find(session.program().persistents, name, &plan::Persistent::name), value);
}

void save_weights(std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader) {
  if (not is_safetensors(path)) return export_onnx(onnx_model, session, path, reader);
  save_persistents(session, [](const plan::Persistent& persistent) { return persistent.in_model; }, read_for_others(session, read_by(session, reader)), For::kOthers, path, reader.confirm);
}

void check_trained_file(std::string_view flag, const Recipe& recipe, const std::string& path) {
  check_ending(flag, path, kTrainedFile);
  if (not exports_adapters_alone(recipe) or is_safetensors(path)) return;
  throw Error(Code::kUsage, fmt::format("{} {}: with lora.export = \"separate\" the adapters alone are written, which a .safetensors file holds", flag, quoted(path)), {},
              {"write to a name that ends in .safetensors (PEFT reads adapter_model.safetensors), or compile with lora.export = \"merged\""});
}

void save_trained(const Recipe& recipe, std::span<const std::byte> onnx_model, Session& session, const std::string& path, const StateReader& reader) {
  check_trained_file("save", recipe, path);
  if (exports_adapters_alone(recipe)) save_adapters(recipe, session, path, reader);
  else save_weights(onnx_model, session, path, reader);
}

void save_persistents(const Session& session, const std::function<bool(const plan::Persistent&)>& is_wanted, const ReadWeight& read, For whom, const std::string& path, const std::function<void()>& confirm) {
  std::vector<SafetensorsSource> sources;
  for (const plan::Persistent& persistent : session.program().persistents)
    if (is_wanted(persistent))
      sources.push_back({persistent.name, whom == For::kOthers ? type_outside(persistent) : persistent.initial.dtype(), persistent.initial.shape(), [&read, &persistent] { return read(persistent.name); }});
  write_safetensors(path, sources, {{"format", "pt"}}, confirm);  // what the readers of others ask for
}

const RecipeKey* key_of(const plan::Persistent& persistent) {
  if (persistent.role != plan::Persistent::Role::kState or plan::is_of_model(persistent)) return nullptr;
  std::string_view name = persistent.name;
  while (name.ends_with('_')) name.remove_suffix(1);  // the model has an input of that name
  return find_recipe_key(name);
}

void follow_recipe(Session& session, const Recipe& recipe) {
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (persistent.role == plan::Persistent::Role::kState and persistent.name == plan::kRandomSeed) session.write(persistent.name, Tensor::scalar(recipe.train.seed));
    if (const RecipeKey* key = key_of(persistent)) session.write(persistent.name, Tensor::scalar(key->get(recipe).number));
  }
}

void forget_accumulated(Session& session) {
  for (const plan::Persistent& persistent : session.program().persistents) {
    const bool is_sum = persistent.name.ends_with(plan::kAccumulatedSuffix) or persistent.name == plan::kAccumulatedTargets;
    if (is_sum and persistent.role == plan::Persistent::Role::kState) session.write(persistent.name, Tensor::zeros(persistent.initial.dtype(), persistent.initial.shape()));
  }
}

std::string weight_gone(const Session& session) {
  for (const plan::Persistent& persistent : session.program().persistents) {
    const bool is_read = persistent.role != plan::Persistent::Role::kConstant and plan::is_of_model(persistent) and not session.holds_part(persistent.name);
    if (is_read and not are_finite(session.read(persistent.name)) and are_finite(persistent.initial)) return persistent.name;
  }
  return "";
}

bool take_averages(const Session& session, StepRunner& runner) {
  NamedTensors averages;
  for (const plan::Persistent& persistent : session.program().persistents) {
    const std::string_view name = persistent.name, suffix = plan::kEmaSuffix;
    if (persistent.in_model or not name.ends_with(suffix)) continue;
    averages.emplace_back(name.substr(0, name.size() - suffix.size()), session.read(name));
  }
  if (not averages.empty()) runner.set_weights(averages);  // none: what replicas have is not given anew
  return not averages.empty();
}

}  // namespace hone
