// Einstein sums: operands are joined two at a time, by a matrix product where they share a sum.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "frontend/onnx/ops.h"
#include "ir/ops/ops.h"

namespace hone::onnx {

namespace {

/// A letter each axis; the character 1 + i for axis i of the ellipsis, counted from its end.
using Labels = std::string;
constexpr std::size_t kMostEllipsisAxes = 60;  // below 'A'

struct Term {
  Val val;
  Labels labels;
};

bool holds(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

/// The labels of `text`, whose ellipsis stands for `width` axes.
Labels labels_of(const ImportNode& node, std::string_view text, std::size_t width) {
  Labels labels;
  bool has_ellipsis = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels += text[i];
      continue;
    }
    node.require(text.substr(i, 3) == "..." and not has_ellipsis, Code::kBadAttribute, fmt::format("equation term \"{}\"", text));
    has_ellipsis = true;
    for (std::size_t k = width; k-- > 0;) labels += static_cast<char>(1 + k);
    i += 2;
  }
  return labels;
}

/// x with the axes of `from` in the order of `to`, which may name some that x does not have: those get extent 1.
Val arranged(const Term& term, const Labels& to) {
  Ints perm;
  Shape shape;
  for (const char label : to) {
    const std::size_t at = term.labels.find(label);
    if (at != Labels::npos) perm.push_back(static_cast<std::int64_t>(at));
    shape.push_back(at == Labels::npos ? Dim(1) : term.val.shape()[at]);
  }
  const bool in_order = std::is_sorted(perm.begin(), perm.end());
  return reshape(in_order ? term.val : transpose(term.val, perm), shape);
}

Term summed(const Term& term, const Labels& over) {
  Ints axes;
  Labels left;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (holds(over, term.labels[i])) axes.push_back(static_cast<std::int64_t>(i));
    else left += term.labels[i];
  }
  return {sum(term.val, axes, false), left};
}

/// An index that comes twice in one term runs over the diagonal: elsewhere 0 is put, and one of the axes summed away.
Term diagonal(const ImportNode& node, Term term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    for (std::size_t j = term.labels.find(term.labels[i], i + 1); j != Labels::npos; j = term.labels.find(term.labels[i], i + 1)) {
      const auto positions = [&](std::size_t axis) {
        Shape shape(term.val.rank(), Dim(1));
        shape[axis] = term.val.shape()[axis];
        return node.builder().add(op::iota, {}, {kShape = shape, kAxis = static_cast<std::int64_t>(axis)})[0];
      };
      const Dim a = term.val.shape()[i], b = term.val.shape()[j];
      node.require(a == b or not a.is_constant() or not b.is_constant(), Code::kShape, fmt::format("index {} has extents {} and {}", term.labels[i], a.text(), b.text()));
      const Val zero = node.builder().scalar(0, term.val.dtype());
      term.val = sum(op::where(op::equal(positions(i), positions(j)), term.val, zero), {static_cast<std::int64_t>(j)}, false);
      term.labels.erase(j, 1);
    }
  }
  return term;
}

Dim extent_of(const Term& term, char label) { return term.val.shape()[term.labels.find(label)]; }

/// The labels of `term` for which `test` holds.
template <typename Test>
Labels chosen(const Term& term, Test test) {
  Labels labels;
  for (const char label : term.labels)
    if (test(label)) labels += label;
  return labels;
}

Dim extents(const Term& term, const Labels& labels) {
  Dim product = 1;
  for (const char label : labels) product *= extent_of(term, label);
  return product;
}

