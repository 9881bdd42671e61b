#include "inspect/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/diag.h"
#include "base/recipe_tables.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "frontend/recipe_toml.h"
#include "runtime/library/arena.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

using Json = nlohmann::ordered_json;
using Change = Difference::Change;
using Texts = std::map<std::string, std::string>;

/// Keys of either, and what they are where that differs.
void compare_texts(const std::string& kind, const Texts& a, const Texts& b, std::vector<Difference>& out) {
  std::set<std::string> keys;
  for (const Texts* texts : {&a, &b})
    for (const auto& [key, unused] : *texts) keys.insert(key);
  for (const std::string& key : keys) {
    const auto before = a.find(key), after = b.find(key);
    if (before == a.end()) out.push_back({.kind = kind, .change = Change::kAdded, .name = key, .after = after->second});
    else if (after == b.end()) out.push_back({.kind = kind, .change = Change::kRemoved, .name = key, .before = before->second});
    else if (before->second != after->second) out.push_back({.kind = kind, .name = key, .before = before->second, .after = after->second});
  }
}

/// {"optimizer": {"kind": "adam"}} as optimizer.kind: "adam". Of what is no JSON nothing.
Texts flat(const std::string& text) {
  Texts texts;
  const Json json = parse_untrusted_json<Json>(text);
  if (json.is_discarded() or not json.is_object()) return texts;
  const Json leaves = json.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    std::string key = pointer.substr(std::min<std::size_t>(1, pointer.size()));
    std::ranges::replace(key, '/', '.');
    texts[key] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return texts;
}

// --- What a file has that others have, too ---

/// The model that the file is, or was compiled from.
std::optional<Graph> model_graph(const Contents& contents) {
  if (contents.model) return contents.model->graph.clone();
  if (contents.graph) return contents.graph->clone();
  if (contents.plan and contents.plan->graphs.contains("imported")) return graph_of(contents, "imported");
  return std::nullopt;
}

/// Weights, and what only training has: moments, counters, adapters. Files of weights alone do not say which is which.
struct Tensors {
  std::vector<StoredTensor> weights, states;
};

Tensors tensors_of(const Contents& contents) {
  Tensors tensors;
  std::set<std::string> states;
  if (contents.plan)
    for (const plan::Program& program : contents.plan->programs)
      for (const plan::Persistent& persistent : program.persistents)
        if (persistent.role == plan::Persistent::Role::kState and not persistent.in_model) states.insert(persistent.name);
  for (const StoredTensor& tensor : contents.tensors) {
    const bool is_state = contents.plan ? states.contains(tensor.name) : tensor.file == "optimizer.safetensors";
    (is_state ? tensors.states : tensors.weights).push_back(tensor);
  }
  return tensors;
}

bool trains(const Contents& contents) { return contents.plan.has_value() or contents.kind == Contents::Kind::kCheckpoint; }

// --- Plans ---

std::string size_text(std::int64_t bytes) { return human_bytes(static_cast<std::uint64_t>(bytes)); }

/// What people run, not its variations for replicas.
constexpr const char* kShownEntries[] = {plan::kTrainStep, plan::kAccumulateStep, plan::kEvalStep, plan::kPredict};

/// How many kernels, calls, copies an entry has, by what they are. Kernels are numbered as they are made: the number says nothing.
std::map<std::string, std::int64_t> calls_of(const plan::Entry& entry) {
  std::map<std::string, std::int64_t> calls;
  for (const plan::Step& step : entry.steps) {
    std::string name = name_of(step);
    if (std::holds_alternative<plan::KernelStep>(step.what)) name = name.substr(0, name.find_last_not_of("0123456789") + 1).append("*");
    ++calls[name];
    if (const auto* region = std::get_if<plan::RegionStep>(&step.what))
      for (const plan::Entry& body : region->bodies)
        for (const auto& [inner, count] : calls_of(body)) calls[inner] += count;  // plan::check limits the depth
  }
  return calls;
}

/// A program of a plan.
struct ProgramOf {
  const plan::Program& program;
  const std::string& batch_symbol;
};

void compare_entries(const ProgramOf& a, const ProgramOf& b, std::int64_t batch, std::vector<Difference>& out) {
  Texts sizes_a, sizes_b;
  for (const char* name : kShownEntries) {
    const plan::Entry *before = a.program.find(name), *after = b.program.find(name);
    if (before == nullptr and after == nullptr) continue;
    if (before == nullptr or after == nullptr) {
      out.push_back({.kind = "entry", .change = before == nullptr ? Change::kAdded : Change::kRemoved, .name = name});
      continue;
    }
    const auto calls_before = calls_of(*before), calls_after = calls_of(*after);
    Texts counts_before, counts_after;
    for (const auto& [call, count] : calls_before) counts_before[fmt::format("{}: {}", name, call)] = fmt::format("{} times", count);
    for (const auto& [call, count] : calls_after) counts_after[fmt::format("{}: {}", name, call)] = fmt::format("{} times", count);
    compare_texts("kernel", counts_before, counts_after, out);
    const auto arena = [&](const ProgramOf& of, const plan::Entry& entry) {
      const auto size = arena_size(entry, sizes_for(of.batch_symbol, batch));
      return size ? size_text(size->bytes) : "known when it runs";
    };
    const std::string key = fmt::format("arena of {} at batch {}", name, batch);
    sizes_a[key] = arena(a, *before), sizes_b[key] = arena(b, *after);
  }
  const auto roles = [](const plan::Program& program, Texts& sizes) {
    constexpr std::string_view kNames[] = {"weights", "states", "constants"};
    std::int64_t bytes[std::size(kNames)] = {};
    for (const plan::Persistent& persistent : program.persistents) bytes[static_cast<std::size_t>(persistent.role)] += static_cast<std::int64_t>(persistent.initial.byte_count());
    for (std::size_t i = 0; i < std::size(kNames); ++i) sizes[std::string(kNames[i])] = size_text(bytes[i]);
  };
  roles(a.program, sizes_a), roles(b.program, sizes_b);
  compare_texts("memory", sizes_a, sizes_b, out);
}

