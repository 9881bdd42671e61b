#include "runtime/device/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/diag.h"
#include "base/files.h"
#include "base/tensor.h"
#include "base/text.h"
#include "base/untrusted_json.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormatKey = "hone_choices";
constexpr int kChoicesFormat = 1;
constexpr std::uint64_t kMostBytesOfChoices = std::uint64_t{16} << 20;
constexpr int kTries = 3, kMostRepeats = 20;
constexpr double kMicrosecondsOfATry = 500;
constexpr std::size_t kMostBytesLookedAt = std::size_t{1} << 16;
constexpr const char* kRival = "apart";

/// What takes the place of one of them.
class Borrowed final : public DeviceCall {
 public:
  explicit Borrowed(DeviceCall& call) : call_(call) {}
  std::size_t scratch_bytes() const override { return call_.scratch_bytes(); }
  void put(Stream stream, std::span<const std::byte* const> operands, std::span<std::byte* const> results, std::byte* scratch) override { call_.put(stream, operands, results, scratch); }

 private:
  DeviceCall& call_;
};

std::size_t bytes_of(const TensorType& type) { return checked_multiply(static_cast<std::size_t>(checked_element_count(type.shape)), size_of(type.dtype), "a tensor"); }

/// What a file holds. Throws Error, or Json::exception, for what is none.
NamedChoices choices_in(const std::string& text) {
  const Json json = parse_untrusted_json<Json>(text);
  if (json.at(kFormatKey) != kChoicesFormat) throw Error(Code::kFileRead, "it is of another version");
  NamedChoices choices;
  for (const auto& [question, choice] : json.at("choices").items()) {
    const double microseconds = choice.at("microseconds").get<double>();
    if (not std::isfinite(microseconds) or microseconds < 0) throw Error(Code::kFileRead, "a time that is none");
    choices[question] = {choice.at("choice").get<std::string>(), microseconds};
  }
  return choices;
}

}  // namespace

/// For one call's operands, results and scratch.
struct CallTimer::Memory {
  Memory(Device& device, const LibrarySpec& spec, std::size_t scratch_bytes) {
    const auto take = [&](std::size_t bytes) { return blocks.emplace_back(device, std::max<std::size_t>(bytes, 1), "trying out a library's call").data(); };
    for (const auto& operand : spec.operands) operands.push_back(operand ? take(bytes_of(*operand)) : nullptr);
    for (const TensorType& result : spec.results) results.push_back(take(bytes_of(result)));
    scratch = take(scratch_bytes);
  }

  std::vector<DeviceMemory> blocks;
  std::vector<const std::byte*> operands;
  std::vector<std::byte*> results;
  std::byte* scratch = nullptr;
};

/// A NaN is a NaN to every float type where all its bits are set.
bool CallTimer::keeps_nans(const Candidate& candidate, const LibrarySpec& spec, const Memory& memory) {
  if (not candidate.keeps_nans_of) return true;
  const std::size_t operand = *candidate.keeps_nans_of;
  const std::vector<std::byte> nans(bytes_of(*spec.operands[operand]), std::byte{0xff});
  const TensorType& result = spec.results[0];
  std::vector<std::byte> found(std::min(bytes_of(result), kMostBytesLookedAt));
  try {
    device_.copy_in(stream_, const_cast<std::byte*>(memory.operands[operand]), nans.data(), nans.size());
    candidate.call->put(stream_, memory.operands, memory.results, memory.scratch);
    device_.copy_out(stream_, found.data(), memory.results[0], found.size());
    device_.synchronize(stream_);
  } catch (const Error&) { return false; }
  const Tensor seen = Tensor::copy(result.dtype, {static_cast<std::int64_t>(found.size() / size_of(result.dtype))}, found);
  for (std::int64_t i = 0; i < seen.element_count(); ++i)
    if (not std::isnan(seen.at(i))) return false;
  return true;
}

/// Of one of `repeats`.
double CallTimer::microseconds(DeviceCall& call, const Memory& memory, int repeats) {
  device_.record_time(begin_, stream_);
  for (int i = 0; i < repeats; ++i) call.put(stream_, memory.operands, memory.results, memory.scratch);
  device_.record_time(end_, stream_);
  device_.synchronize(stream_);
  return static_cast<double>(device_.time_between(begin_, end_).value()) / 1e3 / repeats;
}

