#include "runtime/train/run_log.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diag.h"
#include "base/objectives.h"
#include "runtime/train/curves.h"
#include "runtime/train/json_line.h"

namespace hone {

namespace {

constexpr const char* kTraining = "/train";
constexpr const char* kValidation = "/validation";
constexpr std::string_view kOfEpochs = "epoch_";
constexpr int kLeastPause = 19;  // between two pictures, in units of the time that one takes

std::string of_epoch(std::string_view name) { return fmt::format("{}{}", kOfEpochs, name); }

/// As CSV has it: in quotes, where it holds what separates.
std::string field(const std::string& name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos) return name;
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + '"';
}

std::string heading(const RunHistory& history) {
  std::string line = "epoch";
  for (const std::string& name : history.names()) line += "," + field(name);
  return line + ",learning_rate,seconds";
}

/// A value that this epoch does not have is left empty.
std::string row(const RunHistory& history, const EpochPoint& epoch) {
  std::string line = fmt::format("{}", epoch.epoch);
  for (const std::string& name : history.names()) {
    line += ',';
    for (const auto& [each, value] : epoch.values)
      if (each == name) line += fmt::format("{:.9g}", without_nan_sign(value));
  }
  return line + fmt::format(",{:.9g},{:.3f}", epoch.learning_rate, epoch.seconds);
}

}  // namespace

RunLog::RunLog(const std::string& folder, const Recipe& recipe, std::optional<ResumePoint> resume) : folder_(folder), resume_(resume) {
  if (folder_.empty()) return;
  make_folders(folder_);
  remove_half_written();
  write_file_atomically(path_of(kRunRecipe), to_json(recipe) + "\n");
  if (resume_) go_on();
  else begin_afresh();
  lines_.emplace(path_of(kRunLines));
}

RunLog::~RunLog() {
  try {
    if (curves_are_old_) draw_curves();
  } catch (const Error&) {}  // all that the picture shows is in the other files
}

/// What a run that was killed left of files that were to take others' places.
void RunLog::remove_half_written() {
  for (const std::string& name : list_folder(folder_))
    for (const char* file : kRunFiles)
      if (name.starts_with(fmt::format(".{}.", file)) and name.ends_with(".tmp")) remove_file(folder_ + "/" + name);
}

void RunLog::begin_afresh() {
  for (const char* name : {kRunLines, kRunTable, kRunCurves}) remove_file(path_of(name));
  for (const char* name : {kTraining, kValidation}) remove_tensorboard_events(folder_ + name);
}

/// The table and the history follow from the lines, so these alone decide what is kept.
void RunLog::go_on() {
  write_file_atomically(path_of(kRunLines), [this](AtomicFile& kept) {
    for_each_line(path_of(kRunLines), [&](std::string_view line) {
      if (not is_before(line, *resume_)) return;
      kept.write(line);
      kept.write("\n");
      history_.add_line(line);
    });
  });
  if (history_.epochs().empty()) remove_file(path_of(kRunTable));
  else write_table();
  for (const char* name : {kTraining, kValidation})  // readers drop by one number what is counted by two
    drop_tensorboard_events(folder_ + name, [this](std::int64_t step, std::string_view tag) { return tag.starts_with(kOfEpochs) ? step >= resume_->epoch - 1 : step > resume_->step; });
}

void RunLog::write_table() {
  write_file_atomically(path_of(kRunTable), [this](AtomicFile& file) {
    file.write(heading(history_) + "\n");
    for (const EpochPoint& epoch : history_.epochs()) file.write(row(history_, epoch) + "\n");
  });
  columns_ = history_.names().size();
  table_.emplace(path_of(kRunTable));
}

void RunLog::draw_curves() {
  const auto begin = Clock::now();
  write_file_atomically(path_of(kRunCurves), curves_svg(history_));
  const auto end = Clock::now();
  next_curves_ = end + kLeastPause * (end - begin);
  curves_are_old_ = false;
}

TensorboardEvents& RunLog::training_events() {
  if (training_) return *training_;
  training_.emplace(folder_ + kTraining);
  if (resume_) training_->restart_at(resume_->step + 1);
  return *training_;
}

TensorboardEvents& RunLog::validation_events() {
  if (validation_) return *validation_;
  validation_.emplace(folder_ + kValidation);
  if (resume_) validation_->restart_at(resume_->epoch - 1);
  return *validation_;
}

void RunLog::step(const StepRecord& record) {
  if (not lines_) return;
  NamedNumbers events = {{"batch_loss", record.loss}, {"batch_learning_rate", record.learning_rate}, {"batch_samples_per_s", record.samples_per_s}};
  JsonLine line;
  line.text("kind", "step").integer("epoch", record.epoch).integer("step", record.step).number("loss", record.loss);
  for (const auto& [name, value] : record.values == nullptr ? NamedNumbers() : *record.values) {
    if (name == "loss") continue;
    line.number(name, value);
    events.emplace_back("batch_" + name, value);
  }
  line.number("learning_rate", record.learning_rate).number("samples_per_s", record.samples_per_s);
  if (record.scaling.scale > 0) {
    line.number("loss_scale", record.scaling.scale).integer("skipped_steps", record.scaling.skipped_steps);
    events.emplace_back("batch_loss_scale", record.scaling.scale);
  }
  if (record.grad_norms != nullptr) {
    JsonLine norms;
    for (const auto& [name, value] : *record.grad_norms) {
      norms.number(name, value);
      events.emplace_back("grad_norm/" + name, value);
    }
    line.object("grad_norms", norms);
  }
  history_.add(StepPoint{record.step, record.loss, record.learning_rate});
  lines_->append(line.str());
  training_events().scalars(record.step, events);
}

void RunLog::skipped_step(const StepRecord& record) {
  if (not lines_) return;
  lines_->append(JsonLine()
                     .text("kind", "skipped_step")
                     .integer("epoch", record.epoch)
                     .integer("step", record.step)
                     .number("loss", record.loss)
                     .number("loss_scale", record.scaling.scale)
                     .number("overflows", record.scaling.overflows)
                     .integer("skipped_steps", record.scaling.skipped_steps)
                     .str());
}

void RunLog::epoch(const EpochRecord& record) {
  history_.add(EpochPoint{record.epoch, record.learning_rate, record.seconds, *record.values});
  if (not lines_) return;
  JsonLine line;
  line.text("kind", "epoch").integer("epoch", record.epoch);
  NamedNumbers training, validation;
  for (const auto& [name, value] : *record.values) {
    line.number(name, value);
    if (name.starts_with(kOfValidation)) validation.emplace_back(of_epoch(name.substr(kOfValidation.size())), value);
    else training.emplace_back(of_epoch(name), value);
  }
  training.emplace_back(of_epoch("learning_rate"), record.learning_rate);
  line.number("learning_rate", record.learning_rate).number("seconds", record.seconds);
  lines_->append(line.str());
  if (not table_ or columns_ != history_.names().size()) write_table();  // a value that is new, such as those of a validation that was not there before
  else table_->append(row(history_, history_.epochs().back()));
  training_events().scalars(record.epoch - 1, training);
  if (not validation.empty()) validation_events().scalars(record.epoch - 1, validation);
  curves_are_old_ = true;
  if (Clock::now() >= next_curves_) draw_curves();
}

void RunLog::histogram(std::int64_t step, std::string_view name, const Tensor& values) {
  if (lines_) training_events().histogram(step, name, values);
}

}  // namespace hone
