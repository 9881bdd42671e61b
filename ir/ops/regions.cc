// Control flow over body graphs, and sizes that are read from tensors when running.
//
// A body's inputs of role kInput stand for what it is given, in order; its other inputs are constants of its own. What it reads of the graph around it
// is given to it as an operand. Sizes are shared with the graph around it: a symbol means the same inside.
// kStream tells the random numbers of its body from those of other loops and branches; a gradient, which runs the body again, has the stream of what it is the
// gradient of.
#include <fmt/format.h>

#include "ir/differentiate.h"
#include "ir/ops/infer.h"
#include "ir/ops/ops.h"
#include "ir/ops/products.h"

namespace hone::op {

namespace {

std::vector<Type> fed_types(const Graph& body) {
  std::vector<Type> types;
  for (const Input& input : body.inputs())
    if (input.role == Role::kInput) types.push_back(body.type(input.value));
  return types;
}

Type output_type(const Graph& body, std::size_t i) { return body.type(body.outputs()[i].value); }

/// One slice along the first axis.
Type slice_type(Infer& infer, std::size_t operand) {
  Type type = infer.type(operand);
  infer.require(not type.shape.empty(), Code::kShape, fmt::format("operand {} is read slice by slice, and has no axis", operand));
  type.shape.erase(type.shape.begin());
  return type;
}

Type stacked_type(Type slice, Dim trips) {
  slice.shape.insert(slice.shape.begin(), trips);
  return slice;
}

void require_bodies(Infer& infer, std::size_t count) {
  infer.require(infer.body_count() == count, Code::kBadGraph, fmt::format("needs {} bodies, and has {}", count, infer.body_count()));
}

/// The body must take exactly `given`.
void require_takes(Infer& infer, std::size_t body, const std::vector<Type>& given) {
  const std::vector<Type> taken = fed_types(infer.body(body));
  infer.require(taken.size() == given.size(), Code::kBadGraph, fmt::format("body {} takes {} inputs, and is given {}", body, taken.size(), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i)
    infer.require(taken[i] == given[i], Code::kShape, fmt::format("input {} of body {} is {}, and is given {}", i, body, to_string(taken[i]), to_string(given[i])));
}

const Type kIndexType{DType::kI64, {}};

/// How the operands of a loop are divided, the same for scan and while_trips (which scans nothing).
struct LoopOperands {
  std::size_t states, scanned, captured;
  LoopOperands(const Attrs& attrs, std::size_t count)
      : states(static_cast<std::size_t>(attrs[kStates])), scanned(static_cast<std::size_t>(attrs[kScanned])), captured(count - states - scanned) {}
};

std::vector<Type> infer_scan(Infer& infer) {
  require_bodies(infer, 1);
  infer.require(infer.attrs[kTrips].size() == 1, Code::kBadAttribute, "trips must be one size");
  infer.require(infer.attrs[kStates] >= 0 and infer.attrs[kScanned] >= 0 and infer.attrs[kStates] + infer.attrs[kScanned] <= static_cast<std::int64_t>(infer.count()),
                Code::kBadAttribute, "more states and scanned operands than operands");
  const Dim trips = infer.attrs[kTrips][0];
  const LoopOperands operands(infer.attrs, infer.count());
  std::vector<Type> given{kIndexType};
  for (std::size_t i = 0; i < infer.count(); ++i) {
    const bool is_scanned = i >= operands.states and i < operands.states + operands.scanned;
    given.push_back(is_scanned ? slice_type(infer, i) : infer.type(i));
    if (is_scanned) infer.unify(infer.shape(i)[0], trips, "the number of slices and of iterations");
  }
  require_takes(infer, 0, given);
  const Graph& body = infer.body(0);
  infer.require(body.outputs().size() >= operands.states, Code::kBadGraph, "the body gives fewer results than there are states");
  std::vector<Type> results;
  for (std::size_t i = 0; i < operands.states; ++i) {
    infer.require(output_type(body, i) == infer.type(i), Code::kShape,
                  fmt::format("state {} starts as {}, and the body makes it {}", i, to_string(infer.type(i)), to_string(output_type(body, i))));
    results.push_back(infer.type(i));
  }
  for (std::size_t i = 0; i < operands.states; ++i) results.push_back(stacked_type(infer.type(i), trips));
  for (std::size_t i = operands.states; i < body.outputs().size(); ++i) results.push_back(stacked_type(output_type(body, i), trips));
  return results;
}

/// A body graph being made: a fresh input for each value that it is to be given.
class BodyMaker {
 public:
  explicit BodyMaker(std::string name) : graph(std::make_unique<Graph>()), builder(*graph), scope_(builder, Loc{.derived = "gradient"}, Part::kBackward) {
    graph->name = std::move(name);
  }

  Val input(const Type& type) { return builder.input(Role::kInput, fmt::format("in{}", inputs_++), type); }
  void output(Val value) { builder.output(fmt::format("out{}", outputs_++), value); }
  /// The gradient, or zeros where none arrives.
  void output_gradient(ValueId gradient, const Type& type) { output(gradient.valid() ? builder.val(gradient) : full(builder, 0, type.dtype, type.shape)); }
  std::vector<std::unique_ptr<Graph>> take() {
    std::vector<std::unique_ptr<Graph>> bodies;
    bodies.push_back(std::move(graph));
    return bodies;
  }

  std::unique_ptr<Graph> graph;
  Builder builder;

 private:
  Builder::Scope scope_;
  int inputs_ = 0, outputs_ = 0;
};

/// The loop backwards: each iteration computes the body again from the states that it began with, and from there the gradients.
/// States: gradients of the float states, and sums of those of the captured operands.
void differentiate_scan(Grad& g) {
  const LoopOperands operands(g.attrs, g.count());
  const Dim trips = g.attrs[kTrips][0];
  const Graph& body = g.body(0);
  const std::size_t stacked_count = body.outputs().size() - operands.states, first_captured = operands.states + operands.scanned;
  const auto is_float_operand = [&](std::size_t i) { return is_float(g.x(i).dtype()); };
  std::vector<std::size_t> float_states, wanted_captured, wanted_scanned, reached_paths, reached_stacked;
  for (std::size_t i = 0; i < operands.states; ++i) {
    if (not is_float_operand(i)) continue;
    float_states.push_back(i);
    if (g.has_dy(operands.states + i)) reached_paths.push_back(i);
  }
  for (std::size_t i = first_captured; i < g.count(); ++i)
    if (is_float_operand(i) and g.wants(i)) wanted_captured.push_back(i);
  for (std::size_t i = operands.states; i < first_captured; ++i)
    if (is_float_operand(i) and g.wants(i)) wanted_scanned.push_back(i);
  for (std::size_t i = 0; i < stacked_count; ++i)
    if (g.has_dy(2 * operands.states + i) and is_float(g.dy(2 * operands.states + i).dtype())) reached_stacked.push_back(i);

  // Operands of the backward loop, and its body's inputs in the same order.
  BodyMaker made(body.name + " backwards");
  std::vector<Val> given, inside(1 + g.count());
  const auto slice = [](Type type) {
    type.shape.erase(type.shape.begin());
    return type;
  };
  inside[0] = made.input(kIndexType);
  std::vector<Val> state_gradients, sums, path_gradients, stacked_gradients;
  for (const std::size_t i : float_states) given.push_back(g.dy(i)), state_gradients.push_back(made.input(g.x(i).type()));
  for (const std::size_t i : wanted_captured) {
    given.push_back(full(g.builder(), 0, g.x(i).dtype(), g.x(i).shape()));
    sums.push_back(made.input(g.x(i).type()));
  }
  const std::size_t states = given.size();
  for (std::size_t i = 0; i < operands.states; ++i) given.push_back(g.y(operands.states + i)), inside[1 + i] = made.input(g.x(i).type());
  for (std::size_t i = operands.states; i < first_captured; ++i) given.push_back(g.x(i)), inside[1 + i] = made.input(slice(g.x(i).type()));
  for (const std::size_t i : reached_paths) given.push_back(g.dy(operands.states + i)), path_gradients.push_back(made.input(g.x(i).type()));
  for (const std::size_t i : reached_stacked) {
    given.push_back(g.dy(2 * operands.states + i));
    stacked_gradients.push_back(made.input(slice(given.back().type())));
  }
  const std::size_t scanned = given.size() - states;
  for (std::size_t i = first_captured; i < g.count(); ++i) given.push_back(g.x(i)), inside[1 + i] = made.input(g.x(i).type());

  const std::vector<Val> results = append_graph(made.builder, body, inside);
  std::vector<Seed> seeds;
  for (std::size_t k = 0; k < float_states.size(); ++k) seeds.push_back({results[float_states[k]].id(), state_gradients[k].id()});
  for (std::size_t k = 0; k < reached_stacked.size(); ++k) seeds.push_back({results[operands.states + reached_stacked[k]].id(), stacked_gradients[k].id()});
  std::vector<ValueId> wrt;
  for (const std::size_t i : float_states) wrt.push_back(inside[1 + i].id());
  for (const std::size_t i : wanted_captured) wrt.push_back(inside[1 + i].id());
  for (const std::size_t i : wanted_scanned) wrt.push_back(inside[1 + i].id());
  const std::vector<ValueId> gradients = differentiate(made.builder, seeds, wrt);

  std::size_t next = 0;
  for (std::size_t k = 0, path = 0; k < float_states.size(); ++k, ++next) {
    const bool on_path = path < reached_paths.size() and reached_paths[path] == float_states[k];
    if (not on_path) made.output_gradient(gradients[next], inside[1 + float_states[k]].type());
    else if (not gradients[next].valid()) made.output(path_gradients[path++]);
    else made.output(made.builder.val(gradients[next]) + path_gradients[path++]);
  }
  for (std::size_t k = 0; k < wanted_captured.size(); ++k, ++next) made.output(gradients[next].valid() ? sums[k] + made.builder.val(gradients[next]) : sums[k]);
  for (const std::size_t i : wanted_scanned) made.output_gradient(gradients[next++], inside[1 + i].type());

  const std::vector<Val> back = g.builder().add(op::scan, given,
                                                {kTrips = Shape{trips}, kReverse = not g.attrs[kReverse], kStates = static_cast<std::int64_t>(states),
                                                 kScanned = static_cast<std::int64_t>(scanned), kStream = g.attrs[kStream]},
                                                made.take());
  next = 0;
  for (const std::size_t i : float_states) g.flow(i, back[next++]);
  for (const std::size_t i : wanted_captured) g.flow(i, back[next++]);
  next = 2 * states;
  for (const std::size_t i : wanted_scanned) g.flow(i, back[next++]);
}

/// The same branch again, each body followed by its gradients.
void differentiate_branch(Grad& g) {
  std::vector<std::size_t> wanted, reached;
  for (std::size_t i = 1; i < g.count(); ++i)
    if (is_float(g.x(i).dtype()) and g.wants(i)) wanted.push_back(i);
  for (std::size_t i = 0; i < g.body(0).outputs().size(); ++i)
    if (g.has_dy(i)) reached.push_back(i);
  std::vector<Val> given;
  for (std::size_t i = 0; i < g.count(); ++i) given.push_back(g.x(i));
  for (const std::size_t i : reached) given.push_back(g.dy(i));
  std::vector<std::unique_ptr<Graph>> bodies;
  for (std::size_t b = 0; b < 2; ++b) {
    BodyMaker made(g.body(b).name + " backwards");
    std::vector<Val> inside;
    for (std::size_t i = 1; i < g.count(); ++i) inside.push_back(made.input(g.x(i).type()));
    std::vector<Val> dys;
    for (const std::size_t i : reached) dys.push_back(made.input(g.y(i).type()));
    const std::vector<Val> results = append_graph(made.builder, g.body(b), inside);
    std::vector<Seed> seeds;
    for (std::size_t k = 0; k < reached.size(); ++k) seeds.push_back({results[reached[k]].id(), dys[k].id()});
    std::vector<ValueId> wrt;
    for (const std::size_t i : wanted) wrt.push_back(inside[i - 1].id());
    const std::vector<ValueId> gradients = differentiate(made.builder, seeds, wrt);
    for (std::size_t k = 0; k < wanted.size(); ++k) made.output_gradient(gradients[k], g.x(wanted[k]).type());
    bodies.push_back(std::move(made.graph));
  }
  const std::vector<Val> back = g.builder().add(op::branch, given, {kStream = g.attrs[kStream]}, std::move(bodies));
  for (std::size_t k = 0; k < wanted.size(); ++k) g.flow(wanted[k], back[k]);
}

}  // namespace

constinit const OpDef read_sizes = {
    .name = "read_sizes",
    .doc = "y = x; from here on `sizes`, symbols of the graph, stand for its elements. The schedule is cut here: what depends on them is bound when x is known",
    .inputs = {"x"},
    .attrs = {kSizes},
    .infer =
        [](Infer& infer) {
          infer.require(is_integer(infer.dtype(0)) and is_constant(infer.shape(0)), Code::kType, "only integers in a tensor of constant shape can become sizes");
          infer.require(element_count(infer.shape(0)).value() == static_cast<std::int64_t>(infer.attrs[kSizes].size()), Code::kShape, "one symbol for each element");
          for (const Dim& dim : infer.attrs[kSizes]) infer.require(dim.is_symbol(), Code::kBadAttribute, "sizes must be symbols");
          infer.know(0, infer.attrs[kSizes]);
          return std::vector<Type>{infer.type(0)};
        },
    .grad = no_gradient("its result is integers"),
    .binds = true,
};

constinit const OpDef scan = {
    .name = "scan",
    .doc = "a loop of `trips` iterations. Operands: `states` initial states, `scanned` tensors whose slices along axis 0 are read one an iteration, and what the body reads "
           "whole. The body maps (i, states, slices, whole ones) to (new states, slices to stack); i counts slices, from the last one where `reverse`. Results: the final "
           "states; for each state what every iteration began with, stacked along axis 0; the stacked slices",
    .inputs = {"operands..."},
    .results = {"results..."},
    .attrs = {kTrips, kReverse, kStates, kScanned, kStream},
    .infer = infer_scan,
    .grad = differentiate_scan,
    .region = Region::kScan,
};

constinit const OpDef while_trips = {
    .name = "while_trips",
    .doc = "how often a loop runs: at most `trips` times, as long as the condition holds. Operands: the first condition (bool[]), `states` initial states, and what the "
           "body reads whole. The body maps (i, states, whole ones) to (condition, new states)",
    .inputs = {"condition", "operands..."},
    .results = {"trips"},
    .attrs = {kTrips, kStates, kStream},
    .infer =
        [](Infer& infer) {
          require_bodies(infer, 1);
          infer.require(infer.attrs[kTrips].size() == 1, Code::kBadAttribute, "trips must be one size");
          infer.require(infer.type(0) == Type{DType::kBool, {}}, Code::kType, "the condition must be bool[]");
          std::vector<Type> given{kIndexType};
          for (std::size_t i = 1; i < infer.count(); ++i) given.push_back(infer.type(i));
          require_takes(infer, 0, given);
          const Graph& body = infer.body(0);
          const auto states = static_cast<std::size_t>(infer.attrs[kStates]);
          infer.require(body.outputs().size() == 1 + states and states < infer.count(), Code::kBadGraph, "the body must give a condition and the new states");
          infer.require(output_type(body, 0) == Type{DType::kBool, {}}, Code::kType, "the body's condition must be bool[]");
          for (std::size_t i = 0; i < states; ++i)
            infer.require(output_type(body, 1 + i) == infer.type(1 + i), Code::kShape, fmt::format("the body changes the type of state {}", i));
          return std::vector<Type>{kIndexType};
        },
    .grad = no_gradient("its result is a number of iterations"),
    .region = Region::kWhile,
};

constinit const OpDef branch = {
    .name = "branch",
    .doc = "the first body's results where the condition (bool[]) holds, else the second's. Both take the other operands and give results of the same types; only one runs",
    .inputs = {"condition", "operands..."},
    .results = {"results..."},
    .attrs = {kStream},
    .infer =
        [](Infer& infer) {
          require_bodies(infer, 2);
          infer.require(infer.type(0) == Type{DType::kBool, {}}, Code::kType, "the condition must be bool[]");
          std::vector<Type> given;
          for (std::size_t i = 1; i < infer.count(); ++i) given.push_back(infer.type(i));
          for (std::size_t b = 0; b < 2; ++b) require_takes(infer, b, given);
          infer.require(infer.body(0).outputs().size() == infer.body(1).outputs().size(), Code::kBadGraph, "the bodies give different numbers of results");
          std::vector<Type> results;
          for (std::size_t i = 0; i < infer.body(0).outputs().size(); ++i) {
            results.push_back(output_type(infer.body(0), i));
            infer.require(results.back() == output_type(infer.body(1), i), Code::kDynamic,
                          fmt::format("result {} is {} in one body and {} in the other", i, to_string(results.back()), to_string(output_type(infer.body(1), i))));
          }
          return results;
        },
    .grad = differentiate_branch,
    .region = Region::kBranch,
};

constinit const OpDef library_call = {
    .name = "library_call",
    .doc = "the body's results for the operands: what the library row `row` does in one call. The body runs where the device cannot make that call. The other attributes are the row's",
    .inputs = {"operands..."},
    .results = {"results..."},
    .attrs = {kScaleBits, kCausal, kCell, kGates, kTf32},
    .infer =
        [](Infer& infer) {
          require_bodies(infer, 1);
          infer.require(not infer.attrs[kRow].empty(), Code::kBadAttribute, "it names no row");
          std::vector<Type> given, results;
          for (std::size_t i = 0; i < infer.count(); ++i) given.push_back(infer.type(i));
          require_takes(infer, 0, given);
          for (std::size_t i = 0; i < infer.body(0).outputs().size(); ++i) results.push_back(output_type(infer.body(0), i));
          return results;
        },
    .grad = no_gradient("rows are chosen when gradients are there"),
    .region = Region::kCall,
};

}  // namespace hone::op
