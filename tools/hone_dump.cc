// hone-dump: what is in a file of ours, as text, picture, page or table.
#include <fmt/format.h>

#include "base/text.h"
#include "inspect/forms.h"
#include "ir/summary.h"
#include "tools/command_line.h"

namespace hone {
namespace {

struct Arguments {
  std::string file, as = "text", stage, trace;
  std::vector<std::string> dim;
  std::int64_t batch = 0;
  bool summary = false;
};

DescribeOptions options_of(const Arguments& arguments) {
  DescribeOptions options{.stage = arguments.stage, .batch = arguments.batch, .sizes = {}, .trace = arguments.trace};
  for (const std::string& item : arguments.dim) {
    const std::size_t equals = item.find('=');
    const auto size = equals == std::string::npos or equals == 0 ? std::nullopt : parse_bytes(item.substr(equals + 1));
    if (not size) throw Error(Code::kUsage, fmt::format("--dim {}: expected NAME=NUMBER", quoted(item)), {}, {"for example --dim T=128"});
    options.sizes[item.substr(0, equals)] = static_cast<std::int64_t>(*size);
  }
  return options;
}

int run(const Arguments& arguments) {
  const Form& form = find_form(arguments.as);
  const DescribeOptions options = options_of(arguments);
  const Contents contents = load_contents(arguments.file);
  if (arguments.summary) {
    print_data(model_summary(graph_of(contents, options.stage.empty() and contents.plan ? "imported" : options.stage)));
  } else if (form.name == "onnx") {
    std::vector<std::string> lost;
    print_data(onnx_form(contents, lost));
    for (const std::string& line : lost) print_message("note: " + line);
  } else {
    print_data(form.write(contents, options));
  }
  return 0;
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
                        {{"FILE", "", "a .onnx, .hir, .hone or .safetensors file, or a checkpoint's folder", &a.file, true},
                         {"--summary", "", "a table of layers, output shapes and parameters", &a.summary},
                         {"--as", "FORM", forms_text(), &a.as},
                         {"--stage", "STAGE", "which stage of a plan: imported, train_step, kernels, ...", &a.stage},
                         {"--trace", "FILE", "with json and html: what hone-run --trace measured, in place of estimated times", &a.trace},
                         {"--batch", "N", "samples of a step, for sizes in bytes and for memory; the recipe's batch if not given", &a.batch},
                         {"--dim", "NAME=N", "another symbolic size; may be given several times", &a.dim}},
                        [&a] { return run(a); }}},
          .not_yet = {{"diff", "comparing two files"}}};
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::Arguments arguments;
  return hone::run_tool(hone::make_tool(arguments), argc, argv);
}
