#include "runtime/plan/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "base/text.h"
#include "runtime/plan/plan.pb.h"

namespace hone::plan {
namespace {

// Writing

template <typename Texts>
void write_dims(const std::vector<Dim>& dims, Texts* texts) {
  for (const Dim& dim : dims) *texts->Add() = dim.text();
}

proto::Persistent write_persistent(const Persistent& persistent, const AddBlob& add_blob) {
  proto::Persistent message;
  message.set_name(persistent.name);
  message.set_role(static_cast<std::uint32_t>(persistent.role));
  message.set_trained(persistent.trained);
  message.set_in_model(persistent.in_model);
  message.set_dtype(std::string(to_string(persistent.initial.dtype())));
  message.mutable_shape()->Assign(persistent.initial.shape().begin(), persistent.initial.shape().end());
  // Moments start at zero: writing those zeros would make the file three times as large as its weights.
  // Each byte is compared with the one before it, by memcmp: a loop over the bytes takes half a second a gigabyte.
  const std::span<const std::byte> bytes = persistent.initial.bytes();
  const bool all_zero = bytes.empty() or (bytes[0] == std::byte{0} and std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
  message.set_initial(all_zero ? 0 : add_blob(bytes));
  if (persistent.panels) message.set_panel_axis(persistent.panels->axis), message.set_panel_width(persistent.panels->width);
  message.set_in_parts(persistent.in_parts);
  message.set_whole_because(persistent.whole_because);
  message.set_exported_as(persistent.exported_as);
  if (persistent.narrowed) {
    message.set_outside_dtype(std::string(to_string(persistent.narrowed->outside)));
    message.set_scales(persistent.narrowed->scales);
    message.set_scaled_axis(persistent.narrowed->axis);
  }
  return message;
}

proto::Feed write_feed(const Feed& feed) {
  proto::Feed message;
  message.set_name(feed.name);
  message.set_kind(static_cast<std::uint32_t>(feed.kind));
  message.set_dtype(std::string(to_string(feed.dtype)));
  write_dims(feed.shape, message.mutable_shape());
  message.set_has_bounds(feed.bounds.has_value());
  if (feed.bounds) message.set_low(feed.bounds->first), message.set_high(feed.bounds->second);
  message.set_has_ignored(feed.ignored.has_value());
  if (feed.ignored) message.set_ignored(*feed.ignored);
  return message;
}

proto::Buffer write_buffer(const Buffer& buffer) {
  proto::Buffer message;
  message.set_name(buffer.name);
  message.set_dtype(std::string(to_string(buffer.dtype)));
  write_dims(buffer.shape, message.mutable_shape());
  message.set_storage(static_cast<std::uint32_t>(buffer.storage));
  message.set_index(buffer.index);
  message.set_first_step(buffer.first_step);
  message.set_last_step(buffer.last_step);
  message.set_opaque(buffer.opaque);
  return message;
}

void write_attributes(const std::map<std::string, std::vector<Dim>>& attributes, google::protobuf::RepeatedPtrField<proto::DimsAttribute>* messages) {
  for (const auto& [name, values] : attributes) {
    proto::DimsAttribute& attribute = *messages->Add();
    attribute.set_name(name);
    write_dims(values, attribute.mutable_values());
  }
}

void write_kernel(const KernelStep& step, proto::Kernel* message) {
  message->set_symbol(step.symbol);
  message->mutable_buffers()->Assign(step.buffers.begin(), step.buffers.end());
  write_dims(step.sizes, message->mutable_sizes());
  message->set_range(step.range.text());
  message->set_work(step.work.text());
  message->set_read_only(step.read_only);
  message->set_own_part(step.own_part);
}

void write_what(const KernelStep& step, proto::Step* message) { write_kernel(step, message->mutable_kernel()); }

void write_what(const LibraryStep& step, proto::Step* message) {
  proto::Library& library = *message->mutable_library();
  library.set_row(step.row);
  write_attributes(step.attributes, library.mutable_attributes());
  library.mutable_operands()->Assign(step.operands.begin(), step.operands.end());
  library.mutable_results()->Assign(step.results.begin(), step.results.end());
  if (step.own_kernel) write_kernel(*step.own_kernel, library.mutable_own_kernel());
  if (not step.epilogue) return;
  proto::Epilogue& epilogue = *library.mutable_epilogue();
  write_kernel(step.epilogue->kernel, epilogue.mutable_kernel());
  epilogue.set_row(step.epilogue->row);
  write_attributes(step.epilogue->attributes, epilogue.mutable_attributes());
  epilogue.mutable_operands()->Assign(step.epilogue->operands.begin(), step.epilogue->operands.end());
  epilogue.mutable_results()->Assign(step.epilogue->results.begin(), step.epilogue->results.end());
}

void write_what(const HostStep& step, proto::Step* message) {
  proto::Host& host = *message->mutable_host();
  host.set_function(step.function);
  write_attributes(step.attributes, host.mutable_attributes());
  host.mutable_operands()->Assign(step.operands.begin(), step.operands.end());
  host.mutable_results()->Assign(step.results.begin(), step.results.end());
}

void write_what(const CopyStep& step, proto::Step* message) {
  message->mutable_copy()->set_from(step.from);
  message->mutable_copy()->set_to(step.to);
}

void write_what(const AllReduceStep& step, proto::Step* message) {
  message->mutable_all_reduce()->mutable_buffers()->Assign(step.buffers.begin(), step.buffers.end());
  message->mutable_all_reduce()->set_bucket(step.bucket);
  message->mutable_all_reduce()->set_collects(step.collects);
  message->mutable_all_reduce()->set_operation(static_cast<std::uint32_t>(step.operation));
}

proto::Entry write_entry(const Entry& entry);

void write_what(const ReadSizesStep& step, proto::Step* message) {
  message->mutable_read_sizes()->set_buffer(step.buffer);
  for (const std::string& symbol : step.symbols) message->mutable_read_sizes()->add_symbols(symbol);
}

void write_what(const RegionStep& step, proto::Step* message) {
  proto::Region& region = *message->mutable_region();
  region.set_kind(static_cast<std::uint32_t>(step.kind));
  region.set_trips(step.trips.text());
  region.set_reverse(step.reverse);
  region.set_states(step.states);
  region.set_scanned(step.scanned);
  region.mutable_operands()->Assign(step.operands.begin(), step.operands.end());
  region.mutable_results()->Assign(step.results.begin(), step.results.end());
  for (const Entry& body : step.bodies) *region.add_bodies() = write_entry(body);
  region.set_row(step.row);
  write_attributes(step.attributes, region.mutable_attributes());
}

proto::Entry write_entry(const Entry& entry) {
  proto::Entry message;
  message.set_name(entry.name);
  for (const Feed& feed : entry.feeds) *message.add_feeds() = write_feed(feed);
  for (const Result& result : entry.results) {
    proto::Result& added = *message.add_results();
    added.set_name(result.name);
    added.set_buffer(result.buffer);
  }
  for (const Buffer& buffer : entry.buffers) *message.add_buffers() = write_buffer(buffer);
  for (const Step& step : entry.steps) {
    proto::Step& added = *message.add_steps();
    added.set_origin(step.origin);
    for (const std::string& node : step.nodes) added.add_nodes(node);
    if (not step.flops.is_constant(0)) added.set_flops(step.flops.text());
    if (not step.bytes.is_constant(0)) added.set_bytes_moved(step.bytes.text());
    std::visit([&added](const auto& what) { write_what(what, &added); }, step.what);
  }
  for (const auto& [left, right] : entry.equations) {
    proto::Equation& added = *message.add_equations();
    added.set_left(left.text());
    added.set_right(right.text());
  }
  return message;
}

// Reading

DType read_dtype(const std::string& name) {
  const std::optional<DType> dtype = dtype_from_name(name);
  if (not dtype) throw unsound_plan(fmt::format("unknown element type {}", quoted(name)));
  return *dtype;
}

template <typename Enum>
Enum read_enum(std::uint32_t value, Enum last, const char* what) {
  if (value > static_cast<std::uint32_t>(last)) throw unsound_plan(fmt::format("unknown {} {}", what, value));
  return static_cast<Enum>(value);
}

Dim read_dim(const std::string& text) {
  try {
    return Dim::parse(text);
  } catch (const Error&) { throw unsound_plan(fmt::format("{} is not a size", quoted(text))); }
}

template <typename Texts>
std::vector<Dim> read_dims(const Texts& texts) {
  std::vector<Dim> dims;
  for (const std::string& text : texts) dims.push_back(read_dim(text));
  return dims;
}

template <typename Extents>
void check_rank(const Extents& extents, const std::string& name) {
  if (static_cast<std::size_t>(extents.size()) > limits::kRank)
    throw unsound_plan(fmt::format("{} has {} axes; at most {} are possible", quoted(name), extents.size(), limits::kRank));
}

Tensor read_initial(const proto::Persistent& message, const ReadBlob& read_blob) {
  check_rank(message.shape(), message.name());
  const DType dtype = read_dtype(message.dtype());
  std::vector<std::int64_t> shape(message.shape().begin(), message.shape().end());
  std::int64_t count = 0;
  try {
    count = checked_element_count(shape);
  } catch (const Error&) { throw unsound_plan(fmt::format("the shape of {} is impossible", quoted(message.name()))); }
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
  if (message.initial() == 0) return Tensor::zeros(dtype, std::move(shape));
  const std::span<const std::byte> blob = read_blob(message.initial());
  if (blob.size() != bytes) throw unsound_plan(fmt::format("{} takes {} bytes, but {} are stored", quoted(message.name()), bytes, blob.size()));
  return Tensor::copy(dtype, std::move(shape), blob);
}

Persistent read_persistent(const proto::Persistent& message, const ReadBlob& read_blob) {
  return {.name = message.name(),
          .role = read_enum(message.role(), Persistent::Role::kConstant, "role"),
          .trained = message.trained(),
          .in_model = message.in_model(),
          .initial = read_initial(message, read_blob),
          .panels = message.panel_width() == 0 ? std::nullopt : std::optional(Panels{message.panel_axis(), message.panel_width()}),
          .in_parts = message.in_parts(),
          .whole_because = message.whole_because(),
          .exported_as = message.exported_as(),
          .narrowed = message.outside_dtype().empty() ? std::nullopt
                                                      : std::optional(Persistent::Narrowed{.outside = read_dtype(message.outside_dtype()), .scales = message.scales(), .axis = message.scaled_axis()})};
}

Feed read_feed(const proto::Feed& message) {
  check_rank(message.shape(), message.name());
  Feed feed{.name = message.name(),
            .kind = read_enum(message.kind(), Feed::Kind::kFirstSample, "kind of feed"),
            .dtype = read_dtype(message.dtype()),
            .shape = read_dims(message.shape()),
            .bounds = {},
            .ignored = {}};
  if (message.has_bounds()) feed.bounds = {message.low(), message.high()};
  if (message.has_ignored()) feed.ignored = message.ignored();
  return feed;
}

Buffer read_buffer(const proto::Buffer& message) {
  check_rank(message.shape(), message.name());
  return {.name = message.name(),
          .dtype = read_dtype(message.dtype()),
          .shape = read_dims(message.shape()),
          .storage = read_enum(message.storage(), Buffer::Storage::kView, "storage"),
          .index = message.index(),
          .first_step = message.first_step(),
          .last_step = message.last_step(),
          .opaque = message.opaque()};
}

std::map<std::string, std::vector<Dim>> read_attributes(const google::protobuf::RepeatedPtrField<proto::DimsAttribute>& messages) {
  std::map<std::string, std::vector<Dim>> attributes;
  for (const proto::DimsAttribute& message : messages) attributes[message.name()] = read_dims(message.values());
  return attributes;
}

KernelStep read_kernel(const proto::Kernel& message) {
  return {message.symbol(), {message.buffers().begin(), message.buffers().end()}, read_dims(message.sizes()), read_dim(message.range()), read_dim(message.work()), message.read_only(), message.own_part()};
}

LibraryStep::Epilogue read_epilogue(const proto::Epilogue& message) {
  return {.kernel = read_kernel(message.kernel()),
          .row = message.row(),
          .attributes = read_attributes(message.attributes()),
          .operands = {message.operands().begin(), message.operands().end()},
          .results = {message.results().begin(), message.results().end()}};
}

LibraryStep read_library(const proto::Library& message) {
  return {.row = message.row(),
          .attributes = read_attributes(message.attributes()),
          .operands = {message.operands().begin(), message.operands().end()},
          .results = {message.results().begin(), message.results().end()},
          .own_kernel = message.has_own_kernel() ? std::optional(read_kernel(message.own_kernel())) : std::nullopt,
          .epilogue = message.has_epilogue() ? std::optional(read_epilogue(message.epilogue())) : std::nullopt};
}

Entry read_entry(const proto::Entry& message);

RegionStep read_region(const proto::Region& message) {
  RegionStep step{.kind = read_enum(message.kind(), RegionStep::Kind::kCall, "a region's kind"),
                  .trips = read_dim(message.trips()),
                  .reverse = message.reverse(),
                  .states = message.states(),
                  .scanned = message.scanned(),
                  .operands = {message.operands().begin(), message.operands().end()},
                  .results = {message.results().begin(), message.results().end()},
                  .bodies = {},
                  .row = message.row(),
                  .attributes = read_attributes(message.attributes())};
  for (const proto::Entry& body : message.bodies()) step.bodies.push_back(read_entry(body));
  return step;
}

Step read_step(const proto::Step& message) {
  const auto amount = [](const std::string& text) { return text.empty() ? Dim(0) : read_dim(text); };
  Step step{.what = {}, .origin = message.origin(), .nodes = {message.nodes().begin(), message.nodes().end()}, .flops = amount(message.flops()), .bytes = amount(message.bytes_moved())};
  switch (message.what_case()) {
    case proto::Step::kKernel: step.what = read_kernel(message.kernel()); break;
    case proto::Step::kLibrary: step.what = read_library(message.library()); break;
    case proto::Step::kHost: {
      const proto::Host& host = message.host();
      step.what = HostStep{host.function(), read_attributes(host.attributes()), {host.operands().begin(), host.operands().end()},
                           {host.results().begin(), host.results().end()}};
      break;
    }
    case proto::Step::kCopy: step.what = CopyStep{message.copy().from(), message.copy().to()}; break;
    case proto::Step::kAllReduce:
      step.what = AllReduceStep{{message.all_reduce().buffers().begin(), message.all_reduce().buffers().end()}, message.all_reduce().bucket(), message.all_reduce().collects(),
                                read_enum(message.all_reduce().operation(), AllReduceStep::Operation::kAllGather, "exchange")};
      break;
    case proto::Step::kReadSizes:
      step.what = ReadSizesStep{message.read_sizes().buffer(), {message.read_sizes().symbols().begin(), message.read_sizes().symbols().end()}};
      break;
    case proto::Step::kRegion: step.what = read_region(message.region()); break;
    case proto::Step::WHAT_NOT_SET: throw unsound_plan("a step does nothing, or something unknown");
  }
  return step;
}

Entry read_entry(const proto::Entry& message) {
  Entry entry;
  entry.name = message.name();
  for (const proto::Feed& feed : message.feeds()) entry.feeds.push_back(read_feed(feed));
  for (const proto::Result& result : message.results()) entry.results.push_back({result.name(), result.buffer()});
  for (const proto::Buffer& buffer : message.buffers()) entry.buffers.push_back(read_buffer(buffer));
  for (const proto::Step& step : message.steps()) entry.steps.push_back(read_step(step));
  for (const proto::Equation& equation : message.equations()) entry.equations.emplace_back(read_dim(equation.left()), read_dim(equation.right()));
  return entry;
}

Program read_program(const proto::Program& message, const ReadBlob& read_blob) {
  Program program;
  program.target = message.target();
  for (const proto::Code& code : message.code()) {
    const std::span<const std::byte> object = read_blob(code.object());
    program.code.emplace_back(code.level(), std::vector<std::byte>(object.begin(), object.end()));
  }
  for (const proto::Persistent& persistent : message.persistents()) program.persistents.push_back(read_persistent(persistent, read_blob));
  for (const proto::Entry& entry : message.entries()) program.entries.push_back(read_entry(entry));
  return program;
}

}  // namespace

Error unsound_plan(const std::string& what) { return {Code::kPlanFormat, what, {}, {"the plan is damaged, or its maker wrote it wrongly; compile the model again"}}; }

std::string write_metadata(const Plan& plan, const AddBlob& add_blob) {
  proto::Metadata message;
  message.set_model_name(plan.model_name);
  message.set_recipe_json(plan.recipe_json);
  if (not plan.onnx_model.empty()) message.set_onnx_model(add_blob(plan.onnx_model));
  message.set_batch_symbol(plan.batch_symbol);
  for (const auto& [stage, text] : plan.graphs) {
    proto::Graph& graph = *message.add_graphs();
    graph.set_stage(stage);
    graph.set_text(add_blob(std::as_bytes(std::span(text.data(), text.size()))));
  }
  for (const Program& program : plan.programs) {
    proto::Program& added = *message.add_programs();
    added.set_target(program.target);
    for (const auto& [level, object] : program.code) {
      proto::Code& code = *added.add_code();
      code.set_level(level);
      code.set_object(add_blob(object));
    }
    for (const Persistent& persistent : program.persistents) *added.add_persistents() = write_persistent(persistent, add_blob);
    for (const Entry& entry : program.entries) *added.add_entries() = write_entry(entry);
  }
  return message.SerializeAsString();
}

Plan read_metadata(std::span<const std::byte> bytes, const ReadBlob& read_blob) {
  proto::Metadata message;
  if (bytes.size() > limits::kProtobufBytes or not message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) throw unsound_plan("the metadata cannot be read");
  Plan plan;
  plan.model_name = message.model_name();
  plan.recipe_json = message.recipe_json();
  plan.batch_symbol = message.batch_symbol();
  if (message.onnx_model() != 0) {
    const std::span<const std::byte> model = read_blob(message.onnx_model());
    plan.onnx_model.assign(model.begin(), model.end());
  }
  for (const proto::Graph& graph : message.graphs()) {
    const std::span<const std::byte> text = read_blob(graph.text());
    plan.graphs.emplace(graph.stage(), std::string(reinterpret_cast<const char*>(text.data()), text.size()));
  }
  for (const proto::Program& program : message.programs()) plan.programs.push_back(read_program(program, read_blob));
  return plan;
}

}  // namespace hone::plan
