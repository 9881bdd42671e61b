#include "inspect/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/recipe.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "inspect/trace.h"

namespace hone {

namespace {

Json describe_tensors(const Contents& contents) {
  Json list = Json::array();
  for (const StoredTensor& tensor : contents.tensors) {
    Json one = {{"name", shown(tensor.name)}, {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}, {"bytes", tensor.bytes}};
    if (not tensor.file.empty()) one["file"] = tensor.file;
    list.push_back(std::move(one));
  }
  return list;
}

std::string title_of(const Contents& contents) {
  if (contents.plan) return contents.plan->model_name;
  return contents.path.substr(contents.path.rfind('/') + 1);
}

/// What a file says itself, as JSON; null for what is no JSON: a checkpoint may be anybody's.
Json parsed(const std::string& text) {
  Json value = parse_untrusted_json<Json>(text);
  return value.is_discarded() ? Json() : value;
}

/// The symbol of the samples' axis: a plan's, or of a graph the first of its inputs' first axes.
std::string batch_symbol_of(const Contents& contents) {
  if (contents.plan) return contents.plan->batch_symbol;
  const Graph* graph = contents.model ? &contents.model->graph : contents.graph ? &*contents.graph : nullptr;
  if (graph == nullptr) return "";
  for (const Input& input : graph->inputs())
    if (const Shape& shape = graph->type(input.value).shape; input.role == Role::kInput and not shape.empty() and shape[0].is_symbol()) return shape[0].text();
  return "";
}

std::vector<Shape> input_shapes(const Contents& contents) {
  std::vector<Shape> shapes;
  const Graph* graph = contents.model ? &contents.model->graph : contents.graph ? &*contents.graph : nullptr;
  if (graph != nullptr)
    for (const Input& input : graph->inputs()) shapes.push_back(graph->type(input.value).shape);
  if (contents.plan)
    for (const plan::Program& program : contents.plan->programs)
      for (const plan::Entry& entry : program.entries)
        for (const plan::Feed& feed : entry.feeds) shapes.push_back(feed.shape);
  return shapes;
}

}  // namespace

std::int64_t batch_of(const Contents& contents, const DescribeOptions& options) {
  if (options.batch > 0) return options.batch;
  return contents.plan and not contents.plan->recipe_json.empty() ? recipe_from_json(contents.plan->recipe_json).data.batch_size : 1;
}

namespace {

constexpr std::uint64_t kMostTraceBytes = std::uint64_t{1} << 30;

/// The entry that is measured.
const plan::Entry& traced_entry(const plan::Program& program, const std::string& stage) {
  const plan::Entry* entry = program.find(stage);
  if (entry == nullptr) throw Error(Code::kUsage, fmt::format("--trace: the stage {} is no entry that runs", quoted(stage)), {}, {"leave --stage out"});
  return *entry;
}

/// Times of the steps of the entry that is shown.
void add_measured(Json& description, const plan::Program& program, const TracedRun& trace) {
  const std::string stage = description["stage"].get<std::string>();
  const auto measured = measured_steps(trace, traced_entry(program, stage));
  for (Json& one : description["program"]["entries"]) {
    if (one["name"] != stage) continue;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (not measured[i]) continue;
      one["steps"][i]["measured_us"] = measured[i]->microseconds;
      one["steps"][i]["runs"] = measured[i]->runs;
      if (measured[i]->span) one["steps"][i]["start_us"] = measured[i]->span->start, one["steps"][i]["run_us"] = measured[i]->span->length;
    }
  }
  description["trace"] = {{"file", shown(trace.path)}, {"steps", std::ranges::count_if(measured, [](const auto& step) { return step.has_value(); })}};
}

std::optional<TracedRun> trace_of(const Contents& contents, const DescribeOptions& options) {
  if (not contents.plan or options.trace.empty()) return std::nullopt;
  return read_trace(read_file(options.trace, kMostTraceBytes), options.trace);
}

/// The program that is asked for, or else the one that was traced, or else the first.
const plan::Program& shown_program(const plan::Plan& plan, const DescribeOptions& options, const std::string& stage, const std::optional<TracedRun>& trace) {
  if (not trace) return find_program(plan, options.target);
  if (not options.target.empty() and trace->targets.empty()) return find_program(plan, options.target);
  const plan::Program& traced = traced_program(*trace, plan, stage);
  if (not options.target.empty() and find_program(plan, options.target).target != traced.target)
    throw Error(Code::kUsage, fmt::format("--target {}: {} is a trace of the program for {}", quoted(options.target), quoted(trace->path), printable(traced.target, 100)), {}, {"leave --target out"});
  return traced;
}

}  // namespace

