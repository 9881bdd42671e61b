#!/bin/bash
# scripts/check_structure accepts a good tree, and names each kind of violation in a bad one.
# Usage: check_structure_test.sh CHECK, where CHECK is the script.
set -euo pipefail
check=$(realpath "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# write FILE LINE...: a file of the sample tree
write() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "${@:2}" > "$tree/$1"
}

# Every sample starts from this tree, which is in order.
good_tree() {
  rm -rf "${tree:?}"/*
  write base/diag.h '#include <string>'
  write ir/graph.h '#include "base/diag.h"'
  write passes/fold.cc '#include "ir/graph.h"'
  write formats/onnx.proto 'syntax = "proto2";'
  write frontend/onnx/import.cc '#include "formats/onnx.pb.h"' '#include "ir/graph.h"'
  write runtime/plan/plan.h '#include "base/diag.h"'
  write runtime/library/call.h '#include "runtime/plan/plan.h"'
  write runtime/executor.h '#include "runtime/library/call.h"' '#include "runtime/plan/plan.h"'
  write backends/compile.cc '#include "passes/fold.cc"' '#include "runtime/library/call.h"'
  write tools/hone_run.cc '#include "runtime/executor.h"'
  write tools/hone_compile.cc '#include "ir/graph.h"' '#include "runtime/executor.h"'
  write passes/common_subexpressions.cc '#include "ir/graph.h"'
  write base/CMakeLists.txt 'hone_library(base)'
}

expect_accepted() {
  local output
  if ! output=$("$check" "$tree"); then
    printf 'FAILED %s: rejected:\n%s\n' "$1" "$output"
    ((++failures))
  fi
}

# expect_rejected NAME TEXT: exit 1, exactly one violation, and TEXT in the output
expect_rejected() {
  local output status=0
  output=$("$check" "$tree") || status=$?
  if ((status != 1)) || [[ $output != *"$2"* || $output != *"way out"* || $output != *"check_structure: 1 violation in"* ]]; then
    printf 'FAILED %s: expected one violation with "%s", got exit %d and:\n%s\n' "$1" "$2" "$status" "$output"
    ((++failures))
  fi
}

good_tree
expect_accepted "a tree in order"

# rejects_include FROM TO TEXT: a file FROM may not include TO
rejects_include() {
  good_tree
  write "$1" "#include \"$2\""
  expect_rejected "$1 includes $2" "$1:1: $3"
}
rejects_include base/loop.h ir/graph.h 'base must not see ir'
rejects_include formats/npy.cc ir/graph.h 'formats must not see ir'
rejects_include ir/print.cc formats/onnx.pb.h 'ir must not see formats'
rejects_include ir/ops/math.cc passes/fold.cc 'ir must not see passes'
rejects_include frontend/onnx/ops/conv.cc passes/fold.cc 'frontend must not see passes'
rejects_include passes/dce.cc frontend/onnx/import.cc 'passes must not see frontend'
rejects_include passes/plan.cc runtime/plan/plan.h 'passes must not see runtime/plan'
rejects_include backends/llvm/emit.cc runtime/executor.h 'backends must not see runtime'
rejects_include backends/build.cc frontend/onnx/import.cc 'backends must not see frontend'
rejects_include runtime/train/loop.cc ir/graph.h 'runtime must not see ir'
rejects_include runtime/plan/read.cc runtime/executor.h 'runtime/plan must not see runtime'
rejects_include runtime/library/matmul.cc runtime/executor.h 'runtime/library must not see runtime'
rejects_include tools/hone_run.cc ir/graph.h 'tools/hone_run must not see ir'

good_tree
write ir/print.cc '#include "graph.h"'
expect_rejected "an include that is not from the root" 'ir/print.cc:1: #include "graph.h" is no file of this project'

good_tree
write ir/print.cc '#include "../ir/graph.h"'
expect_rejected "an include that goes up" 'ir/print.cc:1: #include "../ir/graph.h" is no file of this project'

good_tree
write ir/print.cc '#include <ir/graph.h>'
expect_rejected "our own header in angle brackets" 'ir/print.cc:1: #include <ir/graph.h> is ours'

# write_lines FILE N: a file of N lines
write_lines() { write "$1" && yes '//' | head -n "$2" > "$tree/$1" || true; }
for file in ir/long.cc ir/long.h backends/long.cu; do
  good_tree
  write_lines "$file" 600
  expect_accepted "$file at the limit"
  write_lines "$file" 601
  expect_rejected "$file over the limit" "$file: 601 lines"
done

good_tree
write_lines ir/CMakeLists.txt 40
expect_accepted "a CMake file at the limit"
write_lines ir/CMakeLists.txt 41
expect_rejected "a CMake file over the limit" 'ir/CMakeLists.txt: 41 lines'

for file in base/utils.h ir/graph_util.cc runtime/helpers.cc tests/test_helper.h base/misc.cc formats/common.h ir/misc/print.cc; do
  good_tree
  write "$file" '//'
  expect_rejected "$file" "$file: "
done

# A second type of a name that base/diag.h and base/text.cc have types of.
write_types() {
  good_tree
  write base/diag.h 'namespace hone {' 'struct Diag {};' 'class Later;' 'namespace plan {' 'struct Step {' '};' '}  // namespace plan' 'struct Step::Part {' '};' '}  // namespace hone'
  write base/text.cc 'namespace hone {' 'namespace {' 'struct Line {' '};' '}  // namespace' '}  // namespace hone'
}
write_types
write ir/graph.h 'namespace hone {' 'class Later {' '};' 'struct Step {' '};' 'struct Line {' '};' '}  // namespace hone'
write ir/print.cc 'namespace hone {' 'namespace {' 'struct Diag {' '};' '}  // namespace' '}  // namespace hone'
expect_accepted "types of other names, in other namespaces or unnamed ones"
for type in 'struct Diag {' 'class Diag final {' 'enum class Diag : int {' 'enum class Diag : std::uint8_t { kOne };' 'struct Diag : Base {' 'template <class T> struct Diag {'; do
  write_types
  write ir/graph.h 'namespace hone {' "$type" '};' '}  // namespace hone'
  expect_rejected "$type twice" 'ir/graph.h:2: hone::Diag is defined in base/diag.h:2, too'
done
write_types
write ir/graph.h 'namespace hone::plan {' 'struct Step {' '};' '}  // namespace hone::plan'
expect_rejected "a type of a nested namespace twice" 'ir/graph.h:2: hone::plan::Step is defined in base/diag.h:5, too'

good_tree
write build/generated/utils.cc '#include "nowhere.h"'
write build-asan/common.h '#include "nowhere.h"'
expect_accepted "build folders"

if ((failures > 0)); then
  echo "$failures samples went wrong"
  exit 1
fi
echo "all samples were judged as they should"
