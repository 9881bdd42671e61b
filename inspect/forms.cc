#include "inspect/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "inspect/page.h"
#include "inspect/scene.h"
#include "ir/dot.h"

namespace hone {

namespace {

std::string svg_form(const Contents& contents, const DescribeOptions& options) {
  const Json graph = describe_graph(graph_of(contents, options.stage, options.target), sizes_of(contents, options).sizes);
  return to_svg(scene_of_graph(graph), contents.path);
}

constexpr Form kForms[] = {
    {"text", "lines for a terminal", text_form},
    {"dot", "a graph in the language of Graphviz", [](const Contents& contents, const DescribeOptions& options) { return to_dot(graph_of(contents, options.stage, options.target)); }},
    {"svg", "a graph as a picture: modules are boxes, the parts of the training step lie below each other", svg_form},
    {"html", "a page with everything: graph, kernels, schedule, memory; one file that loads nothing", [](const Contents& contents, const DescribeOptions& options) { return to_html(describe(contents, options)); }},
    {"json", "all that is known, as docs/dump_json.md says", [](const Contents& contents, const DescribeOptions& options) { return to_text(describe(contents, options)); }},
    {"onnx", "a plan's model with its training (TrainingInfoProto); with --stage train_step one step of it, or another stage, as a model that any runtime runs", nullptr},  // what is to be said besides: onnx_form()
};

}  // namespace

std::span<const Form> forms() { return kForms; }

const Form& find_form(const std::string& name) {
  std::vector<std::string> names;
  for (const Form& form : kForms) {
    if (form.name == name) return form;
    names.emplace_back(form.name);
  }
  throw Error(Code::kUsage, fmt::format("--as {}: there is no such form", quoted(name)), {}, {did_you_mean(name, names), "forms: " + quoted_list(names)});
}

}  // namespace hone
