// Ops that sort.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

constinit const OpDef arg_top_k = {
    .name = "arg_top_k",
    .doc = "positions (i64) of the `sizes` largest elements along the axis, or the smallest, in order; of equal ones the first; NaN counts as the largest",
    .inputs = {"x"},
    .attrs = {kAxis, kSizes, kSmallest},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
          infer.require(infer.attrs[kSizes].size() == 1, Code::kBadAttribute, "sizes must be one number");
          const Dim k = infer.attrs[kSizes][0];
          Type type{DType::kI64, infer.shape(0)};
          Dim& extent = type.shape[static_cast<std::size_t>(infer.attrs[kAxis])];
          infer.require(not k.is_constant() or not extent.is_constant() or (k.value() >= 0 and k.value() <= extent.value()), Code::kShape,
                        "more elements are asked for than the axis has");
          extent = k;
          return std::vector<Type>{type};
        },
    .grad = no_gradient("positions are integers"),
    .host = &host::arg_top_k,
};

constinit const OpDef unique_positions = {
    .name = "unique_positions",
    .doc = "the distinct slices of x along the axis, compared element by element (NaN equals NaN and counts as the largest), ascending if sorted, else as they come. first: "
           "where each comes first; inverse: which of them each slice is; counts: how often each comes; first and counts go on with 0s. count[1]: how many they are",
    .inputs = {"x"},
    .results = {"first", "inverse", "counts", "count"},
    .attrs = {kAxis, kSorted},
    .infer =
        [](Infer& infer) {
          infer.require(infer.attrs[kAxis] >= 0 and infer.attrs[kAxis] < static_cast<std::int64_t>(infer.rank(0)), Code::kBadAttribute, "axis out of range");
          const Type positions{DType::kI64, {infer.shape(0)[static_cast<std::size_t>(infer.attrs[kAxis])]}};
          return std::vector<Type>{positions, positions, positions, {DType::kI64, {1}}};
        },
    .grad = no_gradient("positions are integers"),
    .host = &host::unique_positions,
};

}  // namespace hone::op
