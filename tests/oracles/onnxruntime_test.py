#!/usr/bin/env python3
"""ONNX Runtime must compute with a trained .onnx what Hone computes with it, and onnx.checker must accept the file.

usage: onnxruntime_test.py --bin BUILD_BIN_DIR MODEL_DIR...
Each model is trained on its recorded batches (train.npz); then `hone-run predict` and ONNX Runtime take batch 0. One line a model; exit 0 when the
outputs agree within 1e-5 of the largest one for all models, 77 (skipped) when none of the models is here.
"""
import json
import os
import sys
import tempfile

import onnx
import onnxruntime
from oracle import apart, first_batch, judge, outputs, parser, predicted, recorded_arrays, run, session, tools_in

TOLERANCE = 1e-5
LOSS = {"sparse_categorical_crossentropy_on_probabilities": "cross_entropy"}
KEY = {"lr": "learning_rate", "eps": "epsilon", "alpha": "rho"}
ALWAYS = ("learning_rate", "epsilon", "beta1", "beta2", "initial_accumulator_value")  # others only where they are not off: not every optimizer has them


def recipe(golden):
    optimizer = dict(golden["optimizer"])
    kind = optimizer.pop("name")
    numbers = {KEY.get(k, k): v for k, v in optimizer.items() if isinstance(v, (int, float, bool))}
    lines = ["[model]", f"output = {json.dumps(golden['output'])}", f"train_only = {json.dumps(golden['trainable'])}",
             "[loss]", f"kind = {json.dumps(LOSS.get(golden['loss'], golden['loss']))}", "[optimizer]", f"kind = {json.dumps(kind)}"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in numbers.items() if v or k in ALWAYS]
    convention = "keras" if "tf2onnx" in golden["exporter"] else "torch"
    return "\n".join(lines + ["[train]", "epochs = 1", f'convention = "{convention}"']) + "\n"


def train(tool, folder, golden, work):
    """The plan and the trained model, as files in `work`."""
    with open(f"{work}/recipe.toml", "w") as file:
        file.write(recipe(golden))
    run(tool("hone-compile"), f"{folder}/model.onnx", "-r", f"{work}/recipe.toml", "-o", f"{work}/plan.hone")
    run(tool("hone-run"), "train", f"{work}/plan.hone", "--train", recorded_arrays(folder), "--pre-batched", "--quiet", "--out", f"{work}/trained.onnx")
    return f"{work}/plan.hone", f"{work}/trained.onnx"


def check(tool, folder):
    with open(f"{folder}/golden.json") as file:
        golden = json.load(file)
    with tempfile.TemporaryDirectory() as work:
        plan, trained = train(tool, folder, golden, work)
        onnx.checker.check_model(trained, full_check=True)
        batch, paths = first_batch(folder, work)
        error = apart(predicted(tool, plan, trained, paths, work), outputs(session(trained), batch))
    line = f"{error:.2g} of the largest output apart"
    if not error <= TOLERANCE:
        raise RuntimeError(line)
    return line


def main():
    arguments = parser()
    arguments.add_argument("folders", nargs="+")
    given = arguments.parse_args()
    cases = [(os.path.basename(folder), (tools_in(given.bin), folder)) for folder in given.folders if os.path.exists(f"{folder}/train.npz")]
    return judge(cases, check, f"ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    sys.exit(main())
