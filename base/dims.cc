#include "base/dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/dim_parts.h"
#include "base/text.h"

namespace hone {

enum class DimKind { kPolynomial, kSymbol, kFloorDiv, kMod, kMax, kMin };

namespace {

/// coefficient * product of atoms (sorted by text).
struct Term {
  std::int64_t coefficient;
  std::vector<const DimNode*> atoms;
};

struct Polynomial {
  std::int64_t constant = 0;
  std::vector<Term> terms;  // sorted by the atoms' text, no two with the same atoms, no coefficient 0
};

}  // namespace

struct DimNode {
  DimKind kind;
  std::string text;
  Polynomial polynomial;  // kPolynomial
  Dim a, b;               // kFloorDiv ...

  static Dim dim_of(const DimNode* node) {
    Dim dim;
    dim.node_ = node;
    return dim;
  }
  static const DimNode* node_of(const Dim& dim) { return dim.node_; }
};

namespace {

constexpr std::size_t kMostText = 64 * 1024;

[[noreturn]] void refuse_long() {
  throw Error(Code::kTooLarge, fmt::format("a size computed from a model's shapes takes more than {} characters to write down", kMostText), {}, {"give the symbols that it is made of numbers with --dim NAME=N"});
}

}  // namespace

/// Owns every expression ever made. A process-wide table, as equal sizes from different graphs and threads must compare equal.
class DimInterner {
 public:
  /// Throws kTooLarge for a text of more than kMostText: that also limits how long a walk through the expression takes, in which what it shares comes again and again.
  static Dim intern(DimNode node) {
    if (node.text.size() > kMostText) refuse_long();
    static DimInterner& interner = *new DimInterner;  // never destroyed: Dims may outlive main
    const std::lock_guard lock(interner.mutex_);
    auto& slot = interner.nodes_[node.text];
    if (slot == nullptr) slot = std::make_unique<DimNode>(std::move(node));
    return DimNode::dim_of(slot.get());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<DimNode>> nodes_;
};

namespace {

constexpr std::string_view kWhat = "sizes computed from a model's shapes";
std::int64_t checked_add(std::int64_t a, std::int64_t b) { return hone::checked_add(a, b, kWhat); }
std::int64_t checked_mul(std::int64_t a, std::int64_t b) { return hone::checked_multiply(a, b, kWhat); }
std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  if (b == 0 or (b == -1 and a == INT64_MIN)) throw Error(Code::kTooLarge, "a size computed from a model's shapes divides by zero", {}, {"a stride, a group or an extent there is 0, or overflowed"});
  return a / b - static_cast<std::int64_t>(a % b != 0 and (a < 0) != (b < 0));
}

bool atoms_less(const std::vector<const DimNode*>& a, const std::vector<const DimNode*>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](auto* x, auto* y) { return x->text < y->text; });
}

Polynomial polynomial_of(const Dim& dim) {
  if (dim.is_constant()) return {dim.value(), {}};
  const DimNode* node = DimNode::node_of(dim);
  if (node->kind == DimKind::kPolynomial) return node->polynomial;
  return {0, {{1, {node}}}};
}

