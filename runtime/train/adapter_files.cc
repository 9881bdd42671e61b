#include "runtime/train/adapter_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/diag.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "runtime/plan/adapters.h"

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

}  // namespace

bool exports_adapters_alone(const Recipe& recipe) { return not recipe.lora.targets.empty() and recipe.lora.exported == "separate"; }

void check_trained_file(const Recipe& recipe, const std::string& path) {
  if (not exports_adapters_alone(recipe) or lower_case(path).ends_with(".safetensors")) return;
  throw Error(Code::kUsage, fmt::format("{}: with lora.export = \"separate\" the adapters alone are written, which a .safetensors file holds", quoted(path)), {},
              {"write to a name that ends in .safetensors (PEFT reads adapter_model.safetensors), or compile with lora.export = \"merged\""});
}

void save_adapters(const Recipe& recipe, const Session& session, const std::string& path) {
  check_trained_file(recipe, path);
  std::vector<SafetensorsSource> sources;
  for (const plan::Persistent& persistent : session.program().persistents)
    if (not persistent.exported_as.empty() and (persistent.trained or persistent.role == plan::Persistent::Role::kState))
      sources.push_back({persistent.exported_as, persistent.initial.dtype(), persistent.initial.shape(), [&session, &persistent] { return session.read(persistent.name); }});
  write_safetensors(path, sources, {{"format", "pt"}});
  write_file_atomically(folder_of(path) + "/adapter_config.json", config_text(recipe, session.program()));
}

}  // namespace hone
