// Run folders NAME, beside which the trained model is NAME.onnx: what they say of their epochs, and runs that were stopped.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace hone::test {

/// The lines of that kind in the metrics of run folder `name`.
std::vector<nlohmann::json> lines_of_kind(const TempFolder& folder, const std::string& name, const std::string& kind);

/// The mean loss of the last epoch of run folder `name`.
double last_loss(const TempFolder& folder, const std::string& name);

/// Every number of every epoch is the same in both run folders, but for rounding and the times.
void expect_same_epochs(const TempFolder& folder, const std::string& name, const std::string& like);

/// Removes a run's folder and its model.
void remove_run(const TempFolder& folder, const std::string& name);

/// Makes a run `name` that was stopped after so many steps, out of one that has a checkpoint of then.
void stop_run_after(const TempFolder& folder, int step, const std::string& name, const std::string& from);

}  // namespace hone::test
