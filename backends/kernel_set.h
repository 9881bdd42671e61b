// The kernels of one program: brought to a canonical form, so that equal ones are emitted once, whatever tensors they work on.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace hone {

/// How one call of a kernel of the set is made.
struct KernelCall {
  std::string symbol;
  std::vector<std::uint32_t> buffers;  ///< which of the original kernel's buffers are passed, in order
  std::vector<Dim> sizes;
  Dim range;
  Dim work;
};

/// How much of a kernel's KernelCall::work is arithmetic, in additions (cost_model.h): that counts index arithmetic and loads, too.
double arithmetic_share(const Kernel& kernel);

class KernelSet {
 public:
  /// Adds the kernel unless an equal one is there, and says how to call it.
  KernelCall add(Kernel kernel);
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const Kernel& find(const std::string& symbol) const;
  /// Drops the kernels that nothing calls any more.
  void keep(const std::set<std::string>& symbols);

 private:
  std::vector<Kernel> kernels_;
  std::map<std::string, std::string> symbols_;  // text without the name -> symbol
  std::size_t added_ = 0;
};

/// Without the buffers that nothing loads from or stores to, those that are read before those that are written; `kept` receives the numbers of those that stay.
Kernel without_unused_buffers(const Kernel& kernel, std::vector<std::uint32_t>& kept);

/// An elementwise kernel over tensors of one shape (and scalars) as one loop over all elements of symbolic size `n`; any other kernel as it is.
/// `sizes` receives what the new symbols stand for.
Kernel flattened(const Kernel& kernel, std::map<std::string, Dim, std::less<>>& sizes);

/// A kernel that flattened() made, over tensors of shape `shape` again; any other as it is.
Kernel unflattened(const Kernel& kernel, const Shape& shape);

}  // namespace hone
