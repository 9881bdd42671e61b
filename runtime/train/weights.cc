#include "runtime/train/weights.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "runtime/plan/adapters.h"
#include "runtime/train/export_onnx.h"

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
  if (is_folder(path)) return weights_in_safetensors(path + "/model.safetensors");
  return is_safetensors(path) ? weights_in_safetensors(path) : weights_in_onnx(path);
}

/// The file's tensor as the session wants it; what does not fit goes to `problems`.
std::optional<Tensor> weight_from(const StoredWeight& stored, const plan::Persistent& wanted, std::vector<std::string>* problems) {
  const Tensor& initial = wanted.initial;
  const bool same_kind = stored.dtype and is_float(*stored.dtype) == is_float(initial.dtype());
  if (stored.shape != initial.shape() or not same_kind) {
    problems->push_back(fmt::format("{} is {}{} there, and {}{} in the plan", quoted(wanted.name), stored.type_name, shape_text(stored.shape), to_string(initial.dtype()),
                                    shape_text(initial.shape())));
    return std::nullopt;
  }
  const Tensor value = stored.read();
  return value.dtype() == initial.dtype() ? value : value.cast(initial.dtype());
}

/// The factor of an adapter without which it adds nothing.
bool is_added(const plan::Persistent& adapter) { return std::string_view(adapter.name).ends_with(plan::kAdapterB); }

}  // namespace

ReadWeight read_for_others(Session& session) {
  std::set<std::string> merged;
  if (session.has_entry(plan::kMergedWeights)) {
    session.run(plan::kMergedWeights, {});
    for (const plan::Result& result : session.entry(plan::kMergedWeights).results) merged.insert(result.name);
  }
  return [&session, merged = std::move(merged)](const std::string& name) { return merged.contains(name) ? session.result_tensor(name) : session.read(name); };
}

void load_weights(Session& session, const std::string& path) {
  const StoredWeights stored = weights_in(path);
  std::vector<std::string> problems;
  std::vector<std::pair<std::string, Tensor>> values;
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (not plan::is_of_model(persistent)) continue;
    const auto found = stored.find(persistent.name);
    if (found == stored.end() and plan::is_adapter(persistent)) {
      if (is_added(persistent)) values.emplace_back(persistent.name, Tensor::zeros(persistent.initial.dtype(), persistent.initial.shape()));
    } else if (found == stored.end()) {
      problems.push_back(fmt::format("{} is missing there", quoted(persistent.name)));
    } else if (auto value = weight_from(found->second, persistent, &problems)) {
      values.emplace_back(persistent.name, std::move(*value));
    }
  }
  if (not problems.empty()) {
    problems.emplace_back("weights are found by name: take a file that hone-run train wrote with --out, a checkpoint, or the model that the plan was compiled from");
    throw Error(Code::kPlanMismatch, fmt::format("the weights in {} do not fit the plan", quoted(path)), {}, std::move(problems));
  }
  for (const auto& [name, value] : values) session.write(name, value);
}

void save_weights(std::span<const std::byte> onnx_model, Session& session, const std::string& path) {
  if (not is_safetensors(path)) return export_onnx(onnx_model, session, path);
  save_persistents(session, [](const plan::Persistent& persistent) { return persistent.in_model; }, read_for_others(session), path);
}

void save_persistents(const Session& session, const std::function<bool(const plan::Persistent&)>& is_wanted, const ReadWeight& read, const std::string& path) {
  std::vector<SafetensorsSource> sources;
  for (const plan::Persistent& persistent : session.program().persistents)
    if (is_wanted(persistent))
      sources.push_back({persistent.name, persistent.initial.dtype(), persistent.initial.shape(), [&read, &persistent] { return read(persistent.name); }});
  write_safetensors(path, sources, {{"format", "pt"}});  // what the readers of others ask for
}

void set_random_seed(Session& session, std::int64_t seed) {
  for (const plan::Persistent& persistent : session.program().persistents)
    if (persistent.role == plan::Persistent::Role::kState and persistent.name == plan::kRandomSeed) session.write(persistent.name, Tensor::scalar(seed));
}

bool take_averages(Session& session) {
  bool any = false;
  for (const plan::Persistent& persistent : session.program().persistents) {
    const std::string_view name = persistent.name, suffix = plan::kEmaSuffix;
    if (persistent.in_model or not name.ends_with(suffix)) continue;
    session.write(name.substr(0, name.size() - suffix.size()), session.read(name));
    any = true;
  }
  return any;
}

}  // namespace hone
