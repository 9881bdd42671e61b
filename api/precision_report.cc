#include "api/precision_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/float_format.h"
#include "base/text.h"
#include "passes/pipeline.h"
#include "passes/precision.h"

namespace hone {

namespace {

constexpr std::ptrdiff_t kMeanOf = 5;
constexpr double kLastPlaceOfF32 = 0x1p-23;

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
    wanted_ = losses(wide, 0);
    if (wanted_.empty() or not std::isfinite(wanted_.back())) throw Error(Code::kNotFinite, "the training in f32 ends with a loss that is not finite: there is nothing to compare with", {}, {"train with fewer --steps, or with a smaller optimizer.learning_rate"});
    spread_ = distance_of(losses(wide, kLastPlaceOfF32), wanted_);
    tell_(fmt::format("f32 ends with a loss of {:.6g}; with weights moved in their last place {} from that", wanted_.back(), percent(spread_)));
  }

  /// How far f32 ends from itself where its weights were moved by a quarter of the narrow type's last place: what rounding moves them on average.
  double rounded_spread() {
    Recipe wide = recipe_;
    wide.train.precision = "f32";
    wide.train.keep_f32.clear();
    const double spread = distance_of(losses_(wide, std::ldexp(1, -2 - float_format(*dtype_from_name(recipe_.train.precision)).mantissa_bits)), wanted_);
    tell_(fmt::format("f32, with weights moved by a quarter of {}'s last place: {}", recipe_.train.precision, percent(spread)));
    return spread;
  }

  double last_loss() const { return wanted_.back(); }
  double spread() const { return spread_; }

  PrecisionReport::Trial with_kept(std::vector<std::string> kept) {
    const auto [known, is_new] = distances_.try_emplace({kept.begin(), kept.end()});
    if (is_new) known->second = trained(kept, 0, "");
    return {std::move(kept), known->second};
  }
  double moved(const std::vector<std::string>& kept) { return trained(kept, kLastPlaceOfF32, ", with weights moved in their last place"); }

  /// The closest of all choices so far.
  PrecisionReport::Trial best() const {
    const auto found = std::ranges::min_element(distances_, {}, [](const auto& trial) { return trial.second; });
    return {{found->first.begin(), found->first.end()}, found->second};
  }
  std::size_t tried() const { return distances_.size(); }

 private:
  double trained(const std::vector<std::string>& kept, double moved, std::string_view how) {
    Recipe recipe = recipe_;
    recipe.train.keep_f32.insert(recipe.train.keep_f32.end(), kept.begin(), kept.end());
    const double distance = distance_of(losses_(recipe, moved), wanted_);
    tell_(fmt::format("{}{}{}: {}", recipe.train.precision, kept.empty() ? "" : " but for " + quoted_list(kept), how, percent(distance)));
    return distance;
  }

  const Recipe& recipe_;
  const LossesOf& losses_;
  const std::function<void(const std::string&)>& tell_;
  std::vector<double> wanted_;
  std::map<std::set<std::string>, double> distances_;  // by what was kept
  double spread_ = 0;
};

using Trials = std::vector<PrecisionReport::Trial>;

/// The best few of `sets` with one more each of the most promising nodes, the best first. A set's nodes stay in the order in which they came to it.
Trials with_one_more(Search& search, const Trials& sets, const Trials& singles) {
  constexpr std::size_t kSets = 3, kPromising = 8;
  Trials found;
  std::set<std::set<std::string>> seen;
  for (std::size_t i = 0; i < std::min(kSets, sets.size()); ++i)
    for (std::size_t j = 0; j < std::min(kPromising, singles.size()); ++j) {
      std::vector<std::string> kept = sets[i].kept;
      const std::string& more = singles[j].kept.front();
      if (std::ranges::find(kept, more) != kept.end()) continue;
      kept.push_back(more);
      if (seen.emplace(kept.begin(), kept.end()).second) found.push_back(search.with_kept(std::move(kept)));
    }
  std::ranges::stable_sort(found, {}, &PrecisionReport::Trial::distance);
  return found;
}

/// From the best single ones on, until one suffices: sets of up to four nodes, and then the best single ones together, one more each time. One node at least stays narrow. Returns the best of each size.
Trials grown(Search& search, const Trials& singles, double tolerance) {
  constexpr std::size_t kLargest = 4;
  Trials best;
  Trials sets = singles;
  for (std::size_t size = 2; size < singles.size(); ++size) {
    if (size <= kLargest) {
      sets = with_one_more(search, sets, singles);
    } else {
      std::vector<std::string> kept;
      for (std::size_t i = 0; i < size; ++i) kept.push_back(singles[i].kept.front());
      sets = {search.with_kept(std::move(kept))};
    }
    best.push_back(sets.front());
    if (best.back().distance <= tolerance) break;
  }
  return best;
}

std::vector<std::string> all_but(std::vector<std::string> kept, std::size_t i) {
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
  return kept;
}

