// What replicas exchange.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

constinit const OpDef all_reduce = {
    .name = "all_reduce",
    .doc = "the sum of each operand over all replicas; the operand itself for one replica. What is in one bucket travels together",
    .inputs = {"x..."},
    .results = {"y..."},
    .attrs = {kBucket},
    .infer =
        [](Infer& infer) {
          std::vector<Type> types;
          for (std::size_t i = 0; i < infer.count(); ++i) types.push_back(infer.type(i));
          return types;
        },
    .grad =
        [](Grad& g) {  // what every replica's loss says of the sum is said of its own term: again a sum over all replicas
          std::vector<Val> dys;
          for (std::size_t i = 0; i < g.count(); ++i) dys.push_back(g.dy(i));
          const std::vector<Val> sums = op::all_reduce.build_all(dys, {kBucket = g.attrs[kBucket]});
          for (std::size_t i = 0; i < sums.size(); ++i) g.flow(i, sums[i]);
        },
    .collective = true,
};

}  // namespace hone::op