Polynomial normalized(Polynomial p) {
  std::sort(p.terms.begin(), p.terms.end(), [](const Term& a, const Term& b) { return atoms_less(a.atoms, b.atoms); });
  std::vector<Term> merged;
  for (Term& term : p.terms) {
    if (not merged.empty() and merged.back().atoms == term.atoms) merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
    else merged.push_back(std::move(term));
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  p.terms = std::move(merged);
  return p;
}

std::string atom_text(const DimNode& atom) {
  return atom.kind == DimKind::kFloorDiv or atom.kind == DimKind::kMod ? "(" + atom.text + ")" : atom.text;
}

std::string polynomial_text(const Polynomial& p) {
  std::string text;
  const auto append = [&text](bool negative, const std::string& part) {
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    text += part;
  };
  for (const Term& term : p.terms) {
    const std::int64_t magnitude = term.coefficient < 0 ? checked_mul(term.coefficient, -1) : term.coefficient;
    std::string product = magnitude == 1 ? "" : std::to_string(magnitude);
    for (const DimNode* atom : term.atoms) product += (product.empty() ? "" : "*") + atom_text(*atom);
    append(term.coefficient < 0, product);
  }
  if (p.constant != 0) append(p.constant < 0, std::to_string(p.constant < 0 ? checked_mul(p.constant, -1) : p.constant));
  return text;
}

Dim dim_of(Polynomial p) {
  p = normalized(std::move(p));
  if (p.terms.empty()) return Dim(p.constant);
  if (p.constant == 0 and p.terms.size() == 1 and p.terms[0].coefficient == 1 and p.terms[0].atoms.size() == 1) return DimNode::dim_of(p.terms[0].atoms[0]);
  DimNode node{DimKind::kPolynomial, polynomial_text(p), p, {}, {}};
  return DimInterner::intern(std::move(node));
}

/// term / divisor if that is exact.
std::optional<Term> divide(const Term& term, const Term& divisor) {
  if (term.coefficient % divisor.coefficient != 0) return std::nullopt;
  Term quotient{term.coefficient / divisor.coefficient, {}};
  auto next = divisor.atoms.begin();
  for (const DimNode* atom : term.atoms) {
    if (next != divisor.atoms.end() and *next == atom) ++next;
    else quotient.atoms.push_back(atom);
  }
  if (next != divisor.atoms.end()) return std::nullopt;
  return quotient;
}

/// Of the most factors; of several the first by text. (An order of monomials: the leading term of a product is that of the leading terms.)
const Term& leading_term(const Polynomial& p) {
  return *std::ranges::max_element(p.terms, {}, [](const Term& term) { return term.atoms.size(); });
}

/// a / b if b divides a exactly: long division by leading terms. By another one of b's a step could put a larger term into the rest, and the next one another.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  const Polynomial divisor = polynomial_of(b);
  if (divisor.terms.empty()) return std::nullopt;
  Dim quotient = 0, rest = a;
  for (int i = 0; i < 64 and not rest.is_constant(); ++i) {
    const std::optional<Term> step = divide(leading_term(polynomial_of(rest)), leading_term(divisor));
    if (not step) return std::nullopt;
    const Dim part = dim_of(step->atoms.empty() ? Polynomial{step->coefficient, {}} : Polynomial{0, {*step}});
    quotient += part;
    rest -= part * b;
  }
  return rest.is_constant(0) ? std::optional(quotient) : std::nullopt;
}

Dim make_atom(DimKind kind, const Dim& a, const Dim& b) {
  const auto stands_alone = [](const Dim& dim) { return dim.is_symbol() or (dim.is_constant() and dim.value() >= 0); };  // -1 mod N would be read as -(1 mod N)
  const auto operand = [&](const Dim& dim) { return stands_alone(dim) ? dim.text() : "(" + dim.text() + ")"; };
  std::string text;
  switch (kind) {
    case DimKind::kFloorDiv: text = operand(a) + " floordiv " + operand(b); break;
    case DimKind::kMod: text = operand(a) + " mod " + operand(b); break;
    case DimKind::kMax: text = "max(" + a.text() + ", " + b.text() + ")"; break;
    default: text = "min(" + a.text() + ", " + b.text() + ")"; break;
  }
  return DimInterner::intern({kind, std::move(text), {}, a, b});
}

Dim rebuild(DimKind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case DimKind::kFloorDiv: return floordiv(a, b);
    case DimKind::kMod: return mod(a, b);
    case DimKind::kMax: return max(a, b);
    default: return min(a, b);
  }
}

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  const DimNode* node = DimNode::node_of(dim);
  if (node == nullptr) return;
  if (node->kind == DimKind::kSymbol) names.insert(node->text);
  for (const Term& term : node->polynomial.terms)
    for (const DimNode* atom : term.atoms) collect_symbols(DimNode::dim_of(atom), names);
  collect_symbols(node->a, names);
  collect_symbols(node->b, names);
}

