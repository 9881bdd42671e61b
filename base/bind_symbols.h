// Binding the symbols in declared shapes to the extents that arrays really have.
#pragma once

#include <span>
#include <string_view>

#include "base/dims.h"

namespace hone {

/// Adds to `bindings` what `actual` says about the symbols of `declared`. An extent with one unknown symbol of the form a*N + b is
/// solved; one with more unknown symbols, or with one inside floordiv, mod, max or min, is left for a later call, when other arrays
/// have bound them. Throws kDataShape, naming `what` ("input "image""), when rank or an extent contradicts what is declared or
/// bound. Returns whether every extent was compared.
bool bind_symbols(const Shape& declared, std::span<const std::int64_t> actual, DimBindings& bindings, std::string_view what);

}  // namespace hone
