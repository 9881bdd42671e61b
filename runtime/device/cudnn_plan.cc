#include "runtime/device/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/diag.h"

namespace hone::cudnn {

namespace {

/// Is what the engine does a product and a sum for each term, in one order?
bool computes_as_written(const Descriptor& config, const Library& library, const Factors& factors) {
  Descriptor engine(library, Kind::kEngine);
  RawDescriptor raw = engine.raw();
  (void)config.get_raw(Attribute::kConfigEngine, Type::kDescriptor, 1, &raw);
  std::vector<Note> notes(32);
  notes.resize(static_cast<std::size_t>(engine.get_raw(Attribute::kEngineNotes, Type::kNumericalNote, static_cast<std::int64_t>(notes.size()), notes.data())));
  const auto is_wrong = [&](Note note) {
    switch (note) {
      case Note::kNarrowsInputs:
      case Note::kNarrowsSums:
      case Note::kNonDeterministic: return true;
      case Note::kTensorCores: return factors.are_f32 and not factors.tf32;
      case Note::kFft:
      case Note::kWinograd:
      case Note::kWinograd4:
      case Note::kWinograd6:
      case Note::kWinograd13: return factors.are_f32;
    }
    return false;  // how it treats NaNs, and what later versions note
  };
  return std::ranges::none_of(notes, is_wrong);
}

/// Ways to compute the graph, the best first.
std::vector<Descriptor> configs_of(const Library& library, const Descriptor& graph, const Descriptor& device, int mode) {
  Descriptor heuristics(library, Kind::kHeuristics);
  heuristics.set(Attribute::kHeuristicsGraph, graph);
  heuristics.set(Attribute::kHeuristicsMode, Type::kHeuristicsMode, mode);
  heuristics.set(Attribute::kHeuristicsDevice, device);
  heuristics.finalize();
  std::vector<Descriptor> configs;
  std::vector<RawDescriptor> raw;
  for (std::int64_t left = heuristics.count(Attribute::kHeuristicsResults, Type::kDescriptor); left > 0; --left) raw.push_back(configs.emplace_back(library, Kind::kEngineConfig).raw());
  const std::int64_t count = heuristics.get_raw(Attribute::kHeuristicsResults, Type::kDescriptor, static_cast<std::int64_t>(raw.size()), raw.data());
  configs.erase(configs.begin() + std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(configs.size())), configs.end());
  return configs;
}

}  // namespace

int type_of(DType dtype) {
  HONE_CHECK(dtype == DType::kF32 or dtype == DType::kF16 or dtype == DType::kBF16, fmt::format("cuDNN is asked to multiply {}", to_string(dtype)));
  return dtype == DType::kF32 ? kFloat : dtype == DType::kF16 ? kHalf : kBFloat16;
}

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

std::vector<Plan> choose_plans(const Library& library, const Descriptor& graph, const Descriptor& device, const Factors& factors, std::size_t most_scratch, std::size_t most) {
  constexpr std::pair<int, const char*> kModes[] = {{kHeuristicsBest, "recommended"}, {kHeuristicsFallback, "fallback"}};
  std::string last = "it has no way to compute it whose numbers are as written, with so little scratch";
  std::vector<Plan> plans;
  for (const auto& [mode, mode_name] : kModes) {
    int number = -1;
    for (Descriptor& config : configs_of(library, graph, device, mode)) try {
        if (plans.size() == most) return plans;
        ++number;
        if (not computes_as_written(config, library, factors)) continue;
        Plan plan{.config = std::move(config), .plan = Descriptor(library, Kind::kExecutionPlan), .name = fmt::format("{} {}", mode_name, number)};
        plan.plan.set(Attribute::kPlanConfig, plan.config);
        plan.plan.set(Attribute::kPlanDevice, device);
        plan.plan.finalize();
        std::int64_t bytes = 0;
        (void)plan.plan.get_raw(Attribute::kPlanWorkspace, Type::kInt64, 1, &bytes);
        if (bytes < 0 or static_cast<std::uint64_t>(bytes) > most_scratch) continue;
        plan.scratch = static_cast<std::size_t>(bytes);
        plans.push_back(std::move(plan));
      } catch (const Refused& refused) { last = refused.what; }  // a recommendation is none that it must keep
    if (not plans.empty()) return plans;
  }
  throw Refused{0, last};
}

void put_plan(const Library& library, Handle handle, const Plan& plan, cuda::StreamHandle stream, std::span<const std::int64_t> ids, std::span<void* const> pointers, std::byte* workspace) {
  void* const scratch = workspace;
  try {
    check(library, library.set_stream(handle, stream), "cudnnSetStream");
    Descriptor pack(library, Kind::kVariantPack);
    pack.set(Attribute::kPackPointers, Type::kPointer, pointers);
    pack.set(Attribute::kPackIds, Type::kInt64, ids);
    pack.set(Attribute::kPackWorkspace, Type::kPointer, scratch);
    pack.finalize();
    check(library, library.execute(handle, plan.plan.raw(), pack.raw()), "cudnnBackendExecute");
  } catch (const Refused& refused) { lose_device(refused); }
}

}  // namespace hone::cudnn