KnownSizes sizes_of(const Contents& contents, const DescribeOptions& options) {
  KnownSizes known{.sizes = options.sizes, .assumed = {}};
  std::vector<std::string> there;
  for (const Shape& shape : input_shapes(contents))
    for (const Dim& dim : shape) std::ranges::copy(dim.symbols(), std::back_inserter(there));
  require_sizes(options.sizes, there);
  if (const std::string symbol = batch_symbol_of(contents); not symbol.empty()) known.sizes.try_emplace(symbol, batch_of(contents, options));
  for (const std::string& symbol : there)
    if (known.sizes.try_emplace(symbol, kAssumedSize).second) known.assumed.push_back(symbol);
  return known;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 1000;
  if (text.size() <= kLongest) return std::string(text);
  return fmt::format("{}...{}", text.substr(0, kLongest / 2), text.substr(text.size() - kLongest / 2));
}

Json number_of(const Dim& dim, const DimBindings& sizes) {
  try {
    return dim.evaluate(sizes);
  } catch (const Error&) {  // a size that is not given, or is beyond 2^63
    return nullptr;
  }
}

namespace {

/// What a plan has besides its graph.
void add_plan(Json& description, const Contents& contents, const plan::Program& program, const DimBindings& sizes, const Graph& graph, const std::optional<TracedRun>& trace) {
  description["weights"] = describe_weights(graph, program);
  description["program"] = describe_program(*contents.plan, program, sizes);
  say_parts_and_categories(description);
  if (trace) add_measured(description, program, *trace);
}

}  // namespace

Json describe(const Contents& contents, const DescribeOptions& options) {
  Json description = {{"schema", kDescriptionSchema}, {"producer", "hone-dump"}, {"kind", to_string(contents.kind)}, {"file", shown(contents.path)}, {"name", shown(title_of(contents))}};
  const auto [sizes, assumed] = sizes_of(contents, options);
  description["sizes"] = Json::object();
  description["assumed_sizes"] = assumed;
  for (const auto& [symbol, size] : sizes) description["sizes"][symbol] = size;
  const std::string stage = options.stage.empty() ? default_stage(contents) : options.stage;
  const std::optional<TracedRun> trace = trace_of(contents, options);
  const plan::Program* const program = contents.plan ? &shown_program(*contents.plan, options, stage, trace) : nullptr;
  if (program != nullptr) {
    description["batch_symbol"] = contents.plan->batch_symbol;
    description["targets"] = Json::array(), description["stages"] = Json::array({{{"name", "schedule"}, {"graph", false}}});
    for (const plan::Program& one : contents.plan->programs) description["targets"].push_back(shown(one.target));
    for (const auto& [name, text] : stages_of(*contents.plan, *program)) description["stages"].push_back({{"name", name}, {"graph", text->starts_with("graph ")}});
    description["stage"] = stage;
    description["recipe"] = parsed(contents.plan->recipe_json);
  }
  if (contents.kind == Contents::Kind::kCheckpoint) description["state"] = parsed(contents.state);
  description["tensors"] = describe_tensors(contents);
  if (not contents.plan and not contents.model and not contents.graph) return description;
  const Graph graph = graph_of(contents, options.stage, program == nullptr ? "" : program->target);
  description["graph"] = describe_graph(graph, sizes);
  if (program != nullptr) add_plan(description, contents, *program, sizes, graph, trace);
  return description;
}

namespace {

/// Lists and objects down to `depth` get lines of their own; what is deeper stands on one.
void write(const Json& value, int depth, std::string indent, std::string& out) {
  if (depth == 0 or value.empty() or not value.is_structured()) {
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const std::string inner = indent + " ";
  out += value.is_array() ? "[\n" : "{\n";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    out += (first ? "" : ",\n") + inner;
    if (value.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    write(item, depth - 1, inner, out);
    first = false;
  }
  out += "\n" + indent + (value.is_array() ? "]" : "}");
}

}  // namespace

std::string to_text(const Json& description) {
  constexpr int kDepthOfLines = 5;  // program, entries, an entry, its steps, a step
  std::string text;
  write(description, kDepthOfLines, "", text);
  return text + "\n";
}

}  // namespace hone
