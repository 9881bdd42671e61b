// What the two programs share that learn handwritten digits: the net and the recipe of Keras's first tutorial, and its data.
#pragma once

#include <string>

#include "api/hone.h"

namespace mnist {

using namespace hone;

// The tutorial's model ends in Softmax, and its loss says from_logits = true: softmax_cross_entropy on probabilities. That is done as asked, with a warning;
// cross_entropy would be the loss for probabilities.
constexpr const char* kRecipe = R"(
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
[metrics]
list = ["accuracy"]
[data]
scale = { image = 0.00392156862745098 }
[train]
convention = "keras"
)";

inline void build(nn::Model& model) {
  const nn::Value x = nn::relu(nn::dense(nn::flatten(model.input("image", {28, 28})), 128));
  model.output("probabilities", nn::softmax(nn::dense(x, 10)));
}

struct Digits {
  Dataset train, valid;  ///< 8,000 and 2,000 examples of x, a picture, and y, the digit
};

/// `folder` holds images-idx3-ubyte.gz and labels-idx1-ubyte.gz of 10,000 digits.
inline Digits read_digits(const std::string& folder) {
  const Dataset all = Dataset::from_files({"x=" + folder + "/images-idx3-ubyte.gz", "y=" + folder + "/labels-idx1-ubyte.gz"});
  return {all.take(8000), all.skip(8000)};
}

}  // namespace mnist
