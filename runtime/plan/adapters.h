// What compiler and runtime agree on about low-rank adapters (passes/adapters.h) that leave the model when it is saved.
#pragma once

#include <string_view>

#include "runtime/plan/plan.h"

namespace hone::plan {

// Behind a matrix's name: its adapter's two factors.
inline constexpr const char* kAdapterA = ".lora_A";  ///< [rank, inputs]
inline constexpr const char* kAdapterB = ".lora_B";  ///< [outputs, rank]; where it is zero, the model is what it is without adapters

/// Before the names of modules in files of adapters alone (Persistent::exported_as): PEFT's wrappers around the model.
inline constexpr const char* kExportedPrefix = "base_model.model.";

/// An entry without feeds whose results stand, by name, for weights that are saved for others: the matrices with their adapters added.
inline constexpr const char* kMergedWeights = "merged_weights";

/// Is it an adapter's factor that no model holds?
inline bool is_adapter(const Persistent& persistent) {
  const std::string_view name = persistent.name;
  return persistent.role == Persistent::Role::kWeight and not persistent.in_model and (name.ends_with(kAdapterA) or name.ends_with(kAdapterB));
}

/// In the names of the scales of a weight that is kept as int8 (Persistent::narrowed).
inline constexpr const char* kScalesSuffix = "/int8_scale";
inline bool is_scale(const Persistent& persistent) {
  return persistent.role == Persistent::Role::kWeight and not persistent.in_model and persistent.name.find(kScalesSuffix) != std::string::npos;
}

/// Does it belong to what the model computes, trained or not: a weight, a running statistic, an adapter, a scale?
inline bool is_of_model(const Persistent& persistent) { return persistent.in_model or is_adapter(persistent) or is_scale(persistent); }

}  // namespace hone::plan
