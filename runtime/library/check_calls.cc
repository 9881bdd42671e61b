#include "runtime/library/check_calls.h"

#include <fmt/format.h>

#include "base/diag.h"
#include "base/text.h"
#include "runtime/library/call_text.h"
#include "runtime/plan/call_types.h"
#include "runtime/plan/metadata.h"

namespace hone {

namespace {

/// Of a step's call, or of the one that does the kernel's work as well.
template <typename Call>
void check_types(const plan::Entry& entry, const Call& call, std::string_view origin) {
  const LibraryRow& row = row_of_plan(call.row, origin);
  const auto require = [&](const std::string& why) {
    if (not why.empty()) throw plan::unsound_plan(fmt::format("entry {}, step {}: {} cannot be called so: {}", quoted(entry.name), quoted(origin), row.name, why));
  };
  require(why_not(*row.rules, plan::call_types(entry, call)));
  const auto check_layout = [&](std::int64_t number, std::string_view kind, std::size_t i, int opaque) {
    if (number < 0) return;
    const bool is_opaque = entry.buffers[static_cast<std::size_t>(number)].opaque, should_be = static_cast<int>(i) == opaque;
    if (is_opaque != should_be) require(fmt::format("{} {} is {}", kind, i, is_opaque ? "laid out by a library, and must not be" : "not laid out by the library, and must be"));
  };
  for (std::size_t i = 0; i < call.operands.size(); ++i) check_layout(call.operands[i], "operand", i, row.opaque_operand);
  for (std::size_t i = 0; i < call.results.size(); ++i) check_layout(call.results[i], "result", i, row.opaque_result);
}

}  // namespace

const LibraryRow& row_of_plan(std::string_view name, std::string_view origin) {
  if (const LibraryRow* row = find_library_row(name)) return *row;
  throw Error(Code::kPlanMismatch, fmt::format("the plan needs the library row {}, which this version of Hone does not have", quoted(name)), {},
              {fmt::format("for the step {}", quoted(origin)), "compile the model again with this version of Hone"});
}

void check_calls(const plan::Entry& entry) {
  for (const plan::Step& step : entry.steps) {
    if (const auto* library = std::get_if<plan::LibraryStep>(&step.what)) {
      check_types(entry, *library, step.origin);
      if (library->epilogue) check_types(entry, *library->epilogue, step.origin);
    } else if (const auto* region = std::get_if<plan::RegionStep>(&step.what)) {
      if (region->kind == plan::RegionStep::Kind::kCall) check_types(entry, plan::library_call(*region), step.origin);
      for (const plan::Entry& body : region->bodies) check_calls(body);  // plan::check limits the depth
    }
  }
}

void check_calls(const plan::Plan& plan) {
  for (const plan::Program& program : plan.programs)
    for (const plan::Entry& entry : program.entries) check_calls(entry);
}

void check_call(const LibraryRow& row, const LibrarySpec& spec, std::string_view origin) {
  const std::string why = row.why_not(spec);
  if (why.empty()) return;
  Error error = plan::unsound_plan(fmt::format("{} cannot be called so: {}", text_of(row, spec), why));
  if (origin.empty()) throw error;
  std::vector<Diag> diags = error.diags();
  diags.front().notes.insert(diags.front().notes.begin(), fmt::format("in the step {}", quoted(origin)));
  throw Error(std::move(diags));
}

}  // namespace hone
