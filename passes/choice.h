// Which passes of a plan's making run. Those that may be left out change how a plan computes, never what: a plan without them is slower, and what to look at
// where a fast one is wrong.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

class PassChoice {
 public:
  /// All of them.
  PassChoice() = default;
  /// Those of a list "fold,simplify,fuse", or "none". Throws Error kUsage for an unknown one, with the nearest.
  explicit PassChoice(std::string_view list);

  bool runs(std::string_view pass) const { return not names_ or names_->contains(pass); }
  bool operator==(const PassChoice&) const = default;

 private:
  std::optional<std::set<std::string, std::less<>>> names_;
};

/// The names of all passes that may be left out.
const std::vector<std::string>& optional_passes();

}  // namespace hone
