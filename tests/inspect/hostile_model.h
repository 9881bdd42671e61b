// A model in which everything is called by hostile_names(), and its plan.
#pragma once

#include "inspect/contents.h"
#include "tests/support/temp_folder.h"

namespace hone::test {

/// y = x * w0 + w1 * ...: as many weights as there are names; weights, nodes, values, input and output are called by them. hostile.onnx and hostile.hone, which trains it, are in the folder.
struct Hostile {
  TempFolder folder;
  Contents model, plan;

  Hostile();
};

}  // namespace hone::test
