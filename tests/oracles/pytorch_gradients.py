#!/usr/bin/env python3
"""Writes tests/oracles/pytorch/*.cases: random cases whose outputs and gradients PyTorch computed in double.

usage: pytorch_gradients.py OUT_DIR [FAMILY...]
Each file is a family: ONNX models one after the other, each behind its length (4 bytes, little endian). A model is a node or a few. Its initializers:
x0, x1, ... are what p is differentiated by, c0, c1, ... are given, y0, y1, ... are PyTorch's outputs, w0, w1, ... weigh them in p = sum of y * w, and
g:x0, ... are the gradients of p. All floats are float32 (gradients rounded to it); the test makes inputs of x and c, and compares in double.
"""
import os
import random
import struct
import sys

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(4)
pick = random.Random(4)


def number(low, high):
    return pick.randint(low, high)


def real(value):
    """A number that float32 holds exactly."""
    return float(np.float32(value))


class Case:
    """One model: inputs are added, then nodes, then PyTorch's outputs."""

    def __init__(self, says, opset=20):
        self.says, self.opset = says, opset
        self.tensors, self.variables, self.nodes, self.outputs = {}, {}, [], []

    def x(self, *shape, low=None, high=None, values=None):
        """A variable, as a double tensor that float32 holds exactly."""
        if values is None:
            values = rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)
        values = np.asarray(values, np.float32)
        name = f"x{len(self.variables)}"
        self.tensors[name] = values
        self.variables[name] = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        return self.variables[name]

    def c(self, values, dtype=np.int64):
        """A given tensor; its name."""
        name = f"c{len(self.tensors)}"
        self.tensors[name] = np.asarray(values, dtype)
        return name

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **{k: v for k, v in attributes.items() if v is not None}))
        return self

    def gives(self, *outputs):
        self.outputs = list(outputs)
        return self

    def model(self):
        tensors = dict(self.tensors)
        p = 0
        for i, y in enumerate(self.outputs):
            w = rng.uniform(-1, 1, tuple(y.shape)).astype(np.float32)
            tensors[f"y{i}"], tensors[f"w{i}"] = y.detach().numpy().astype(np.float32), w
            p = p + (y * torch.tensor(w, dtype=torch.float64)).sum()
        gradients = torch.autograd.grad(p, list(self.variables.values()), allow_unused=True)
        for name, gradient in zip(self.variables, gradients):
            zero = torch.zeros_like(self.variables[name])
            tensors["g:" + name] = (zero if gradient is None else gradient).numpy().astype(np.float32)
        initializers = [numpy_helper.from_array(np.array(v, order="C"), k) for k, v in tensors.items()]
        outputs = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(len(self.outputs))]
        graph = helper.make_graph(self.nodes, self.says, [], outputs, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def names(case):
    return list(case.variables)


# --- convolutions ---


def conv(i):
    rank = (2, 1, 2, 3)[i % 4]
    groups = pick.choice([1, 1, 2, 3])
    c_in, c_out = groups * number(1, 2), groups * number(1, 2)
    kernel = [number(1, 3) for _ in range(rank)]
    stride, dilation, pad = ([number(1, 2) for _ in range(rank)], [number(1, 2) for _ in range(rank)], [number(0, 1) for _ in range(rank)])
    extent = [(k - 1) * d + 1 + number(0, 3 if rank < 3 else 1) for k, d in zip(kernel, dilation)]
    case = Case(f"conv {i}: rank {rank}, groups {groups}, kernel {kernel}, stride {stride}, dilation {dilation}, pad {pad}")
    x, w, b = case.x(number(1, 2), c_in, *extent), case.x(c_out, c_in // groups, *kernel), case.x(c_out) if i % 3 else None
    run = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    case.node("Conv", names(case), ["y0"], strides=stride, dilations=dilation, pads=pad + pad, group=groups)
    return case.gives(run(x, w, b, stride, pad, dilation, groups))


def conv_transpose(i):
    rank = (2, 1, 2, 3)[i % 4]
    groups = pick.choice([1, 1, 2])
    c_in, c_out = groups * number(1, 2), number(1, 2)
    kernel = [number(2, 3) for _ in range(rank)]
    stride, dilation, pad = ([number(1, 3) for _ in range(rank)], [number(1, 2) for _ in range(rank)], [number(0, 1) for _ in range(rank)])
    more = [number(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
    case = Case(f"conv_transpose {i}: rank {rank}, groups {groups}, kernel {kernel}, stride {stride}, dilation {dilation}, pad {pad}, output_padding {more}")
    x, w = case.x(number(1, 2), c_in, *[number(2, 3) for _ in range(rank)]), case.x(c_in, c_out, *kernel)
    b = case.x(c_out * groups) if i % 3 else None
    run = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    case.node("ConvTranspose", names(case), ["y0"], strides=stride, dilations=dilation, pads=pad + pad, output_padding=more, group=groups)
    return case.gives(run(x, w, b, stride, pad, more, groups, dilation))


# --- pooling ---


def pool(i):
    kind = ("max", "average", "lp", "max", "average", "global_max", "global_average")[i % 7]
    rank = (2, 1, 2, 3)[i % 4] if kind != "lp" else 1 + i % 2
    extent = [number(4, 6) if rank < 3 else 3 for _ in range(rank)]
    case = Case(f"pool {i}: {kind}, {extent}", opset=22)
    x = case.x(number(1, 2), 2, *extent)
    if kind.startswith("global"):
        y = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d) if kind == "global_max" else (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return case.node("GlobalMaxPool" if kind == "global_max" else "GlobalAveragePool", ["x0"], ["y0"]).gives(y[rank - 1](x, 1))
    kernel, stride = [number(2, 3) for _ in range(rank)], [number(1, 2) for _ in range(rank)]
    pad, ceil = [number(0, 1) for _ in range(rank)], number(0, 1)
    if kind == "max":
        dilation = [number(1, 2) if rank < 3 else 1 for _ in range(rank)]
        kernel = [2 if d == 2 else k for k, d in zip(kernel, dilation)]
        run = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
        case.node("MaxPool", ["x0"], ["y0"], kernel_shape=kernel, strides=stride, pads=pad + pad, dilations=dilation, ceil_mode=ceil)
        return case.gives(run(x, kernel, stride, pad, dilation, bool(ceil)))
    if kind == "average":
        run, count = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1], number(0, 1)
        case.node("AveragePool", ["x0"], ["y0"], kernel_shape=kernel, strides=stride, pads=pad + pad, ceil_mode=ceil, count_include_pad=count)
        return case.gives(run(x, kernel, stride, pad, bool(ceil), bool(count)))
    p = number(1, 3)
    positive = Case(case.says + f", p {p}", opset=22)  # PyTorch raises the sum to 1/p as it is: elements above 0 make it ONNX's
    x = positive.x(number(1, 2), 2, *extent, low=0.2, high=2)
    run = (F.lp_pool1d, F.lp_pool2d)[rank - 1]
    positive.node("LpPool", ["x0"], ["y0"], kernel_shape=kernel, strides=stride, p=p)
    return positive.gives(run(x, p, kernel if rank > 1 else kernel[0], stride if rank > 1 else stride[0]))


# --- normalization ---


def normalization(i):
    kind = ("layer", "group", "instance", "batch", "lrn", "rms", "softmax", "log_softmax", "lp", "mean_variance")[i % 10]
    eps = real(pick.choice([1e-5, 1e-3, 0.125]))
    n, c, extent = number(1, 3), 2 * number(1, 2), [number(2, 4) for _ in range(number(1, 3) if i % 2 else 2)]
    case = Case(f"normalization {i}: {kind}, epsilon {eps}, [{n}, {c}] + {extent}", opset=23 if kind == "rms" else 21)
    if kind == "layer":
        x, axis = case.x(n, c, *extent), number(1, 1 + len(extent))
        shape = list(x.shape[axis:])
        w, b = case.x(*shape), case.x(*shape) if number(0, 1) else None
        return case.node("LayerNormalization", names(case), ["y0"], axis=axis, epsilon=eps).gives(F.layer_norm(x, shape, w, b, eps))
    if kind == "rms":
        x, axis = case.x(n, c, *extent), number(1, 1 + len(extent))
        shape = list(x.shape[axis:])
        w = case.x(*shape)
        return case.node("RMSNormalization", names(case), ["y0"], axis=axis, epsilon=eps).gives(F.rms_norm(x, shape, w, eps))
    if kind == "group":
        x, w, b = case.x(n, c, *extent), case.x(c), case.x(c)
        groups = pick.choice([1, 2, c])
        return case.node("GroupNormalization", names(case), ["y0"], num_groups=groups, epsilon=eps).gives(F.group_norm(x, groups, w, b, eps))
    if kind == "instance":
        x, w, b = case.x(n, c, *extent), case.x(c), case.x(c)
        return case.node("InstanceNormalization", names(case), ["y0"], epsilon=eps).gives(F.instance_norm(x, weight=w, bias=b, eps=eps))
    if kind == "batch":
        x, w, b = case.x(n + 1, c, *extent), case.x(c), case.x(c)
        mean, variance = rng.standard_normal(c).astype(np.float32), rng.uniform(0.5, 2, c).astype(np.float32)
        case.node("BatchNormalization", ["x0", "x1", "x2", case.c(mean, np.float32), case.c(variance, np.float32)], ["y0"], epsilon=eps)
        return case.gives(F.batch_norm(x, torch.tensor(mean).double(), torch.tensor(variance).double(), w, b, False, 0, eps))
    if kind == "lrn":
        x, size, alpha, beta, k = case.x(n, c + 3, 2, 3), pick.choice([1, 3, 5]), real(0.5), real(0.75), real(1.5)
        return case.node("LRN", ["x0"], ["y0"], size=size, alpha=alpha, beta=beta, bias=k).gives(F.local_response_norm(x, size, alpha, beta, k))
    x = case.x(n + 1, c, *extent)
    axis = number(-x.dim(), x.dim() - 1)
    if kind == "softmax":
        return case.node("Softmax", ["x0"], ["y0"], axis=axis).gives(F.softmax(x, axis))
    if kind == "log_softmax":
        return case.node("LogSoftmax", ["x0"], ["y0"], axis=axis).gives(F.log_softmax(x, axis))
    if kind == "lp":
        p = number(1, 2)
        return case.node("LpNormalization", ["x0"], ["y0"], axis=axis, p=p).gives(F.normalize(x, p, axis, 0))
    axes = [0, *range(2, x.dim())]
    deviation = torch.sqrt(x.var(axes, unbiased=False, keepdim=True)) + 1e-9
    return case.node("MeanVarianceNormalization", ["x0"], ["y0"], axes=axes).gives((x - x.mean(axes, keepdim=True)) / deviation)


# --- resize, grid sample, affine grid ---

FIRST = ("nearest", "linear", "linear_align", "cubic", "cubic_align", "linear_antialias", "cubic_antialias", "nearest_exact")


def resize(i):
    kind = FIRST[i % len(FIRST)]
    mode = kind.split("_")[0]
    rank = 2 if mode == "cubic" or "antialias" in kind else (2, 1, 3)[i % 3]
    extent = [number(2, 5 if rank < 3 else 3) for _ in range(rank)]
    size = [number(2, 7 if rank < 3 else 4) for _ in range(rank)]
    case = Case(f"resize {i}: {kind}, {extent} to {size}")
    x = case.x(1, 2, *extent)
    torch_mode = {"nearest": "nearest", "nearest_exact": "nearest-exact"}.get(kind) or ({1: "linear", 2: "bilinear", 3: "trilinear"}[rank] if mode == "linear" else "bicubic")
    options = {} if mode == "nearest" else {"align_corners": "align" in kind}
    coordinates = "align_corners" if "align" in kind else "asymmetric" if kind == "nearest" else "half_pixel"
    case.node("Resize", ["x0", "", "", case.c([1, 2, *size])], ["y0"], mode=mode, coordinate_transformation_mode=coordinates,
              nearest_mode="floor" if kind == "nearest" else "round_prefer_ceil" if kind == "nearest_exact" else None,
              cubic_coeff_a=(-0.5 if "antialias" in kind else -0.75) if mode == "cubic" else None, antialias=1 if "antialias" in kind else None,
              exclude_outside=1 if "antialias" in kind else None)
    return case.gives(F.interpolate(x, size, mode=torch_mode, antialias="antialias" in kind, **options))


def grid_sample(i):
    mode = ("bilinear", "nearest", "bicubic", "bilinear")[i % 4]
    padding = ("zeros", "border", "reflection")[i % 3]
    align = (i // 2) % 2
    rank = 3 if mode != "bicubic" and i % 5 == 4 else 2
    case = Case(f"grid_sample {i}: {mode}, {padding}, align_corners {align}, rank {rank}")
    x = case.x(number(1, 2), 2, *[number(3, 4) for _ in range(rank)])
    grid = case.x(x.shape[0], *[number(2, 3) for _ in range(rank)], rank, low=-1.3, high=1.3)
    case.node("GridSample", ["x0", "x1"], ["y0"], mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode), padding_mode=padding, align_corners=align)
    return case.gives(F.grid_sample(x, grid, mode, padding, bool(align)))


def affine_grid(i):
    rank, align = 2 + i % 2, (i // 2) % 2
    case = Case(f"affine_grid {i}: rank {rank}, align_corners {align}")
    theta, size = case.x(number(1, 2), rank, rank + 1), [number(2, 4) for _ in range(rank)]
    size = [theta.shape[0], 2, *size]
    return case.node("AffineGrid", ["x0", case.c(size)], ["y0"], align_corners=align).gives(F.affine_grid(theta, size, bool(align)))


# --- gather and scatter ---


def index(i):
    kind = ("gather", "gather_elements", "scatter", "scatter_add", "scatter_mul", "scatter_max", "gather_nd", "scatter_nd", "scatter_nd_add", "top_k", "cum_sum", "cum_prod", "trilu")[i % 13]
    shape = [number(3, 4) for _ in range(number(2, 3))]
    case = Case(f"index {i}: {kind}, {shape}", opset=26 if kind == "cum_prod" else 18)
    x = case.x(*shape)
    axis = number(0, len(shape) - 1)
    if kind == "gather":
        at = rng.integers(-shape[axis], shape[axis], (2, 3))
        y = torch.stack([torch.index_select(x, axis, torch.tensor(row % shape[axis])) for row in at], axis)
        return case.node("Gather", ["x0", case.c(at)], ["y0"], axis=axis).gives(y)
    if kind == "gather_elements":
        at = rng.integers(0, shape[axis], [5 if k == axis else e for k, e in enumerate(shape)])
        return case.node("GatherElements", ["x0", case.c(at)], ["y0"], axis=axis).gives(torch.gather(x, axis, torch.tensor(at)))
    if kind.startswith("scatter") and "nd" not in kind:
        lines = [2 if k == axis else e for k, e in enumerate(shape)]
        distinct = np.stack([rng.permutation(shape[axis])[:2] for _ in range(int(np.prod(lines)) // 2)]).reshape([e for k, e in enumerate(lines) if k != axis] + [2])
        at = np.moveaxis(distinct, -1, axis) if kind == "scatter" else rng.integers(0, shape[axis], lines)
        updates = case.x(*lines)
        reduction = {"scatter": None, "scatter_add": "add", "scatter_mul": "mul", "scatter_max": "max"}[kind]
        case.node("ScatterElements", ["x0", case.c(at), "x1"], ["y0"], axis=axis, reduction=reduction)
        torch_at = torch.tensor(np.ascontiguousarray(at))
        if reduction is None:
            return case.gives(torch.scatter(x, axis, torch_at, updates))
        return case.gives(torch.scatter_reduce(x, axis, torch_at, updates, {"add": "sum", "mul": "prod", "max": "amax"}[reduction], include_self=True))
    if kind == "gather_nd":
        depth = number(1, len(shape))
        at = np.stack([rng.integers(0, shape[k], (2, 3)) for k in range(depth)], -1)
        return case.node("GatherND", ["x0", case.c(at)], ["y0"]).gives(x[tuple(torch.tensor(at[..., k]) for k in range(depth))])
    if kind.startswith("scatter_nd"):
        depth, adds = number(1, len(shape)), kind.endswith("add")
        flat = rng.choice(int(np.prod(shape[:depth])), 3, replace=adds)
        at = np.stack(np.unravel_index(flat, shape[:depth]), -1)
        updates = case.x(3, *shape[depth:])
        case.node("ScatterND", ["x0", case.c(at), "x1"], ["y0"], reduction="add" if adds else None)
        return case.gives(torch.index_put(x, tuple(torch.tensor(at[..., k]) for k in range(depth)), updates, accumulate=adds))
    if kind == "top_k":
        k, largest = number(1, shape[axis]), number(0, 1)
        case.node("TopK", ["x0", case.c([k])], ["y0", "indices"], axis=axis, largest=largest)
        return case.gives(torch.topk(x, k, axis, bool(largest)).values)
    if kind.startswith("cum"):
        exclusive, reverse = number(0, 1) if kind == "cum_sum" else 0, number(0, 1)
        z = x.flip(axis) if reverse else x
        y = torch.cumsum(z, axis) if kind == "cum_sum" else torch.cumprod(z, axis)
        if exclusive:
            y = torch.cat([torch.zeros_like(y.narrow(axis, 0, 1)), y.narrow(axis, 0, shape[axis] - 1)], axis)
        case.node("CumSum" if kind == "cum_sum" else "CumProd", ["x0", case.c(axis)], ["y0"], exclusive=exclusive, reverse=reverse)
        return case.gives(y.flip(axis) if reverse else y)
    upper, k = number(0, 1), number(-2, 2)
    return case.node("Trilu", ["x0", case.c(k)], ["y0"], upper=upper).gives((torch.triu if upper else torch.tril)(x, k))


# --- recurrent layers ---


def gates(w, hidden, order):
    """PyTorch's rows of gates in ONNX's order."""
    return torch.cat([w[k * hidden:(k + 1) * hidden] for k in order])


def recurrent(i):
    kind = ("RNN", "LSTM", "GRU")[i % 3]
    both, hidden, inputs, length, batch = (i // 3) % 2, number(1, 3), number(1, 3), number(1, 4), number(1, 3)
    biased, started = i % 4 != 3, i % 5 < 3
    tanh = (i // 6) % 2 == 0
    count = {"RNN": 1, "LSTM": 4, "GRU": 3}[kind]
    order = {"RNN": [0], "LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}[kind]  # LSTM: ifgo to iofc; GRU: rzn to zrh
    directions = 1 + both
    case = Case(f"recurrent {i}: {kind}, {directions} directions, hidden {hidden}, length {length}" + (", relu" if kind == "RNN" and not tanh else ""))
    x = case.x(length, batch, inputs)
    w, r = case.x(directions, count * hidden, inputs), case.x(directions, count * hidden, hidden)
    b = case.x(directions, 2 * count * hidden) if biased else None
    h = case.x(directions, batch, hidden) if started else None
    c = case.x(directions, batch, hidden) if started and kind == "LSTM" else None
    options = {"nonlinearity": "tanh" if tanh else "relu"} if kind == "RNN" else {}
    layer = {"RNN": torch.nn.RNN, "LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}[kind](inputs, hidden, bias=biased, bidirectional=bool(both), **options).double()
    inverse = [order.index(k) for k in range(count)]
    parameters = {}
    for d in range(directions):
        suffix = "_l0" + ("_reverse" if d else "")
        parameters["weight_ih" + suffix], parameters["weight_hh" + suffix] = gates(w[d], hidden, inverse), gates(r[d], hidden, inverse)
        if biased:
            parameters["bias_ih" + suffix], parameters["bias_hh" + suffix] = gates(b[d][:count * hidden], hidden, inverse), gates(b[d][count * hidden:], hidden, inverse)
    zero = torch.zeros(directions, batch, hidden, dtype=torch.float64)
    state = (h if started else zero, c if started else zero) if kind == "LSTM" else (h if started else zero)
    y, last = torch.func.functional_call(layer, parameters, (x, state))
    y = y.reshape(length, batch, directions, hidden).transpose(1, 2)
    given = ["x0", "x1", "x2", "x3" if biased else "", ""]
    next_name = 3 + biased
    given += [f"x{next_name}"] if started else []
    given += [f"x{next_name + 1}"] if c is not None else []
    activations = (["Tanh"] if tanh else ["Relu"]) * directions if kind == "RNN" else None
    case.node(kind, given, ["y0", "y1", "y2"][:3 if kind == "LSTM" else 2], hidden_size=hidden, direction="bidirectional" if both else "forward",
              activations=activations, linear_before_reset=1 if kind == "GRU" else None)
    return case.gives(y, *last) if kind == "LSTM" else case.gives(y, last)


# --- einsum and attention ---

EQUATIONS = ("ij,jk->ik", "ij,jk", "bij,bjk->bik", "ij->ji", "ij->", "ii->i", "ii", "ij,ij->", "i,j->ij", "bij,bkj->bik", "abc,cd,de->abe", "bhqd,bhkd->bhqk", "...ij,...jk->...ik",
             "ij,j->i", "abcd->dcba", "ijk,ilm,jn->kn", "...i->...", "bi,bj->bij")


def einsum(i):
    equation = EQUATIONS[i % len(EQUATIONS)]
    sizes = {}
    case = Case(f"einsum {i}: {equation}")
    for term in equation.split("->")[0].split(","):
        case.x(*([2, 1] if "..." in term else []), *[sizes.setdefault(letter, number(1, 4)) for letter in term.replace("...", "")])
    return case.node("Einsum", names(case), ["y0"], equation=equation).gives(torch.einsum(equation, *case.variables.values()))


def attention(i):
    kind = ("plain", "causal", "mask", "scale", "grouped", "bool_mask", "causal_longer")[i % 7]
    batch, heads, length, size = number(1, 2), 2, number(2, 4), number(2, 4)
    keys = length + 2 if kind == "causal_longer" else length if kind == "causal" else number(2, 5)
    key_heads = 1 if kind == "grouped" else heads
    case = Case(f"attention {i}: {kind}, batch {batch}, {length} queries, {keys} keys", opset=23)
    q, k, v = case.x(batch, heads, length, size), case.x(batch, key_heads, keys, size), case.x(batch, key_heads, keys, number(2, 4))
    inputs, options, attributes = names(case), {}, {}
    if kind == "mask":
        options["attn_mask"] = case.x(length, keys)
        inputs = names(case)
    if kind == "bool_mask":
        allowed = rng.random((length, keys)) < 0.6
        allowed[:, 0] = True
        inputs.append(case.c(allowed, bool))
        options["attn_mask"] = torch.tensor(allowed)
    if kind.startswith("causal"):
        options["is_causal"], attributes["is_causal"] = True, 1
    if kind == "scale":
        options["scale"] = attributes["scale"] = 0.375
    if kind == "grouped":
        options["enable_gqa"] = True
    case.node("Attention", inputs, ["y0"], **attributes)
    return case.gives(F.scaled_dot_product_attention(q, k, v, **options))


FAMILIES = {
    "conv": [(conv, 20), (conv_transpose, 12)],
    "pool": [(pool, 21)],
    "normalization": [(normalization, 30)],
    "resize": [(resize, 24), (grid_sample, 15), (affine_grid, 4)],
    "index": [(index, 39)],
    "recurrent": [(recurrent, 24)],
    "einsum": [(einsum, 18)],
    "attention": [(attention, 14)],
}


def main():
    out, chosen = sys.argv[1], sys.argv[2:] or list(FAMILIES)
    count = size = 0
    for family in FAMILIES:
        models = [make(i).model().SerializeToString() for make, many in FAMILIES[family] for i in range(many)]  # all, so that each draws the same numbers
        if family not in chosen:
            continue
        with open(os.path.join(out, family + ".cases"), "wb") as file:
            for model in models:
                file.write(struct.pack("<I", len(model)) + model)
        count += len(models)
        size += os.path.getsize(file.name)
    print(f"{count} cases, {size} bytes")


if __name__ == "__main__":
    main()
