// What is in a file, as JSON: the one description, of which the HTML page is made. Its fields are in docs/dump_json.md; whoever changes the meaning of one raises kDescriptionSchema.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/dims.h"
#include "inspect/contents.h"

namespace hone {

inline constexpr int kDescriptionSchema = 1;
using Json = nlohmann::ordered_json;

struct DescribeOptions {
  std::string stage = {};    ///< of a plan; "": default_stage()
  std::string target = {};   ///< of a plan: which program; "": the one that `trace` is of, or else the first
  std::int64_t batch = 0;    ///< for which sizes are told; 0: the recipe's, or 1
  DimBindings sizes = {};    ///< other symbolic sizes, by name
  std::string trace = {};    ///< a file with measured times of the stage's steps (inspect/trace.h); "": none
};

/// The sizes for which numbers are told.
struct KnownSizes {
  DimBindings sizes;
  std::vector<std::string> assumed;  ///< symbols of inputs of which nothing is said: they are taken for kAssumedSize
};
inline constexpr std::int64_t kAssumedSize = 64;
KnownSizes sizes_of(const Contents& contents, const DescribeOptions& options);
/// The samples of a step for which they are.
std::int64_t batch_of(const Contents& contents, const DescribeOptions& options);

/// Throws what graph_of() and read_trace() throw, and Error kUsage for a trace of another target than the one that is asked for.
Json describe(const Contents& contents, const DescribeOptions& options);

/// As text, on lines of their own down to the entries of lists. Always valid UTF-8.
std::string to_text(const Json& description);

// Parts of it.

/// A name or text as it stands in the description: cut in the middle beyond 1,000 bytes. Bytes that are not UTF-8 become U+FFFD when it is written.
std::string shown(std::string_view text);
/// The number, or null where the sizes do not say it.
Json number_of(const Dim& dim, const DimBindings& sizes);

/// "forward" of a step whose origin is "forward: conv at node ..."; of what runs again, the part that it runs in is not said: "".
std::string part_of(const plan::Step& step);
/// What an arena buffer is for that lives from a step of one part to a step of another.
std::string_view category_of(std::string_view from, std::string_view to);
inline constexpr std::string_view kSavedActivation = "saved activation";

Json describe_graph(const Graph& graph, const DimBindings& sizes);
/// Entries, kernels and buffers of one of the plan's programs.
Json describe_program(const plan::Plan& plan, const plan::Program& program, const DimBindings& sizes);
/// To which part of the training step each step belongs, of the entry whose nodes `graph` has: where most of its arithmetic is. And with that, what each buffer is for.
void say_parts_and_categories(Json& description);
/// Where each weight of a training graph gets its gradient, where that is reduced and where the weight changes: nodes of `graph`, steps of the program's entries.
Json describe_weights(const Graph& graph, const plan::Program& program);

}  // namespace hone