/// The product of two terms, with every index summed away that is not `wanted` any more.
Term joined(const Term& a_given, const Term& b_given, const std::set<char>& wanted) {
  const auto unwanted_beside = [&](const Term& x, const Term& y) {
    return chosen(x, [&](char label) { return not wanted.contains(label) and not holds(y.labels, label); });
  };
  const Term a = summed(a_given, unwanted_beside(a_given, b_given)), b = summed(b_given, unwanted_beside(b_given, a_given));
  const Labels shared = chosen(a, [&](char label) { return holds(b.labels, label); });
  const bool stretches = std::any_of(shared.begin(), shared.end(), [&](char label) { return extent_of(a, label).is_constant(1) != extent_of(b, label).is_constant(1); });
  const Labels inner = chosen(a, [&](char label) { return holds(shared, label) and not wanted.contains(label); });
  const Labels rows = chosen(a, [&](char label) { return not holds(shared, label); }), columns = chosen(b, [&](char label) { return not holds(shared, label); });
  if (inner.empty() or stretches) {  // elementwise, broadcasting
    const Labels all = a.labels + columns;
    return summed({arranged(a, all) * arranged(b, all), all}, inner);
  }
  const Labels batch = chosen(a, [&](char label) { return holds(shared, label) and not holds(inner, label); });
  Shape shape;
  for (const char label : batch) shape.push_back(extent_of(a, label));
  const auto matrix = [&](const Term& term, const Labels& first, const Labels& second) {
    Shape matrices = shape;
    matrices.push_back(extents(term, first));
    matrices.push_back(extents(term, second));
    return reshape(arranged(term, batch + first + second), matrices);
  };
  const Val product = op::matmul(matrix(a, rows, inner), matrix(b, inner, columns));
  for (const char label : rows) shape.push_back(extent_of(a, label));
  for (const char label : columns) shape.push_back(extent_of(b, label));
  return {reshape(product, shape), batch + rows + columns};
}

struct Equation {
  std::vector<Labels> terms;
  Labels result;
};

/// Without "->", the result has the ellipsis' axes and, in alphabetical order, the indices that come once.
Equation equation_of(const ImportNode& node) {
  std::string text = node.text("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::string operands = text.substr(0, arrow);
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = operands.find(',', begin);
    parts.push_back(operands.substr(begin, comma == std::string::npos ? comma : comma - begin));
    if (comma == std::string::npos) break;
    begin = comma + 1;
  }
  node.require(parts.size() == node.count(), Code::kBadAttribute, fmt::format("equation \"{}\" has {} terms for {} inputs", text, parts.size(), node.count()));
  Equation equation;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t letters = labels_of(node, parts[i], 0).size(), rank = node.x(i).rank();
    const bool has_ellipsis = parts[i].find('.') != std::string::npos;
    node.require(has_ellipsis ? rank >= letters : rank == letters, Code::kShape, fmt::format("equation term \"{}\" for an input of {} axes", parts[i], rank));
    node.require(rank - letters <= kMostEllipsisAxes, Code::kTooLarge, "too many axes");
    widest = std::max(widest, rank - letters);
    equation.terms.push_back(labels_of(node, parts[i], rank - letters));
  }
  if (arrow != std::string::npos) {
    equation.result = labels_of(node, std::string_view(text).substr(arrow + 2), widest);
  } else {
    std::map<char, int> counts;
    for (const Labels& labels : equation.terms)
      for (const char label : labels) ++counts[label];
    for (std::size_t k = widest; k-- > 0;) equation.result += static_cast<char>(1 + k);
    for (const auto& [label, count] : counts)
      if (std::isalpha(static_cast<unsigned char>(label)) and count == 1) equation.result += label;
  }
  for (std::size_t i = 0; i < equation.result.size(); ++i) {
    const char label = equation.result[i];
    node.require(equation.result.find(label, i + 1) == Labels::npos and
                     std::any_of(equation.terms.begin(), equation.terms.end(), [&](const Labels& labels) { return holds(labels, label); }),
                 Code::kBadAttribute, fmt::format("index {} of the result of equation \"{}\"", label, text));
  }
  return equation;
}

std::vector<Val> import_einsum(const ImportNode& node) {
  const Equation equation = equation_of(node);
  const DType dtype = node.x(0).dtype();
  const bool is_half = dtype == DType::kF16 or dtype == DType::kBF16;
  std::vector<Term> terms;
  for (std::size_t i = 0; i < node.count(); ++i) terms.push_back(diagonal(node, {is_half ? cast(node.x(i), DType::kF32) : node.x(i), equation.terms[i]}));
  Term result = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::set<char> wanted(equation.result.begin(), equation.result.end());
    for (std::size_t k = i + 1; k < terms.size(); ++k) wanted.insert(terms[k].labels.begin(), terms[k].labels.end());
    result = joined(result, terms[i], wanted);
  }
  result = summed(result, chosen(result, [&](char label) { return not holds(equation.result, label); }));
  return {cast(arranged(result, equation.result), dtype)};
}

constinit const Importer kEinsumOps[] = {
    {"Einsum", import_einsum},
};

}  // namespace

std::span<const Importer> einsum_importers() { return kEinsumOps; }

}  // namespace hone::onnx
