// Control flow: loops and branches over bodies written as text.
#include "ir/parse.h"
#include "tests/ops/op_cases.h"

namespace hone::test {

namespace {

Graph body(std::string_view text) { return parse_graph(text); }

/// s' = tanh(s * w + x), stacked: s' * i.
constexpr std::string_view kCell = R"(graph cell(input %i: i64[], input %s: f32[N,2], input %x: f32[N,2], input %w: f32[2]) {
  %a = mul(%s, %w)
  %b = add(%a, %x)
  %new = tanh(%b)
  %position = cast(%i) {to=f32}
  %stacked = mul(%new, %position)
  output new %new
  output stacked %stacked
})";

constexpr std::string_view kSwap = R"(graph swap(input %i: i64[], input %a: f32[3], input %b: f32[3]) {
  output first %b
  output second %a
})";

constexpr std::string_view kHalve = R"(graph halve(input %i: i64[], input %x: f32[], input %limit: f32[], input %half: f32[]) {
  %y = mul(%x, %half)
  %on = greater(%y, %limit)
  output on %on
  output y %y
})";

/// In f32 whatever the precision: what the row multiplies is said by its operands.
constexpr std::string_view kProduct = R"(graph product(input %a: f32[N,4], input %b: f32[4,2]) {
  %rows = reshape(%a) {shape=[N,4,1]}
  %products = mul(%rows, %b)
  %y = reduce_sum(%products) {axes=[1]}
  output y %y
})";

}  // namespace

void add_region_cases(Cases& cases) {
  const auto scan = [&](std::string says, std::string_view text, std::vector<Operand> operands, Attrs attrs) -> Cases& {
    cases.add(op::scan, std::move(says), std::move(operands), std::move(attrs));
    return cases.with_body(body(text));
  };
  scan("a recurrent cell", kCell, {f32({kN, 2}), f32({4, kN, 2}), f32({2})}, {kTrips = Shape{4}, kStates = 1, kScanned = 1}).gives({kN, 2}).gives({4, kN, 2}).gives({4, kN, 2});
  scan("as many trips as slices", kCell, {f32({kN, 2}), f32({kM, kN, 2}), f32({2})}, {kTrips = Shape{kM}, kStates = 1, kScanned = 1}).gives({kN, 2});
  scan("backwards", kCell, {f32({kN, 2}), f32({3, kN, 2}), f32({2})}, {kTrips = Shape{3}, kReverse = true, kStates = 1, kScanned = 1});
  scan("no trips", kCell, {f32({kN, 2}), f32({kEmpty, kN, 2}), f32({2})}, {kTrips = Shape{kEmpty}, kStates = 1, kScanned = 1});
  scan("states that change places", kSwap, {given({3}, {1, 2, 3}), given({3}, {4, 5, 6})}, {kTrips = Shape{3}, kStates = 2}).equals({4, 5, 6});

  cases.add(op::while_trips, "until small", {given(DType::kBool, {}, {1}), given({}, {16}), constant(given({}, {1})), constant(given({}, {0.5}))}, {kTrips = Shape{100}, kStates = 1});
  cases.with_body(body(kHalve)).equals({4});
  cases.add(op::while_trips, "at most", {given(DType::kBool, {}, {1}), given({}, {16}), constant(given({}, {1})), constant(given({}, {0.5}))}, {kTrips = Shape{2}, kStates = 1});
  cases.with_body(body(kHalve)).equals({2});
  cases.add(op::while_trips, "not at all", {given(DType::kBool, {}, {0}), given({}, {16}), constant(given({}, {1})), constant(given({}, {0.5}))}, {kTrips = Shape{9}, kStates = 1});
  cases.with_body(body(kHalve)).equals({0});

  for (const bool holds : {true, false}) {
    cases.add(op::branch, holds ? "the first" : "the second", {given(DType::kBool, {}, {holds ? 1.0 : 0.0}), f32({kN, 2}), f32({2})}).gives({kN, 2});
    cases.with_body(body("graph product(input %x: f32[N,2], input %w: f32[2]) {\n  %y = mul(%x, %w)\n  output y %y\n}"));
    cases.with_body(body("graph sine(input %x: f32[N,2], input %w: f32[2]) {\n  %y = tanh(%x)\n  output y %y\n}"));
  }

  cases.add(op::library_call, "a product", {f32({kN, 4}), f32({4, 2})}, {kRow = "cublaslt.matmul"}).gives({kN, 2});
  cases.with_body(body(kProduct));

  cases.add(op::read_sizes, "two numbers", {given(DType::kI64, {2}, {3, -1})}, {kSizes = Shape{Dim::symbol("rows"), Dim::value_symbol("start")}}).equals({3, -1});
}

}  // namespace hone::test
