#!/usr/bin/env python3
"""What scripts/gpu_check does with recorded runs (../shared/models); nothing but Python's own library is needed.

  gpu_check_losses.py recipe golden.json            the recipe of the recorded run, as TOML
  gpu_check_losses.py names train.npz               the arrays of a file, one a line
  gpu_check_losses.py hold golden.json metrics.jsonl   the losses of a run against the recorded ones: |loss - recorded| <= 5 * spread + 2e-5 * max(1, |recorded|), spread
                                                    being the largest that float rounding alone did up to that step; with a SHARE behind the files, that much of the recorded loss
"""
import json
import sys
import zipfile

LOSS = {"sparse_categorical_crossentropy_on_probabilities": "cross_entropy", "bce_on_probabilities": "bce", "l1": "mae"}
KEY = {"lr": "learning_rate", "eps": "epsilon", "alpha": "rho"}
NEEDED = ("lr", "eps", "beta1", "beta2", "initial_accumulator_value")


def recipe(golden):
    optimizer = golden["optimizer"]
    numbers = {k: v for k, v in optimizer.items() if isinstance(v, (int, float, bool)) and (k in NEEDED or v not in (0.0, False))}
    lines = ["[model]", "output = " + json.dumps(golden["output"]), "train_only = " + json.dumps(golden["trainable"]),
             "[loss]", f'kind = "{LOSS.get(golden["loss"], golden["loss"])}"', "[optimizer]", f'kind = "{optimizer["name"]}"']
    lines += [f"{KEY.get(k, k)} = {json.dumps(v)}" for k, v in numbers.items()]
    lines += ["[train]", "epochs = 1", "seed = 0", f'convention = "{"keras" if "tf2onnx" in golden["exporter"] else "torch"}"']
    return "\n".join(lines)


def hold(golden, metrics, share):
    losses = [row["loss"] for row in map(json.loads, metrics) if row.get("kind") == "step"]
    wanted = golden["loss_f64"]
    if len(losses) < len(wanted):
        return f"{len(losses)} steps, {len(wanted)} are recorded"
    spread = 0.0
    for step, (loss, want) in enumerate(zip(losses, wanted)):
        spread = max(spread, golden["spread"]["loss_by_step"][step])
        allowed = share * abs(want) if share else 5 * spread + 2e-5 * max(1, abs(want))
        if not abs(loss - want) <= allowed:
            return f"step {step}: loss {loss:.8g}, recorded is {want:.8g}, {allowed:.2g} is allowed"
    return ""


def main():
    what, files = sys.argv[1], sys.argv[2:]
    if what == "recipe":
        print(recipe(json.load(open(files[0]))))
    elif what == "names":
        print("\n".join(name.removesuffix(".npy") for name in zipfile.ZipFile(files[0]).namelist()))
    elif what == "hold":
        problem = hold(json.load(open(files[0])), open(files[1]), float(files[2]) if len(files) > 2 else 0)
        print(problem)
        sys.exit(1 if problem else 0)
    else:
        sys.exit(__doc__)


main()
