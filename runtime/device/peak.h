// What a machine or a device can do at most: the two lines of a roofline.
#pragma once

namespace hone {

struct MachinePeak {
  double bytes_per_second = 0;  ///< from and to memory, out of reach of the caches: a = b + s * c over long arrays
  double flops_per_second = 0;  ///< f32 multiplications and additions, fused where the processor can, on registers
};

/// Of this machine, measured: by so many threads at the same time; takes about a quarter of a second, and 192 MiB for as long. Other programs that run make it less.
MachinePeak measure_peak(int threads);

}  // namespace hone
