#include "runtime/train/run_log.h"

#include <fmt/format.h>

#include "runtime/train/json_line.h"

namespace hone {

namespace {

std::string heading(const EpochRecord& record) {
  std::string line = "epoch";
  for (const auto& [name, value] : *record.values) line += "," + name;
  return line + ",learning_rate,seconds";
}

std::string row(const EpochRecord& record) {
  std::string line = fmt::format("{}", record.epoch);
  for (const auto& [name, value] : *record.values) line += fmt::format(",{:.9g}", value);
  return line + fmt::format(",{:.9g},{:.3f}", record.learning_rate, record.seconds);
}

}  // namespace

RunLog::RunLog(const std::string& folder, const Recipe& recipe) {
  if (folder.empty()) return;
  make_folders(folder);
  write_file_atomically(folder + "/recipe.json", to_json(recipe) + "\n");
  for (const char* name : {"/metrics.jsonl", "/metrics.csv"}) remove_file(folder + name);
  lines_.emplace(folder + "/metrics.jsonl");
  table_.emplace(folder + "/metrics.csv");
}

void RunLog::step(const StepRecord& record) {
  if (not lines_) return;
  JsonLine line;
  line.text("kind", "step").integer("epoch", record.epoch).integer("step", record.step).number("loss", record.loss);
  line.number("learning_rate", record.learning_rate).number("samples_per_s", record.samples_per_s);
  if (record.grad_norms != nullptr) {
    JsonLine norms;
    for (const auto& [name, value] : *record.grad_norms) norms.number(name, value);
    line.object("grad_norms", norms);
  }
  lines_->append(line.str());
}

void RunLog::epoch(const EpochRecord& record) {
  if (not lines_) return;
  JsonLine line;
  line.text("kind", "epoch").integer("epoch", record.epoch);
  for (const auto& [name, value] : *record.values) line.number(name, value);
  line.number("learning_rate", record.learning_rate).number("seconds", record.seconds);
  lines_->append(line.str());
  if (not has_heading_) table_->append(heading(record));
  has_heading_ = true;
  table_->append(row(record));
}

}  // namespace hone
