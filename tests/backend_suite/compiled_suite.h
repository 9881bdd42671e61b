// ONNX's backend node cases as a user runs models: compiled for the CPU, or for GPUs and played by the host, and run by a session.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/support/backend_cases/suite.h"

namespace hone::test {

/// Compiles the model for the CPU and runs its predict entry.
std::vector<Tensor> run_compiled(const onnx::Imported& model, const Feeds& feeds);

/// The same with the program for GPUs, on the sim device.
std::vector<Tensor> run_simulated(const onnx::Imported& model, const Feeds& feeds);

/// The cases of shard `shard` of `shards`: the same number of each family, whatever the suite's size.
std::vector<std::string> shard_of_cases(std::size_t shard, std::size_t shards);

}  // namespace hone::test
