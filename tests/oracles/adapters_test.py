#!/usr/bin/env python3
"""ONNX Runtime must compute with a model into which adapters were merged what Hone computes with the adapters.

usage: adapters_test.py --bin BUILD_BIN_DIR --models FOLDER
The cases are those of tests/golden/adapters.json: recorded models that are fine-tuned as the recipe there says. Each is trained on its recorded batches; then `hone-run predict` takes the
checkpoint, in which adapters lie beside the weights, and ONNX Runtime the trained .onnx, in which they are added. One line a case; exit 0 when the outputs agree within 1e-5 of the largest
one and the adapters have changed them by a hundred times as much, 77 (skipped) when none of the models is here.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime_test import first_batch, run

TOLERANCE = 1e-5


def predicted(tool, plan, paths, weights, work):
    run(tool("hone-run"), "predict", plan, "--weights", weights, "--data", paths, "--out", f"{work}/out.npz", "--quiet")
    with np.load(f"{work}/out.npz") as outputs:
        return dict(outputs)


def apart(ours, theirs):
    """Relative to the largest output, for the output that is furthest."""
    return max(float(np.abs(ours[name] - wanted).max() / np.abs(wanted).max()) for name, wanted in theirs.items())


def check(tool, folder, case):
    """How far the two are apart, and how far training has moved the outputs."""
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/recipe.toml", "w") as file:
            file.write(case["recipe"])
        plan, merged, data = f"{work}/plan.hone", f"{work}/merged.onnx", f"{folder}/train.npz"
        arrays = ",".join(f"{name}={data}:{name}" for name in np.load(data).files)
        run(tool("hone-compile"), f"{folder}/model.onnx", "-r", f"{work}/recipe.toml", "--set", "train.epochs=1", "-o", plan)
        run(tool("hone-run"), "train", plan, "--train", arrays, "--pre-batched", "--quiet", "--out", merged, "--run-dir", f"{work}/run")
        onnx.checker.check_model(merged, full_check=True)
        checkpoint = max(pathlib.Path(f"{work}/run").glob("checkpoint-*"))
        batch, paths = first_batch(folder, work)
        ours = predicted(tool, plan, paths, str(checkpoint), work)
        before = predicted(tool, plan, paths, f"{folder}/model.onnx", work)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(merged, options, providers=["CPUExecutionProvider"])
        theirs = {output.name: value for output, value in zip(session.get_outputs(), session.run(None, batch))}
        return apart(ours, theirs), apart(before, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--models", required=True)
    arguments = parser.parse_args()
    cases = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "adapters.json").read_text())
    cases = [case for case in cases if os.path.exists(f"{arguments.models}/{case['model']}/train.npz")]
    if not cases:
        print("skipped: the recorded models are not here")
        return 77
    failures = 0
    for case in cases:
        try:
            error, moved = check(lambda tool: os.path.join(arguments.bin, tool), f"{arguments.models}/{case['model']}", case)
            good = error <= TOLERANCE and moved > 100 * TOLERANCE
            print(f"{'ok  ' if good else 'FAIL'} {case['model']:16s} rank {case['rank']}: {error:.2g} of the largest output apart, {moved:.2g} away from the model without adapters", flush=True)
        except Exception as problem:  # one bad case does not hide the others
            good = False
            print(f"FAIL {case['model']:16s} {problem}", flush=True)
        failures += not good
    print(f"{len(cases) - failures} of {len(cases)} agree with ONNX Runtime {onnxruntime.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
