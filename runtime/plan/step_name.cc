#include "runtime/plan/step_name.h"

namespace hone {

namespace {

struct Namer {
  std::string operator()(const plan::KernelStep& step) const { return step.symbol; }
  std::string operator()(const plan::LibraryStep& step) const { return step.epilogue ? step.row + " and " + step.epilogue->kernel.symbol : step.row; }
  std::string operator()(const plan::HostStep& step) const { return step.function; }
  std::string operator()(const plan::CopyStep&) const { return "copy"; }
  std::string operator()(const plan::AllReduceStep& step) const { return std::string(plan::to_string(step.operation)); }
  std::string operator()(const plan::ReadSizesStep&) const { return "read_sizes"; }
  std::string operator()(const plan::RegionStep& step) const {
    using Kind = plan::RegionStep::Kind;
    if (step.kind == Kind::kCall) return step.row;
    return step.kind == Kind::kScan ? "scan" : step.kind == Kind::kWhile ? "while" : "branch";
  }
};

}  // namespace

std::string name_of(const plan::Step& step) { return std::visit(Namer{}, step.what); }

}  // namespace hone
