#include "runtime/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/diag.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "formats/safetensors.h"
#include "runtime/plan/adapters.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCheckpointVersion = 1;
constexpr const char *kModel = "model.safetensors", *kOptimizer = "optimizer.safetensors", *kState = "state.json", *kManifest = "manifest.json";
constexpr std::array kFiles = {kModel, kOptimizer, kState};
constexpr std::string_view kPrefix = "checkpoint-", kHalf = ".half", kOld = ".old";
constexpr std::uint64_t kManifestBytes = 64 * 1024;

Error unsound(const std::string& path, const std::string& what) {
  return {Code::kDataFormat, fmt::format("the checkpoint {} is not sound: {}", printable(path, 1000), what), {}, {"take another one, or copy it again from where it is whole"}};
}

/// Whoever opens a pipe waits for its writer.
void require_file(const std::string& path, const char* name) {
  std::error_code ignored;
  if (not std::filesystem::is_regular_file(path + "/" + name, ignored)) throw unsound(path, fmt::format("{} is no file", name));
}

/// Size and hash of a file.
Json fingerprint(const std::string& path) {
  const MappedFile file(path);
  return {{"bytes", file.size()}, {"xxh3_128", wide_hash_of(file.bytes())}};
}

/// What is the recipe's is not: a run that goes on may have changed it.
bool is_kept(const plan::Persistent& persistent, bool of_model) {
  return persistent.role != plan::Persistent::Role::kConstant and plan::is_of_model(persistent) == of_model and key_of(persistent) == nullptr;
}

/// What does not fit the plan goes to `problems`.
void read_persistents(const std::string& path, const Session& session, bool of_model, std::vector<std::pair<std::string, Tensor>>* values, std::vector<std::string>* problems) {
  std::map<std::string, Tensor> found;
  for (auto& [name, tensor] : read_safetensors(path)) found.emplace(name, std::move(tensor));
  for (const plan::Persistent& persistent : session.program().persistents) {
    if (not is_kept(persistent, of_model)) continue;
    const auto value = found.find(persistent.name);
    const Tensor& like = persistent.initial;
    if (value == found.end()) {
      problems->push_back(fmt::format("{} is missing there", quoted(persistent.name)));
    } else if (value->second.dtype() != like.dtype() or value->second.shape() != like.shape()) {
      problems->push_back(fmt::format("{} is {}{} there, and {}{} in the plan", quoted(persistent.name), to_string(value->second.dtype()), shape_text(value->second.shape()),
                                      to_string(like.dtype()), shape_text(like.shape())));
    } else {
      values->emplace_back(value->first, value->second);
    }
    if (value != found.end()) found.erase(value);
  }
  for (const auto& [name, tensor] : found) problems->push_back(fmt::format("the plan has no {}", quoted(name)));
}

/// "checkpoint-000500" -> 500
std::optional<std::int64_t> step_of(std::string_view name) {
  if (not name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc{} and end == name.data() + name.size() and step >= 0 ? std::optional(step) : std::nullopt;
}

/// RUN/checkpoint-000500 -> RUN/.checkpoint-000500.half
std::string beside(const std::string& path, std::string_view ending) { return fmt::format("{}/.{}{}", folder_of(path), file_name_of(path), ending); }

/// What a run that was killed left of a checkpoint that it wrote, or was about to replace.
void finish_replacing(const std::string& path) {
  remove_tree(beside(path, kHalf));
  const std::string old = beside(path, kOld);
  if (file_exists(old) and not file_exists(path)) rename_durably(old, path);
  else remove_tree(old);
}

}  // namespace

