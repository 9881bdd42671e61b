// Algebraic rules: each applies where it may, and nowhere else.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "tests/passes/pass_case.h"

namespace hone::test {
namespace {

constexpr std::string_view kX = "input %x: f32[2,3]",
                           kNumber = "input %x: f32[2,3], constant %one: f32[] = 1, constant %zero: f32[] = 0, constant %two: f32[] = 2";

TEST(Simplify, DropsWhatDoesNothing) {
  const PassCase cases[] = {
      {"reshape to the same shape", kX, "%y = reshape(%x) {shape=[2,3]}", "x"},
      {"transpose by the identity", kX, "%y = transpose(%x) {perm=[0,1]}", "x"},
      {"cast to the same type", kX, "%y = cast(%x) {to=f32}", "x"},
      {"an input that is widened and rounded back", "input %x: bf16[2]", "%a = cast(%x) {to=f32}; %y = cast(%a) {to=bf16}", "x"},
      {"broadcast to the same shape", kX, "%y = broadcast_to(%x) {shape=[2,3]}", "x"},
      {"times 1", kNumber, "%y = mul(%x, %one)", "x"},
      {"1 times", kNumber, "%y = mul(%one, %x)", "x"},
      {"plus 0", kNumber, "%y = add(%x, %zero)", "x"},
      {"0 plus", kNumber, "%y = add(%zero, %x)", "x"},
      {"minus 0", kNumber, "%y = sub(%x, %zero)", "x"},
      {"over 1", kNumber, "%y = div(%x, %one)", "x"},
      {"to the power 1", kNumber, "%y = pow(%x, %one)", "x"},
      {"negated twice", kX, "%a = neg(%x); %y = neg(%a)", "x"},
      {"stop_gradient", kX, "%y = stop_gradient(%x)", "x"},
      {"slice of all", kX, "%y = slice(%x) {starts=[0,0], sizes=[2,3], steps=[1,1]}", "x"},
      {"concat of one", kX, "%y = concat(%x)", "x"},
      {"a sum over no axis", kX, "%y = reduce_sum(%x) {keep_dims=true}", "x"},
      {"several at once", kNumber, "%a = mul(%x, %one); %b = reshape(%a) {shape=[2,3]}; %y = add(%b, %zero)", "x"},
  };
  for (const PassCase& c : cases) expect_pass(simplify, c);
}

TEST(Simplify, MergesAndReplaces) {
  const PassCase cases[] = {
      {"two reshapes", kX, "%a = reshape(%x) {shape=[6]}; %y = reshape(%a) {shape=[3,2]}", "reshape(x){shape=[3,2]}"},
      {"two reshapes that cancel", kX, "%a = reshape(%x) {shape=[6]}; %y = reshape(%a) {shape=[2,3]}", "x"},
      {"two transposes", "input %x: f32[2,3,4]", "%a = transpose(%x) {perm=[1,2,0]}; %y = transpose(%a) {perm=[0,2,1]}", "transpose(x){perm=[1,0,2]}"},
      {"two transposes that cancel", "input %x: f32[2,3,4]", "%a = transpose(%x) {perm=[1,2,0]}; %y = transpose(%a) {perm=[2,0,1]}", "x"},
      {"a transpose of axes of 1", "input %x: f32[N,3,1]", "%y = transpose(%x) {perm=[0,2,1]}", "reshape(x){shape=[N,1,3]}"},
      {"two broadcasts", "input %x: f32[1,3]", "%a = broadcast_to(%x) {shape=[2,3]}; %y = broadcast_to(%a) {shape=[4,2,3]}", "broadcast_to(x){shape=[4,2,3]}"},
      {"the square", kNumber, "%y = pow(%x, %two)", "mul(x, x)"},
      {"a broadcast operand", "input %x: f32[2,3], input %b: f32[3]", "%a = broadcast_to(%b) {shape=[2,3]}; %y = add(%x, %a)", "add(x, b)"},
      {"a broadcast operand of where", "input %c: bool[2,1], input %x: f32[2,3], input %z: f32[2,3]", "%a = broadcast_to(%c) {shape=[2,3]}; %y = where(%a, %x, %z)",
       "where(c, x, z)"},
      {"a transposed left operand", "input %x: f32[4,2], input %b: f32[4,3]", "%a = transpose(%x) {perm=[1,0]}; %y = matmul(%a, %b)", "matmul(x, b){ta=true}"},
      {"a transposed right operand", "input %x: f32[2,4], input %b: f32[3,4]", "%a = transpose(%b) {perm=[1,0]}; %y = matmul(%x, %a)", "matmul(x, b){tb=true}"},
      {"batches keep their axes", "input %x: f32[5,4,2], input %b: f32[4,3]", "%a = transpose(%x) {perm=[0,2,1]}; %y = matmul(%a, %b)",
       "matmul(x, b){ta=true}"},
      {"sum over axes of 1", "input %x: f32[2,1,3]", "%y = reduce_sum(%x) {axes=[1]}", "reshape(x){shape=[2,3]}"},
      {"a weight's gradient over batches", "input %x: f32[N,4,2], input %b: f32[N,4,3]", "%a = matmul(%x, %b) {ta=true}; %y = reduce_sum(%a) {axes=[0]}",
       "matmul(reshape(x){shape=[4*N,2]}, reshape(b){shape=[4*N,3]}){ta=true}"},
      {"the same over two axes, kept", "input %x: f32[N,5,4,2], input %b: f32[N,5,4,3]", "%a = matmul(%x, %b) {ta=true}; %y = reduce_sum(%a) {axes=[0,1], keep_dims=true}",
       "reshape(matmul(reshape(x){shape=[20*N,2]}, reshape(b){shape=[20*N,3]}){ta=true}){shape=[1,1,2,3]}"},
      {"times a tensor of 1s", "input %x: f32[2,3], constant %o: f32[2,3] = [1, 1, 1, 1, 1, 1]", "%y = mul(%x, %o)", "x"},
      {"plus 0s of the shape", "input %x: f32[N,3], constant %zero: f32[] = 0", "%a = broadcast_to(%zero) {shape=[N,3]}; %y = add(%a, %x)", "x"},
      {"two sums", "input %x: f32[2,3,4,5]", "%a = reduce_sum(%x) {axes=[1]}; %y = reduce_sum(%a) {axes=[0,2]}", "reduce_sum(x){axes=[0,1,3]}"},
      {"two sums that keep axes", "input %x: f32[2,3,4]", "%a = reduce_sum(%x) {axes=[0], keep_dims=true}; %y = reduce_sum(%a) {axes=[0,2], keep_dims=true}",
       "reduce_sum(x){axes=[0,2], keep_dims=true}"},
      {"parts side by side", "input %a: f32[2,3], input %b: f32[2,1], input %c: f32[2,2]",
       "%d = pad(%a) {starts=[0,3], sizes=[2,6], steps=[1,1]}; %e = pad(%b) {starts=[0,0], sizes=[2,6], steps=[1,1]}; %f = pad(%c) {starts=[0,1], sizes=[2,6], "
       "steps=[1,1]}; "
       "%g = add(%d, %e); %y = add(%g, %f)",
       "concat(b, c, a){axis=1}"},
      {"gathered rows in another order", "input %x: f32[9,4], input %i: i32[2,3]", "%a = gather(%x, %i); %y = transpose(%a) {perm=[1,0,2]}",
       "gather(x, transpose(i){perm=[1,0]})"},
      {"scattered rows in another order", "input %x: f32[3,4,2,5], input %i: i32[2,3,4]",
       "%a = transpose(%x) {perm=[2,0,1,3]}; %y = scatter_add(%a, %i) {shape=[9,5]}", "scatter_add(x, transpose(i){perm=[1,2,0]}){shape=[9,5]}"},
      {"a row of a known number", "input %x: f32[9,N], constant %i: i32[] = 3", "%y = gather(%x, %i)", "reshape(slice(x){sizes=[1,N], starts=[3,0], steps=[1,1]}){shape=[N]}"},
      {"rows of known numbers, one from the end", "input %x: f32[N,9], constant %i: i64[1,3] = [2, 5, -1]", "%y = gather(%x, %i) {axis=1}",
       "reshape(slice(x){sizes=[N,3], starts=[0,2], steps=[1,3]}){shape=[N,1,3]}"},
      {"a row put where it is known", "input %x: f32[N], constant %i: i32[] = -2", "%y = scatter_add(%x, %i) {shape=[9,N]}", "pad(reshape(x){shape=[1,N]}){sizes=[9,N], starts=[7,0], steps=[1,1]}"},
      {"all rows put where they are", "input %x: f32[1,3,N], constant %i: i32[1,3] = [0, 1, 2]", "%y = scatter_add(%x, %i) {shape=[3,N]}", "reshape(x){shape=[3,N]}"},
      {"largest over axes of 1, kept", "input %x: f32[2,1]", "%y = reduce_max(%x) {axes=[1], keep_dims=true}", "x"},
  };
  for (const PassCase& c : cases) expect_pass(simplify, c);
}

TEST(Simplify, LeavesWhatItMustNotTouch) {
  const PassCase cases[] = {
      {"reshape to another shape", kX, "%y = reshape(%x) {shape=[3,2]}"},
      {"a transpose that moves something", kX, "%y = transpose(%x) {perm=[1,0]}"},
      {"a cast", kX, "%y = cast(%x) {to=f64}"},
      {"casts lose digits, so two of them stay", kX, "%a = cast(%x) {to=i32}; %y = cast(%a) {to=f32}"},
      {"what is made in bf16 may not be rounded yet", "input %x: bf16[2]", "%a = neg(%x); %b = cast(%a) {to=f32}; %y = cast(%b) {to=bf16}"},
      {"an input that is rounded, and widened again", "input %x: f32[2]", "%a = cast(%x) {to=bf16}; %y = cast(%a) {to=f32}"},
      {"a broadcast that repeats", "input %x: f32[3]", "%y = broadcast_to(%x) {shape=[2,3]}"},
      {"times 1 of a larger shape", "input %x: f32[3], constant %one: f32[2,1] = [1, 1]", "%y = mul(%x, %one)"},
      {"times 2", kNumber, "%y = mul(%x, %two)"},
      {"plus 1", kNumber, "%y = add(%x, %one)"},
      {"0 minus", kNumber, "%y = sub(%zero, %x)"},
      {"1 over", kNumber, "%y = div(%one, %x)"},
      {"1 to the power", kNumber, "%y = pow(%one, %x)"},
      {"negated once", kX, "%y = neg(%x)"},
      {"backwards slice of all", kX, "%y = slice(%x) {starts=[1,0], sizes=[2,3], steps=[-1,1]}"},
      {"slice of a part", kX, "%y = slice(%x) {starts=[0,0], sizes=[1,3], steps=[1,1]}"},
      {"concat of two", kX, "%y = concat(%x, %x)"},
      {"a broadcast that gives the shape", "input %x: f32[3], input %b: f32[]", "%a = broadcast_to(%x) {shape=[2,3]}; %y = add(%a, %b)"},
      {"a broadcast operand of an op that is not elementwise", "input %x: f32[3,4], input %b: f32[1,4]",
       "%a = broadcast_to(%b) {shape=[3,4]}; %y = concat(%x, %a)"},
      {"a transpose of batch axes under a matmul", "input %x: f32[4,5,2], input %b: f32[2,3]", "%a = transpose(%x) {perm=[1,0,2]}; %y = matmul(%a, %b)"},
      {"times a tensor of 1s and others", "input %x: f32[2], constant %o: f32[2] = [1, 2]", "%y = mul(%x, %o)"},
      {"two sums of which one keeps axes", "input %x: f32[2,3,4]", "%a = reduce_sum(%x) {axes=[0], keep_dims=true}; %y = reduce_sum(%a) {axes=[2]}"},
      {"parts that overlap", "input %a: f32[2], input %b: f32[2]",
       "%d = pad(%a) {starts=[0], sizes=[3], steps=[1]}; %e = pad(%b) {starts=[1], sizes=[3], steps=[1]}; %y = add(%d, %e)"},
      {"parts with a gap", "input %a: f32[2], input %b: f32[2]",
       "%d = pad(%a) {starts=[0], sizes=[5], steps=[1]}; %e = pad(%b) {starts=[3], sizes=[5], steps=[1]}; %y = add(%d, %e)"},
      {"parts that are read on their way", "input %a: f32[2], input %b: f32[2], input %c: f32[2]",
       "%d = pad(%a) {starts=[0], sizes=[6], steps=[1]}; %e = pad(%b) {starts=[2], sizes=[6], steps=[1]}; %f = pad(%c) {starts=[4], sizes=[6], steps=[1]}; %g "
       "= add(%d, %e); "
       "%h = add(%g, %f); %y = mul(%g, %h)"},
      {"rows that come twice", "input %x: f32[9,N], constant %i: i32[3] = [3, 3, 3]", "%y = gather(%x, %i)"},
      {"rows backwards", "input %x: f32[9,N], constant %i: i32[2] = [3, 2]", "%y = gather(%x, %i)"},
      {"rows at two distances", "input %x: f32[3], constant %i: i32[3] = [3, 4, 6]", "%y = scatter_add(%x, %i) {shape=[9]}"},
      {"a row that is not there", "input %x: f32[9,N], constant %i: i32[] = 9", "%y = gather(%x, %i)"},
      {"a row of which nobody knows that it is there", "input %x: f32[N,9], constant %i: i32[] = 0", "%y = gather(%x, %i)"},
      {"rows of a weight", "weight %x: f32[9,4], constant %i: i32[] = 0", "%y = gather(%x, %i)"},
      {"gathered columns in another order", "input %x: f32[9,4], input %i: i32[2]", "%a = gather(%x, %i); %y = transpose(%a) {perm=[1,0]}"},
      {"scattered columns in another order", "input %x: f32[4,2], input %i: i32[2]", "%a = transpose(%x) {perm=[1,0]}; %y = scatter_add(%a, %i) {shape=[9,4]}"},
      {"sum over an axis of 2", kX, "%y = reduce_sum(%x) {axes=[0]}"},
      {"a sum over some batches of a product", "input %x: f32[N,5,4,2], input %b: f32[N,5,4,3]", "%a = matmul(%x, %b) {ta=true}; %y = reduce_sum(%a) {axes=[0]}"},
      {"a sum over batches and rows of a product", "input %x: f32[N,4,2], input %b: f32[N,4,3]", "%a = matmul(%x, %b) {ta=true}; %y = reduce_sum(%a) {axes=[0,1]}"},
      {"a sum over batches of products with one matrix", "input %x: f32[N,4,2], input %b: f32[1,4,3]", "%a = matmul(%x, %b) {ta=true}; %y = reduce_sum(%a) {axes=[0]}"},
      {"a sum over batches of a product that is not transposed", "input %x: f32[N,4,4], input %b: f32[N,4,3]", "%a = matmul(%x, %b); %y = reduce_sum(%a) {axes=[0]}"},
      {"sum over a symbolic axis", "input %x: f32[N,3]", "%y = reduce_sum(%x) {axes=[0]}"},
  };
  for (const PassCase& c : cases) expect_pass(simplify, c);
}

}  // namespace
}  // namespace hone::test
