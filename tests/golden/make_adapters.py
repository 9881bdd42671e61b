#!/usr/bin/env python3
"""Writes adapters.json beside itself: what PyTorch makes of recorded models (../shared/models) that are fine-tuned through low-rank adapters.

tests/golden/adapters_test.cc reads the file; Python is not needed to build or test. Written with PyTorch 2.15.0, onnx 1.23, NumPy 2.4.6:  python make_adapters.py SHARED/models

The graph of the ONNX file is run node by node in float64, with W + alpha / rank * (B A) in place of each target, so this knows nothing of how Hone arranges the same. A begins as
values that both sides can write down (first_a), B as zeros.
"""
import json
import math
import pathlib
import sys

import numpy as np
import onnx
import torch
from onnx import numpy_helper

FOLDER = pathlib.Path(__file__).parent
STEPS = 50
torch.set_default_dtype(torch.float64)

# Per case: the model, whether each target is [outputs, inputs] or [inputs, outputs], what is trained besides, and the recipe's numbers.
CASES = [
    {"model": "hf_bert_tiny", "patterns": ["*.query*", "*.value*"], "rank": 8, "alpha": 16, "train_only": [],
     "targets": {"onnx::MatMul_370": "in,out", "onnx::MatMul_378": "in,out", "onnx::MatMul_383": "in,out", "onnx::MatMul_391": "in,out"}},
    {"model": "hf_bert_tiny", "patterns": ["*dense/MatMul", "m.bert.pooler.dense.weight"], "rank": 4, "alpha": 4, "train_only": ["m.classifier.*"],
     "targets": {"m.bert.pooler.dense.weight": "out,in", "onnx::MatMul_380": "in,out", "onnx::MatMul_381": "in,out", "onnx::MatMul_382": "in,out",
                 "onnx::MatMul_393": "in,out", "onnx::MatMul_394": "in,out", "onnx::MatMul_395": "in,out"}},
    {"model": "torch_gpt_tiny", "patterns": ["h.*.c_attn.weight", "*h.1/proj*", "wte.weight"], "rank": 8, "alpha": 16, "train_only": [],
     "targets": {"wte.weight": "out,in", "h.0.c_attn.weight": "out,in", "h.1.c_attn.weight": "out,in", "h.1.proj.weight": "out,in"}},
]
OPTIMIZER = {"kind": "adamw", "learning_rate": 1e-3, "weight_decay": 0.01}


def first_a(number, rank, inputs):
    """Element i of adapter `number`: a fraction of 2^32 between -1 and 1, over sqrt(inputs), rounded to f32."""
    i = np.arange(rank * inputs, dtype=np.uint64)
    fraction = ((i * 2654435761 + (number + 1) * 40503) % 2**32).astype(np.float64) / 2**32
    return torch.tensor(np.float64(np.float32((2 * fraction - 1) / math.sqrt(inputs))).reshape(rank, inputs))


def attribute(node, name, default=None):
    for each in node.attribute:
        if each.name == name:
            return onnx.helper.get_attribute_value(each)
    return default


def tensor_of(proto):
    array = torch.tensor(numpy_helper.to_array(proto))
    return array.double() if array.is_floating_point() else array


def as_double(x):
    return x.double() if x.is_floating_point() else x


def gather(n, x, index):
    axis = attribute(n, "axis", 0)
    index = torch.where(index < 0, index + x.shape[axis], index)
    return torch.index_select(x, axis, index.reshape(-1)).reshape([*x.shape[:axis], *index.shape, *x.shape[axis + 1:]])


def slice_(n, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes.tolist()
    at = [slice(None)] * x.dim()
    for k, axis in enumerate(axes):
        assert steps is None or int(steps[k]) == 1
        at[axis] = slice(int(starts[k]), min(int(ends[k]), x.shape[axis]))
    return x[tuple(at)]


def unsqueeze(n, x, axes):
    for axis in sorted(axes.tolist()):
        x = x.unsqueeze(axis)
    return x


def reshape(n, x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape.tolist())])


def gemm(n, a, b, c):
    assert attribute(n, "alpha", 1.0) == 1 and attribute(n, "beta", 1.0) == 1 and not attribute(n, "transA", 0)
    return a @ (b.T if attribute(n, "transB", 0) else b) + c


def cast(n, x):
    return x.to({1: torch.float64, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64}[attribute(n, "to")])


