#include "frontend/onnx/symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace hone::onnx {

namespace {
constexpr std::size_t kUnnamed = std::size_t{1} << 32;  // behind all that have a name in the file
}

std::string Symbols::last_name(std::string name) const {
  std::size_t names = 0;
  for (auto next = equal_.find(name); next != equal_.end() and names <= equal_.size(); next = equal_.find(name)) name = next->second, ++names;
  return name;
}

Dim Symbols::named(const std::string& name) {
  in_file_.insert(name);
  const std::string file_name = last_name(name);
  if (const auto found = by_file_name_.find(file_name); found != by_file_name_.end()) return resolved(found->second);
  Dim symbol = Dim::symbol(file_name);
  for (int i = 2; order_.contains(symbol.text()); ++i)
    symbol = Dim::symbol(fmt::format("{}_{}", file_name, i));  // two names that differ in odd characters only
  order_[symbol.text()] = order_.size();
  by_file_name_[file_name] = symbol;
  auto fixed = fixed_.find(file_name);
  if (fixed == fixed_.end()) fixed = fixed_.find(symbol.text());
  if (fixed != fixed_.end() and fixed->second >= 0) replaced_[symbol.text()] = fixed->second;
  return resolved(symbol);
}

Dim Symbols::resolved(Dim dim) const { return dim.substitute(replaced_); }

Shape Symbols::declared(const std::string& name, const TensorShapeProto& shape) {
  Shape result;
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto& extent = shape.dim(i);
    if (extent.has_dim_value() and extent.dim_value() >= 0) {
      result.emplace_back(extent.dim_value());
      continue;
    }
    if (extent.has_dim_param() and not extent.dim_param().empty()) {
      result.push_back(named(extent.dim_param()));
      continue;
    }
    const std::string own = fmt::format("{}_dim{}", name, i);
    const bool is_new = not by_file_name_.contains(own);
    result.push_back(named(own));
    if (is_new) order_[by_file_name_[own].text()] += kUnnamed;
  }
  return result;
}

namespace {
/// number = c * symbol, where that has a solution, becomes number / c = symbol.
void solve(Dim& number, Dim& product) {
  const std::vector<std::string> symbols = product.symbols();
  if (not number.is_constant() or symbols.size() != 1) return;
  const Dim symbol = Dim::symbol(symbols[0]), factor = floordiv(product, symbol);
  if (not factor.is_constant() or factor.is_constant(0) or factor * symbol != product or number.value() % factor.value() != 0) return;
  number = number.value() / factor.value();
  product = symbol;
}
}  // namespace

bool Symbols::learn(std::span<const std::pair<Dim, Dim>> equations) {
  bool news = false;
  for (const auto& equation : equations) {
    Dim a = resolved(equation.first), b = resolved(equation.second);
    if (a == b) continue;
    solve(a, b);
    solve(b, a);
    // An input's extent stays a number or a symbol, which binding can read off the data. Other equations are checked there.
    const bool a_goes = order_.contains(a.text()) and (b.is_constant() or b.is_symbol()),
               b_goes = order_.contains(b.text()) and (a.is_constant() or a.is_symbol());
    if (not a_goes and not b_goes) continue;
    const bool b_is_later = not a_goes or (b_goes and order_.at(b.text()) > order_.at(a.text()));
    const Dim from = b_is_later ? b : a, to = b_is_later ? a : b;
    const std::map<std::string, Dim, std::less<>> step = {{from.text(), to}};
    for (auto& [symbol, value] : replaced_) value = value.substitute(step);
    replaced_[from.text()] = to;
    if (to.is_constant()) determined_.emplace_back(from.text(), to.value());
    news = true;
  }
  return news;
}

std::optional<std::int64_t> Symbols::count_of(const std::string& name) {
  counted_.insert(name);
  const auto fixed = fixed_.find(name);
  return fixed == fixed_.end() or fixed->second < 0 ? std::nullopt : std::optional(fixed->second);
}

void Symbols::check_name(const std::string& name, std::string_view what_for, Diags& diags) const {
  const auto is_symbol_of = [&](const std::string& file_name) {
    const auto found = by_file_name_.find(file_name);
    return found != by_file_name_.end() and found->second.text() == name;
  };
  if (in_file_.contains(name) or counted_.contains(name) or std::ranges::any_of(in_file_, is_symbol_of)) return;
  std::vector<std::string> names(counted_.begin(), counted_.end());
  names.insert(names.end(), in_file_.begin(), in_file_.end());
  std::vector<std::string> notes = {names.empty() ? "all its sizes are numbers" : "its sizes are " + join(names, ", ")};
  if (const std::string hint = did_you_mean(name, names); not hint.empty()) notes.push_back(hint);
  diags.error(Code::kUsage, fmt::format("the model has no size {} {}", quoted(name), what_for), {}, std::move(notes));
}

void Symbols::check_asked(Diags& diags) const {
  for (const auto& [name, value] : fixed_) {
    if (value < 0) diags.error(Code::kUsage, fmt::format("the size {} cannot be {}", quoted(name), value));
    check_name(name, "to fix", diags);
  }
  for (const auto& [name, other] : equal_) {
    check_name(name, "to be another one", diags);
    check_name(other, fmt::format("that {} could be", quoted(name)), diags);
    if (fixed_.contains(name)) diags.error(Code::kUsage, fmt::format("the size {} is to be {} and {}", quoted(name), fixed_.at(name), quoted(other)), {}, {fmt::format("leave one of them out, or fix {}", quoted(other))});
    if (equal_.contains(last_name(name))) diags.error(Code::kUsage, fmt::format("the size {} is to be {}, and the other way round", quoted(name), quoted(other)), {}, {"leave one of them out"});
  }
}

}  // namespace hone::onnx
