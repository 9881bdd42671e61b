// Files that hold adapters alone (lora.export = "separate"), as PEFT writes and reads them: adapter_model.safetensors, and adapter_config.json beside it.
#pragma once

#include <string>

#include "base/recipe.h"
#include "runtime/session.h"
#include "runtime/train/state_reader.h"

namespace hone {

/// Does the recipe ask for them?
bool exports_adapters_alone(const Recipe& recipe);

/// What the adapters in `path` add, by what the plan's would add with the same factors: alpha and rank of adapter_config.json beside it, as PEFT has it, over the recipe's. 1 where there is no such file.
/// Throws Error kPlanMismatch for a file that says something else of the adapters than low rank and one alpha for all, kDataFormat for one that is damaged.
double adapter_factor(const Recipe& recipe, const std::string& path);

/// The adapter_config.json that belongs to the adapters in that file, be it there or not.
std::string adapter_config_of(const std::string& path);

/// Writes the adapters, other weights that were trained, and running statistics, under plan::Persistent::exported_as, and beside them adapter_config.json, with rank and alpha: each atomically.
/// Throws what write_safetensors() throws, and the reader. `path` has passed check_trained_file() (weights.h).
void save_adapters(const Recipe& recipe, const Session& session, const std::string& path, const StateReader& reader = {});

}  // namespace hone
