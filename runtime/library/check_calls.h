// Plans held against the rows that they call: whoever opens a plan does so before it uses what the rows say of its steps.
#pragma once

#include <string>
#include <string_view>

#include "runtime/library/rows.h"
#include "runtime/plan/plan.h"

namespace hone {

/// The row of that name. Throws Error kPlanMismatch if there is none. `origin`: the step's.
const LibraryRow& row_of_plan(std::string_view name, std::string_view origin);

/// Holds the library calls of the entry, its bodies' too, against their rows: types, ranks and attributes, as far as they are known before sizes are. The entry has passed plan::check.
/// Throws Error kPlanMismatch for a row that is not there, kPlanFormat for a call that it does not take.
void check_calls(const plan::Entry& entry);
void check_calls(const plan::Plan& plan);

/// All of it, once sizes are numbers. Throws Error kPlanFormat.
void check_call(const LibraryRow& row, const LibrarySpec& spec, std::string_view origin);

}  // namespace hone
