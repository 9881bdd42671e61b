#include "runtime/device/sum_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace hone::cuda {

namespace {

struct Element {
  DType dtype;
  std::string_view moved, summed, add;  ///< how it is loaded and stored; as what it is added up, and how
};
constexpr Element kElements[] = {
    {DType::kF32, "f32", "f32", "add.rn.f32"}, {DType::kF64, "f64", "f64", "add.rn.f64"}, {DType::kBF16, "b16", "f32", "add.rn.f32"}, {DType::kI32, "s32", "s32", "add.s32"}, {DType::kI64, "s64", "s64", "add.s64"},
};

}  // namespace

std::string sum_ptx(DType dtype, int terms, int sums) {
  const auto* const element = std::ranges::find(kElements, dtype, &Element::dtype);
  HONE_CHECK(element != std::end(kElements) and terms >= 1 and terms <= kMostTerms and sums >= 1 and sums <= kMostTerms, fmt::format("a sum of {} terms of {}", terms, to_string(dtype)));
  const bool is_narrow = dtype == DType::kBF16;
  std::string text = fmt::format(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry {}(", kSumKernel);
  for (int i = 0; i < terms + sums; ++i) text += fmt::format(".param .u64 place{}, ", i);
  text += ".param .s64 begin, .param .s64 end)\n{\n";
  text += fmt::format(".reg .pred %done;\n.reg .b32 %thread, %block, %threads, %blocks;\n.reg .b64 %i, %end, %step, %offset, %at, %place<{}>;\n.reg .{} %v<{}>;\n.reg .b16 %h, %zero;\n", terms + sums, element->summed, terms);
  for (int i = 0; i < terms + sums; ++i) text += fmt::format("ld.param.u64 %place{0}, [place{0}];\ncvta.to.global.u64 %place{0}, %place{0};\n", i);
  text +=
      "ld.param.s64 %i, [begin];\nld.param.s64 %end, [end];\nmov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\nmov.u32 %threads, %ntid.x;\nmov.u32 %blocks, %nctaid.x;\n"
      "mad.wide.u32 %i, %block, %threads, %i;\ncvt.u64.u32 %offset, %thread;\nadd.s64 %i, %i, %offset;\nmul.wide.u32 %step, %threads, %blocks;\nmov.b16 %zero, 0;\n"
      "next:\nsetp.ge.s64 %done, %i, %end;\n@%done bra finished;\n";
  text += fmt::format("mul.lo.s64 %offset, %i, {};\n", size_of(dtype));
  for (int i = 0; i < terms; ++i) {
    text += fmt::format("add.s64 %at, %place{}, %offset;\n", i);
    text += is_narrow ? fmt::format("ld.global.b16 %h, [%at];\nmov.b32 %v{}, {{%zero, %h}};\n", i) : fmt::format("ld.global.{} %v{}, [%at];\n", element->moved, i);
  }
  std::vector<int> level;
  for (int i = 0; i < terms; ++i) level.push_back(i);
  while (level.size() > 1) {  // one without a neighbour waits
    std::vector<int> next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      if (i + 1 < level.size()) text += fmt::format("{0} %v{1}, %v{1}, %v{2};\n", element->add, level[i], level[i + 1]);
      next.push_back(level[i]);
    }
    level = std::move(next);
  }
  if (is_narrow) text += "cvt.rn.bf16.f32 %h, %v0;\n";
  for (int i = 0; i < sums; ++i) text += fmt::format("add.s64 %at, %place{}, %offset;\nst.global.{} [%at], {};\n", terms + i, element->moved, is_narrow ? "%h" : "%v0");
  return text + "add.s64 %i, %i, %step;\nbra next;\nfinished:\nret;\n}\n";
}

}  // namespace hone::cuda
