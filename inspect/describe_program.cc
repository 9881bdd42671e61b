// What a plan runs, as JSON: steps, buffers, kernels, memory.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/arithmetic.h"
#include "backends/parts.h"
#include "backends/step_nodes.h"
#include "base/text.h"
#include "base/untrusted_json.h"
#include "inspect/describe.h"
#include "inspect/memory.h"
#include "ir/op.h"
#include "ir/ops/ops.h"
#include "runtime/library/arena.h"
#include "runtime/plan/step_name.h"

namespace hone {

namespace {

using plan::Buffer;

/// What a step is expected to take where nobody measured: the longer of its arithmetic and its memory traffic on a plain machine.
constexpr double kOperationsPerSecond = 5e10, kBytesPerSecond = 2e10, kStepSeconds = 1e-6;

constexpr std::string_view kStepKinds[] = {"kernel", "library", "host", "copy", "exchange", "read_sizes", "region"};  // by alternative of plan::Step::what
constexpr std::string_view kStorages[] = {"arena", "persistent", "feed", "view"};
constexpr std::string_view kRoles[] = {"weight", "state", "constant"};

/// Entries that people run, and the one that says where gradients are exchanged. The others are parts and variations of these.
bool is_described_in_full(const plan::Entry& entry) {
  const std::string replicas = plan::replica_entry(plan::kTrainStep);
  return entry.name == plan::kTrainStep or entry.name == plan::kAccumulateStep or entry.name == plan::kEvalStep or entry.name == plan::kPredict or entry.name == replicas;
}

struct Costs {
  const ArithmeticTable table;
  const DimBindings sizes;
};

/// Nothing for what is not known: host functions, sizes that are read when running.
std::optional<CallArithmetic> arithmetic_of(const plan::Entry& entry, const plan::Step& step, const Costs& costs) {
  if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) return costs.table.of(*kernel, costs.sizes);
  if (std::holds_alternative<plan::HostStep>(step.what)) return std::nullopt;
  CallArithmetic sum;
  try {
    if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
      sum.flops = sum.operations = library_operations(entry, *library, costs.sizes);
      if (const auto kernel = library->epilogue ? costs.table.of(library->epilogue->kernel, costs.sizes) : std::nullopt) sum.flops += kernel->flops, sum.operations += kernel->operations;
    } else if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) {
      const double trips = region->kind == plan::RegionStep::Kind::kBranch ? 1 : static_cast<double>(region->trips.evaluate(costs.sizes));
      for (const plan::Entry& body : region->bodies) {  // plan::check limits the depth
        for (const plan::Step& inner : body.steps) {
          const CallArithmetic each = arithmetic_of(body, inner, costs).value_or(CallArithmetic{});
          sum.flops += trips * each.flops, sum.operations += trips * each.operations;
        }
      }
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return sum;
}

/// A loop's step is said by its bodies.
struct Traffic {
  std::int64_t read = 0, written = 0;
};
std::optional<Traffic> traffic_of(const plan::Entry& entry, const plan::Step& step, const std::vector<std::optional<std::int64_t>>& bytes) {
  Traffic traffic;
  std::set<std::uint32_t> read, written;
  bool known = true;
  for_each_root(entry, step, [&](std::uint32_t root, bool reads, bool writes) {
    known = known and bytes[root].has_value();
    if (not known) return;
    if (reads and not writes and read.insert(root).second) traffic.read += *bytes[root];
    if (writes and written.insert(root).second) traffic.written += *bytes[root];
  });
  return known ? std::optional(traffic) : std::nullopt;
}

Json describe_entry(const plan::Program& program, const plan::Entry& entry, const Costs& costs, const Json& nodes);

Json describe_step(const plan::Program& program, const plan::Entry& entry, std::uint32_t number, const Costs& costs, const std::vector<std::optional<std::int64_t>>& bytes) {
  const plan::Step& step = entry.steps[number];
  Json json = {{"id", number}, {"kind", kStepKinds[step.what.index()]}, {"name", shown(name_of(step))}, {"part", part_of(step)}, {"origin", shown(step.origin)}};
  json["reads"] = Json::array(), json["writes"] = Json::array();
  if (const auto* kernel = std::get_if<plan::KernelStep>(&step.what)) {
    json["buffers"] = kernel->buffers;
    for (std::size_t i = 0; i < kernel->buffers.size(); ++i) json[i < kernel->read_only ? "reads" : "writes"].push_back(kernel->buffers[i]);
    json["range"] = number_of(kernel->range, costs.sizes);
  } else {
    plan::for_each_buffer(step, [&](std::uint64_t buffer, plan::Access access) {
      if (access != plan::Access::kWrite) json["reads"].push_back(buffer);
      if (access != plan::Access::kRead) json["writes"].push_back(buffer);
    });
  }
  const auto arithmetic = arithmetic_of(entry, step, costs);
  const auto traffic = traffic_of(entry, step, bytes);
  json["flops"] = arithmetic ? Json(arithmetic->flops) : Json();
  json["bytes_read"] = traffic ? Json(traffic->read) : Json();
  json["bytes_written"] = traffic ? Json(traffic->written) : Json();
  const double moved = traffic ? static_cast<double>(traffic->read + traffic->written) : 0;
  json["estimated_us"] = 1e6 * (kStepSeconds + std::max(arithmetic.value_or(CallArithmetic{}).operations / kOperationsPerSecond, moved / kBytesPerSecond));
  if (const auto* exchange = std::get_if<plan::AllReduceStep>(&step.what)) {
    json["operation"] = plan::to_string(exchange->operation);
    json["bucket"] = exchange->bucket;
    json["ends_before_step"] = plan::end_of_exchange(entry, number);
  }
  if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) {
    json["trips"] = number_of(region->trips, costs.sizes);
    for (const plan::Entry& body : region->bodies) json["bodies"].push_back(describe_entry(program, body, costs, Json()));
  }
  return json;
}

