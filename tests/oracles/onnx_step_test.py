#!/usr/bin/env python3
"""A training step written as ONNX must be a valid model that ONNX Runtime runs with the loss, the gradients and the updates of hone-run.

usage: onnx_step_test.py --bin BUILD_BIN_DIR MODEL_DIR_OR_LIGHT_MODEL[+VARIANT]...
Each model is compiled as its recorded run says (a folder with golden.json), with more in the recipe for a variant (VARIANTS), or from fresh weights (light_NAME.onnx). `hone-dump PLAN --as onnx --stage train_step` writes the step,
within 5 s of processor time; onnx.checker looks at it; ONNX Runtime runs it on the first batch, and hone-run does the same step. One line a model; exit 0 when all agree, 77 (skipped) when
none of the models is here.

Losses agree within 1e-4. Optimizer states, and the weights of a plain gradient descent, agree within 1e-3 of the largest change of any tensor of their kind: a wrong gradient shows there. Other
optimizers divide by the gradient's own size, so that rounding decides where it is 0 but for rounding (a bias before a normalization): of their weights 99 in 100 agree within 1e-2.
"""
import collections
import glob
import json
import os
import resource
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime_test import recipe
from oracle import judge, outputs, parser, run, session, tools_in

LOSS_TOLERANCE = 1e-4
STATE_TOLERANCE = 1e-3
WEIGHT_TOLERANCE = 1e-2
MOST_OUTLIERS = 0.01
MOST_SECONDS = 5
NEW = "new:"
DTYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}
DTYPE_OF_INPUT = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
VARIANTS = {  # what the recipe says more, and the tolerance of states
    "": ("", STATE_TOLERANCE),
    "dropout": ('[model.dropout]\nafter = ["*"]\nrate = 0.3\n', STATE_TOLERANCE),  # the same elements must be dropped
    "bf16": ('precision = "bf16"\n', 8e-3),  # a place of the type
    "f16": ('precision = "f16"\n', 8e-3),
}
LIGHT = '[model]\ninitialize = "he_normal"\n[loss]\nkind = "{loss}"\nclass_axis = 1\n[optimizer]\nkind = "sgd"\nlearning_rate = 0.01\n'


def safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[start + one["data_offsets"][0]:start + one["data_offsets"][1]], DTYPES[one["dtype"]]).reshape(one["shape"]) for name, one in header.items()}


def recipe_of(model):
    """The model's file and the recipe's text."""
    if os.path.isdir(model):
        with open(f"{model}/golden.json") as file:
            return f"{model}/model.onnx", recipe(json.load(file))
    return model, LIGHT.format(loss="softmax_cross_entropy" if "densenet121" in model else "cross_entropy")  # all others end in Softmax


def first_batch(model, inputs):
    """Values by name for the inputs that must be fed."""
    if os.path.exists(f"{model}/train.npz"):
        data = np.load(f"{model}/train.npz")
        return {one.name: data[one.name][0] for one in inputs}
    batch = {}
    for one in inputs:
        shape = [4 if isinstance(extent, str) else extent for extent in one.shape]
        count = np.arange(np.prod(shape, dtype=np.int64))
        batch[one.name] = (np.sin(0.37 * (count % 1009)) if "float" in one.type else count % 7).reshape(shape).astype(DTYPE_OF_INPUT[one.type])
    return batch


def step_by_hone(tool, plan, batch, work):
    """The loss, and all weights and states after a step."""
    paths = []
    for number, (name, array) in enumerate(batch.items()):
        np.save(f"{work}/in{number}.npy", array[np.newaxis])
        paths.append(f"{name}={work}/in{number}.npy")
    run(tool("hone-run"), "train", plan, "--train", ",".join(paths), "--pre-batched", "--quiet", "--steps", "1", "--save-steps", "1", "--log-every", "1", "--run-dir", f"{work}/run")
    with open(f"{work}/run/metrics.jsonl") as file:
        losses = [line["loss"] for line in map(json.loads, file) if line["kind"] == "step"]
    checkpoint = sorted(glob.glob(f"{work}/run/checkpoint-*"))[0]
    return losses[0], {**safetensors(f"{checkpoint}/model.safetensors"), **safetensors(f"{checkpoint}/optimizer.safetensors")}


