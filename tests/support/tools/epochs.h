// What a run's folder says of its epochs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace hone::test {

/// The lines of that kind in the metrics of run folder `name`.
std::vector<nlohmann::json> lines_of_kind(const TempFolder& folder, const std::string& name, const std::string& kind);

/// Every number of every epoch is the same in both run folders, but for rounding and the times.
void expect_same_epochs(const TempFolder& folder, const std::string& name, const std::string& like);

}  // namespace hone::test
