// How the host plays products of a device's library that do something with a vector as well: add a bias, or sum the gradient of one.
#pragma once

#include <memory>

#include "runtime/library/rows.h"

namespace hone {

// As LibraryRow::create.
std::unique_ptr<LibraryCall> create_matmul_with_bias(const LibrarySpec& spec);
std::unique_ptr<LibraryCall> create_matmul_with_bias_gradient(const LibrarySpec& spec);

}  // namespace hone
