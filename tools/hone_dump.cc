// hone-dump: what is in a file of ours, as text, picture, page or table.
#include <fmt/format.h>

#include "base/text.h"
#include "inspect/diff.h"
#include "inspect/forms.h"
#include "inspect/summary.h"
#include "tools/command_line.h"

namespace hone {
namespace {

struct Arguments {
  std::string file, other, as = "text", stage, target, trace, memory_limit;
  std::vector<std::string> dim;
  std::int64_t batch = 0;
  bool summary = false;
};

DescribeOptions options_of(const Arguments& arguments) {
  check_batch_flag(arguments.batch);
  return {.stage = arguments.stage, .target = arguments.target, .batch = arguments.batch, .sizes = sizes_of_flag(arguments.dim), .trace = arguments.trace};
}

/// What only a plan has: programs, stages.
void check_is_plan(const Contents& contents, std::string_view flag, const std::string& value) {
  if (not contents.plan and not value.empty())
    throw Error(Code::kUsage, fmt::format("{} {}: {} is a file of another kind ({}), and has no {}s", flag, quoted(value), quoted(contents.path), to_string(contents.kind), flag == "--target" ? "program" : "stage"), {}, {"it is for plans (.hone)"});
}

int run(const Arguments& arguments) {
  const Form& form = find_form(arguments.as);
  const DescribeOptions options = options_of(arguments);
  const Contents contents = load_contents(arguments.file);
  check_is_plan(contents, "--target", options.target);
  check_is_plan(contents, "--stage", options.stage);
  if (arguments.summary) {
    if (form.name != "text") throw Error(Code::kUsage, fmt::format("--summary --as {}: a summary is a text", arguments.as), {}, {"leave --as out, or --summary for all that the file holds"});
    const auto limit = arguments.memory_limit.empty() ? std::nullopt : std::optional(bytes_of_flag("--memory-limit", arguments.memory_limit, "2GiB"));
    print_data(summary_text(contents, options, limit));
  } else if (form.name == "onnx") {
    std::vector<std::string> notes;
    print_data(onnx_form(contents, options, notes));
    for (const std::string& line : notes) print_message("note: " + line);
  } else {
    print_data(form.write(contents, options));
  }
  return 0;
}

bool is_recipe(const std::string& path) { return path.ends_with(".toml"); }

std::vector<Difference> compare_contents(const Arguments& arguments) {
  const Contents a = load_contents(arguments.file), b = load_contents(arguments.other);
  for (const Contents* contents : {&a, &b}) check_is_plan(*contents, "--target", arguments.target);
  return compare(a, b, arguments.target);
}

/// As diff(1): exit code 1 where they differ.
int compare_files(const Arguments& arguments) {
  if (arguments.as != "text" and arguments.as != "json") throw Error(Code::kUsage, fmt::format("--as {}: differences are text or json", quoted(arguments.as)), {}, {"leave it out for text"});
  if (is_recipe(arguments.file) != is_recipe(arguments.other)) throw Error(Code::kUsage, "a recipe is compared with another recipe", {}, {"hone-dump PLAN shows the recipe that a plan was compiled with"});
  const std::vector<Difference> differences = is_recipe(arguments.file) ? compare_recipes(arguments.file, arguments.other) : compare_contents(arguments);
  print_data(arguments.as == "json" ? to_json_text(differences) : to_text(differences));
  return differences.empty() ? 0 : 1;
}

std::string forms_text() {
  std::string text;
  for (const Form& form : forms()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", form.name, form.doc);
  return text;
}

Tool make_tool(Arguments& a) {
  return {.name = "hone-dump",
          .doc = "Shows what is in a model, a .hir file, a plan, a checkpoint or a file of weights.",
          .commands = {{"",
                        "",
                        {{"FILE", "", "a .onnx, .hir, .hone or .safetensors file, or a checkpoint's folder; - for a .hir graph from standard input", &a.file, true},
                         {"--summary", "", "a table of layers: output shapes, parameters, arithmetic; of a plan also gradients, what is kept for them, kernels, and the memory of a step", &a.summary},
                         {"--memory-limit", "BYTES", "with --summary: the largest batch that fits into it, 2GiB for example", &a.memory_limit, false, "--summary"},
                         {"--as", "FORM", forms_text(), &a.as},
                         {"--stage", "STAGE", "which stage of a plan: imported, train_step, kernels, ...", &a.stage},
                         {"--target", "T", "which program of a plan for several targets: cpu, cuda, ...; the first if not given, or with --trace the one that was traced", &a.target},
                         {"--trace", "FILE", "with json and html: what hone-run --trace measured, in place of estimated times", &a.trace},
                         {"--batch", "N", "samples of a step, for sizes in bytes and for memory; the recipe's batch if not given", &a.batch},
                         {"--dim", "NAME=N", "another symbolic size; may be given several times", &a.dim}},
                        [&a] { return run(a); }},
                       {"diff",
                        "what differs between two files: nodes, kernels, memory, weights, recipe; exit code 1 if anything does",
                        {{"A", "", "a model, plan, .hir, checkpoint, .safetensors, or a recipe (.toml)", &a.file, true},
                         {"B", "", "another one", &a.other, true},
                         {"--target", "T", "of plans: their programs for this target; the first of each if not given", &a.target},
                         {"--as", "FORM", "text or json", &a.as}},
                        [&a] { return compare_files(a); }}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
