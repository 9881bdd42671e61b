#!/bin/bash
# docs/new-target.md lists what the target `sim` touches; nothing else of the compiler and the runtime knows of it.
# Usage: new_target_test.sh ROOT
set -euo pipefail
cd "$1"
listed=$(sed -n 's/^- `\([^`]*\)`$/\1/p' docs/new-target.md | sort)
[[ -n $listed ]] || { echo "docs/new-target.md lists no files"; exit 1; }
found=$(grep -rlwE 'sim|SimDevice|SimTarget|OrderCheck' --include='*.cc' --include='*.h' --include='*.proto' api backends base formats frontend host ir passes runtime tools | sort)
if [[ $listed != "$found" ]]; then
  echo "docs/new-target.md (<) and the files that know of sim (>) differ:"
  diff <(echo "$listed") <(echo "$found")
  exit 1
fi
