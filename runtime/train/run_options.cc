#include "runtime/train/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace hone {

void check_run_options(const RunOptions& options, Spelling spelling, Diags& diags) {
  const bool as_flags = spelling == Spelling::kFlags;
  const auto spelled = [&](std::string name) {
    if (as_flags) std::ranges::replace(name, '_', '-');
    return as_flags ? "--" + name : name;
  };
  const auto refuse = [&](bool wrong, const std::string& what, std::string way_out) {
    if (wrong) diags.error(Code::kUsage, as_flags ? what : "fit: " + what, {}, {std::move(way_out)});
  };
  const struct {
    const char* name;
    std::int64_t number, least;
    const char *counts, *if_left_out;
  } numbers[] = {
      {"steps", options.steps, 0, "steps", "for all steps"},
      {"limit", options.limit, 0, "batches of an epoch", "for all batches"},
      {"valid_limit", options.valid_limit, 0, "batches of a validation", "for all batches"},
      {"log_every", options.log_every, 0, "steps", "for every 100th"},
      {"save_steps", options.save_steps, 0, "steps", "to save after each epoch only"},
      {"keep", options.keep, 1, "checkpoints, of which at least the newest is kept", "to keep three"},
      {"check_every", options.check_every, 0, "steps", "for every 100th"},
  };
  for (const auto& [name, number, least, counts, if_left_out] : numbers)
    refuse(number < least, fmt::format("{}{}{}: it counts {}: {} or more", spelled(name), as_flags ? " " : " is ", number, counts, least), fmt::format("leave it out {}", if_left_out));
  refuse(options.valid_limit > 0 and not options.has_valid, fmt::format("{} is about the batches of {}, which is not given", spelled("valid_limit"), spelled("valid")), fmt::format("give {}, or leave it out", spelled("valid")));
  const std::string run_dir = spelled("run_dir"), add_it = as_flags ? "add --run-dir DIR" : "give run_dir";
  refuse(not options.has_run_dir and options.resume, fmt::format("{} goes on from the checkpoints in {}, which is not given", spelled("resume"), run_dir), add_it + ", the one of the run that was stopped");
  refuse(not options.has_run_dir and (options.save_steps > 0 or options.keep_best), fmt::format("{} and {} are about the checkpoints in {}, which is not given", spelled("save_steps"), spelled("keep_best"), run_dir), add_it);
  refuse(options.resume and options.dry_run, fmt::format("{} leaves nothing and takes nothing from a run folder, so there is nothing to {}", spelled("dry_run"), spelled("resume")), "leave one of them out");
}

}  // namespace hone
