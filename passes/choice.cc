#include "passes/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diag.h"
#include "base/text.h"

namespace hone {

const std::vector<std::string>& optional_passes() {
  static const std::vector<std::string> names = {"fold", "simplify", "cse", "dce", "factor", "loops", "layout", "library", "split", "fuse", "triangles", "panels", "epilogues"};
  return names;
}

PassChoice::PassChoice(std::string_view list) : names_(std::in_place) {
  const std::vector<std::string>& known = optional_passes();
  for (std::string& name : split(list, ',')) {
    if (name.empty() or name == "none") continue;
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(Code::kUsage, fmt::format("--passes: a plan has no pass {}", quoted(name)), {}, {did_you_mean(name, known), "passes: " + quoted_list(known)});
    names_->insert(std::move(name));
  }
}

}  // namespace hone
