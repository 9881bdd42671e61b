// A row's call in words: "cublaslt.matmul(f32[64,784], f32[784,10]) -> f32[64,10] ta=[1]". All that it is made from is there.
#pragma once

#include <string>

#include "runtime/library/rows.h"

namespace hone {

std::string text_of(const LibraryRow& row, const LibrarySpec& spec);

}  // namespace hone
