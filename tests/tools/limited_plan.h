// What plans take that were compiled under a memory limit.
#pragma once

#include <cstdint>
#include <string>

namespace hone::test {

/// The number behind `before` in `text`; a test failure where there is none.
double number_behind(const std::string& text, const std::string& before);

/// What `train_step` of the plan takes of its arena when it runs on zeros, with so many samples.
std::int64_t measured_arena_of_step(const std::string& plan, std::int64_t batch);

}  // namespace hone::test
