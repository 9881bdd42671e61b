// What differs between two files: hone-dump diff.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/contents.h"

namespace hone {

/// One thing that is not the same.
struct Difference {
  enum class Change : std::uint8_t { kChanged, kAdded, kRemoved };
  std::string kind;  ///< "recipe", "input", "output", "node", "weight", "state", "entry", "kernel", "memory", "run"
  Change change = Change::kChanged;
  std::string name;            ///< as it is in the files: quoted when it is shown
  std::string before, after;   ///< what it is in either; "" where there is nothing to say
  std::string detail = {};     ///< more about a change
  /// Of a tensor whose elements differ: how many, the L2 norm of the difference, that over the norm of the first one's, the largest, and where it is.
  struct Elements {
    std::int64_t differing = 0, all = 0;
    double norm = 0, relative = 0, largest = 0, before = 0, after = 0;
    std::vector<std::int64_t> at;
  };
  std::optional<Elements> elements = {};
};

/// Recipes by their keys; graphs by nodes, which are the same when they have the same name and op, or the same op on the same operands; weights and states by names and elements; of plans also
/// entries, kernels and memory (for the second one's batch size). What follows from a difference elsewhere (other types behind a changed node) is not one. Empty: the same.
/// Of plans the programs for `target`, "": each one's first. Throws Error kUsage for files that have nothing in common, and for plans without such a program.
std::vector<Difference> compare(const Contents& a, const Contents& b, const std::string& target = "");
/// Two recipes (.toml): the keys that are set.
std::vector<Difference> compare_recipes(const std::string& a, const std::string& b);

/// A line each, by kind; "" for none.
std::string to_text(const std::vector<Difference>& differences);
/// An array of objects with the fields above; those that are empty are left out.
std::string to_json_text(const std::vector<Difference>& differences);

// Parts of it.
void compare_graphs(const Graph& a, const Graph& b, std::vector<Difference>& out);
void compare_tensors(std::string_view kind, const std::vector<StoredTensor>& a, const std::vector<StoredTensor>& b, std::vector<Difference>& out);

}  // namespace hone
