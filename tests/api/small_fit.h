// What tests of Trainer train: a small classifier with dropout, 40 samples, and what it has learned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/api/training_run.h"

namespace hone::test {

inline constexpr std::int64_t kSamples = 40;

inline const plan::Plan& plan_with_dropout() {
  static const plan::Plan plan = compiled(kLoss + "[optimizer]\nkind = \"adam\"\nlearning_rate = 0.02\n[metrics]\nlist = [\"accuracy\"]\n[train]\nepochs = 4\n", 0.2);
  return plan;
}

inline Dataset samples(std::int64_t count = kSamples) {
  const Batch all(0, count);
  return Dataset::from_tensor_slices({{"x", all.x}, {"y", all.target}});
}

/// Five batches.
inline Dataset shuffled(std::int64_t seed = 3) { return samples().shuffle(16, seed).batch(8); }

inline SessionOptions one_thread() { return {.device = "cpu", .threads = 1}; }

/// Those of the model, and all states.
inline std::map<std::string, std::vector<double>> weights(Trainer& trainer) {
  std::map<std::string, std::vector<double>> all;
  for (const plan::Persistent& persistent : trainer.session().program().persistents) {
    const Tensor tensor = trainer.session().read(persistent.name);
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) all[persistent.name].push_back(tensor.at(i));
  }
  return all;
}

}  // namespace hone::test
