// Attention of which a library keeps nothing but a number a query: from that the backward pass makes the weights again.
#include <limits>

#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"

namespace hone::op {

namespace {

DType wide(DType dtype) { return info(dtype).arithmetic; }

/// query [B,H,S,D], key [B,H,T,D], value [B,H,T,E].
void require_heads(Infer& infer) {
  for (std::size_t i = 0; i < 3; ++i) {
    infer.require(is_float(infer.dtype(i)) and infer.dtype(i) == infer.dtype(0), Code::kType, "query, key and value must be floats of one type");
    infer.require(infer.rank(i) == 4, Code::kShape, "query, key and value have four axes: [batch, heads, positions, features]");
  }
  for (const std::size_t axis : {0, 1}) {
    infer.unify(infer.shape(0)[axis], infer.shape(1)[axis], "batches, or heads, of query and key");
    infer.unify(infer.shape(0)[axis], infer.shape(2)[axis], "batches, or heads, of query and value");
  }
  infer.unify(infer.shape(0)[3], infer.shape(1)[3], "features of query and key");
  infer.unify(infer.shape(1)[2], infer.shape(2)[2], "positions of key and value");
}

void require_bias(Infer& infer, std::size_t i) {
  if (not infer.has(i)) return;
  const Shape scores = {infer.shape(0)[0], infer.shape(0)[1], infer.shape(0)[2], infer.shape(1)[2]};
  infer.require(infer.dtype(i) == wide(infer.dtype(0)), Code::kType, "the bias must have the type of the scores");
  infer.require(infer.rank(i) == 4 and infer.broadcast(scores, infer.shape(i)) == scores, Code::kShape, "the bias must have four axes and broadcast to the scores");
}

Type statistics_type(const Infer& infer) { return {wide(infer.dtype(0)), {infer.shape(0)[0], infer.shape(0)[1], infer.shape(0)[2], 1}}; }
Type result_type(const Infer& infer) { return {product_type(infer), {infer.shape(0)[0], infer.shape(0)[1], infer.shape(0)[2], infer.shape(2)[3]}}; }

std::vector<Type> infer_attention(Infer& infer) {
  require_heads(infer);
  require_bias(infer, 3);
  return {result_type(infer), statistics_type(infer)};
}

std::vector<Type> infer_attention_grad(Infer& infer) {
  require_heads(infer);
  require_bias(infer, 6);
  for (const std::size_t i : {3, 4})
    infer.require(infer.dtype(i) == infer.dtype(0) and infer.shape(i) == result_type(infer).shape, Code::kShape, "y and dy must be what attention gives for query and value");
  infer.require(infer.type(5) == statistics_type(infer), Code::kShape, "the statistics must be those of attention");
  std::vector<Type> types;
  for (std::size_t i = 0; i < 3; ++i) types.push_back({product_type(infer), infer.shape(i)});
  return types;
}

/// The product in the type in which its terms are added up.
Val wide_product(Val a, Val b, Attrs attrs) {
  attrs.set(kTo = wide(a.dtype()));
  return op::matmul(a, b, std::move(attrs));
}

/// What the softmax is taken of.
Val scores_of(Val query, Val key, Val bias, const Attrs& attrs) {
  Val scores = wide_product(query, key, {kTransB = true}) * attrs[kScale];
  if (bias.valid()) scores = scores + bias;
  if (not attrs[kCausal]) return scores;
  const auto position = [&](Shape shape, std::int64_t axis) { return query.builder().add(op::iota, {}, {kShape = std::move(shape), kAxis = axis})[0]; };
  const Val seen = op::less_equal(position({1, scores.shape()[3]}, 1), position({scores.shape()[2], 1}, 0));
  return op::where(seen, scores, query.builder().scalar(-std::numeric_limits<double>::infinity(), scores.dtype()));
}

std::vector<Val> lower_attention(const Lower& l) {
  const Val query = l.x(0), scores = scores_of(query, l.x(1), l.has(3) ? l.x(3) : Val(), l.attrs);
  const Attrs over_keys = {kAxes = Ints{3}, kKeepDims = true};
  const Val largest = op::reduce_max(scores, over_keys), exponentials = op::exp(scores - largest), total = op::reduce_sum(exponentials, over_keys);
  const Val weights = hone::cast(exponentials / total, query.dtype());
  return {op::matmul(weights, l.x(2), {kTo = l.attrs.has(kTo) ? l.attrs[kTo] : query.dtype()}), largest + op::log(total)};
}

struct Operands {
  Val query, key, value, y, dy, statistics, bias;
};
struct Gradients {
  Val query, key, value, scores;
};

/// `dstatistics`: what flows into these, or nothing.
Gradients gradients_of(const Operands& x, Val dstatistics, const Attrs& attrs) {
  const DType narrow = x.query.dtype(), to = attrs.has(kTo) ? attrs[kTo] : narrow;
  const Val weights = op::exp(scores_of(x.query, x.key, x.bias, attrs) - x.statistics);
  Val shared = op::reduce_sum(hone::cast(x.dy, wide(narrow)) * hone::cast(x.y, wide(narrow)), {kAxes = Ints{3}, kKeepDims = true});
  if (dstatistics.valid()) shared = shared - dstatistics;
  const Val scores = weights * (wide_product(x.dy, x.value, {kTransB = true}) - shared);
  const Val products = hone::cast(scores * attrs[kScale], narrow);
  return {.query = op::matmul(products, x.key, {kTo = to}),
          .key = op::matmul(products, x.query, {kTransA = true, kTo = to}),
          .value = op::matmul(hone::cast(weights, narrow), x.dy, {kTransA = true, kTo = to}),
          .scores = scores};
}

/// In one node, but for what only a bias that is trained and statistics that are read ask for.
void differentiate_attention(Grad& g) {
  const Operands x = {.query = g.x(0), .key = g.x(1), .value = g.x(2), .y = g.y(), .dy = hone::cast(g.dy(), g.x(0).dtype()), .statistics = g.y(1), .bias = g.has(3) ? g.x(3) : Val()};
  const bool wants_scores = g.has(3) and g.wants(3);
  if (not wants_scores and not g.has_dy(1)) {
    const std::vector<Val> gradients = op::fused_attention_grad.build_all({x.query, x.key, x.value, hone::cast(x.y, x.query.dtype()), x.dy, x.statistics, x.bias}, g.attrs);
    for (std::size_t i = 0; i < gradients.size(); ++i) g.flow(i, hone::cast(gradients[i], x.query.dtype()));
    return;
  }
  const Gradients gradients = gradients_of(x, g.has_dy(1) ? g.dy(1) : Val(), g.attrs);
  const Val made[] = {gradients.query, gradients.key, gradients.value};
  for (std::size_t i = 0; i < std::size(made); ++i) g.flow(i, hone::cast(made[i], x.query.dtype()));
  if (wants_scores) g.flow(3, gradients.scores);
}

}  // namespace

constinit const OpDef fused_attention = {
    .name = "fused_attention",
    .doc = "y = weights * value with weights = softmax(scores) over the key's positions and scores = scale * query * key^T + bias; where `causal`, a query sees the keys up to its own position alone. "
           "statistics[b,h,s,0] = log(sum of exp(scores)), so that weights = exp(scores - statistics). Operands of a storage type are multiplied as they are, sums and scores are in the type that they are widened "
           "to, weights are rounded to theirs. A query all of whose scores are -inf gives what the target makes of it, NaN or numbers",
    .inputs = {"query", "key", "value", "bias?"},
    .results = {"y", "statistics"},
    .attrs = {kScale, kCausal, kTo},
    .infer = infer_attention,
    .grad = differentiate_attention,
    .lower = lower_attention,
    .keep = true,
    .whole = true,
};

constinit const OpDef fused_attention_grad = {
    .name = "fused_attention_grad",
    .doc = "the gradients of fused_attention's y, from y and its statistics: with dscores = weights * (dy * value^T - sum over features of dy * y), dquery = scale * dscores * key, "
           "dkey = scale * dscores^T * query, dvalue = weights^T * dy",
    .inputs = {"query", "key", "value", "y", "dy", "statistics", "bias?"},
    .results = {"dquery", "dkey", "dvalue"},
    .attrs = {kScale, kCausal, kTo},
    .infer = infer_attention_grad,
    .lower =
        [](const Lower& l) {
          const Gradients made = gradients_of({l.x(0), l.x(1), l.x(2), l.x(3), l.x(4), l.x(5), l.has(6) ? l.x(6) : Val()}, Val(), l.attrs);
          return std::vector<Val>{made.query, made.key, made.value};
        },
    .whole = true,
};

}  // namespace hone::op
