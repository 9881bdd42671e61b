// A GPT that learns to write, in bf16 and in f32: after 500 steps on real text the losses are the same to one in a hundred.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tools/run_tool.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kShakespeare = std::string(HONE_SHARED_DIR) + "/data/tinyshakespeare/input.txt";
constexpr std::size_t kSteps = 500, kLastSteps = 20;  ///< the mean of the last steps is told from one batch to the next

/// Letters by their place in the alphabet of the text, as a file of u16.
std::string ids_of(const std::string& text) {
  std::map<char, std::uint16_t> alphabet;
  for (const char letter : text) alphabet[letter] = 0;
  std::uint16_t next = 0;
  for (auto& [letter, id] : alphabet) id = next++;
  std::string ids;
  for (const char letter : text) {
    ids += static_cast<char>(alphabet[letter] & 0xff);
    ids += static_cast<char>(alphabet[letter] >> 8);
  }
  return ids;
}

std::vector<double> losses_of_steps(const std::string& metrics) {
  std::vector<double> losses;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (const nlohmann::json record = nlohmann::json::parse(line); record.at("kind") == "step") losses.push_back(record.at("loss"));
  return losses;
}

double mean_of_last(const std::vector<double>& losses) {
  double sum = 0;
  for (std::size_t i = losses.size() - kLastSteps; i < losses.size(); ++i) sum += losses[i];
  return sum / kLastSteps;
}

TEST(Bf16Gpt, LearnsAsInF32) {
  if (not file_exists(kShakespeare)) GTEST_SKIP() << "the shared data sets are not here";
  const TempFolder folder;
  folder.write("text.bin", ids_of(read_file(kShakespeare)));
  run_well(folder.path(), "hone-bench --workload nanogpt_cpu --threads 1 --seconds 0.01 --warmup 0 --json --keep gpt");
  std::map<std::string, double> end;
  for (const std::string precision : {"f32", "bf16"}) {
    const std::string plan = precision + ".hone";
    const std::string kernels = run_well(folder.path(), "hone-compile gpt/model.onnx -r gpt/train.toml --set train.precision=\"" + precision + "\" -o " + plan + " --emit kernels").out;
    if (precision == "bf16") EXPECT_THAT(kernels, HasSubstr("bf16["));
    run_well(folder.path(), "hone-run train " + plan + " --train x=text.bin:tokens:u16:64,y=text.bin:next_tokens:u16:64 --steps 500 --log-every 1 --quiet --run-dir run_" + precision);
    const std::vector<double> losses = losses_of_steps(folder.read("run_" + precision + "/metrics.jsonl"));
    ASSERT_THAT(losses, SizeIs(kSteps));
    EXPECT_GT(losses.front(), 4) << "as good as a guess among 65 letters";
    end[precision] = mean_of_last(losses);
  }
  EXPECT_LT(end["f32"], 2.4);
  EXPECT_LT(std::abs(end["bf16"] / end["f32"] - 1), 0.01) << end["bf16"] << " in bf16, " << end["f32"] << " in f32";
  EXPECT_NE(end["bf16"], end["f32"]);
}

}  // namespace
}  // namespace hone::test