Json describe_buffer(const plan::Program& program, const plan::Entry& entry, const Buffer& buffer, const std::optional<std::int64_t>& bytes) {
  Json json = {{"name", shown(buffer.name)}, {"type", fmt::format("{}[{}]", to_string(buffer.dtype), to_string(buffer.shape))}, {"storage", kStorages[static_cast<std::size_t>(buffer.storage)]}};
  json["bytes"] = bytes ? Json(*bytes) : Json();
  if (buffer.storage == Buffer::Storage::kPersistent) {
    json["persistent"] = buffer.index;
    json["role"] = kRoles[static_cast<std::size_t>(program.persistents[buffer.index].role)];
    if (buffer.name.empty()) json["name"] = shown(program.persistents[buffer.index].name);
  } else if (buffer.storage == Buffer::Storage::kView) {
    json["of"] = buffer.index;
  } else if (buffer.storage == Buffer::Storage::kFeed) {
    json["feed"] = buffer.index;
    if (buffer.name.empty()) json["name"] = shown(entry.feeds[buffer.index].name);
  } else {
    json["first_step"] = buffer.first_step, json["last_step"] = buffer.last_step;
    if (buffer.opaque) json["opaque"] = true;
  }
  return json;
}

void say_categories(Json& entry) {
  for (Json& buffer : entry["buffers"])
    if (buffer["storage"] == "arena" and not entry["steps"].empty()) {
      const auto part = [&](const char* key) { return entry["steps"].at(buffer[key].get<std::size_t>())["part"].get<std::string>(); };
      buffer["category"] = category_of(part("first_step"), part("last_step"));
    }
}

