// Where a training run is, beside its weights: what a checkpoint keeps so that the run goes on as if nothing had happened.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/recipe.h"
#include "runtime/train/run_history.h"

namespace hone {

class BatchSource;

struct TrainState {
  std::int64_t step = 0;      ///< updates made
  std::int64_t epoch = 0;     ///< epochs that are over, their validation included
  std::int64_t batch = 0;     ///< batches of the next epoch that were used
  std::int64_t batches = 0;   ///< used in the whole run: where data without an end are gone on with
  std::string order;          ///< BatchSource::order()
  std::string data_hash;      ///< BatchSource::data_hash()
  double seconds = 0;         ///< of training so far
  std::vector<double> means;  ///< Means::state() of the epoch that has begun
  bool reported = false;      ///< the run ended within that epoch, which was validated and recorded as far as it went
  NamedNumbers values;        ///< of the last epoch that is over, or was reported
  std::optional<BestEpoch> best;
  std::int64_t best_step = 0;  ///< at its end
  std::vector<double> plateau, early_stopping;  ///< Plateau::state(), EarlyStopping::state(); empty where there is none
  Recipe recipe;
};

/// What has changed since, in sentences, one for each key of the recipe; longer runs are no change. Throws kPlanMismatch in the middle of an epoch if its batches would
/// be others, or if the data are seen to be.
std::vector<std::string> changes_since(const TrainState& state, const Recipe& recipe, const BatchSource& batches);

/// As JSON, numbers with all their digits. state_from_json(to_json(state)) is the same state.
std::string to_json(const TrainState& state);
/// Throws kDataFormat, naming `path`, for what to_json() did not write, and what recipe_from_json() throws.
TrainState state_from_json(std::string_view json, const std::string& path);

}  // namespace hone
