// Recorded runs in narrower types: how near they stay to the same training in f32.
#pragma once

#include <string>
#include <vector>

namespace hone::test {

/// Trains the model on its recorded batches with train.precision = `precision` and in f32: the last loss may differ by 3 %, and the mean of the last five, too.
/// `keep_f32`: train.keep_f32.
void expect_trains_as_in_f32(const std::string& name, const std::string& precision, const std::vector<std::string>& keep_f32 = {});

}  // namespace hone::test
