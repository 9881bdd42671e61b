// A convolution and its two gradients as kernels, of the ops' own formulas.
#pragma once

#include <array>
#include <string>

#include "ir/kernel/compute.h"
#include "ir/parse.h"

namespace hone {

struct Convolution {
  std::string x, w, y;  ///< shapes: "[N,8,6,7]"
  std::string window, attributes, spatial;
};

/// y from x and w; x from y and w; w from x and y.
inline std::array<Kernel, 3> convolution_kernels(const Convolution& c) {
  const auto kernel = [&c](const std::string& op, const std::string& a, const std::string& b, const std::string& result, const std::string& more) {
    const Graph graph = parse_graph("graph g(input %a: f32" + a + ", input %b: f32" + b + ") {\n%1: f32" + result + " = " + op + "(%a, %b) {" + c.attributes + more + "}\noutput \"y\" %1\n}\n", "test");
    Kernel made = kernel_of(graph, NodeId(0));
    made.name = op;
    return made;
  };
  return {kernel("conv", c.x, c.w, c.y, ""), kernel("conv_input_grad", c.y, c.w, c.x, ", spatial=" + c.spatial), kernel("conv_weight_grad", c.x, c.y, c.w, ", kernel=" + c.window)};
}

}  // namespace hone
