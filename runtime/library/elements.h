// Elements of float tensors as numbers, whatever type they are stored in: for calls that are played on the host.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/library/rows.h"

namespace hone {

std::size_t element_count_of(const TensorType& type);
double read_element(DType dtype, const void* data, std::size_t at);
/// Rounded once.
void write_element(DType dtype, void* data, std::size_t at, double value);
std::vector<float> read_all(const TensorType& type, const void* data);

}  // namespace hone
