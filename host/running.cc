// Recurrences along an axis.
#include <type_traits>

#include "base/by_dtype.h"
#include "host/rules.h"
#include "host/rows.h"

namespace hone::host {

namespace {

void run_linear_recurrence(const HostAttributes& attributes, std::span<const HostTensor> operands, std::span<const HostTensor> results, HostScratch&) {
  const Rows rows(operands[0].shape, attributes.integer("axis"));
  const bool has_factor = operands.size() > 1 and operands[1].data != nullptr;
  const bool reverse = attributes.flag("reverse");
  by_dtype(operands[0].dtype, [&]<typename T>() {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;  // unsigned: wraps
    const T* x = operands[0].elements<T>().data();
    const T* factor = has_factor ? operands[1].elements<T>().data() : nullptr;
    T* y = results[0].elements<T>().data();
    for (std::int64_t row = 0; row < rows.count; ++row) {
      Wide value{};
      for (std::int64_t j = 0; j < rows.length; ++j) {
        const std::int64_t at = rows.start(row) + (reverse ? rows.length - 1 - j : j) * rows.stride;
        if (j == 0) value = static_cast<Wide>(x[at]);
        else value = (factor == nullptr ? value : value * static_cast<Wide>(factor[at])) + static_cast<Wide>(x[at]);
        y[at] = static_cast<T>(value);
      }
    }
  });
}

}  // namespace

constinit const HostRules linear_recurrence_rules = {
    .call = {.operands = {{.name = "x", .types = kHeldTypes}, {.name = "factor", .like = 0, .optional = true}}, .results = {{.name = "y", .like = 0}}, .attributes = {kAxisRule, flag_rule("reverse")}},
    .fits = [](const HostAttributes& attributes, HostTypes operands, HostTypes results) {
      const HostTensor& x = *operands[0];
      return first_of({why_no_axis(attributes, x), why_no_same_shape("factor", at(operands, 1), x), why_no_same_shape("y", results[0], x)});
    }};

constinit const HostFunction linear_recurrence = {
    .name = "linear_recurrence",
    .doc = "y[i] = y[i-1] * factor[i] + x[i] along `axis`, from its end if `reverse`; y[0] = x[0]; factor is 1 where absent",
    .run = run_linear_recurrence,
};

}  // namespace hone::host
