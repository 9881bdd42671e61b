#!/usr/bin/env python3
"""ONNX Runtime must compute with a model into which adapters were merged what Hone computes with the adapters.

usage: adapters_test.py --bin BUILD_BIN_DIR --models FOLDER
The cases are those of tests/golden/adapters.json: recorded models that are fine-tuned as the recipe there says. Each is trained on its recorded batches; then `hone-run predict` takes the
checkpoint, in which adapters lie beside the weights, and ONNX Runtime the trained .onnx, in which they are added. One line a case; exit 0 when the outputs agree within 1e-5 of the largest
one and the adapters have changed them by a hundred times as much, 77 (skipped) when none of the models is here.
"""
import json
import os
import pathlib
import sys
import tempfile

import onnx
import onnxruntime
from oracle import apart, first_batch, judge, outputs, parser, predicted, recorded_arrays, run, session, tools_in

TOLERANCE = 1e-5


def check(tool, folder, case):
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/recipe.toml", "w") as file:
            file.write(case["recipe"])
        plan, merged = f"{work}/plan.hone", f"{work}/merged.onnx"
        run(tool("hone-compile"), f"{folder}/model.onnx", "-r", f"{work}/recipe.toml", "--set", "train.epochs=1", "-o", plan)
        run(tool("hone-run"), "train", plan, "--train", recorded_arrays(folder), "--pre-batched", "--quiet", "--out", merged, "--run-dir", f"{work}/run")
        onnx.checker.check_model(merged, full_check=True)
        checkpoint = max(pathlib.Path(f"{work}/run").glob("checkpoint-*"))
        batch, paths = first_batch(folder, work)
        theirs = outputs(session(merged), batch)
        error = apart(predicted(tool, plan, str(checkpoint), paths, work), theirs)
        moved = apart(predicted(tool, plan, f"{folder}/model.onnx", paths, work), theirs)
    line = f"{error:.2g} of the largest output apart, {moved:.2g} away from the model without adapters"
    if not (error <= TOLERANCE and moved > 100 * TOLERANCE):
        raise RuntimeError(line)
    return line


def main():
    arguments = parser()
    arguments.add_argument("--models", required=True)
    given = arguments.parse_args()
    cases = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "adapters.json").read_text())
    cases = [(f"{case['model']} rank {case['rank']}", (tools_in(given.bin), f"{given.models}/{case['model']}", case)) for case in cases
             if os.path.exists(f"{given.models}/{case['model']}/train.npz")]
    return judge(cases, check, f"ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    sys.exit(main())