Json describe_entry(const plan::Program& program, const plan::Entry& entry, const Costs& costs, const Json& nodes) {
  Json json = {{"name", shown(entry.name)}, {"feeds", Json::array()}, {"results", Json::array()}, {"steps", Json::array()}, {"buffers", Json::array()}};
  for (const plan::Feed& feed : entry.feeds) json["feeds"].push_back({{"name", shown(feed.name)}, {"type", fmt::format("{}[{}]", to_string(feed.dtype), to_string(feed.shape))}});
  for (const plan::Result& result : entry.results) json["results"].push_back({{"name", shown(result.name)}, {"buffer", result.buffer}});
  const PlacedMemory memory = placed_memory(entry, costs.sizes);
  for (std::uint32_t i = 0; i < entry.steps.size(); ++i) {
    json["steps"].push_back(describe_step(program, entry, i, costs, memory.bytes));
    json["steps"].back()["nodes"] = nodes.is_array() and nodes.size() == entry.steps.size() ? nodes[i] : Json::array();
  }
  for (std::uint32_t i = 0; i < entry.buffers.size(); ++i) {
    Json buffer = {{"id", i}};
    buffer.update(describe_buffer(program, entry, entry.buffers[i], memory.bytes[i]));
    if (entry.buffers[i].storage == Buffer::Storage::kArena) {
      buffer["offset"] = memory.arena ? Json(memory.offsets[i]) : Json();
    }
    json["buffers"].push_back(std::move(buffer));
  }
  say_categories(json);
  if (not memory.arena) return json["memory"] = nullptr, json;
  json["memory"] = {{"arena_bytes", *memory.arena}, {"bodies_bytes", memory.bodies}, {"live", memory.live}, {"peak_step", memory.peak_step}, {"peak_bytes", memory.peak_bytes}, {"alive_at_peak", memory.alive_at_peak}};
  return json;
}

/// The kernels' texts, each under its name.
std::map<std::string, std::string> kernel_texts(const plan::Plan& plan, const plan::Program& program) {
  std::map<std::string, std::string> texts;
  const std::string* kernels = find_stage(plan, program, "kernels");
  if (kernels == nullptr) return texts;
  std::string* current = nullptr;
  for (const std::string& line : split(*kernels, '\n')) {
    if (line.starts_with("kernel ")) current = &texts[line.substr(7, line.find('(') - 7)];
    if (current != nullptr and not line.empty()) *current += line + "\n";
  }
  return texts;
}

Json describe_persistents(const plan::Program& program) {
  Json list = Json::array();
  for (const plan::Persistent& persistent : program.persistents) {
    Json one = {{"id", list.size()}, {"name", shown(persistent.name)}, {"role", kRoles[static_cast<std::size_t>(persistent.role)]}, {"type", fmt::format("{}{}", to_string(persistent.initial.dtype()), shape_text(persistent.initial.shape()))}};
    one["bytes"] = persistent.initial.byte_count();
    one["trained"] = persistent.trained;
    if (persistent.panels) one["panels"] = {{"axis", persistent.panels->axis}, {"width", persistent.panels->width}};
    list.push_back(std::move(one));
  }
  return list;
}

Json nodes_of_steps(const plan::Plan& plan, const plan::Program& program, const std::string& entry) {
  const std::string* text = find_stage(plan, program, step_nodes_stage(entry));
  if (text == nullptr) return nullptr;
  const Json nodes = parse_untrusted_json<Json>(*text);
  return nodes.is_discarded() ? Json() : nodes;
}

}  // namespace

std::string part_of(const plan::Step& step) {
  for (const Part part : {Part::kForward, Part::kLoss, Part::kBackward, Part::kAllReduce, Part::kUpdate})
    if (step.origin.starts_with(std::string(to_string(part)) + ": ")) return std::string(to_string(part));
  if (step.origin.starts_with("again, ")) return std::string(to_string(Part::kBackward));
  return std::holds_alternative<plan::CopyStep>(step.what) ? std::string(to_string(Part::kUpdate)) : "";
}

