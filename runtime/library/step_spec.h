// From a plan's library step to what its call is made from.
#pragma once

#include <functional>

#include "runtime/library/rows.h"
#include "runtime/plan/plan.h"

namespace hone {

/// For these sizes, and the types that the entry's buffers have with them.
LibrarySpec library_spec(const plan::LibraryStep& step, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of);
/// Of the call that does the kernel's work as well.
LibrarySpec library_spec(const plan::LibraryStep::Epilogue& epilogue, const DimBindings& sizes, const std::function<TensorType(std::uint32_t)>& type_of);

}  // namespace hone
