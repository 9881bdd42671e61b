// The elements of cases that state none.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::test {

/// `count` floats strictly between `low` and `high` in random order: no two are equal, none is 0, and those of two positions differ.
std::vector<double> distinct_values(std::int64_t count, double low, double high, std::size_t position);

/// `count` integers from `low` to `high`, both included.
std::vector<double> whole_values(std::int64_t count, double low, double high, std::size_t position);

}  // namespace hone::test
