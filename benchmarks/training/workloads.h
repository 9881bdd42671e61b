// The one table of workloads: a network, its data and how it is trained. A new workload is a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "benchmarks/training/samples.h"
#include "frontend/builder.h"

namespace hone::benchmarks {

struct Workload {
  std::string_view name;
  std::string_view doc;
  std::int64_t batch;
  std::int64_t batches;  ///< different ones, which the steps go through again and again
  std::string_view loss, optimizer;  ///< the lines of the recipe's sections
  void (*build)(nn::Model&);
  Samples (*draw)(std::int64_t count);  ///< none: a network that is compiled and not trained, to see how long that takes

  /// The recipe, as a user would write it.
  std::string recipe(std::string_view precision = "f32") const;
};

/// Those that are trained.
std::span<const Workload> workloads();
/// Those that are compiled only.
std::span<const Workload> compiled_workloads();
/// Throws Error kUsage for an unknown one, with the nearest.
const Workload& find_workload(std::string_view name);

}  // namespace hone::benchmarks
