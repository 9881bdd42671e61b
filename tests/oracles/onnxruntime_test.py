#!/usr/bin/env python3
"""ONNX Runtime must compute with a trained .onnx what Hone computes with it, and onnx.checker must accept the file.

usage: onnxruntime_test.py --bin BUILD_BIN_DIR MODEL_DIR...
Each model is trained on its recorded batches (train.npz); then `hone-run predict` and ONNX Runtime take batch 0. One line a model; exit 0 when the
outputs agree within 1e-5 of the largest one for all models, 77 (skipped) when none of the models is here.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

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


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])} exits with {done.returncode}: {done.stderr.strip()[:500]}")


def train(tool, folder, golden, work):
    """The plan and the trained model, as files in `work`."""
    with open(f"{work}/recipe.toml", "w") as file:
        file.write(recipe(golden))
    data = f"{folder}/train.npz"
    arrays = ",".join(f"{name}={data}:{name}" for name in np.load(data).files)
    run(tool("hone-compile"), f"{folder}/model.onnx", "-r", f"{work}/recipe.toml", "-o", f"{work}/plan.hone")
    run(tool("hone-run"), "train", f"{work}/plan.hone", "--train", arrays, "--pre-batched", "--quiet", "--out", f"{work}/trained.onnx")
    return f"{work}/plan.hone", f"{work}/trained.onnx"


def first_batch(folder, work):
    """Arrays of batch 0 by input name, and the same as --data takes them."""
    data = np.load(f"{folder}/train.npz")
    batch = {name: data[name][0] for name in data.files if name != "target"}
    paths = []
    for number, (name, array) in enumerate(batch.items()):
        np.save(f"{work}/in{number}.npy", array)
        paths.append(f"{name}={work}/in{number}.npy")
    return batch, ",".join(paths)


def check(tool, folder):
    """How far the two are apart, relative to the largest output, for the output that is furthest."""
    with open(f"{folder}/golden.json") as file:
        golden = json.load(file)
    with tempfile.TemporaryDirectory() as work:
        plan, trained = train(tool, folder, golden, work)
        onnx.checker.check_model(trained, full_check=True)
        batch, paths = first_batch(folder, work)
        run(tool("hone-run"), "predict", plan, "--weights", trained, "--data", paths, "--out", f"{work}/out.npz", "--quiet")
        ours = np.load(f"{work}/out.npz")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(trained, options, providers=["CPUExecutionProvider"])
        theirs = session.run(None, batch)
        worst = 0.0
        for output, expected in zip(session.get_outputs(), theirs):
            got = ours[output.name]
            if got.shape != expected.shape:
                raise RuntimeError(f"output {output.name} is {got.shape}, ONNX Runtime's is {expected.shape}")
            worst = max(worst, float(np.abs(got - expected).max() / np.abs(expected).max()))
        return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    folders = [folder for folder in arguments.folders if os.path.exists(f"{folder}/train.npz")]
    if not folders:
        print("skipped: the recorded models are not here")
        return 77
    failures = 0
    for folder in folders:
        name = os.path.basename(folder)
        try:
            apart = check(lambda tool: os.path.join(arguments.bin, tool), folder)
            good = apart <= TOLERANCE
            print(f"{'ok  ' if good else 'FAIL'} {name:24s} {apart:.2g} of the largest output apart", flush=True)
        except Exception as problem:  # one bad model does not hide the others
            good = False
            print(f"FAIL {name:24s} {problem}", flush=True)
        failures += not good
    print(f"{len(folders) - failures} of {len(folders)} agree with ONNX Runtime {onnxruntime.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
