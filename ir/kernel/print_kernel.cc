#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "ir/kernel/kernel.h"
#include "ir/kernel/scalar_math.h"

namespace hone {

namespace {

/// How tightly the outermost operation of a text binds, loosest first.
enum Binding { kTernary, kOrBinding, kXorBinding, kAndBinding, kNotBinding, kCompareBinding, kBitsBinding, kSumBinding, kProductBinding, kSignBinding, kAtom };

/// A shared subexpression gets a name when its readers would spell out at least this many operations.
constexpr int kLetWeight = 6;

struct Text {
  std::string text;
  Binding binding = kAtom;
  int weight = 0;  ///< operations in it
};

/// Each name made unique among `taken` and free of characters that would not read as one name.
std::string unique_name(const std::string& wanted, const std::string& fallback, std::set<std::string>& taken) {
  std::string name = wanted.empty() ? fallback : wanted;
  for (char& c : name)
    if (not(std::isalnum(static_cast<unsigned char>(c)) or c == '_' or c == '.')) c = '_';
  std::string result = name;
  for (int i = 1; not taken.insert(result).second; ++i) result = fmt::format("{}_{}", name, i);
  return result;
}

/// round_f16(x), round_f8e8m0(x, up, saturate)
std::string rounding_text(StorageRounding to, const std::string& operand) {
  constexpr std::string_view kRoundings[] = {"", ", up", ", down"};
  return fmt::format("round_{}({}{}{})", to_string(to.dtype), operand, kRoundings[static_cast<std::size_t>(to.rounding)], to.saturate ? ", saturate" : "");
}

std::string number_text(DType dtype, double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return dtype == DType::kF32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

std::string integer_text(const Expr& e) {
  if (e.dtype == DType::kBool) return e.int_value != 0 ? "true" : "false";
  return e.dtype == DType::kU64 ? fmt::format("{}", static_cast<std::uint64_t>(e.int_value)) : fmt::format("{}", e.int_value);
}

bool has(const std::vector<std::uint32_t>& uses, ExprId id) { return uses[id.index] > 0; }

class KernelPrinter {
 public:
  explicit KernelPrinter(const Kernel& kernel) : kernel_(kernel) {
    for (const KernelBuffer& buffer : kernel.buffers) buffers_.push_back(unique_name(buffer.name, fmt::format("b{}", buffers_.size()), taken_));
    for (const KernelAxis& axis : kernel.axes) axes_.push_back(unique_name(axis.name, fmt::format("i{}", axes_.size()), taken_));
  }

  std::string print() {
    out_ = fmt::format("kernel {}({}){}\n", kernel_.name, buffer_list(Access::kRead), results());
    indent_ = 1;
    if (kernel_.outer_count > 0) {
      std::vector<std::uint32_t> outer(kernel_.outer_count);
      for (std::uint32_t axis = 0; axis < kernel_.outer_count; ++axis) outer[axis] = axis;
      const std::string counting = kernel_.triangle ? fmt::format("  # {} <= {} counts", axes_[kernel_.triangle->low], axes_[kernel_.triangle->high]) : "";
      line(fmt::format("for {}:{}{}", axis_list(outer), kernel_.repeats ? "  # again and again" : "", counting));
      ++indent_;
    }
    for (const Phase& phase : kernel_.phases) print_phase(phase);
    return out_;
  }

 private:
  std::string results() const {
    const std::string list = buffer_list(Access::kWrite);
    return list.empty() ? "" : " -> " + list;
  }
  std::string buffer_list(Access access) const {
    std::string text;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const KernelBuffer& buffer = kernel_.buffers[i];
      if (buffer.access == access) text += fmt::format("{}{}: {}[{}]", text.empty() ? "" : ", ", buffers_[i], to_string(buffer.dtype), to_string(buffer.shape));
    }
    return text;
  }
  std::string axis_list(const std::vector<std::uint32_t>& axes) const {
    std::string text;
    for (const std::uint32_t axis : axes) text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", axes_[axis], kernel_.axes[axis].extent.text());
    return text;
  }
  void line(const std::string& text) { out_ += std::string(2 * indent_, ' ') + text + '\n'; }

  void print_phase(const Phase& phase) {
    count_uses(phase);
    texts_.assign(kernel_.exprs.size(), {});
    const std::size_t begin = out_.size();
    const std::string over = axis_list(phase.inner);
    const bool one_line = phase.reductions.size() == 1 and phase.stores.empty() and not over.empty();
    if (one_line) {
      print_lets();
      if (out_.size() == begin) {
        const Reduction& r = phase.reductions[0];
        line(fmt::format("t{} = {} over {}: {}", r.temp, to_string(r.kind), over, texts_[r.value.index].text));
        return;
      }
      out_.resize(begin);
      let_count_ = lets_before_;
    }
    const int outside = indent_;
    if (phase.scatter or not over.empty()) {
      line(over.empty() ? "scatter:" : fmt::format("{} {}:", phase.scatter ? "scatter over" : "over", over));
      ++indent_;
    }
    print_lets();
    for (const Reduction& r : phase.reductions) line(fmt::format("t{} = {} of {}", r.temp, to_string(r.kind), texts_[r.value.index].text));
    for (const Store& store : phase.stores) print_store(store);
    indent_ = outside;
  }

  void print_store(const Store& store) {
    const std::string guard = store.guard.valid() ? fmt::format("if {}: ", texts_[store.guard.index].text) : "";
    constexpr std::string_view kAssigned[] = {"=", "+=", "*=", "max=", "min="};
    line(fmt::format("{}{} {} {}", guard, element(store.buffer, store.index), kAssigned[static_cast<std::size_t>(store.combine)], texts_[store.value.index].text));
  }

  /// How often each expression is read in `phase`.
  void count_uses(const Phase& phase) {
    uses_.assign(kernel_.exprs.size(), 0);
    const auto use = [this](ExprId id) {
      if (id.valid()) ++uses_.at(id.index);
    };
    for (const Reduction& r : phase.reductions) use(r.value);
    for (const Store& store : phase.stores) {
      use(store.value);
      use(store.guard);
      for (const ExprId id : store.index) use(id);
    }
    for (std::size_t i = kernel_.exprs.size(); i-- > 0;) {
      const Expr& e = kernel_.exprs[ExprId(i)];
      if (not has(uses_, ExprId(i))) continue;
      for (int k = 0; k < info(e.op).operands; ++k) use(e.operands[k]);
      for (const ExprId id : e.index) use(id);
      use(e.guard);
    }
  }

  /// Fills texts_ for what the phase uses, in id order: no recursion, however deep the expression. Large shared ones become lines.
  void print_lets() {
    lets_before_ = let_count_;
    for (std::size_t i = 0; i < kernel_.exprs.size(); ++i) {
      if (not has(uses_, ExprId(i))) continue;
      Text text = text_of(kernel_.exprs[ExprId(i)]);
      if (uses_[i] > 1 and text.weight * static_cast<int>(std::min(uses_[i], 100U)) >= kLetWeight) {
        const std::string name = fmt::format("v{}", let_count_++);
        line(fmt::format("let {} = {}", name, text.text));
        text = {name};
      }
      texts_[i] = std::move(text);
    }
  }

  /// The text of `id`, in parentheses unless it binds at least as tightly as `least`.
  std::string inside(ExprId id, Binding least) const {
    const Text& text = texts_[id.index];
    return text.binding >= least ? text.text : "(" + text.text + ")";
  }
  std::string element(std::uint32_t buffer, const std::vector<ExprId>& index) const {
    if (index.empty()) return buffers_.at(buffer);
    std::string text = buffers_.at(buffer) + "[";
    for (std::size_t i = 0; i < index.size(); ++i) text += (i > 0 ? ", " : "") + texts_[index[i].index].text;
    return text + "]";
  }

  Text text_of(const Expr& e) const {
    Text text = bare_text(e);
    text.weight = info(e.op).operands > 0 ? 1 : 0;
    const auto add = [&](ExprId id) { text.weight += id.valid() ? texts_[id.index].weight : 0; };
    for (int i = 0; i < info(e.op).operands; ++i) add(e.operands[i]);
    for (const ExprId id : e.index) add(id);
    add(e.guard);
    return text;
  }

  Text bare_text(const Expr& e) const {
    switch (info(e.op).operands) {
      case 0: return leaf(e);
      case 1: return unary(e);
      case 2: return binary(e);
      default: return select(e);
    }
  }

  Text select(const Expr& e) const {
    const std::string condition = inside(e.operands[0], kOrBinding), yes = inside(e.operands[1], kOrBinding);
    return {fmt::format("{} ? {} : {}", condition, yes, inside(e.operands[2], kTernary)), kTernary};
  }

  Text leaf(const Expr& e) const {
    switch (e.op) {
      case ScalarOp::kConstFloat: return {number_text(e.dtype, e.float_value), std::signbit(e.float_value) ? kSignBinding : kAtom};
      case ScalarOp::kConstInt: return {integer_text(e), scalar_math::less(e.dtype, e.int_value, 0) ? kSignBinding : kAtom};
      case ScalarOp::kIndex: return {axes_.at(e.slot)};
      case ScalarOp::kSize: return {e.size.is_symbol() ? e.size.text() : "(" + e.size.text() + ")"};
      case ScalarOp::kTemp: return {fmt::format("t{}", e.slot)};
      default: break;
    }
    const std::string load = element(e.slot, e.index);
    return {e.guard.valid() ? fmt::format("({} if {} else 0)", load, texts_[e.guard.index].text) : load};
  }

  Text unary(const Expr& e) const {
    switch (e.op) {
      case ScalarOp::kNeg: return {"-" + inside(e.operands[0], kAtom), kSignBinding};
      case ScalarOp::kBitNot: return {"~" + inside(e.operands[0], kAtom), kSignBinding};
      case ScalarOp::kNot: return {"not " + inside(e.operands[0], kNotBinding), kNotBinding};
      case ScalarOp::kRoundTo: return {rounding_text(StorageRounding::unpacked(e.slot), texts_[e.operands[0].index].text)};
      case ScalarOp::kCast: return {fmt::format("{}({})", to_string(e.dtype), texts_[e.operands[0].index].text)};
      default: return {fmt::format("{}({})", info(e.op).name, texts_[e.operands[0].index].text)};
    }
  }

  Text binary(const Expr& e) const {
    const Expr& right = kernel_.exprs[e.operands[1]];
    const bool negative = right.op == ScalarOp::kConstInt and scalar_math::less(right.dtype, right.int_value, 0) and right.int_value != INT64_MIN;
    if (e.op == ScalarOp::kAdd and negative) return {fmt::format("{} - {}", inside(e.operands[0], kSumBinding), -right.int_value), kSumBinding};
    switch (e.op) {
      case ScalarOp::kAdd:
      case ScalarOp::kSub: return infix(e, kSumBinding, kProductBinding);
      case ScalarOp::kMul:
      case ScalarOp::kDiv:
      case ScalarOp::kFloorDiv:
      case ScalarOp::kMod: return infix(e, kProductBinding, kSignBinding);
      case ScalarOp::kFmod:
      case ScalarOp::kPow:
      case ScalarOp::kMax:
      case ScalarOp::kMin: return {fmt::format("{}({}, {})", info(e.op).name, texts_[e.operands[0].index].text, texts_[e.operands[1].index].text)};
      case ScalarOp::kOr: return infix(e, kOrBinding, kOrBinding);  // associative: a or (b or c) needs no parentheses
      case ScalarOp::kXor: return infix(e, kXorBinding, kXorBinding);
      case ScalarOp::kAnd: return infix(e, kAndBinding, kAndBinding);
      default: break;
    }
    const Binding binding = is_comparison(e.op) ? kCompareBinding : kBitsBinding;  // these do not chain: both sides bind tighter
    return {fmt::format("{} {} {}", inside(e.operands[0], kSumBinding), info(e.op).name, inside(e.operands[1], kSumBinding)), binding};
  }
  Text infix(const Expr& e, Binding binding, Binding right) const {
    return {fmt::format("{} {} {}", inside(e.operands[0], binding), info(e.op).name, inside(e.operands[1], right)), binding};
  }

  const Kernel& kernel_;
  std::set<std::string> taken_;
  std::vector<std::string> buffers_, axes_;
  std::vector<std::uint32_t> uses_;
  std::vector<Text> texts_;
  std::string out_;
  int indent_ = 0;
  int let_count_ = 0;
  int lets_before_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) { return KernelPrinter(kernel).print(); }

}  // namespace hone
