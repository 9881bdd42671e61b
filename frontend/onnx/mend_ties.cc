// Weights that are one and came as two: a tied head that constant folding transposed, or equal copies.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/module_names.h"
#include "base/text.h"
#include "frontend/onnx/mend_model.h"

namespace hone::onnx {

namespace {

bool is_matrix(const TensorProto& tensor) { return tensor.dims_size() == 2 and tensor.dims(0) > 1 and tensor.dims(1) > 1; }

bool is_transpose(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() or a.shape().size() != 2 or a.shape()[0] != b.shape()[1] or a.shape()[1] != b.shape()[0]) return false;
  const std::size_t element = size_of(a.dtype()), rows = static_cast<std::size_t>(a.shape()[0]), columns = static_cast<std::size_t>(a.shape()[1]);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      if (std::memcmp(a.bytes().data() + (i * columns + j) * element, b.bytes().data() + (j * rows + i) * element, element) != 0) return false;
  return true;
}

/// Weights that may be equal up to a transpose: same element type, extents and outermost elements. Only they are read.
using Groups = std::map<std::string, std::vector<std::string>>;

Groups by_extents(const MendModel& m) {
  Groups groups;
  for (const std::string& name : m.weights()) {
    const TensorProto& tensor = *m.initializer(name);
    std::vector<std::int64_t> extents(tensor.dims().begin(), tensor.dims().end());
    if (is_matrix(tensor)) std::sort(extents.begin(), extents.end());
    groups[fmt::format("{} {}", tensor.data_type(), shape_text(extents))].push_back(name);
  }
  return groups;
}

/// Could two of them be each other's transpose, or does the recipe name one?
bool is_worth_reading(const MendModel& m, const std::vector<std::string>& names) {
  if (names.size() < 2) return false;
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return m.is_tied_by_name(name); })) return true;
  const auto is_like_first = [&](const std::string& name) { return m.initializer(name)->dims(0) == m.initializer(names[0])->dims(0); };
  const TensorProto& first = *m.initializer(names[0]);
  return is_matrix(first) and (first.dims(0) == first.dims(1) or not std::all_of(names.begin(), names.end(), is_like_first));
}

std::string ends_of(const Tensor& tensor) {
  const std::size_t element = size_of(tensor.dtype());
  const auto bytes = tensor.bytes();
  std::string ends(reinterpret_cast<const char*>(bytes.data()), std::min(element, bytes.size()));
  if (not bytes.empty()) ends.append(reinterpret_cast<const char*>(bytes.data() + bytes.size() - element), element);
  return ends;
}

bool is_table_and_head(const MendModel& m, const std::string& table, const std::string& head) {
  return m.is_read_by(table, "Gather", 0) and (m.is_read_by(head, "MatMul", 1) or m.is_read_by(head, "Gemm", 1));
}

/// Was `name` folded out of the parameter for its own module, or for one around it? A module apart has a weight of its own, which may have begun as a copy.
bool is_folded_out_of(const MendModel& m, const std::string& parameter, const std::string& name) {
  if (is_folded_name(parameter) or not is_folded_name(name)) return false;
  const std::vector<Reader>& readers = m.readers(name);
  return not readers.empty() and std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
    if (reader.node < 0 or not m.graph().node(reader.node).name().starts_with('/')) return false;
    const std::string module = module_name(without_calls(m.loc(m.graph().node(reader.node)).layer));
    return module.empty() or parameter.starts_with(module + ".");
  });
}

/// Copies of one weight, by what it is used for or by the exporter's account, and the recipe does not say that they are two.
bool is_copy(const MendModel& m, const std::string& first, const std::string& name) {
  if (m.is_trained_by_name(first) and m.is_trained_by_name(name)) return false;
  const std::set<std::string>& in_first = m.program().parameters_in(first);
  const bool folded = in_first.size() == 1 and in_first == m.program().parameters_in(name);
  return folded or is_folded_out_of(m, first, name) or is_folded_out_of(m, name, first) or is_table_and_head(m, first, name) or is_table_and_head(m, name, first);
}

/// Ties `name` to `first` when they are one. True when `name` is done with.
bool tie(MendModel& m, const std::string& first, const std::string& name) {
  const auto a = m.values(first), b = m.values(name);
  if (not a or not b) return false;
  const bool equal = are_equal(*a, *b), transposed = not equal and is_transpose(*a, *b);
  if (not equal and not transposed) return false;
  const std::string *left = m.tie_pattern(first), *right = m.tie_pattern(name);
  const bool constant = all_elements_equal(*a);  // equal by chance: both must be named
  const bool asked = constant ? left != nullptr and left == right : left != nullptr or right != nullptr;
  const bool copy = not asked and transposed and not constant and is_copy(m, first, name);
  if (asked or copy) {
    m.derive_weight(name, first, equal ? "Identity" : "Transpose");
    m.warn(fmt::format("the weight {} is {}{}: they are trained as one", quoted(name), equal ? "" : "the transpose of ", quoted(first)),
           copy ? std::vector{fmt::format("if they are two weights, name both in model.train_only: [{}, {}, ...]", quoted(first), quoted(name))} : std::vector<std::string>{});
    return true;
  }
  if (transposed and not constant)
    m.warn(fmt::format("the weight {} is the transpose of {}: they look like one weight that the exporter made two of", quoted(name), quoted(first)),
           {"they are trained apart", fmt::format("to train them as one: [model] tie = [{}]", quoted(name))});
  return false;
}

}  // namespace

void tie_equal(MendModel& m) {
  for (const auto& [extents, names] : by_extents(m)) {
    if (not is_worth_reading(m, names)) continue;
    std::map<std::string, std::vector<std::string>> by_ends;
    for (const std::string& name : names)
      if (const auto values = m.values(name)) by_ends[ends_of(*values)].push_back(name);
    for (auto& [ends, group] : by_ends) {
      std::vector<std::string> kept;
      for (const std::string& name : group)
        if (std::none_of(kept.begin(), kept.end(), [&](const std::string& first) { return tie(m, first, name); })) kept.push_back(name);
    }
  }
}

}  // namespace hone::onnx
