// Random numbers: Philox4x32-10 (base/philox.h) of (seed, stream, step, element) as a scalar expression in integers, so that every backend draws the
// same bits, whatever the number of threads.
#include "ir/ops/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone {

namespace {

using Words = std::array<Scalar, 4>;

Scalar word(ExprPool& pool, std::uint64_t value) { return expr::constant_int(pool, DType::kU32, static_cast<std::int64_t>(value & 0xffffffff)); }
Scalar low(Scalar x) { return expr::cast(x, DType::kU32); }
Scalar high(Scalar x) { return low(expr::shift_right(x, expr::like(x, 32))); }

Words philox(ExprPool& pool, std::uint64_t key, Words c) {
  std::uint64_t k0 = key, k1 = key >> 32;
  const auto product = [&](Scalar x, std::int64_t factor) { return expr::cast(x, DType::kU64) * expr::constant_int(pool, DType::kU64, factor); };
  for (int round = 0; round < 10; ++round) {
    const Scalar a = product(c[0], 0xD2511F53), b = product(c[2], 0xCD9E8D57);
    c = {expr::bit_xor(expr::bit_xor(high(b), c[1]), word(pool, k0)), low(b), expr::bit_xor(expr::bit_xor(high(a), c[3]), word(pool, k1)), low(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// A number in [0, 1) with as many bits as `dtype` holds below 1.
Scalar unit(Scalar a, Scalar b, DType dtype) {
  if (dtype == DType::kF64) {
    const Scalar wide = expr::cast(a, DType::kU64);
    const Scalar bits = expr::bit_xor(expr::shift_left(wide, expr::like(wide, 21)), expr::cast(expr::shift_right(b, expr::like(b, 11)), DType::kU64));
    return expr::cast(expr::cast(bits, DType::kI64), DType::kF64) * 0x1p-53;
  }
  const int digits = dtype == DType::kF32 ? 24 : dtype == DType::kF16 ? 11 : 8;
  const Scalar bits = expr::shift_right(a, expr::like(a, 32 - digits));
  return expr::cast(expr::cast(bits, DType::kI32), DType::kF32) * std::ldexp(1.0, -digits);
}

/// An operand that is a whole number, or 0 where it is absent.
Scalar number_or_zero(Compute& c, std::size_t operand) {
  return c.has(operand) ? expr::cast(c.load(operand, {}), DType::kU64) : expr::constant_int(c.pool(), DType::kU64, 0);
}

/// The four words of the element at `at`. Its position is row-major; where the tensor is a part of the whole batch's, the axis of the samples is taken to be the
/// first one, so that only where the part begins needs to be known, not how long the whole is.
Words words_at(Compute& c, const Indices& at) {
  constexpr int kStepBits = 40;
  ExprPool& pool = c.pool();
  const std::size_t samples = c.has(1) ? static_cast<std::size_t>(c.attrs[kBatchAxis]) : at.size();
  Scalar element = c.has(1) ? expr::cast(c.load(1, {}), DType::kI64) + at[samples] : c.index_constant(0);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (i != samples) element = element * c.size(c.result_shape()[i]) + at[i];
  Scalar event = expr::constant_int(pool, DType::kU64, c.attrs[kStream] << kStepBits);
  if (c.has(0)) event = event + expr::cast(c.load(0, {}), DType::kU64);
  element = expr::cast(element, DType::kU64);
  return philox(pool, static_cast<std::uint64_t>(c.attrs[kSeed]), {low(element), high(element), low(event), high(event)});
}

/// `step`: which operand; the one behind it is `first`.
void require_key(Infer& infer, std::size_t step, std::size_t rank) {
  for (const std::size_t i : {step, step + 1})
    if (infer.has(i)) infer.require(infer.rank(i) == 0, Code::kShape, "step and first are scalars");
  const std::int64_t axis = infer.attrs[kBatchAxis];
  if (infer.has(step + 1)) infer.require(axis >= 0 and axis < static_cast<std::int64_t>(rank), Code::kBadAttribute, "batch_axis is no axis of the result");
}

std::vector<Type> infer_random(Infer& infer) {
  infer.require(is_float(infer.attrs[kTo]), Code::kType, "random numbers are floats");
  require_key(infer, 0, infer.attrs[kShape].size());
  return {{infer.attrs[kTo], infer.attrs[kShape]}};
}

constexpr std::string_view kResultIsRandom = "random numbers depend on no float";

Val draw(const OpDef& op, Builder& builder, Shape shape, DType dtype, std::int64_t seed) {
  const Val no_step;
  return builder.add(op, std::span(&no_step, 1), {kShape = std::move(shape), kTo = dtype, kSeed = seed, kStream = next_stream(builder.graph())})[0];
}

constexpr std::string_view kStep = "step?";

}  // namespace

bool draws(const OpDef& op) { return std::find(op.inputs.begin(), op.inputs.end(), kStep) != op.inputs.end(); }

std::size_t step_operand(const OpDef& op) { return static_cast<std::size_t>(std::find(op.inputs.begin(), op.inputs.end(), kStep) - op.inputs.begin()); }

std::int64_t next_stream(const Graph& graph) {
  std::int64_t next = 1;
  for (std::size_t i = 0; i < graph.node_count(); ++i) next = std::max(next, graph.node(NodeId(i)).attrs[kStream] + 1);
  return next;
}

Val random_uniform(Builder& builder, Shape shape, DType dtype, std::int64_t seed) { return draw(op::random_uniform, builder, std::move(shape), dtype, seed); }
Val random_normal(Builder& builder, Shape shape, DType dtype, std::int64_t seed) { return draw(op::random_normal, builder, std::move(shape), dtype, seed); }

namespace op {

constinit const OpDef random_event = {
    .name = "random_event",
    .doc = "y = 64 mixed bits of stream, event and number (whole numbers, 0 if absent), Philox's: a step for random_uniform, another one for each run or iteration `number`",
    .inputs = {"event?", "number?"},
    .attrs = {kStream},
    .infer =
        [](Infer& infer) {
          for (std::size_t i = 0; i < infer.count(); ++i) infer.require(not infer.has(i) or infer.rank(i) == 0, Code::kShape, "event and number are scalars");
          return std::vector<Type>{{DType::kI64, {}}};
        },
    .grad = no_gradient("its result is an integer"),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer({});
          const Scalar event = number_or_zero(c, 0), number = number_or_zero(c, 1);
          const Words words = philox(c.pool(), static_cast<std::uint64_t>(c.attrs[kStream]), {low(event), high(event), low(number), high(number)});
          const Scalar wide = expr::cast(words[0], DType::kU64);
          c.store(0, at, expr::cast(expr::bit_xor(expr::shift_left(wide, expr::like(wide, 32)), expr::cast(words[1], DType::kU64)), DType::kI64));
        },
};

constinit const OpDef random_uniform = {
    .name = "random_uniform",
    .doc = "y = random numbers, each uniform in [0, 1): a function of seed, stream, step (a scalar, 0 if absent; below 2^40, or a random_event) and the element's row-major "
           "position. With `first` the tensor is a part of the whole batch's, which begins there along batch_axis, and that axis counts as the first one of the position",
    .inputs = {"step?", "first?"},
    .attrs = {kShape, kTo, kSeed, kStream, kBatchAxis},
    .infer = infer_random,
    .grad = no_gradient(kResultIsRandom),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Words words = words_at(c, at);
          c.store(0, at, unit(words[0], words[1], c.result_type().dtype));
        },
};

constinit const OpDef random_normal = {
    .name = "random_normal",
    .doc = "y = random numbers, normal with mean 0 and deviation 1, by Box and Muller's formula from two uniform ones: a function of the same as random_uniform",
    .inputs = {"step?", "first?"},
    .attrs = {kShape, kTo, kSeed, kStream, kBatchAxis},
    .infer = infer_random,
    .grad = no_gradient(kResultIsRandom),
    .compute =
        [](Compute& c) {
          const Indices at = c.outer(c.result_shape());
          const Words words = words_at(c, at);
          const DType dtype = c.result_type().dtype == DType::kF64 ? DType::kF64 : DType::kF32;
          const Scalar a = 1.0 - unit(words[0], words[1], dtype), b = unit(words[2], words[3], dtype);  // a in (0, 1]: its logarithm is finite
          c.store(0, at, expr::sqrt(expr::log(a) * -2.0) * expr::cos(b * (2 * std::numbers::pi)));
        },
};

constinit const OpDef dropout = {
    .name = "dropout",
    .doc = "y = x / (1 - rate) where kept, else 0; kept: bool, each element true with probability 1 - rate, drawn as random_uniform does for the same step and first. "
           "rate is a scalar from 0 up to 1",
    .inputs = {"x", "rate", "step?", "first?"},
    .results = {"y", "kept"},
    .attrs = {kSeed, kStream, kBatchAxis},
    .infer =
        [](Infer& infer) {
          infer.require(is_float(infer.dtype(0)) and infer.dtype(1) == infer.dtype(0), Code::kType, "needs floats of one type");
          infer.require(infer.rank(1) == 0, Code::kShape, "the rate is a scalar");
          require_key(infer, 2, infer.rank(0));
          return std::vector<Type>{infer.type(0), {DType::kBool, infer.shape(0)}};
        },
    .lower =
        [](const Lower& l) {
          const Val x = l.x(0), rate = op::stop_gradient(l.x(1)), zero = l.builder.scalar(0, x.dtype()), one = l.builder.scalar(1, x.dtype());
          const Val key[] = {l.has(2) ? l.x(2) : Val(), l.has(3) ? l.x(3) : Val()};
          const DType drawn = x.dtype() == DType::kF64 ? DType::kF64 : DType::kF32;
          const Attrs stream = {kShape = x.shape(), kTo = drawn, kSeed = l.attrs[kSeed], kStream = l.attrs[kStream], kBatchAxis = l.attrs[kBatchAxis]};
          const Val kept = op::greater_equal(l.builder.add(op::random_uniform, key, stream)[0], hone::cast(rate, drawn)), share = one - rate;
          const Val scale = one / op::where(op::equal(share, zero), one, share);  // a rate of 1 keeps nothing: no 0 / 0
          return std::vector<Val>{op::where(kept, x, zero) * scale, kept};
        },
};

}  // namespace op
}  // namespace hone
