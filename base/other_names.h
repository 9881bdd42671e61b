// What other frameworks call what Hone has: for the hint beside a name that nobody here knows.
#pragma once

#include <string>
#include <string_view>

namespace hone {

/// What to write in place of `name`, which Keras, PyTorch or their kin have, as a sentence; "" where nothing is known of it. `place` is where it stands: a key of the recipe that takes such names
/// ("loss.kind", "metrics.list"), "[schedule]" for a key of a section, "recipe" for a key of any or a section itself, "--target", "--device", or "command". Spelling does not count: SparseCategoricalCrossentropy is sparse_categorical_crossentropy.
std::string hint_for_other_name(std::string_view place, std::string_view name);

/// The flags that may be meant by `flag`, with blanks between: "--batch" for "--batch_size". "" where nothing is known of it.
std::string_view flags_for_other_name(std::string_view flag);

}  // namespace hone