/// Recursive descent over "+ - * floordiv mod max(,) min(,) ( )" with a depth limit.
class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Dim parse() {
    const Dim dim = sum(0);
    skip_blanks();
    if (at_ != text_.size()) fail();
    return dim;
  }

 private:
  [[noreturn]] void fail() { throw Error(Code::kBadHir, fmt::format("\"{}\" is not a size: found something unexpected at position {}", text_, at_)); }
  void skip_blanks() {
    while (at_ < text_.size() and text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Dim sum(int depth) {
    if (depth > 64) fail();
    Dim value = take("-") ? Dim(0) - product(depth) : product(depth);
    for (;;) {
      if (take("+")) value += product(depth);
      else if (take("-")) value -= product(depth);
      else return value;
    }
  }
  Dim product(int depth) {
    Dim value = factor(depth);
    for (;;) {
      if (take("*")) value *= factor(depth);
      else if (take("floordiv ")) value = floordiv(value, factor(depth));
      else if (take("mod ")) value = mod(value, factor(depth));
      else return value;
    }
  }
  Dim pair(Dim (*make)(Dim, Dim), int depth) {
    const Dim a = sum(depth + 1);
    if (not take(",")) fail();
    const Dim b = sum(depth + 1);
    if (not take(")")) fail();
    return make(a, b);
  }
  Dim factor(int depth) {
    if (take("max(")) return pair(max, depth);
    if (take("min(")) return pair(min, depth);
    if (take("(")) {
      const Dim value = sum(depth + 1);
      if (not take(")")) fail();
      return value;
    }
    skip_blanks();
    const std::size_t start = at_;
    const bool is_value_symbol = at_ < text_.size() and text_[at_] == '$';
    if (is_value_symbol) ++at_;
    while (at_ < text_.size() and (std::isalnum(static_cast<unsigned char>(text_[at_])) or text_[at_] == '_' or text_[at_] == '.')) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word.size() <= static_cast<std::size_t>(is_value_symbol)) fail();
    if (is_value_symbol) return Dim::value_symbol(word.substr(1));
    if (not std::isdigit(static_cast<unsigned char>(word[0]))) return Dim::symbol(word);
    std::int64_t value = 0;
    for (const char c : word) {
      if (not std::isdigit(static_cast<unsigned char>(c))) fail();
      value = checked_add(checked_mul(value, 10), c - '0');
    }
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

namespace {
std::string symbol_text(std::string_view name) {
  std::string text(name.substr(0, 200));
  for (char& c : text)
    if (not(std::isalnum(static_cast<unsigned char>(c)) or c == '_' or c == '.')) c = '_';
  return text;
}
}  // namespace

Dim Dim::symbol(std::string_view name) {
  std::string text = symbol_text(name);
  if (text.empty() or std::isdigit(static_cast<unsigned char>(text[0])) or text[0] == '.') text = "d_" + text;
  if (text == "floordiv" or text == "mod" or text == "max" or text == "min") text += '_';
  return DimInterner::intern({DimKind::kSymbol, std::move(text), {}, {}, {}});
}

Dim Dim::value_symbol(std::string_view name) { return DimInterner::intern({DimKind::kSymbol, "$" + symbol_text(name), {}, {}, {}}); }

Dim Dim::parse(std::string_view text) { return DimParser(text).parse(); }

bool Dim::is_symbol() const { return node_ != nullptr and node_->kind == DimKind::kSymbol; }

bool Dim::may_be_negative() const {
  if (node_ == nullptr) return value_ < 0;
  switch (node_->kind) {
    case DimKind::kSymbol: return node_->text[0] == '$';
    case DimKind::kPolynomial:
      return node_->polynomial.constant < 0 or std::any_of(node_->polynomial.terms.begin(), node_->polynomial.terms.end(), [](const Term& term) {
               return term.coefficient < 0 or std::any_of(term.atoms.begin(), term.atoms.end(), [](const DimNode* atom) { return DimNode::dim_of(atom).may_be_negative(); });
             });
    case DimKind::kMax: return node_->a.may_be_negative() and node_->b.may_be_negative();
    case DimKind::kMin:
    case DimKind::kFloorDiv: return node_->a.may_be_negative() or node_->b.may_be_negative();
    case DimKind::kMod: return node_->b.may_be_negative();  // has the sign of the divisor
  }
  return true;
}

bool Dim::is_at_most_one() const {
  if (node_ == nullptr) return value_ <= 1;
  const auto is_low = [](const Dim& dim) { return dim.is_constant() and dim.value() <= 1; };  // a constant within a min is its only one
  return node_->kind == DimKind::kMin and (is_low(node_->a) or is_low(node_->b));
}

std::int64_t Dim::value() const {
  HONE_CHECK(is_constant(), "value() of the symbolic size " + text());
  return value_;
}

std::string Dim::text() const { return node_ == nullptr ? std::to_string(value_) : node_->text; }

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

std::int64_t Dim::guess(std::int64_t typical) const {
  DimBindings bindings;
  for (std::string& symbol : symbols()) bindings.emplace(std::move(symbol), typical);
  return evaluate(bindings);
}

std::int64_t Dim::evaluate(const DimBindings& bindings) const {
  if (node_ == nullptr) return value_;
  switch (node_->kind) {
    case DimKind::kSymbol: {
      const auto found = bindings.find(node_->text);
      if (found == bindings.end()) throw Error(Code::kDynamic, fmt::format("the size {} is not known", node_->text));
      return found->second;
    }
    case DimKind::kPolynomial: {
      std::int64_t sum = node_->polynomial.constant;
      for (const Term& term : node_->polynomial.terms) {
        std::int64_t product = term.coefficient;
        for (const DimNode* atom : term.atoms) product = checked_mul(product, DimNode::dim_of(atom).evaluate(bindings));
        sum = checked_add(sum, product);
      }
      return sum;
    }
    default: break;
  }
  const std::int64_t a = node_->a.evaluate(bindings), b = node_->b.evaluate(bindings);
  switch (node_->kind) {
    case DimKind::kFloorDiv: return floor_division(a, b);
    case DimKind::kMod: return a - floor_division(a, b) * b;
    case DimKind::kMax: return std::max(a, b);
    default: return std::min(a, b);
  }
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>>& replacements) const {
  if (node_ == nullptr) return *this;
  switch (node_->kind) {
    case DimKind::kSymbol: {
      const auto found = replacements.find(node_->text);
      return found == replacements.end() ? *this : found->second;
    }
    case DimKind::kPolynomial: {
      Dim sum = node_->polynomial.constant;
      for (const Term& term : node_->polynomial.terms) {
        Dim product = term.coefficient;
        for (const DimNode* atom : term.atoms) product *= DimNode::dim_of(atom).substitute(replacements);
        sum += product;
      }
      return sum;
    }
    default: return rebuild(node_->kind, node_->a.substitute(replacements), node_->b.substitute(replacements));
  }
}

Dim operator+(Dim a, Dim b) {
  if (a.is_constant() and b.is_constant()) return checked_add(a.value(), b.value());
  Polynomial p = polynomial_of(a);
  const Polynomial q = polynomial_of(b);
  p.constant = checked_add(p.constant, q.constant);
  p.terms.insert(p.terms.end(), q.terms.begin(), q.terms.end());
  return dim_of(std::move(p));
}

Dim operator-(Dim a, Dim b) { return a + b * Dim(-1); }

Dim operator*(Dim a, Dim b) {
  if (a.is_constant() and b.is_constant()) return checked_mul(a.value(), b.value());
  const Polynomial p = polynomial_of(a), q = polynomial_of(b);
  if (p.terms.size() * q.terms.size() > kMostText) refuse_long();
  Polynomial product;
  product.constant = checked_mul(p.constant, q.constant);
  const auto add = [&product](std::int64_t coefficient, std::vector<const DimNode*> atoms) {
    std::sort(atoms.begin(), atoms.end(), [](auto* x, auto* y) { return x->text < y->text; });
    product.terms.push_back({coefficient, std::move(atoms)});
  };
  for (const Term& s : p.terms) {
    add(checked_mul(s.coefficient, q.constant), s.atoms);
    for (const Term& t : q.terms) {
      std::vector<const DimNode*> atoms = s.atoms;
      atoms.insert(atoms.end(), t.atoms.begin(), t.atoms.end());
      add(checked_mul(s.coefficient, t.coefficient), std::move(atoms));
    }
  }
  for (const Term& t : q.terms) add(checked_mul(t.coefficient, p.constant), t.atoms);
  return dim_of(std::move(product));
}

Dim floordiv(Dim a, Dim b) {
  if (a.is_constant() and b.is_constant()) return floor_division(a.value(), b.value());
  if (b.is_constant(1)) return a;
  if (a == b) return 1;
  if (not b.is_constant()) {
    const std::optional<Dim> exact = divide_exactly(a, b);
    return exact ? *exact : make_atom(DimKind::kFloorDiv, a, b);
  }
  // (b*X + r) floordiv b = X + r floordiv b
  const Polynomial p = polynomial_of(a);
  Polynomial whole, rest;
  whole.constant = floor_division(p.constant, b.value());
  rest.constant = p.constant - whole.constant * b.value();
  for (const Term& term : p.terms) {
    if (term.coefficient % b.value() == 0) whole.terms.push_back({term.coefficient / b.value(), term.atoms});
    else rest.terms.push_back(term);
  }
  const Dim remainder = dim_of(rest);
  return dim_of(whole) + (remainder.is_constant() ? Dim(floor_division(remainder.value(), b.value())) : make_atom(DimKind::kFloorDiv, remainder, b));
}

Dim ceildiv(Dim a, Dim b) { return floordiv(a + b - 1, b); }

Dim mod(Dim a, Dim b) {
  if (a.is_constant() and b.is_constant()) return a.value() - floor_division(a.value(), b.value()) * b.value();
  if (a == b or b.is_constant(1) or divide_exactly(a, b)) return 0;
  return make_atom(DimKind::kMod, a, b);
}

Dim max(Dim a, Dim b) {
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.value() >= 0 ? a : b;
  return a.text() < b.text() ? make_atom(DimKind::kMax, a, b) : make_atom(DimKind::kMax, b, a);
}

Dim min(Dim a, Dim b) {
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.value() <= 0 ? a : b;
  return a.text() < b.text() ? make_atom(DimKind::kMin, a, b) : make_atom(DimKind::kMin, b, a);
}

DimParts parts_of(const Dim& dim) {
  using Kind = DimParts::Kind;
  if (dim.is_constant()) return {.kind = Kind::kNumber, .number = dim.value()};
  const DimNode& node = *DimNode::node_of(dim);
  switch (node.kind) {
    case DimKind::kSymbol: return {.kind = Kind::kSymbol, .symbol = node.text};
    case DimKind::kFloorDiv: return {.kind = Kind::kFloorDiv, .a = node.a, .b = node.b};
    case DimKind::kMod: return {.kind = Kind::kMod, .a = node.a, .b = node.b};
    case DimKind::kMax: return {.kind = Kind::kMax, .a = node.a, .b = node.b};
    case DimKind::kMin: return {.kind = Kind::kMin, .a = node.a, .b = node.b};
    case DimKind::kPolynomial: break;
  }
  DimParts parts{.kind = Kind::kSum, .number = node.polynomial.constant};
  for (const Term& term : node.polynomial.terms) {
    DimParts::Term& part = parts.terms.emplace_back();
    part.factor = term.coefficient;
    for (const DimNode* atom : term.atoms) part.atoms.push_back(DimNode::dim_of(atom));
  }
  return parts;
}

std::optional<std::pair<Dim, Dim>> at_most(Dim a, Dim b) {
  if (a == b or not (b - a).may_be_negative()) return std::nullopt;
  return a.is_constant() ? std::pair(max(b, a), b) : std::pair(min(a, b), a);
}

Dim element_count(const Shape& shape) {
  Dim count = 1;
  for (const Dim& dim : shape) count *= dim;
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const Dim& dim : shape) text += (text.empty() ? "" : ",") + dim.text();
  return text;
}

bool is_constant(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}

std::vector<std::int64_t> constant_shape(const Shape& shape) {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(dim.value());
  return extents;
}

Shape shape_of(const std::vector<std::int64_t>& extents) { return {extents.begin(), extents.end()}; }

std::vector<std::int64_t> evaluate(const Shape& shape, const DimBindings& bindings) {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(dim.evaluate(bindings));
  return extents;
}

void require_sizes(const DimBindings& given, std::vector<std::string> known) {
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const auto& [name, value] : given) {
    if (std::ranges::binary_search(known, name)) continue;
    std::vector<std::string> notes = {known.empty() ? "all its sizes are numbers" : "its sizes are " + join(known, ", ")};
    if (std::string hint = did_you_mean(name, known); not hint.empty()) notes.push_back(std::move(hint));
    throw Error(Code::kUsage, fmt::format("--dim {}: there is no such size", quoted(name)), {}, std::move(notes));
  }
}

}  // namespace hone
