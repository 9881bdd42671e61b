// The .hir text form of a graph, which ir/parse.h reads back:
//
//   graph main(
//     input %image: f32[N,784],
//     input %label: i64[N] in [0, 10),
//     weight %fc1.weight: f32[256,784] = elided,
//     constant %0: f32[] = 1,
//     state %1: f64[] = 0 "step") {
//     %2: f32[N,256] = matmul(%image, %fc1.weight) {tb=true}  // at "fc1/MatMul" of "fc1"
//     // backward
//     %3: f32[N,256] = mul(%2, %0)  // from "gradient of"
//     equation M = N
//     output "logits" %2
//     alias %1 <- %4
//   }
//
// A value has its name where that is unique, else a number in order of appearance. An input's own name is written when it differs
// from its value's. Data of up to 64 elements are written in full, so that they read back bit for bit (NaN payloads excepted), more
// are `elided`. A comment with a part's name alone on a line says what part of the step follows; "at", "of" and "from" in the
// comment behind a node are its Loc's node, layer and derived. An absent optional operand is `-`. Bodies stand behind their node.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "ir/graph.h"

namespace hone {

/// Comments on lines of their own before a node, by its number; behind the last one by the number of nodes.
using NodeComments = std::multimap<std::size_t, std::string>;

/// Never throws, so that a broken graph can be shown: an id that is no value is written %?.
std::string print(const Graph& graph, const NodeComments& comments = {});

/// Are the data of an input written in full?
bool is_printed(const Tensor& data);

/// Element `i` as it is written then: in the fewest digits that read back to the same number.
std::string element_text(const Tensor& tensor, std::int64_t i);

/// The line of `node` with `lines` lines before and after it, marked by "> ".
std::string print_around(const Graph& graph, NodeId node, std::size_t lines = 5);

/// `text` in quotes, with \" \\ \n \t \r and \xHH escapes: what the parser reads back exactly.
std::string hir_string(std::string_view text);
/// May `name` stand unquoted behind a %?
bool is_plain_name(std::string_view name);

}  // namespace hone
