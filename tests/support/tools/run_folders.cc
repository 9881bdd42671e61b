#include "tests/support/tools/run_folders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

namespace hone::test {

using Json = nlohmann::json;

std::vector<Json> lines_of_kind(const TempFolder& folder, const std::string& name, const std::string& kind) {
  std::vector<Json> lines;
  std::istringstream text(folder.read(name + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);)
    if (Json parsed = Json::parse(line); parsed.at("kind") == kind) lines.push_back(std::move(parsed));
  return lines;
}

double last_loss(const TempFolder& folder, const std::string& name) { return lines_of_kind(folder, name, "epoch").back().at("loss").get<double>(); }

void expect_same_epochs(const TempFolder& folder, const std::string& name, const std::string& like) {
  const std::vector<Json> got = lines_of_kind(folder, name, "epoch"), wanted = lines_of_kind(folder, like, "epoch");
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    for (const char* value : {"loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"})
      EXPECT_NEAR(got[i].at(value).get<double>(), wanted[i].at(value).get<double>(), 2e-5) << name << ", epoch " << i + 1 << ": " << value;
}

void remove_run(const TempFolder& folder, const std::string& name) {
  std::filesystem::remove_all(folder / name);
  std::filesystem::remove(folder / (name + ".onnx"));
}

void stop_run_after(const TempFolder& folder, int step, const std::string& name, const std::string& from) {
  const std::string checkpoint = fmt::format("/checkpoint-{:06}", step);
  std::filesystem::create_directories(folder / name);
  std::filesystem::copy(folder / (from + checkpoint), folder / (name + checkpoint), std::filesystem::copy_options::recursive);
  std::filesystem::copy(folder / (from + "/metrics.jsonl"), folder / (name + "/metrics.jsonl"));
}

}  // namespace hone::test
