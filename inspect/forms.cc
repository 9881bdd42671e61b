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

/// Of a schedule its steps, of everything else its graph.
ScenePieces drawn_pieces(const Contents& contents, const DescribeOptions& options) {
  const std::string entry = contents.plan ? scheduled_entry(*contents.plan, options.stage) : "";
  if (entry.empty()) return pieces_of_graph(describe_graph(graph_of(contents, options.stage, options.target), sizes_of(contents, options).sizes));
  DescribeOptions whole = options;
  whole.stage.clear();
  whole.trace.clear();
  const Json plan = describe(contents, whole);
  for (const Json& one : plan["program"]["entries"])
    if (one["name"] == entry) return pieces_of_schedule(one, plan["graph"]);
  std::vector<std::string> drawn;
  for (const Json& one : plan["program"]["entries"]) drawn.push_back(one["name"].get<std::string>() + ".schedule");
  throw Error(Code::kUsage, fmt::format("--stage {}: no picture is drawn of it", quoted(options.stage)), {}, {did_you_mean(options.stage, drawn), "schedules that are drawn: " + quoted_list(drawn), "--as text prints that of any entry"});
}

std::string svg_form(const Contents& contents, const DescribeOptions& options) { return to_svg(build_scene(drawn_pieces(contents, options)), contents.path); }

std::string dot_form(const Contents& contents, const DescribeOptions& options) {
  const bool is_schedule = contents.plan and not scheduled_entry(*contents.plan, options.stage).empty();
  return is_schedule ? to_dot(drawn_pieces(contents, options), contents.path) : to_dot(graph_of(contents, options.stage, options.target));
}

constexpr Form kForms[] = {
    {"text", "lines for a terminal", text_form},
    {"dot", "a graph, or with --stage schedule what runs, in the language of Graphviz", dot_form},
    {"svg", "the same as a picture: modules are boxes, the parts of the training step lie below each other", svg_form},
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
