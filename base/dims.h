// Sizes that may be symbolic: numbers, symbols (`N`) and expressions over them (`4*N + 1`, `(T + 1) floordiv 2`).
//
// A Dim is a small value. Expressions are kept in one canonical form (a polynomial with integer coefficients over symbols and
// floordiv / mod / max / min atoms, terms sorted by text) and interned for the life of the process, so that equal expressions are
// the same pointer and comparing two Dims is comparing two words. Every symbol but a value symbol stands for a size of at least 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

struct DimNode;

/// Values of symbols by name.
using DimBindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(std::int64_t value) : value_(value) {}  // NOLINT: a number is a size

  /// The symbol `name`; characters that the text form cannot hold become '_'.
  static Dim symbol(std::string_view name);
  /// The symbol `$name`: a number read from a tensor when running, which may be negative. All other symbols are sizes of at least 0.
  static Dim value_symbol(std::string_view name);
  /// Parses the text form; throws Error kBadHir.
  static Dim parse(std::string_view text);

  bool is_constant() const { return node_ == nullptr; }
  bool is_constant(std::int64_t value) const { return node_ == nullptr and value_ == value; }
  bool is_symbol() const;
  /// False only if it cannot be: no value symbol in it, and no term is taken away.
  bool may_be_negative() const;
  /// True only if it cannot be more than 1: min(1, N).
  bool is_at_most_one() const;
  /// The number; only when is_constant().
  std::int64_t value() const;
  /// "784", "N", "4*N + 1", "(T + 1) floordiv 2"
  std::string text() const;
  /// Names of all symbols in it, sorted, each once.
  std::vector<std::string> symbols() const;

  /// The number under `bindings`. Throws Error kDynamic for an unbound symbol, kTooLarge on overflow or division by 0.
  std::int64_t evaluate(const DimBindings& bindings) const;
  /// The number where every symbol stands for `typical`: a guess, for what is decided before sizes are known.
  std::int64_t guess(std::int64_t typical) const;
  /// With every symbol found in `replacements` replaced.
  Dim substitute(const std::map<std::string, Dim, std::less<>>& replacements) const;

  friend bool operator==(const Dim& a, const Dim& b) = default;

 private:
  friend struct DimNode;
  friend class DimInterner;
  std::int64_t value_ = 0;
  const DimNode* node_ = nullptr;
};

// All throw kTooLarge for results that overflow, and for expressions that are too long to be written down.
Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
inline Dim& operator+=(Dim& a, Dim b) { return a = a + b; }
inline Dim& operator-=(Dim& a, Dim b) { return a = a - b; }
inline Dim& operator*=(Dim& a, Dim b) { return a = a * b; }
/// Division rounded towards minus infinity; exact divisions ((8*N) floordiv 4, (N*784) floordiv N) are carried out.
Dim floordiv(Dim a, Dim b);
/// Division rounded up.
Dim ceildiv(Dim a, Dim b);
Dim mod(Dim a, Dim b);
Dim max(Dim a, Dim b);
Dim min(Dim a, Dim b);

/// What must be equal where a is at most b: min(a, b) and a, or of a number max(b, a) and b. Nothing where it always is.
std::optional<std::pair<Dim, Dim>> at_most(Dim a, Dim b);

using Shape = std::vector<Dim>;

/// Product of all extents; 1 for a scalar.
Dim element_count(const Shape& shape);
/// "N,784"
std::string to_string(const Shape& shape);
/// All numbers; throws HONE_CHECK when one is symbolic.
std::vector<std::int64_t> constant_shape(const Shape& shape);
bool is_constant(const Shape& shape);
Shape shape_of(const std::vector<std::int64_t>& extents);
std::vector<std::int64_t> evaluate(const Shape& shape, const DimBindings& bindings);

/// Throws Error kUsage, with the nearest name, for a size in `given` that is none of `known`: what somebody wrote behind --dim.
void require_sizes(const DimBindings& given, std::vector<std::string> known);

}  // namespace hone
