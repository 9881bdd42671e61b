// What a call takes, as a table beside the function that is called: tensors of which types and ranks, attributes with which numbers. Calls that come from files are held
// against it before anything of them is used; how sizes must go together is each function's own to say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/fixed_list.h"

namespace hone {

using DTypes = FixedList<DType, 13>;

struct TensorRule {
  std::string_view name;
  DTypes types = {};     ///< it has one of them; empty: any
  int like = -1;         ///< it has the type of this operand
  bool or_f32 = false;   ///< of `like`: or f32
  std::size_t least_rank = 0, most_rank = 32;
  int rank_like = -1;    ///< it has as many axes as this operand
  bool optional = false; ///< absent, or left out at the end
};

struct AttributeRule {
  std::string_view name;
  enum class Count : std::uint8_t {
    kOne,
    kPerSpatialAxis,  ///< of operand 0, behind its first two axes
    kAny,             ///< the call's sizes say how many
  };
  Count count = Count::kOne;
  std::int64_t least = INT64_MIN, most = INT64_MAX;
  bool required = false;
};

/// Attributes without a rule are nobody's, and taken as they are.
struct CallRules {
  FixedList<TensorRule, 10> operands, results;
  FixedList<AttributeRule, 8> attributes = {};
};

/// What is known of a call before sizes are numbers, or then.
struct CallTypes {
  struct Tensor {
    DType dtype = DType::kF32;
    std::size_t rank = 0;
  };
  std::vector<std::optional<Tensor>> operands, results;  ///< nullopt: absent
  std::map<std::string, std::vector<std::optional<std::int64_t>>, std::less<>> attributes;  ///< nullopt: not known yet
};

/// The first thing that the rules do not allow, in words: "operand b is i64: it takes f32 or bf16". "" if they allow the call.
std::string why_not(const CallRules& rules, const CallTypes& call);

}  // namespace hone
