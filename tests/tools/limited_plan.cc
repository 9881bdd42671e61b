#include "tests/tools/limited_plan.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "runtime/session.h"

namespace hone::test {

double number_behind(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << "no " << quoted(before) << " in:\n" << text;
  return at == std::string::npos ? 0 : std::stod(text.substr(at + before.size()));
}

std::int64_t measured_arena_of_step(const std::string& plan, std::int64_t batch) {
  Session session(plan::load(plan), {.device = "cpu", .threads = 1});
  const plan::Entry& entry = session.entry(plan::kTrainStep);
  std::vector<Tensor> fed;
  for (const plan::Feed& feed : entry.feeds) {
    std::vector<std::int64_t> shape;
    for (const Dim& dim : feed.shape) shape.push_back(dim.is_constant() ? dim.value() : batch);
    fed.push_back(Tensor::zeros(feed.dtype, shape));
  }
  std::vector<std::pair<std::string, TensorView>> views;
  for (std::size_t i = 0; i < fed.size(); ++i) views.emplace_back(entry.feeds[i].name, fed[i]);
  session.run(plan::kTrainStep, views);
  return session.memory(plan::kTrainStep).arena;
}

}  // namespace hone::test