std::string_view category_of(std::string_view from, std::string_view to) {
  if (from == "update") return "update";
  if (from == "backward" or from == "all_reduce") return "gradient";
  return to == "backward" or to == "update" or to == "all_reduce" ? kSavedActivation : "activation";
}

Json describe_program(const plan::Plan& plan, const plan::Program& program, const DimBindings& sizes) {
  const std::string* arithmetic = find_stage(plan, program, kArithmeticStage);
  const Costs costs{.table = ArithmeticTable(arithmetic == nullptr ? "" : *arithmetic), .sizes = sizes};
  Json json = {{"target", program.target}, {"code", Json::array()}, {"estimate", {{"operations_per_second", kOperationsPerSecond}, {"bytes_per_second", kBytesPerSecond}, {"seconds_per_step", kStepSeconds}}}};
  for (const auto& [level, code] : program.code) json["code"].push_back({{"level", level}, {"bytes", code.size()}});
  json["persistents"] = describe_persistents(program);
  json["kernels"] = Json::array();
  for (const auto& [name, text] : kernel_texts(plan, program)) json["kernels"].push_back({{"name", name}, {"text", text}});
  json["entries"] = Json::array(), json["other_entries"] = Json::array();
  for (const plan::Entry& entry : program.entries) {
    if (is_described_in_full(entry)) json["entries"].push_back(describe_entry(program, entry, costs, nodes_of_steps(plan, program, entry.name)));
    else json["other_entries"].push_back({{"name", shown(entry.name)}, {"steps", entry.steps.size()}, {"buffers", entry.buffers.size()}});
  }
  return json;
}

void say_parts_and_categories(Json& description) {
  const Json& nodes = description["graph"]["nodes"];
  for (Json& entry : description["program"]["entries"]) {
    if (entry["name"] != description["stage"]) continue;
    for (Json& step : entry["steps"]) {
      std::map<std::string, double> flops;
      for (const Json& id : step["nodes"]) {
        const Json& node = nodes.at(id.get<std::size_t>());
        flops[node["part"].get<std::string>()] += node["flops"].is_number() ? node["flops"].get<double>() : 0;
      }
      if (flops.empty()) continue;
      const auto most = std::ranges::max_element(flops, {}, [](const auto& part) { return part.second; });
      if (most->second > 0) step["part"] = most->first;
    }
    say_categories(entry);
  }
}

Json describe_weights(const Graph& graph, const plan::Program& program) {
  std::map<std::string, ValueId> by_name;
  for (std::size_t i = 0; i < graph.value_count(); ++i) by_name.try_emplace(graph.value(ValueId(i)).name, ValueId(i));
  const plan::Entry* replicas = program.find(plan::replica_entry(plan::kTrainStep));
  Json list = Json::array();
  for (const Input& input : graph.inputs()) {
    if (input.role != Role::kWeight) continue;
    Json one = {{"name", shown(input.name)}, {"value", input.value.index}, {"updated_by", nullptr}, {"gradient", nullptr}, {"all_reduce", nullptr}};
    for (const Alias& alias : graph.aliases())
      if (alias.state == input.value and graph.value(alias.value).producer.valid()) one["updated_by"] = graph.value(alias.value).producer.index;
    if (const auto gradient = by_name.find(input.name + "/gradient"); gradient != by_name.end() and graph.value(gradient->second).producer.valid()) {
      one["gradient"] = gradient->second.index;
      const NodeId maker = graph.value(gradient->second).producer;
      if (const Node& node = graph.node(maker); *node.op == op::all_reduce) {
        one["all_reduce"] = {{"node", maker.index}, {"bucket", node.attrs[kBucket]}};
        for (std::uint32_t step = 0; replicas != nullptr and step < replicas->steps.size(); ++step)
          if (const auto* exchange = std::get_if<plan::AllReduceStep>(&replicas->steps[step].what); exchange != nullptr and exchange->bucket == node.attrs[kBucket]) one["all_reduce"]["step"] = step;
      }
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace hone
