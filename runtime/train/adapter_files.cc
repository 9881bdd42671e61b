#include "runtime/train/adapter_files.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "runtime/plan/adapters.h"
#include "runtime/train/weights.h"

namespace hone {

namespace {

/// "base_model.model.encoder.query.lora_A.weight" -> "encoder.query"
std::string module_of(std::string_view exported) {
  exported.remove_prefix(std::string_view(plan::kExportedPrefix).size());
  return std::string(exported.substr(0, exported.rfind(".lora_")));
}

/// What PeftConfig.from_pretrained reads; names need not be UTF-8, JSON must.
std::string config_text(const Recipe& recipe, const plan::Program& program) {
  using Json = nlohmann::ordered_json;
  Json modules = Json::array();
  for (const plan::Persistent& persistent : program.persistents)
    if (plan::is_adapter(persistent) and std::string_view(persistent.name).ends_with(plan::kAdapterA)) modules.push_back(module_of(persistent.exported_as));
  const Json config = {{"peft_type", "LORA"}, {"base_model_name_or_path", nullptr}, {"bias", "none"}, {"fan_in_fan_out", false}, {"inference_mode", true}, {"lora_alpha", recipe.lora.alpha},
                       {"lora_dropout", 0.0}, {"r", recipe.lora.rank}, {"target_modules", modules}, {"task_type", nullptr}};
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

constexpr std::uint64_t kConfigBytes = 1 << 20;

/// Throws kDataFormat. What is nested deeply would be destroyed by recursion.
nlohmann::json config_in(const std::string& file) {
  using Json = nlohmann::json;
  constexpr int kDepth = 8;
  bool deep = false;
  const Json config = Json::parse(read_file(file, kConfigBytes), [&](int depth, Json::parse_event_t, Json&) { return depth <= kDepth or not(deep = true); }, false);
  if (not deep and config.is_object()) return config;
  throw Error(Code::kDataFormat, fmt::format("{} is no configuration of adapters", quoted(file)), {}, {"it is damaged, or another program wrote it; without it, alpha is taken to be the plan's"});
}

/// What a plan's adapters are not.
std::vector<std::string> unlike_ours(const nlohmann::json& config) {
  std::vector<std::string> problems;
  const auto is_true = [&](const char* key) { return config.contains(key) and config[key] == true; };
  if (config.value("peft_type", nlohmann::json("LORA")) != "LORA") problems.emplace_back("peft_type is not LORA");
  if (not config.contains("lora_alpha") or not config["lora_alpha"].is_number()) problems.emplace_back("lora_alpha is no number");
  else if (const double alpha = config["lora_alpha"]; not std::isfinite(alpha)) problems.emplace_back("lora_alpha is not finite");
  if (is_true("use_dora")) problems.emplace_back("use_dora is set: such adapters change the weights' lengths, too");
  if (config.contains("alpha_pattern") and not config["alpha_pattern"].empty()) problems.emplace_back("alpha_pattern gives modules an alpha of their own");
  return problems;
}

}  // namespace

std::string adapter_config_of(const std::string& path) { return folder_of(path) + "/adapter_config.json"; }

double adapter_factor(const Recipe& recipe, const std::string& path) {
  const std::string file = adapter_config_of(path);
  if (recipe.lora.targets.empty() or not file_exists(file)) return 1;
  const nlohmann::json config = config_in(file);
  if (std::vector<std::string> problems = unlike_ours(config); not problems.empty()) {
    problems.emplace_back("merge them with the program that made them, and compile the merged model");
    throw Error(Code::kPlanMismatch, fmt::format("{} says of the adapters what no plan's are", quoted(file)), {}, std::move(problems));
  }
  const auto rank = static_cast<double>(recipe.lora.rank);
  const bool by_root = config.contains("use_rslora") and config["use_rslora"] == true;
  return config["lora_alpha"].get<double>() / (by_root ? std::sqrt(rank) : rank) / (recipe.lora.alpha / rank);
}

bool exports_adapters_alone(const Recipe& recipe) { return not recipe.lora.targets.empty() and recipe.lora.exported == "separate"; }

void save_adapters(const Recipe& recipe, const Session& session, const std::string& path, const StateReader& reader) {
  const ReadWeight read = read_by(session, reader);
  std::vector<SafetensorsSource> sources;
  for (const plan::Persistent& persistent : session.program().persistents)
    if (not persistent.exported_as.empty() and (persistent.trained or persistent.role == plan::Persistent::Role::kState))
      sources.push_back({persistent.exported_as, persistent.initial.dtype(), persistent.initial.shape(), [&read, &persistent] { return read(persistent.name); }});
  write_safetensors(path, sources, {{"format", "pt"}}, reader.confirm);
  write_file_atomically(adapter_config_of(path), config_text(recipe, session.program()));
}

}  // namespace hone
