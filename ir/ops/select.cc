// Ops that choose elements, as many as the data say: results are as large as they can become, and a count tells how much of them is meant.
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"

namespace hone::op {

constinit const OpDef nonzero_positions = {
    .name = "nonzero_positions",
    .doc = "positions (i64) of the elements of a vector that are not 0, in order, then 0s; count[1] says how many they are",
    .inputs = {"x"},
    .results = {"positions", "count"},
    .infer =
        [](Infer& infer) {
          infer.require(infer.rank(0) == 1, Code::kShape, "the operand must be a vector");
          return std::vector<Type>{{DType::kI64, infer.shape(0)}, {DType::kI64, {1}}};
        },
    .grad = no_gradient("positions are integers"),
    .host = &host::nonzero_positions,
};

constinit const OpDef non_max_suppression = {
    .name = "non_max_suppression",
    .doc = "of boxes[b,n,4] with scores[b,c,n], for each b and c in order of falling scores (of equal ones the first): those whose score is above score_threshold, no NaN, and that "
           "overlap no box chosen before by more than iou_threshold, at most max_boxes of them. y[b*c*n,3] holds their (b, c, n), then 0s; count[1] says how many they are. "
           "A box is y1, x1, y2, x2 of two opposite corners, or, with center_box, x, y, width, height. Absent: max_boxes and iou_threshold are 0, and every score will do",
    .inputs = {"boxes", "scores", "max_boxes?", "iou_threshold?", "score_threshold?"},
    .results = {"y", "count"},
    .attrs = {kCenterBox},
    .infer =
        [](Infer& infer) {
          infer.require(infer.dtype(0) == DType::kF32 and infer.dtype(1) == DType::kF32, Code::kType, "boxes and scores must be f32");
          infer.require(infer.rank(0) == 3 and infer.rank(1) == 3 and infer.shape(0)[2].is_constant(4), Code::kShape, "needs boxes[b,n,4] and scores[b,c,n]");
          infer.unify(infer.shape(0)[0], infer.shape(1)[0], "batch sizes");
          infer.unify(infer.shape(0)[1], infer.shape(1)[2], "numbers of boxes");
          for (std::size_t i = 2; i < infer.count(); ++i)
            infer.require(not infer.has(i) or (element_count(infer.shape(i)).is_constant(1) and infer.dtype(i) == (i == 2 ? DType::kI64 : DType::kF32)), Code::kType,
                          "max_boxes must be one i64, the thresholds one f32 each");
          return std::vector<Type>{{DType::kI64, {element_count(infer.shape(1)), 3}}, {DType::kI64, {1}}};
        },
    .grad = no_gradient("it chooses boxes by comparing them"),
    .host = &host::non_max_suppression,
};

}  // namespace hone::op