/// Without those that are not needed, the least promising first.
PrecisionReport::Trial shrunk(Search& search, PrecisionReport::Trial trial, double tolerance) {
  for (std::size_t i = trial.kept.size(); trial.kept.size() > 1 and i-- > 0;) {
    if (PrecisionReport::Trial without = search.with_kept(all_but(trial.kept, i)); without.distance <= tolerance) trial = std::move(without);
  }
  return trial;
}

void choose(Search& search, const std::vector<std::string>& products, double tolerance, PrecisionReport& report) {
  for (const std::string& product : products) report.singles.push_back(search.with_kept({product}));
  std::ranges::stable_sort(report.singles, {}, &PrecisionReport::Trial::distance);
  if (report.singles.front().distance > tolerance) report.sets = grown(search, report.singles, tolerance);
  report.chosen = report.sets.empty() ? report.singles.front() : report.sets.back();
  report.holds = report.chosen.distance <= tolerance;
  if (not report.holds) {
    report.chosen = search.best();
    return;
  }
  report.chosen = shrunk(search, std::move(report.chosen), tolerance);
  for (std::size_t i = 0; report.chosen.kept.size() > 1 and i < report.chosen.kept.size(); ++i) report.without.push_back(search.with_kept(all_but(report.chosen.kept, i)));
  report.chosen_moved = search.moved(report.chosen.kept);
}

}  // namespace

PrecisionReport report_precision(const Graph& imported, const Recipe& recipe, const OwnTraining* own, double tolerance, const LossesOf& losses, const std::function<void(const std::string&)>& tell) {
  const std::vector<std::string> products = products_of(imported, recipe, own);
  Search search(recipe, losses, tell);
  PrecisionReport report{.last_loss = search.last_loss(), .f32_spread = search.spread(), .narrow = search.with_kept({}), .singles = {}, .holds = false, .chosen = {}};
  report.chosen = report.narrow;
  report.holds = report.narrow.distance <= tolerance;
  if (report.holds) return report;
  report.rounded_spread = search.rounded_spread();
  if (products.size() > 1) choose(search, products, tolerance, report);
  report.tried = search.tried() - 1;  // without the one that keeps nothing
  return report;
}

namespace {

std::string what_is_left(const PrecisionReport& report, const std::string& precision, double tolerance) {
  std::string text = fmt::format("no choice of nodes brings it within {}, of {} that were tried", percent(tolerance), report.tried);
  if (not report.chosen.kept.empty()) text += fmt::format("; the closest: {}, {}", quoted_list(report.chosen.kept), percent(report.chosen.distance));
  return text + fmt::format(".\nOnly f32 altogether is within it (train.precision = \"f32\"); or train in {} knowing that\n", precision);
}

}  // namespace

std::string to_text(const PrecisionReport& report, const Recipe& recipe, double tolerance) {
  const std::string& precision = recipe.train.precision;
  std::string text = fmt::format("f32 ends with a loss of {:.6g}, {} {}; {} are allowed\n", report.last_loss, precision,
                                 std::isinf(report.narrow.distance) ? "with no finite one" : percent(report.narrow.distance) + " from it", percent(tolerance));
  if (report.f32_spread > tolerance)
    text += fmt::format("f32 itself ends {} away when its weights are moved in their last place: this training leaps too much for any comparison; ask after other --steps\n", percent(report.f32_spread));
  else if (report.rounded_spread > tolerance)
    text += fmt::format("f32 itself ends {} away when its weights are moved once by a quarter of {}'s last place: at this step any rounding moves the loss as far, and which nodes help is in part luck; ask after other --steps, too\n",
                        percent(report.rounded_spread), precision);
  if (not report.singles.empty()) text += "with one node in f32 (train.keep_f32), the best first:\n";
  for (const PrecisionReport::Trial& single : report.singles) text += fmt::format("  {:<40} {}\n", printable(single.kept.front()), percent(single.distance));
  if (not report.sets.empty()) text += "with several, the best that were found of each number:\n";
  for (const PrecisionReport::Trial& set : report.sets) text += fmt::format("  {:<40} {}\n", quoted_list(set.kept), percent(set.distance));
  if (report.holds and report.chosen.kept.empty()) return text + "nothing needs f32\n";
  if (not report.holds) return text + what_is_left(report, precision, tolerance);
  std::vector<std::string> kept = recipe.train.keep_f32;
  kept.insert(kept.end(), report.chosen.kept.begin(), report.chosen.kept.end());
  text += fmt::format("needs f32: {}, which brings it to {} ({} with weights moved in their last place):\n", quoted_list(report.chosen.kept), percent(report.chosen.distance), percent(report.chosen_moved));
  for (std::size_t i = 0; i < report.without.size(); ++i) text += fmt::format("  without {:<32} {}\n", quoted(report.chosen.kept[i]), percent(report.without[i].distance));
  return text + fmt::format("  train.keep_f32 = [{}]\n", quoted_list(kept));
}

}  // namespace hone
