// What replicas exchange.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

constinit const OpDef all_reduce = {
    .name = "all_reduce",
    .doc = "y = the sum of x over all replicas; x itself for one replica. Nodes of one bucket travel together",
    .inputs = {"x"},
    .attrs = {kBucket},
    .infer = like_input<0>,
    .grad = no_gradient("it stands after the backward pass"),
    .collective = true,
};

}  // namespace hone::op
