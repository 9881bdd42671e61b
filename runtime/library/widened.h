// Calls for f16 made of calls for f32: how the host plays a device's library that multiplies numbers which the host's does not.
#pragma once

#include "runtime/library/rows.h"

namespace hone {

using CreateCall = std::unique_ptr<LibraryCall> (*)(const LibrarySpec& spec);

/// What `create` makes, if there is no f16 in it; else a call that widens its f16 operands to f32, and rounds once what it gives as f16.
std::unique_ptr<LibraryCall> widened(CreateCall create, const LibrarySpec& spec);

/// As LibraryRow::create.
template <CreateCall Create>
std::unique_ptr<LibraryCall> create_widened(const LibrarySpec& spec) { return widened(Create, spec); }

}  // namespace hone
