// Formulas in ordinary ops that entries, importers and layers share.
#pragma once

#include <span>
#include <vector>

#include "ir/builder.h"

namespace hone {

/// [C] as [1,C,1,...] of `rank` axes: what goes with x[N,C,...].
Val per_channel(Val vector, std::size_t rank);

/// x with `axis` behind all others, which keep their order.
Val move_axis_last(Val x, std::size_t axis);

/// The mean over `axes`, which stay with extent 1.
Val mean_over(Val x, const Ints& axes);

/// What a normalization over `axes` is made of; mean and inverse keep the axes with extent 1.
struct Moments {
  Val mean;
  Val deviation;  ///< x - mean
  Val inverse;    ///< 1 / sqrt(mean of the squared deviation + epsilon)
};
Moments moments(Val x, const Ints& axes, double epsilon);

/// What a batch that is normalized per channel (axis 1) has been seen to be.
struct BatchStatistics {
  Moments moments;
  Val variance;                ///< mean of the squared deviation; the axes stay with extent 1
  Val count, count_less_one;   ///< of the elements of a channel; the latter at least 1. Of a type that holds them
};
/// The results of batch_norm_train for its operands and attributes.
std::vector<Val> batch_norm_results(std::span<const Val> operands, const Attrs& attributes, const BatchStatistics& statistics);

/// 1 / sqrt(mean of x^2 over `axes` + epsilon); the axes stay with extent 1.
Val inverse_rms(Val x, const Ints& axes, double epsilon);

/// scale * query * key^T: [B,H,S,T] of query [B,H,S,D] and key [B,G,T,D], each head of which serves H / G consecutive heads of the query. Both are scaled
/// before by the root, which keeps the product in range.
Val attention_scores(Val query, Val key, double scale);

/// What sums over targets are divided by for their mean: their count, or what their weights add up to; 1 where that is 0, as no target counts there and all gradients are 0.
Val target_divisor(Val count);

/// weights * value: [B,H,S,E] of weights [B,H,S,T] and value [B,G,T,E].
Val attend(Val weights, Val value);

}  // namespace hone