void write_checkpoint(const std::string& path, const Session& session, const TrainState& state, const StateReader& reader) {
  const std::string half = beside(path, kHalf), old = beside(path, kOld);
  finish_replacing(path);
  make_folders(half);
  try {
    const ReadWeight read = read_by(session, reader);
    save_persistents(session, [](const plan::Persistent& persistent) { return is_kept(persistent, true); }, read, For::kThisPlan, half + "/" + kModel);
    save_persistents(session, [](const plan::Persistent& persistent) { return is_kept(persistent, false); }, read, For::kThisPlan, half + "/" + kOptimizer);
    if (reader.confirm) reader.confirm();
    write_file_atomically(half + "/" + kState, to_json(state));
    Json manifest = {{"version", kCheckpointVersion}, {"files", Json::object()}};
    for (const char* file : kFiles) manifest["files"][file] = fingerprint(half + "/" + file);
    write_file_atomically(half + "/" + kManifest, manifest.dump(2) + "\n");
    sync_folder(half);
    if (file_exists(path)) rename_durably(path, old);
    rename_durably(half, path);
  } catch (const Error&) {
    try {
      finish_replacing(path);  // half of a checkpoint may be what fills the disk
    } catch (const Error&) {   // then the next run does it
    }
    throw;
  }
  remove_tree(old);
}

void refuse_run_folder(const std::string& path) {
  std::int64_t newest = -1;
  std::string name;
  for (const std::string& each : is_folder(path) ? list_folder(path) : std::vector<std::string>{})
    if (const auto step = step_of(each); step and *step > newest) newest = *step, name = each;
  if (newest >= 0) throw Error(Code::kCheckpoint, fmt::format("{} is the folder of a run, not a checkpoint", quoted(path)), {}, {fmt::format("name one of its checkpoints: {}/{}", printable(path, 1000), name)});
}

bool is_checkpoint(const std::string& path) { return file_exists(path + "/" + kManifest) or file_exists(path + "/" + kState); }

void check_checkpoint(const std::string& path) {
  if (not is_folder(path)) throw unsound(path, file_exists(path) ? "it is no folder" : "it is not there");
  refuse_run_folder(path);
  if (not file_exists(path + "/" + kManifest)) throw unsound(path, fmt::format("it has no {}", kManifest));
  require_file(path, kManifest);
  const Json manifest = parse_untrusted_json<Json>(read_file(path + "/" + kManifest, kManifestBytes));
  if (not manifest.is_object() or not manifest.contains("files") or not manifest["files"].is_object()) throw unsound(path, fmt::format("its {} is damaged", kManifest));
  if (not manifest.contains("version") or manifest["version"] != kCheckpointVersion) throw unsound(path, "it was written by another version of Hone");
  for (const char* file : kFiles) {
    if (not manifest["files"].contains(file)) throw unsound(path, fmt::format("its {} lacks {}", kManifest, file));
    if (not file_exists(path + "/" + file)) throw unsound(path, fmt::format("{} is missing", file));
    require_file(path, file);
    if (fingerprint(path + "/" + file) != manifest["files"][file]) throw unsound(path, fmt::format("{} is not what was written", file));
  }
}

TrainState load_checkpoint(const std::string& path, Session& session) {
  check_checkpoint(path);
  std::vector<std::pair<std::string, Tensor>> values;
  std::vector<std::string> problems;
  read_persistents(path + "/" + kModel, session, true, &values, &problems);
  read_persistents(path + "/" + kOptimizer, session, false, &values, &problems);
  if (not problems.empty()) {
    problems.emplace_back("go on with the plan that the run began with; --weights takes the weights alone, for another optimizer or loss");
    throw Error(Code::kPlanMismatch, fmt::format("the checkpoint {} does not fit the plan", quoted(path)), {}, std::move(problems));
  }
  TrainState state = state_from_json(read_file(path + "/" + kState), path + "/" + kState);
  for (const auto& [name, value] : values) session.write(name, value);
  return state;
}

Checkpoints::Checkpoints(std::string run_dir, Session& session, CheckpointOptions options) : run_dir_(std::move(run_dir)), session_(session), options_(options) {}

void Checkpoints::enter() {
  if (lock_) return;
  make_folders(run_dir_);
  lock_.emplace(run_dir_);
  if (not lock_->is_held()) {
    lock_.reset();
    throw Error(Code::kUsage, fmt::format("another run is training into {} just now", quoted(run_dir_)), {}, {"name another run folder (--run-dir), or wait until that run has ended"});
  }
  // What a run that was killed left half-written. That of a run that goes on would look the same.
  for (const std::string& name : list_folder(run_dir_))
    if (name.starts_with('.'))
      for (const std::string_view ending : {kHalf, kOld})
        if (name.ends_with(ending) and step_of(name.substr(1, name.size() - 1 - ending.size()))) finish_replacing(run_dir_ + "/" + name.substr(1, name.size() - 1 - ending.size()));
}

