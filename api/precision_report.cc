#include "api/precision_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "passes/pipeline.h"
#include "passes/precision.h"

namespace hone {

namespace {

constexpr std::ptrdiff_t kMeanOf = 5;

double mean_of_last(const std::vector<double>& losses) {
  const std::ptrdiff_t count = std::min<std::ptrdiff_t>(kMeanOf, std::ssize(losses));
  return std::accumulate(losses.end() - count, losses.end(), 0.0) / static_cast<double>(count);
}

double share(double found, double wanted) { return std::abs(found - wanted) / std::max(std::abs(wanted), std::numeric_limits<double>::min()); }

/// Infinite where a loss is no number.
double distance_of(const std::vector<double>& losses, const std::vector<double>& wanted) {
  if (losses.size() != wanted.size() or losses.empty()) return std::numeric_limits<double>::infinity();
  const double distance = std::max(share(losses.back(), wanted.back()), share(mean_of_last(losses), mean_of_last(wanted)));
  return std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
}

std::string percent(double distance) { return std::isinf(distance) ? "no finite loss" : fmt::format("{:.2f} %", 100 * distance); }

std::vector<std::string> products_of(const Graph& imported, const Recipe& recipe, const OwnTraining* own) {
  TrainingReport ignored;
  Graph step = std::move(build_entries(imported, recipe, ignored, own).front().graph);
  optimize(step);
  (void)lower_precision(step, recipe);
  require_narrow(step, recipe);
  return narrow_nodes(step, recipe);
}

class Search {
 public:
  Search(const Recipe& recipe, const LossesOf& losses, const std::function<void(const std::string&)>& tell) : recipe_(recipe), losses_(losses), tell_(tell) {
    Recipe wide = recipe;
    wide.train.precision = "f32";
    wide.train.keep_f32.clear();
    wanted_ = losses(wide, Start::kAsGiven);
    if (wanted_.empty() or not std::isfinite(wanted_.back())) throw Error(Code::kNotFinite, "the training in f32 ends with a loss that is not finite: there is nothing to compare with", {}, {"train with fewer --steps, or with a smaller optimizer.learning_rate"});
    spread_ = distance_of(losses(wide, Start::kNudged), wanted_);
    tell_(fmt::format("f32 ends with a loss of {:.6g}; with weights moved in their last place {} from that", wanted_.back(), percent(spread_)));
  }

  double last_loss() const { return wanted_.back(); }
  double spread() const { return spread_; }

  PrecisionReport::Trial with_kept(std::vector<std::string> kept) {
    const auto [known, is_new] = distances_.try_emplace({kept.begin(), kept.end()});
    if (not is_new) return {std::move(kept), known->second};
    Recipe recipe = recipe_;
    recipe.train.keep_f32.insert(recipe.train.keep_f32.end(), kept.begin(), kept.end());
    const double distance = known->second = distance_of(losses_(recipe, Start::kAsGiven), wanted_);
    tell_(fmt::format("{}{}: {}", recipe.train.precision, kept.empty() ? "" : " but for " + quoted_list(kept), percent(distance)));
    return {std::move(kept), distance};
  }

 private:
  const Recipe& recipe_;
  const LossesOf& losses_;
  const std::function<void(const std::string&)>& tell_;
  std::vector<double> wanted_;
  std::map<std::set<std::string>, double> distances_;  // by what was kept
  double spread_ = 0;
};

/// The best single ones together, as few as suffice in their order. One node at least stays narrow.
PrecisionReport::Trial grown(Search& search, const std::vector<PrecisionReport::Trial>& singles, double tolerance) {
  PrecisionReport::Trial trial = singles.front();
  for (std::size_t count = 2; trial.distance > tolerance and count < singles.size(); ++count) {
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < count; ++i) kept.push_back(singles[i].kept.front());
    trial = search.with_kept(std::move(kept));
  }
  return trial;
}

/// Without those that are not needed, the least promising first.
PrecisionReport::Trial shrunk(Search& search, PrecisionReport::Trial trial, double tolerance) {
  for (std::size_t i = trial.kept.size(); trial.kept.size() > 1 and i-- > 0;) {
    std::vector<std::string> fewer = trial.kept;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (PrecisionReport::Trial without = search.with_kept(std::move(fewer)); without.distance <= tolerance) trial = std::move(without);
  }
  return trial;
}

}  // namespace

PrecisionReport report_precision(const Graph& imported, const Recipe& recipe, const OwnTraining* own, double tolerance, const LossesOf& losses, const std::function<void(const std::string&)>& tell) {
  const std::vector<std::string> products = products_of(imported, recipe, own);
  Search search(recipe, losses, tell);
  PrecisionReport report{.last_loss = search.last_loss(), .f32_spread = search.spread(), .narrow = search.with_kept({}), .singles = {}, .holds = false, .chosen = {}};
  report.chosen = report.narrow;
  report.holds = report.narrow.distance <= tolerance;
  if (report.holds or products.size() < 2) return report;
  for (const std::string& product : products) report.singles.push_back(search.with_kept({product}));
  std::ranges::stable_sort(report.singles, {}, &PrecisionReport::Trial::distance);
  report.chosen = grown(search, report.singles, tolerance);
  report.holds = report.chosen.distance <= tolerance;
  if (report.holds) report.chosen = shrunk(search, std::move(report.chosen), tolerance);
  return report;
}

std::string to_text(const PrecisionReport& report, const Recipe& recipe, double tolerance) {
  const std::string& precision = recipe.train.precision;
  std::string text = fmt::format("f32 ends with a loss of {:.6g}, {} {}; {} are allowed\n", report.last_loss, precision,
                                 std::isinf(report.narrow.distance) ? "with no finite one" : percent(report.narrow.distance) + " from it", percent(tolerance));
  if (report.f32_spread > tolerance)
    text += fmt::format("f32 itself ends {} away when its weights are moved in their last place: this training leaps too much for any comparison; ask after other --steps\n", percent(report.f32_spread));
  if (not report.singles.empty()) text += "with one node in f32 (train.keep_f32), the best first:\n";
  for (const PrecisionReport::Trial& single : report.singles) text += fmt::format("  {:<40} {}\n", printable(single.kept.front()), percent(single.distance));
  if (report.holds and report.chosen.kept.empty()) return text + "nothing needs f32\n";
  if (not report.holds) return text + fmt::format("no choice of nodes brings it within {}: train in f32, or in {} knowing that\n", percent(tolerance), precision);
  std::vector<std::string> kept = recipe.train.keep_f32;
  kept.insert(kept.end(), report.chosen.kept.begin(), report.chosen.kept.end());
  return text + fmt::format("needs f32: {}, which brings it to {}:\n  train.keep_f32 = [{}]\n", quoted_list(report.chosen.kept), percent(report.chosen.distance), quoted_list(kept));
}

}  // namespace hone
