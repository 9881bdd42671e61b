#include "runtime/train/evaluate.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/not_finite.h"
#include "runtime/train/progress.h"

namespace hone {

std::optional<NamedNumbers> evaluate(StepRunner& runner, const plan::Entry& entry, BatchSource& data, const EvaluateOptions& options) {
  Means means(entry, options.prefix);
  data.start_epoch(0);
  std::int64_t batches = 0;
  bool is_told = options.say == nullptr;
  for (; (options.limit == 0 or batches < options.limit) and data.next(); ++batches) {
    runner.feed_ahead(entry.name, data);
    runner.run(entry.name, data.feeds());
    means.add(runner);
    if (const double loss = is_told ? 0 : scalar_result(runner, plan::kLossSum); not std::isfinite(loss)) {
      std::string text = fmt::format("warning: {} in batch {} of the evaluation, and so for all of it", metric_text(fmt::format("{}loss", options.prefix), loss), batches + 1);
      for (const std::string& note : why_not_finite(runner, entry, data)) text += "\n  note: " + note;
      options.say(text);
      is_told = true;
    }
    if (options.stop_requested and options.stop_requested()) return std::nullopt;
  }
  if (batches == 0) refuse_no_batch("evaluate");
  return means.values();
}

std::vector<std::string> why_not_finite(StepRunner& runner, const plan::Entry& entry, const BatchSource& batches) {
  std::vector<std::string> notes = runner.find_not_finite(entry.name, batches.feeds());
  for (const auto& [name, tensor] : batches.feeds()) {
    const std::optional<ValueRange> range = tensor.shape.empty() ? std::nullopt : range_of(name, tensor);
    if (not range or range->is_finite()) continue;
    const std::int64_t row = range->first / checked_element_count(std::span(tensor.shape).subspan(1));
    if (const std::string place = batches.place_of(name, row); not place.empty()) notes.push_back(fmt::format("row {} of {} in this batch is {}", row, quoted(name), place));
  }
  return notes;
}

void refuse_no_batch(const char* purpose) {
  throw Error(Code::kDataLength, fmt::format("the data have no batch to {}", purpose), {}, {"they end before the first one: is a filter too strict, or does a batch take more samples than there are?"});
}

}  // namespace hone
