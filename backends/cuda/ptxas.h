// ptxas, NVIDIA's assembler, as a program of its own: it is part of the CUDA toolkit, which need not be there.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Where one is that takes our PTX (CUDA 11.8 or later): on PATH, or in the toolkit's folder (CUDA_HOME, /usr/local/cuda).
std::optional<std::string> find_ptxas();

/// 1108 of what `ptxas --version` says ("Cuda compilation tools, release 11.8, V11.8.89"); 0 if it says nothing of the kind.
int ptxas_release(std::string_view text);

/// The same of a ptxas; 0 if it cannot be asked.
int release_of(const std::string& ptxas);

struct Assembled {
  std::vector<std::byte> cubin;
  std::string report;  ///< of `ptxas -v`: registers, shared memory and spills of each kernel
};

/// Machine code of the GPU ("sm_90") for the PTX. Throws InternalError with what ptxas says when it refuses: the emitter wrote it.
Assembled assemble(const std::string& ptxas, std::string_view ptx, const std::string& gpu);

}  // namespace hone
