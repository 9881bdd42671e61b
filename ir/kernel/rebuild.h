// Kernels are changed by building them anew.
#pragma once

#include <functional>
#include <vector>

#include "ir/kernel/kernel.h"

namespace hone {

/// By expression: does a phase need it? The pool also holds what was built on the way.
std::vector<bool> reachable(const Kernel& kernel);

/// The kernel with its reachable expressions in a new pool, each as `change` gives it; `mapped` is the old one with operands, index and guard in the new pool.
/// Buffers, axes and the other parts of phases are copied.
Kernel rebuilt(const Kernel& kernel, const std::function<Expr(const Expr& old, Expr mapped)>& change);
/// The same where one expression becomes several: `change` adds them to the new pool and tells the last.
Kernel rebuilt(const Kernel& kernel, const std::function<ExprId(ExprPool& pool, const Expr& old, Expr mapped)>& change);

}  // namespace hone
