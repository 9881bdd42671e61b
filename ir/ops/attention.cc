// Scaled dot-product attention.
#include <limits>

#include "ir/ops/formulas.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

namespace {

/// query [B,H,S,D], key [B,G,T,D], value [B,G,T,E] and a bias that broadcasts to [B,H,S,T]; H is a multiple of G.
std::vector<Type> infer_attention(Infer& infer) {
  for (std::size_t i = 0; i < infer.count(); ++i)
    infer.require(is_float(infer.dtype(i)) and infer.dtype(i) == infer.dtype(0), Code::kType, "all operands must be floats of one type");
  for (std::size_t i = 0; i < 3; ++i) infer.require(infer.rank(i) == 4, Code::kShape, "query, key and value have four axes: [batch, heads, positions, features]");
  const Shape &query = infer.shape(0), &key = infer.shape(1), &value = infer.shape(2);
  infer.unify(query[0], key[0], "batches of query and key");
  infer.unify(query[0], value[0], "batches of query and value");
  infer.unify(key[1], value[1], "heads of key and value");
  infer.unify(query[3], key[3], "features of query and key");
  infer.unify(key[2], value[2], "positions of key and value");
  const Dim groups = floordiv(query[1], key[1]);
  infer.require(groups * key[1] == query[1], Code::kShape, "the query's heads are no multiple of the key's");
  const Shape scores = {query[0], query[1], query[2], key[2]};
  if (infer.has(3)) infer.require(infer.rank(3) <= 4 and infer.broadcast(scores, infer.shape(3)) == scores, Code::kShape, "the bias must broadcast to the scores");
  const DType dtype = infer.dtype(0);
  return {{dtype, {query[0], query[1], query[2], value[3]}}, {dtype, scores}, {dtype, scores}};
}

std::vector<Val> lower_attention(const Lower& l) {
  const Val query = l.x(0), scores = attention_scores(query, l.x(1), l.attrs[kScale]);
  const double softcap = l.attrs[kSoftcap];
  Val biased = softcap > 0 ? op::tanh(scores / softcap) * softcap : scores, nothing;
  const Val zero = l.builder.scalar(0, query.dtype());
  if (l.has(3)) {
    const Val lowest = l.builder.scalar(-std::numeric_limits<double>::infinity(), query.dtype());
    const Ints last = {static_cast<std::int64_t>(l.x(3).rank()) - 1};
    nothing = l.x(3).rank() == 0 ? op::equal(l.x(3), lowest) : op::equal(op::reduce_max(l.x(3), {kAxes = last, kKeepDims = true}), lowest);
    biased = op::where(nothing, zero, biased + l.x(3));
  }
  const DType type = l.attrs.has(kSoftmaxType) ? l.attrs[kSoftmaxType] : query.dtype();
  Val weights = hone::cast(op::softmax(hone::cast(biased, type), {kAxis = 3}), query.dtype());
  if (l.has(3)) weights = op::where(nothing, zero, weights);
  return {attend(weights, l.x(2)), scores, weights};
}

}  // namespace

constinit const OpDef attention = {
    .name = "attention",
    .doc = "weights = softmax(capped scores + bias) over the key's positions, y = weights * value, with scores = scale * query * key^T and, unless softcap is 0, "
           "softcap * tanh(scores / softcap). Each head of key and value serves as many consecutive heads of the query as there are to one. A query whose bias is "
           "-inf throughout attends to nothing: its weights and its y are 0",
    .inputs = {"query", "key", "value", "bias?"},
    .results = {"y", "scores", "weights"},
    .attrs = {kScale, kSoftcap, kSoftmaxType},
    .infer = infer_attention,
    .lower = lower_attention,
};

}  // namespace hone::op
