// A size taken apart, for those who write it down in another language.
#pragma once

#include <string>
#include <vector>

#include "base/dims.h"

namespace hone {

struct DimParts {
  enum class Kind : std::uint8_t { kNumber, kSymbol, kSum, kFloorDiv, kMod, kMax, kMin };
  /// factor * product of the atoms, none of which is a sum.
  struct Term {
    std::int64_t factor = 1;
    std::vector<Dim> atoms;
  };
  Kind kind = Kind::kNumber;
  std::int64_t number = 0;       ///< kNumber; kSum: what is added to the terms
  std::string symbol = {};       ///< kSymbol
  std::vector<Term> terms = {};  ///< kSum
  Dim a = 0, b = 0;              ///< operands of the others
};

/// What is done last to get the size.
DimParts parts_of(const Dim& dim);

}  // namespace hone
