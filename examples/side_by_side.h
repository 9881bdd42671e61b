// What the programs share that train the same on one device after another: which devices there are, and a table of what each came to.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/hone.h"

namespace side_by_side {

using namespace hone;

/// The driver of "cuda:0".
inline std::string target_of(const std::string& device) { return device.substr(0, device.find(':')); }

/// What a plan must be compiled for that runs on all of them.
inline std::vector<std::string> targets_of(const std::vector<std::string>& devices) {
  std::set<std::string> targets;
  for (const std::string& device : devices) targets.insert(target_of(device));
  return {targets.begin(), targets.end()};
}

/// Those that are there, but for ones that are only played.
inline std::vector<std::string> all_devices() {
  std::vector<std::string> names;
  for (const DeviceInfo& device : list_devices())
    if (device.usable and target_of(device.name) != "sim") names.push_back(device.name);
  return names;
}

/// A training run: what each epoch came to, its seconds among it.
struct Run {
  std::string name;
  std::vector<NamedNumbers> epochs = {};
};

inline Run train(Trainer& trainer, const std::string& name, const Dataset& batches, const Dataset& valid, std::int64_t epochs) {
  Run run{.name = name};
  trainer.fit(batches, {.valid = valid, .epochs = epochs, .on_epoch = [&](const EpochRecord& epoch) {
                          run.epochs.push_back(*epoch.values);
                          run.epochs.back().emplace_back("seconds", epoch.seconds);
                        }});
  return run;
}

/// A row for each epoch, the columns of each run beside those of the others.
inline void print_table(const std::vector<Run>& runs, const std::vector<std::string>& columns) {
  const auto cell = [](std::string_view text, const std::string& column) { return fmt::format("{:>{}}", text, std::max<std::size_t>(8, column.size()) + 2); };
  std::string heads;
  for (const std::string& column : columns) heads += cell(column, column);
  std::string first = fmt::format("{:>5}", ""), second = fmt::format("{:>5}", "epoch");
  std::size_t rows = 0;
  for (const Run& run : runs) {
    first += fmt::format(" |{:^{}}", run.name, heads.size());
    second += " |" + heads;
    rows = std::max(rows, run.epochs.size());
  }
  fmt::print("{}\n{}\n", first, second);
  for (std::size_t row = 0; row < rows; ++row) {
    fmt::print("{:>5}", row + 1);
    for (const Run& run : runs) {
      fmt::print(" |");
      for (const std::string& column : columns)
        fmt::print("{}", cell(row < run.epochs.size() ? fmt::format("{:.4f}", value_of(run.epochs[row], column)) : "", column));
    }
    fmt::print("\n");
  }
}

}  // namespace side_by_side
