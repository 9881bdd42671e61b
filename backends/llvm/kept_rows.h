// Values that several phases work out at the same inner point and that cost more than a store and a load: kept on the stack for the length of a row.
#pragma once

#include <map>

#include "backends/llvm/point.h"

namespace hone {

class KeptRows {
 public:
  KeptRows(const Kernel& kernel, const Nest& nest, Point& point);

  /// To be called before the code of a phase is emitted: from here on the point stores what is kept where it is worked out first, and loads it later.
  void begin(std::size_t phase);

 private:
  struct Row {
    std::size_t first_phase;
    llvm::Value* elements;
  };
  void choose(const Kernel& kernel, std::int64_t length);
  llvm::Value* element(const Row& row, std::size_t phase);

  const Nest& nest_;
  Point& point_;
  std::map<ExprId, Row> rows_;
};

}  // namespace hone