def div(n, a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def mean(n, x):
    return x.mean(dim=list(attribute(n, "axes")), keepdim=bool(attribute(n, "keepdims", 1)))


def layer_normalization(n, x, scale, bias):
    return torch.nn.functional.layer_norm(x, scale.shape, scale, bias, attribute(n, "epsilon", 1e-5))


def flatten(n, x):
    axis = attribute(n, "axis", 1)
    return x.reshape(math.prod(x.shape[:axis]), -1)


OPERATORS = {
    "Add": lambda n, a, b: a + b, "Sub": lambda n, a, b: a - b, "Mul": lambda n, a, b: a * b, "Div": div, "Pow": lambda n, a, b: a ** b, "Sqrt": lambda n, x: x.sqrt(),
    "Tanh": lambda n, x: x.tanh(), "Erf": lambda n, x: torch.erf(x), "And": lambda n, a, b: a & b, "Equal": lambda n, a, b: a == b, "GreaterOrEqual": lambda n, a, b: a >= b,
    "Where": lambda n, c, a, b: torch.where(c, a, b), "MatMul": lambda n, a, b: a @ b, "Gemm": gemm, "Softmax": lambda n, x: x.softmax(attribute(n, "axis", -1)),
    "Transpose": lambda n, x: x.permute(list(attribute(n, "perm"))), "Shape": lambda n, x: torch.tensor(x.shape), "Gather": gather, "Slice": slice_, "Unsqueeze": unsqueeze,
    "Reshape": reshape, "Concat": lambda n, *xs: torch.cat(xs, attribute(n, "axis")), "Cast": cast, "ReduceMean": mean, "LayerNormalization": layer_normalization,
    "Flatten": flatten, "Expand": lambda n, x, shape: x.expand(torch.broadcast_shapes(x.shape, shape.tolist())), "Range": lambda n, a, b, s: torch.arange(int(a), int(b), int(s)),
    "Constant": lambda n: tensor_of(attribute(n, "value")), "ConstantOfShape": lambda n, shape: torch.full(shape.tolist(), tensor_of(attribute(n, "value")).reshape(-1)[0].item()),
}


def run(graph, values):
    for node in graph.node:
        if node.op_type == "Split":
            parts = torch.split(values[node.input[0]], values[node.input[1]].tolist(), attribute(node, "axis", 0)) if len(node.input) > 1 else torch.chunk(
                values[node.input[0]], len(node.output), attribute(node, "axis", 0))
            values.update(zip(node.output, parts))
        else:
            values[node.output[0]] = OPERATORS[node.op_type](node, *(values[name] if name else None for name in node.input))
    return values


def train(case, models):
    folder = models / case["model"]
    graph = onnx.load(folder / "model.onnx").graph
    weights = {tensor.name: tensor_of(tensor) for tensor in graph.initializer}
    data = np.load(folder / "train.npz")
    rank, scale = case["rank"], case["alpha"] / case["rank"]
    trained, adapters = {}, {}
    for number, (name, order) in enumerate(sorted(case["targets"].items())):
        rows, columns = weights[name].shape
        outputs, inputs = (rows, columns) if order == "out,in" else (columns, rows)
        adapters[name] = a, b = first_a(number, rank, inputs), torch.zeros(outputs, rank)
        trained[name + ".lora_A"], trained[name + ".lora_B"] = a.requires_grad_(), b.requires_grad_()
    for name in weights:
        if any(name.startswith(pattern.rstrip("*")) for pattern in case["train_only"]):
            trained[name] = weights[name].requires_grad_()
    optimizer = torch.optim.AdamW(trained.values(), lr=OPTIMIZER["learning_rate"], weight_decay=OPTIMIZER["weight_decay"])

    def output_of(batch):
        merged = dict(weights)
        for name, (a, b) in adapters.items():
            merged[name] = weights[name] + scale * (b @ a if case["targets"][name] == "out,in" else (b @ a).T)
        fed = {key: torch.tensor(data[key][batch]) for key in data.files if key != "target"}
        return run(graph, {**merged, **fed})[graph.output[0].name]

    losses = []
    for step in range(STEPS):
        output = output_of(step)
        loss = torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), torch.tensor(data["target"][step]).reshape(-1))
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    norms = {name: value.detach().norm().item() for name, value in trained.items()}
    return {"model": case["model"], "recipe": recipe(case, graph.output[0].name), "inputs": {name: list(trained[name + ".lora_A"].shape)[1] for name in sorted(adapters)}, "rank": rank,
            "losses": losses, "norms": norms, "output": output_of(0)[0].detach().reshape(-1)[:64].tolist()}


def recipe(case, output):
    text = f"[model]\noutput = {json.dumps(output)}\n" + (f"train_only = {json.dumps(case['train_only'])}\n" if case["train_only"] else "")
    text += f"[lora]\ntargets = {json.dumps(case['patterns'])}\nrank = {case['rank']}\nalpha = {case['alpha']}\n[loss]\nkind = \"softmax_cross_entropy\"\n[optimizer]\n"
    return text + "".join(f"{key} = {json.dumps(value)}\n" for key, value in OPTIMIZER.items())


if __name__ == "__main__":
    cases = [train(case, pathlib.Path(sys.argv[1])) for case in CASES]
    (FOLDER / "adapters.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    for made in cases:
        print(made["model"], made["losses"][0], made["losses"][-1])
