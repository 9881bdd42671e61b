// The one list of op names. It declares every op in namespace hone::op and yields all_ops(). Entries stand in ir/ops/*.cc.
#pragma once

#include "ir/op.h"

// clang-format off
#define HONE_OPS(X)                                                                                                                                   \
  /* elementwise.cc */                                                                                                                                \
  X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum) X(neg) X(abs) X(sign) X(exp) X(log) X(sqrt) X(tanh)                                        \
  X(sigmoid) X(relu) X(softplus) X(erf) X(floor) X(clip) X(cast) X(stop_gradient)                                                                     \
  /* functions.cc */                                                                                                                                  \
  X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(round) X(floor_mod) X(trunc_mod) X(gelu)                  \
  /* bitwise.cc */                                                                                                                                    \
  X(bit_and) X(bit_or) X(bit_xor) X(bit_not) X(shift_left) X(shift_right) X(bit_cast)                                                                 \
  /* compare.cc */                                                                                                                                    \
  X(equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_not) X(logical_and) X(logical_or) X(where) X(is_finite)                        \
  /* shape.cc */                                                                                                                                      \
  X(reshape) X(transpose) X(broadcast_to) X(concat) X(slice) X(pad) X(sizes)                                                                          \
  /* reduce.cc */                                                                                                                                     \
  X(reduce_sum) X(reduce_prod) X(reduce_max) X(reduce_min) X(reduce_mean) X(argmax) X(argmin)                                                         \
  /* index.cc */                                                                                                                                      \
  X(gather) X(scatter_add) X(gather_elements) X(scatter_elements) X(gather_nd) X(scatter_nd)                                                          \
  /* positions.cc */                                                                                                                                  \
  X(iota) X(pad_positions) X(one_hot) X(reverse_sequence)                                                                                             \
  /* gather_sum.cc */                                                                                                                                 \
  X(gather_sum) X(gather_sum_input_grad) X(gather_sum_weight_grad)                                                                                    \
  /* matmul.cc, conv.cc, pool.cc */                                                                                                                   \
  X(matmul) X(conv) X(conv_input_grad) X(conv_weight_grad) X(conv_weight_grad_parts)                                             \
  X(max_pool) X(max_pool_grad) X(max_pool_pick) X(window_position)                                                                                    \
  X(avg_pool) X(avg_pool_grad)                                                                                                                        \
  /* fold.cc */                                                                                                                                       \
  X(im2col) X(col2im)                                                                                                                                 \
  /* normalization.cc */                                                                                                                              \
  X(softmax) X(safe_softmax) X(log_softmax) X(layer_norm) X(rms_norm) X(batch_norm) X(batch_norm_train)                                                              \
  /* random.cc, cumulative.cc, linear_algebra.cc */                                                                                                  \
  X(random_event) X(random_uniform) X(random_normal) X(dropout) X(linear_recurrence) X(det) X(cofactors)                                             \
  /* resize.cc, sampling.cc, regions_of_interest.cc */                                                                                               \
  X(resize_taps) X(grid_sample) X(deform_conv) X(roi_taps) X(max_roi_pool)                                                                           \
  /* quantize.cc */                                                                                                                                   \
  X(quantize)                                                                                                                                         \
  /* attention.cc, fused_attention.cc */                                                                                                              \
  X(attention) X(fused_attention) X(fused_attention_grad)                                                                                             \
  /* recurrent.cc */                                                                                                                                  \
  X(recurrent) X(recurrent_grad)                                                                                                                      \
  /* regions.cc: control flow */                                                                                                                      \
  X(read_sizes) X(scan) X(while_trips) X(branch) X(library_call)                                                                                      \
  /* losses.cc: each gives the sum over the targets and the number of targets that count */                                                           \
  X(softmax_cross_entropy) X(cross_entropy) X(nll) X(mse) X(mae) X(huber) X(bce) X(bce_with_logits) X(hinge) X(squared_hinge) X(log_cosh) X(msle) X(mape) X(poisson) X(kl_divergence) X(cosine) X(given_loss) \
  /* metrics, also in losses.cc: sums over the targets */                                                                                             \
  X(accuracy) X(top_k_accuracy)                                                                                                                       \
  /* optimizers.cc */                                                                                                                                 \
  X(sgd) X(adam) X(adamw) X(nadam) X(rmsprop) X(adagrad) X(adamax) X(adadelta) X(lamb) X(lion) X(muon) X(adafactor)                                   \
  /* gradient.cc */                                                                                                                                    \
  X(gradient)                                                                                                                                         \
  /* collective.cc */                                                                                                                                 \
  X(all_reduce)                                                                                                                                       \
  /* sort.cc, select.cc: host functions */                                                                                                            \
  X(arg_top_k) X(unique_positions) X(nonzero_positions) X(non_max_suppression)
// clang-format on

namespace hone::op {
#define HONE_DECLARE_OP(name) extern const OpDef name;
HONE_OPS(HONE_DECLARE_OP)
#undef HONE_DECLARE_OP
}  // namespace hone::op