/// The first call makes everything ready, and the second one says how many make a try.
std::optional<double> CallTimer::least(DeviceCall& call, const Memory& memory) {
  try {
    (void)microseconds(call, memory, 1);
    const int repeats = static_cast<int>(std::clamp(kMicrosecondsOfATry / std::max(microseconds(call, memory, 1), 1.0), 1.0, static_cast<double>(kMostRepeats)));
    double least = microseconds(call, memory, repeats);
    for (int i = 1; i < kTries; ++i) least = std::min(least, microseconds(call, memory, repeats));
    return least;
  } catch (const Error&) { return std::nullopt; }  // a device that is really lost says so again at the next thing it is asked for
}

std::optional<std::vector<std::optional<double>>> CallTimer::time(const LibrarySpec& spec, std::span<const Candidate> candidates) {
  std::size_t scratch = 0;
  for (const Candidate& candidate : candidates) scratch = std::max(scratch, candidate.call->scratch_bytes());
  try {
    const Memory memory(device_, spec, scratch);
    std::vector<std::optional<double>> times;
    for (const Candidate& candidate : candidates) times.push_back(keeps_nans(candidate, spec, memory) ? least(*candidate.call, memory) : std::nullopt);
    return times;
  } catch (const Error& error) {
    if (error.diags().front().code != Code::kMemory) throw;
    return std::nullopt;
  }
}

Choices::Choices(By by, std::string file) : by_(by), file_(std::move(file)) {
  if (by_ == By::kTiming) choices_ = read();
}

NamedChoices Choices::read() {
  if (file_.empty() or not file_exists(file_)) return {};
  std::string why;
  try {
    return choices_in(read_file(file_, kMostBytesOfChoices));
  } catch (const Error& error) {
    why = error.diags().front().message;
  } catch (const Json::exception&) { why = "it is no JSON of choices"; }
  note_ = fmt::format("{} cannot be used ({}): what a device chooses by timing is measured anew, and not kept; remove the file, or name another one", quoted(file_), printable(why));
  file_.clear();
  return {};
}

/// With what others have written meanwhile. What cannot be written is not kept: a run does not fail for that.
void Choices::write() {
  if (file_.empty()) return;
  NamedChoices all = read();
  if (file_.empty()) return;
  for (const auto& [question, choice] : choices_) all[question] = choice;
  Json json = {{kFormatKey, kChoicesFormat}, {"choices", Json::object()}};
  for (const auto& [question, choice] : all) json["choices"][question] = {{"choice", choice.name}, {"microseconds", choice.microseconds}};
  try {
    make_folders(folder_of(file_));
    write_file_atomically(file_, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const Error& error) {
    note_ = fmt::format("what was chosen by timing is not kept: {}", error.diags().front().message);
    file_.clear();
  }
}

std::unique_ptr<DeviceCall> Choices::choose(Device& device, const std::string& question, const LibrarySpec& spec, std::vector<Candidate> candidates) {
  if (candidates.empty()) return nullptr;
  if (by_ == By::kRule or candidates.size() == 1) return std::move(candidates.front().call);
  if (const auto known = choices_.find(question); known != choices_.end()) {
    const auto found = std::ranges::find(candidates, known->second.name, &Candidate::name);
    if (found != candidates.end()) return std::move(found->call);
  }
  if (timer_ == nullptr) timer_ = std::make_unique<CallTimer>(device);
  const auto times = timer_->time(spec, candidates);
  if (not times) return std::move(candidates.front().call);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if ((*times)[i] and (not best or *(*times)[i] < *(*times)[*best])) best = i;
  if (not best) return nullptr;
  choices_[question] = {candidates[*best].name, *(*times)[*best]};
  write();
  return std::move(candidates[*best].call);
}

std::unique_ptr<DeviceCall> Choices::choose_over(DeviceCall& rival, Device& device, const std::string& question, const LibrarySpec& spec, std::vector<Candidate> candidates) {
  if (candidates.empty() or by_ == By::kRule) return nullptr;
  candidates.insert(candidates.begin(), {kRival, std::make_unique<Borrowed>(rival)});
  const DeviceCall* const borrowed = candidates.front().call.get();
  std::unique_ptr<DeviceCall> chosen = choose(device, question, spec, std::move(candidates));
  return chosen.get() == borrowed ? nullptr : std::move(chosen);
}

}  // namespace hone