def compare(before, theirs, ours, is_descent, tolerance):
    """A sentence for each kind of tensor that differs too much: weights, or states of one name."""
    kinds = collections.defaultdict(list)
    for name, value in theirs.items():
        old, new = before[name].astype(np.float64), ours[name].astype(np.float64)
        if value.shape != new.shape:
            return [f"{name} is {value.shape}, expected {new.shape}"]
        of, _, kind = name.rpartition("/")
        kinds["/" + kind if of in ours else "weights"].append((name, np.abs(value.astype(np.float64) - new), np.abs(new - old)))
    problems = []
    for kind, tensors in kinds.items():
        scale = max((change.max(initial=0) for _, _, change in tensors), default=0) or 1
        if kind == "weights" and not is_descent:
            count = sum(apart.size for _, apart, _ in tensors)
            far = sum(int((apart > WEIGHT_TOLERANCE * scale).sum()) for _, apart, _ in tensors)
            if far > MOST_OUTLIERS * count:
                problems.append(f"{far} of {count} weights differ by more than {WEIGHT_TOLERANCE} of the largest step")
            continue
        name, worst = max(((name, apart.max(initial=0)) for name, apart, _ in tensors), key=lambda one: one[1])
        if not worst <= tolerance * scale:
            problems.append(f"{name} differs by {worst / scale:.2g} of the largest change of {kind}")
    return problems


def seconds_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check(tool, wanted):
    """A line about the model. Raises RuntimeError if anything is wrong."""
    model, _, variant = wanted.partition("+")
    file, text = recipe_of(model)
    more, tolerance = VARIANTS[variant]
    text += more
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/train.toml", "w") as recipe_file:
            recipe_file.write(text)
        plan, step = f"{work}/plan.hone", f"{work}/step.onnx"
        run(tool("hone-compile"), file, "-r", f"{work}/train.toml", "-o", plan)
        before = seconds_of_children()
        with open(step, "wb") as out:
            run(tool("hone-dump"), plan, "--as", "onnx", "--stage", "train_step", stdout=out)
        seconds = seconds_of_children() - before
        if seconds > MOST_SECONDS:
            raise RuntimeError(f"hone-dump took {seconds:.1f} s")
        onnx.checker.check_model(step, full_check=True)
        proto = onnx.load(step)
        initial = {one.name: onnx.numpy_helper.to_array(one) for one in proto.graph.initializer}
        step_session = session(step)
        batch = first_batch(model, step_session.get_inputs())
        results = outputs(step_session, batch)
        loss, states = step_by_hone(tool, plan, batch, work)
        found = float(results["loss"])
        if not abs(found - loss) <= LOSS_TOLERANCE * abs(loss):
            raise RuntimeError(f"the loss is {found:.9g}, hone-run's is {loss:.9g}")
        theirs = {name[len(NEW):]: value for name, value in results.items() if name.startswith(NEW)}
        problems = compare(initial, theirs, states, is_descent='kind = "sgd"' in text, tolerance=tolerance)
        if not theirs or problems:
            raise RuntimeError("; ".join(problems) or "no weight is updated")
        fused = sum(node.domain != "" for node in proto.graph.node)
        return f"loss {found:.7g} and {loss:.7g}, {len(theirs)} weights and states, {len(proto.graph.node)} nodes, {fused} of them functions, {seconds:.2f} s"


def main():
    arguments = parser()
    arguments.add_argument("models", nargs="+")
    given = arguments.parse_args()
    models = [model for model in given.models if os.path.exists(f"{model.partition('+')[0]}/golden.json") or os.path.isfile(model)]
    return judge([(os.path.basename(model), (tools_in(given.bin), model)) for model in models], check, f"ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    sys.exit(main())