std::vector<std::int64_t> Checkpoints::steps() const {
  std::vector<std::int64_t> steps;
  if (not is_folder(run_dir_)) return steps;
  for (const std::string& name : list_folder(run_dir_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string Checkpoints::path(std::int64_t step) const { return fmt::format("{}/{}{:06}", run_dir_, kPrefix, step); }

Checkpoints::Position Checkpoints::position_of(const TrainState& state) { return {state.step, state.epoch, state.batch, state.reported ? 1 : 0}; }

std::string Checkpoints::save(const TrainState& state, Older older, const StateReader& reader) {
  const Position position = position_of(state);
  if (on_disk_ == position) return "";  // nothing has happened since
  if (std::string weight = weight_gone(session_); not weight.empty()) return weight;
  write_checkpoint(path(state.step), session_, state, reader);
  on_disk_ = position;
  if (older == Older::kAllStay) return "";
  std::int64_t newest = 0;
  for (const std::int64_t step : steps()) {
    if (step > state.step) continue;  // damaged ones, which the run went past when it went on, are no reason to remove sound ones
    const bool best = options_.keep_best and state.best and state.best_step == step;
    if (newest++ >= options_.keep and not best) remove_tree(path(step));
  }
  return "";
}

NamedTensors Checkpoints::weights(std::int64_t step) const {
  check_checkpoint(path(step));
  return read_safetensors(path(step) + "/" + kModel);
}

std::optional<TrainState> Checkpoints::restore(std::vector<std::string>* notes) {
  if (not is_folder(run_dir_)) return std::nullopt;
  enter();
  const std::vector<std::int64_t> there = steps();
  std::vector<std::string> reasons;
  for (const std::int64_t step : there) {
    try {
      check_checkpoint(path(step));
    } catch (const Error& error) {
      reasons.push_back(error.diags().front().message);
      continue;
    }
    for (const std::string& reason : reasons) notes->push_back(reason + "; an older one is taken");
    const TrainState state = load_checkpoint(path(step), session_);
    if (state.step != step)
      throw Error(Code::kCheckpoint, fmt::format("{} is the checkpoint of step {}", quoted(path(step)), state.step), {},
                  {fmt::format("rename it to {}, or remove it: the run would go on as if it were another step's", quoted(path(state.step)))});
    on_disk_ = position_of(state);
    return state;
  }
  if (reasons.empty()) return std::nullopt;
  reasons.emplace_back("begin again in another --run-dir, or take the weights alone from what is left: --weights CHECKPOINT/model.safetensors");
  throw Error(Code::kCheckpoint, fmt::format("none of the checkpoints in {} can be used", quoted(run_dir_)), {}, std::move(reasons));
}

std::optional<TrainState> Checkpoints::begin_or_resume(bool resume, const Recipe& recipe, const BatchSource& batches, Progress& progress) {
  if (not resume) {
    if (const auto there = steps(); not there.empty())
      throw Error(Code::kUsage, fmt::format("{} holds the checkpoints of an earlier run, the newest of step {}", quoted(run_dir_), there.front()), {},
                  {"go on with that run (--resume)", "or name another run folder (--run-dir), or remove that one, to begin anew"});
  }
  enter();
  if (not resume) return std::nullopt;
  std::vector<std::string> notes;
  std::optional<TrainState> from = restore(&notes);
  if (from) {
    const std::vector<std::string> changes = changes_since(*from, recipe, batches);
    notes.insert(notes.end(), changes.begin(), changes.end());
  }
  for (const std::string& note : notes) progress.say("note: " + note);
  if (not from) progress.say(fmt::format("{} holds no checkpoint yet: the run begins", run_dir_));
  else progress.say(fmt::format("Going on after step {}, in epoch {}, from {}", from->step, from->epoch + 1, path(from->step)));
  return from;
}

}  // namespace hone
