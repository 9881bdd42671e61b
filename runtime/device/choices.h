// Choices: which of several ways to make a library's call a device takes. By timing, on the device, when the call is made ready; or by rule: the library's own first recommendation. What was measured is
// remembered, and kept in a file from run to run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace hone {

/// A way to make a call, the best recommended first. Names tell the ways of one call apart, in every run.
struct Candidate {
  std::string name;
  std::unique_ptr<DeviceCall> call;
  /// Number of an operand whose NaNs must come through to all of the first result: seen to before it is taken, where the library does not promise it.
  std::optional<std::size_t> keeps_nans_of = {};
};

/// Times calls on a device, in a stream of its own.
class CallTimer {
 public:
  /// The device outlives it.
  explicit CallTimer(Device& device) : device_(device), stream_(device.make_stream()), begin_(device.make_timed_event()), end_(device.make_timed_event()) {}

  /// Microseconds of each call, the least of several tries; nothing of one that fails. Nothing at all where the device has no memory for what they read and write.
  std::optional<std::vector<std::optional<double>>> time(const LibrarySpec& spec, std::span<const Candidate> candidates);

 private:
  struct Memory;
  bool keeps_nans(const Candidate& candidate, const LibrarySpec& spec, const Memory& memory);
  double microseconds(DeviceCall& call, const Memory& memory, int repeats);
  std::optional<double> least(DeviceCall& call, const Memory& memory);

  Device& device_;
  const Stream stream_;
  const Event begin_, end_;
};

/// What was chosen, and how long it takes.
struct Choice {
  std::string name;
  double microseconds = 0;
};
using NamedChoices = std::map<std::string, Choice>;  // by question

/// For one device.
class Choices {
 public:
  enum class By : std::uint8_t { kRule, kTiming };

  /// `file` is read, if it is there, and written when something was measured; "": none. A file that is none of these, or cannot be read, is left alone: note() says so, and what is chosen is measured anew.
  explicit Choices(By by = By::kRule, std::string file = "");

  /// What a person should know; "": nothing.
  const std::string& note() const { return note_; }

  /// The chosen one; null if there is none. `question` says all on which the answer depends: the device's model, the library and its version, the call with its sizes. Candidates that fail when they are tried are not
  /// taken. Where the device has no memory to try them the first one is, and nothing is remembered.
  std::unique_ptr<DeviceCall> choose(Device& device, const std::string& question, const LibrarySpec& spec, std::vector<Candidate> candidates);
  /// The same where `rival` does what they do and comes first: null where it is taken.
  std::unique_ptr<DeviceCall> choose_over(DeviceCall& rival, Device& device, const std::string& question, const LibrarySpec& spec, std::vector<Candidate> candidates);

 private:
  NamedChoices read();
  void write();

  const By by_;
  std::string file_;
  std::string note_;
  NamedChoices choices_;
  std::unique_ptr<CallTimer> timer_;  ///< once one is needed
};

}  // namespace hone