void compare_plans(const plan::Plan& a, const plan::Plan& b, const std::string& target, std::vector<Difference>& out) {
  const Texts recipe_a = flat(a.recipe_json), recipe_b = flat(b.recipe_json);
  compare_texts("recipe", recipe_a, recipe_b, out);
  const auto batch = recipe_b.find("data.batch_size");
  compare_entries({find_program(a, target), a.batch_symbol}, {find_program(b, target), b.batch_symbol}, batch == recipe_b.end() ? 32 : std::max(1LL, std::strtoll(batch->second.c_str(), nullptr, 10)), out);
}

bool have_something_in_common(const Contents& a, const Contents& b) {
  return (model_graph(a) and model_graph(b)) or (not a.tensors.empty() and not b.tensors.empty());
}

}  // namespace

std::vector<Difference> compare(const Contents& a, const Contents& b, const std::string& target) {
  if (not have_something_in_common(a, b))
    throw Error(Code::kUsage, fmt::format("{} is a {}, and {} is a {}: they have nothing in common", quoted(a.path), to_string(a.kind), quoted(b.path), to_string(b.kind)), {},
                {"models, graphs and plans are compared with each other, and with them, or with each other, checkpoints and files of weights"});
  std::vector<Difference> out;
  if (a.plan and b.plan) compare_plans(*a.plan, *b.plan, target, out);
  if (const auto before = model_graph(a), after = model_graph(b); before and after) compare_graphs(*before, *after, out);
  if (a.kind == Contents::Kind::kCheckpoint and b.kind == Contents::Kind::kCheckpoint) compare_texts("run", flat(a.state), flat(b.state), out);
  const Tensors tensors_a = tensors_of(a), tensors_b = tensors_of(b);
  if (a.kind != Contents::Kind::kGraph and b.kind != Contents::Kind::kGraph) compare_tensors("weight", tensors_a.weights, tensors_b.weights, out);
  if (trains(a) and trains(b)) compare_tensors("state", tensors_a.states, tensors_b.states, out);
  return out;
}

std::vector<Difference> compare_recipes(const std::string& a, const std::string& b) {
  const auto texts = [](const std::string& path) {
    Texts keys;
    for (const auto& [key, value] : read_recipe(path).values) keys[key] = to_text(value);
    return keys;
  };
  std::vector<Difference> out;
  compare_texts("recipe", texts(a), texts(b), out);
  return out;
}

// --- As text and as JSON ---

namespace {

constexpr std::string_view kChanges[] = {"changed", "added", "removed"};

std::string elements_text(const Difference::Elements& elements) {
  return fmt::format("{} of {} elements differ; norm of the difference {:.4g}, {:.2g} of its own; the largest is {:.4g} at {}: {:.6g} -> {:.6g}", elements.differing, elements.all, elements.norm,
                     elements.relative, elements.largest, shape_text(elements.at), elements.before, elements.after);
}

std::string line_of(const Difference& difference) {
  constexpr std::size_t kLongest = 300;
  const auto cut = [](const std::string& text) { return text.size() <= kLongest ? text : text.substr(0, kLongest) + "..."; };  // these quote what they name
  std::string text = fmt::format("{} {}", difference.change == Change::kAdded ? "+" : difference.change == Change::kRemoved ? "-" : "~", printable(difference.name, kLongest));
  const std::string before = cut(difference.before), after = cut(difference.after);
  if (not before.empty() and not after.empty()) text += fmt::format(": {} -> {}", before, after);
  else if (not before.empty() or not after.empty()) text += ": " + before + after;
  if (not difference.detail.empty()) text += (before.empty() and after.empty() ? ": " : "; ") + cut(difference.detail);
  if (difference.elements) text += ": " + elements_text(*difference.elements);
  return text;
}

}  // namespace

std::string to_text(const std::vector<Difference>& differences) {
  std::string text, kind;
  for (const Difference& difference : differences) {
    if (difference.kind != kind) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", kind = difference.kind);
    text += "  " + line_of(difference) + "\n";
  }
  return text;
}

std::string to_json_text(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& difference : differences) {
    Json one = {{"kind", difference.kind}, {"change", kChanges[static_cast<std::size_t>(difference.change)]}, {"name", difference.name}};
    if (not difference.before.empty()) one["before"] = difference.before;
    if (not difference.after.empty()) one["after"] = difference.after;
    if (not difference.detail.empty()) one["detail"] = difference.detail;
    if (const auto& elements = difference.elements)
      one["elements"] = {{"differing", elements->differing}, {"all", elements->all}, {"norm", elements->norm}, {"relative", elements->relative}, {"largest", elements->largest}, {"at", elements->at},
                         {"before", elements->before}, {"after", elements->after}};
    list.push_back(std::move(one));
  }
  return list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone
