#!/usr/bin/env python3
"""Writes losses.json, optimizers.json, schedules.json and metrics.json beside itself: inputs, and what PyTorch and Keras make of them.

Each case carries the recipe that asks Hone for the same. tests/golden_numbers/*_test.cc read the files; Python is not needed to build or test.
Written with PyTorch 2.15.0, Keras 3.15.1 (on PyTorch), lion-pytorch 0.2.5, NumPy 2.4.6:  KERAS_BACKEND=torch python make.py

PyTorch's side is computed in float64; Keras's losses and metrics, too, its optimizers in float32, because it rounds their constants to that.
"""
import json
import math
import os
import pathlib

os.environ["KERAS_BACKEND"] = "torch"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import torch
import keras
from lion_pytorch import Lion

FOLDER = pathlib.Path(__file__).parent
random = np.random.default_rng(1)
F = torch.nn.functional


def toml(value):
    return json.dumps(value) if not isinstance(value, dict) else "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"


def recipe(convention, **sections):
    sections.setdefault("train", {})["convention"] = convention
    return "".join(f"[{name}]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in keys.items()) for name, keys in sections.items())


def numbers(array):
    return [float(x) for x in np.asarray(array, dtype=np.float64).ravel()]


def compute_in(dtype):
    torch.set_default_dtype(getattr(torch, dtype))
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)


def draw(*shape, low=-2.0, high=2.0):
    """Floats of 24 bits, so that f32 and f64 mean the same."""
    return np.float64(np.float32(random.uniform(low, high, shape)))


def write(name, cases):
    (FOLDER / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(name, len(cases))


# ---- losses ----

losses = []
SGD = {"kind": "sgd"}


def loss_case(convention, loss, output, target, compute, sample_weight=None):
    x = torch.tensor(output, requires_grad=True)
    mean = compute(x, torch.tensor(target) if target is not None else None)
    mean.backward()
    case = {"recipe": recipe(convention, loss=loss, optimizer=SGD), "shape": list(output.shape), "output": numbers(output),
            "target": None if target is None else numbers(target), "loss": float(mean.detach()), "gradient": numbers(x.grad)}
    if sample_weight is not None:
        case["sample_weight"] = numbers(sample_weight)
    losses.append(case)


def torch_losses():
    logits, classes = draw(5, 4), random.integers(0, 4, 5)
    image, image_classes = draw(2, 3, 4), random.integers(0, 3, (2, 4))
    ignoring = classes.copy()
    ignoring[1] = -100
    w4, w3 = [0.5, 1, 2, 0.25], [1, 3, 0.5]
    samples = draw(5, low=0.25, high=2)
    t = torch.tensor
    for kind, prepare, scores in (("softmax_cross_entropy", lambda x: x, F.cross_entropy), ("nll", lambda x: torch.log_softmax(t(x), -1).numpy(), F.nll_loss)):
        x = prepare(logits)
        loss_case("torch", {"kind": kind}, x, classes, scores)
        loss_case("torch", {"kind": kind, "ignore_index": -100}, x, ignoring, scores)
        loss_case("torch", {"kind": kind, "class_weights": w4}, x, classes, lambda o, y: scores(o, y, weight=t(w4)))
        loss_case("torch", {"kind": kind, "class_weights": w4, "ignore_index": -100}, x, ignoring, lambda o, y: scores(o, y, weight=t(w4)))
        loss_case("torch", {"kind": kind, "sample_weights": True}, x, classes,
                  lambda o, y: (scores(o, y, reduction="none") * t(samples)).sum() / samples.sum(), samples)
        loss_case("torch", {"kind": kind, "sample_weights": True, "class_weights": w4}, x, classes,
                  lambda o, y: (scores(o, y, weight=t(w4), reduction="none") * t(samples)).sum() / (t(samples) * t(w4)[y]).sum(), samples)
    loss_case("torch", {"kind": "softmax_cross_entropy", "class_axis": 1, "class_weights": w3}, image, image_classes, lambda o, y: F.cross_entropy(o, y, weight=t(w3)))
    loss_case("torch", {"kind": "softmax_cross_entropy", "label_smoothing": 0.1}, logits, classes, lambda o, y: F.cross_entropy(o, y, label_smoothing=0.1))
    loss_case("torch", {"kind": "softmax_cross_entropy", "label_smoothing": 0.2, "class_weights": w4, "ignore_index": -100}, logits, ignoring,
              lambda o, y: F.cross_entropy(o, y, weight=t(w4), label_smoothing=0.2))
    soft, image_soft = (torch.softmax(-0.7 * t(x), 1).numpy() for x in (logits, image))
    of = {"targets": "probabilities"}
    loss_case("torch", {"kind": "softmax_cross_entropy"} | of, logits, soft, F.cross_entropy)
    loss_case("torch", {"kind": "softmax_cross_entropy"} | of, logits, np.eye(4)[classes], F.cross_entropy)
    loss_case("torch", {"kind": "softmax_cross_entropy", "class_axis": 1, "class_weights": w3, "label_smoothing": 0.2} | of, image, image_soft,
              lambda o, y: F.cross_entropy(o, y, weight=t(w3), label_smoothing=0.2))
    loss_case("torch", {"kind": "softmax_cross_entropy", "class_weights": w4, "sample_weights": True} | of, logits, soft,
              lambda o, y: (F.cross_entropy(o, y, weight=t(w4), reduction="none") * t(samples)).sum() / samples.sum(), samples)
    loss_case("torch", {"kind": "nll"} | of, torch.log_softmax(t(logits), -1).numpy(), soft, lambda o, y: -(o * y).sum(-1).mean())
    p = torch.softmax(t(logits), -1).numpy()
    loss_case("torch", {"kind": "cross_entropy"} | of, p, soft, lambda o, y: -(torch.log(o) * y).sum(-1).mean())
    loss_case("torch", {"kind": "cross_entropy"}, p, classes, lambda o, y: F.nll_loss(torch.log(o.clamp(1e-7, 1 - 1e-7)), y))
    loss_case("torch", {"kind": "cross_entropy", "class_weights": w4}, p, classes, lambda o, y: F.nll_loss(torch.log(o), y, weight=t(w4)))
    a, b = draw(4, 3), draw(4, 3)
    four = draw(4, low=0.25, high=2)
    for kind, compute in (("mse", F.mse_loss), ("mae", F.l1_loss), ("huber", F.huber_loss)):
        loss_case("torch", {"kind": kind}, a, b, compute)
        loss_case("torch", {"kind": kind, "sample_weights": True}, a, b,
                  lambda o, y: (compute(o, y, reduction="none") * t(four)[:, None]).sum() / (3 * four.sum()), four)
    loss_case("torch", {"kind": "huber", "delta": 0.5}, a, b, lambda o, y: F.huber_loss(o, y, delta=0.5))
    labels, p = np.float64(random.integers(0, 2, (4, 3))), draw(4, 3, low=0.05, high=0.95)
    saturated, certain = np.array([[0.0, 1.0, 0.5]]), np.array([[1.0, 1.0, 0.0]])
    loss_case("torch", {"kind": "bce"}, p, labels, F.binary_cross_entropy)
    loss_case("torch", {"kind": "bce"}, p, draw(4, 3, low=0, high=1), F.binary_cross_entropy)
    losses.append({"recipe": recipe("torch", loss={"kind": "bce"}, optimizer=SGD), "shape": [1, 3], "output": numbers(saturated), "target": numbers(certain),
                   "loss": float(F.binary_cross_entropy(t(saturated), t(certain)))})  # PyTorch's slope at 0 is 1e12; no gradient is compared
    loss_case("torch", {"kind": "bce_with_logits"}, a, labels, F.binary_cross_entropy_with_logits)
    w2, p2 = [0.5, 3], t([3.0])
    weigh = lambda y: t(w2)[y.long()]
    smoothed = lambda y: y * 0.8 + 0.1  # PyTorch has no smoothing here; these are Keras's targets
    for kind, x, scores in (("bce", p, F.binary_cross_entropy), ("bce_with_logits", a, F.binary_cross_entropy_with_logits)):
        loss_case("torch", {"kind": kind, "label_smoothing": 0.2}, x, labels, lambda o, y: scores(o, smoothed(y)))
        loss_case("torch", {"kind": kind, "class_weights": w2}, x, labels, lambda o, y: scores(o, y, weight=weigh(y)))
        loss_case("torch", {"kind": kind, "class_weights": w2, "sample_weights": True}, x, labels,
                  lambda o, y: (scores(o, y, weight=weigh(y), reduction="none") * t(four)[:, None]).sum() / (3 * four.sum()), four)
    for y in (labels, p):  # also between 0 and 1
        loss_case("torch", {"kind": "bce_with_logits", "class_weights": [1, 3]}, a, y, lambda o, y: F.binary_cross_entropy_with_logits(o, y, pos_weight=p2))
    loss_case("torch", {"kind": "bce_with_logits", "class_weights": [1, 3], "label_smoothing": 0.2}, a, labels,
              lambda o, y: F.binary_cross_entropy_with_logits(o, smoothed(y), pos_weight=p2))
    loss_case("torch", {"kind": "hinge"}, a, labels, lambda o, y: torch.clamp(1 - (2 * y - 1) * o, min=0).mean())
    e = 1e-7  # of these five PyTorch has but one; the others are Keras's formulas
    loss_case("torch", {"kind": "squared_hinge"}, a, labels, lambda o, y: torch.clamp(1 - (2 * y - 1) * o, min=0).square().mean())
    loss_case("torch", {"kind": "log_cosh"}, a, b, lambda o, y: torch.log(torch.cosh(o - y)).mean())
    loss_case("torch", {"kind": "msle"}, p, labels + 0.5, lambda o, y: (torch.log1p(o) - torch.log1p(y)).square().mean())
    loss_case("torch", {"kind": "mape"}, a, labels, lambda o, y: 100 * ((o - y) / y.abs().clamp(min=e)).abs().mean())
    loss_case("torch", {"kind": "poisson"}, a, 3 * labels, F.poisson_nll_loss)
    loss_case("torch", {"kind": "poisson", "sample_weights": True}, a, 3 * labels,
              lambda o, y: (F.poisson_nll_loss(o, y, reduction="none") * t(four)[:, None]).sum() / (3 * four.sum()), four)
    logp, q = torch.log_softmax(t(a), -1).numpy(), torch.softmax(t(b), -1).numpy()
    loss_case("torch", {"kind": "kl_divergence"}, logp, q, F.kl_div)
    with_zero = q.copy()
    with_zero[0] = [0, 1, 0]
    loss_case("torch", {"kind": "kl_divergence"}, logp, with_zero, F.kl_div)
    loss_case("torch", {"kind": "cosine"}, a, b, lambda o, y: F.cosine_embedding_loss(o, y, torch.ones(4)))
    given = draw(6, low=0, high=3)
    loss_case("torch", {"kind": "output"}, given, None, lambda o, y: o.mean())
    six = draw(6, low=0.25, high=2)
    loss_case("torch", {"kind": "output", "sample_weights": True}, given, None, lambda o, y: (o * t(six)).sum() / six.sum(), six)


def keras_losses():
    compute_in("float64")
    L = keras.losses
    logits, classes = draw(5, 4), random.integers(0, 4, 5)
    samples, w4 = draw(5, low=0.25, high=2), [0.5, 1, 2, 0.25]
    t = torch.tensor
    for kind, x, loss in (("softmax_cross_entropy", logits, L.SparseCategoricalCrossentropy(from_logits=True)),
                          ("cross_entropy", torch.softmax(t(logits), -1).numpy(), L.SparseCategoricalCrossentropy())):
        # Keras divides probabilities by their sum first, which is 1; its slope along that sum is not the loss's.
        compute = (lambda o, y, s=None: loss(y, o, sample_weight=s)) if kind.startswith("soft") else \
            (lambda o, y, s=None: (F.nll_loss(torch.log(o), y, reduction="none") * (1 if s is None else s)).mean())
        if not kind.startswith("soft"):
            assert abs(float(compute(t(x), t(classes))) - float(loss(t(classes), t(x)))) < 1e-6
        loss_case("keras", {"kind": kind}, x, classes, compute)
        loss_case("keras", {"kind": kind, "class_weights": w4}, x, classes, lambda o, y: compute(o, y, t(w4)[y]))
        loss_case("keras", {"kind": kind, "sample_weights": True, "class_weights": w4}, x, classes, lambda o, y: compute(o, y, t(w4)[y] * t(samples)), samples)
    loss_case("keras", {"kind": "softmax_cross_entropy", "ignore_index": 2}, logits, classes,
              lambda o, y: L.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2)(y, o))
    smooth = L.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    loss_case("keras", {"kind": "softmax_cross_entropy", "label_smoothing": 0.1, "class_weights": w4}, logits, classes,
              lambda o, y: smooth(F.one_hot(y, 4).double(), o, sample_weight=t(w4)[y]))
    soft, of = torch.softmax(-0.7 * t(logits), -1).numpy(), {"targets": "probabilities"}
    loss_case("keras", {"kind": "softmax_cross_entropy", "label_smoothing": 0.1} | of, logits, soft, lambda o, y: smooth(y, o))
    loss_case("keras", {"kind": "softmax_cross_entropy", "sample_weights": True} | of, logits, np.eye(4)[classes],
              lambda o, y: L.CategoricalCrossentropy(from_logits=True)(y, o, sample_weight=t(samples)), samples)
    fit = keras.src.trainers.data_adapters.data_adapter_utils.class_weight_to_sample_weights
    of_class = t(np.float64(fit(soft, dict(enumerate(w4)))))
    loss_case("keras", {"kind": "softmax_cross_entropy", "class_weights": w4} | of, logits, soft,
              lambda o, y: L.CategoricalCrossentropy(from_logits=True)(y, o, sample_weight=of_class))
    p = torch.softmax(t(logits), -1).numpy()
    assert abs(float(L.CategoricalCrossentropy()(t(soft), t(p))) + float((t(soft) * torch.log(t(p))).sum(-1).mean())) < 1e-6  # divided by their sum, as above
    loss_case("keras", {"kind": "cross_entropy"} | of, p, soft, lambda o, y: -(torch.log(o) * y).sum(-1).mean())
    logp = torch.log_softmax(t(logits), -1).numpy()
    loss_case("keras", {"kind": "nll", "class_weights": w4}, logp, classes, lambda o, y: (F.nll_loss(o, y, reduction="none") * t(w4)[y]).mean())
    a, b, labels, p = draw(4, 3), draw(4, 3), np.float64(random.integers(0, 2, (4, 3))), draw(4, 3, low=0.05, high=0.95)
    four = draw(4, low=0.25, high=2)
    q = torch.softmax(t(b), -1).numpy()
    with_zero = q.copy()
    with_zero[0] = [0, 1, 0]
    cases = [("mse", {}, a, b, L.MeanSquaredError()), ("mae", {}, a, b, L.MeanAbsoluteError()), ("huber", {"delta": 0.75}, a, b, L.Huber(delta=0.75)),
             ("bce", {}, p, labels, L.BinaryCrossentropy()), ("bce_with_logits", {}, a, labels, L.BinaryCrossentropy(from_logits=True)),
             ("hinge", {}, a, labels, L.Hinge()), ("hinge", {}, a, 2 * labels - 1, L.Hinge()), ("kl_divergence", {}, p, with_zero, L.KLDivergence()),
             ("squared_hinge", {}, a, labels, L.SquaredHinge()), ("squared_hinge", {}, a, 2 * labels - 1, L.SquaredHinge()), ("log_cosh", {}, a, b, L.LogCosh()),
             ("msle", {}, a, labels, L.MeanSquaredLogarithmicError()), ("mape", {}, a, b, L.MeanAbsolutePercentageError()), ("poisson", {}, p, 3 * labels, L.Poisson()),
             ("cosine", {}, a, b, L.CosineSimilarity())]
    for kind, keys, x, y, loss in cases:
        loss_case("keras", {"kind": kind} | keys, x, y, lambda o, z: loss(z, o))
        loss_case("keras", {"kind": kind, "sample_weights": True} | keys, x, y, lambda o, z: loss(z, o, sample_weight=t(four)), four)
    one, yes = p[:, :1], labels[:, :1]  # as fit(class_weight=...) takes them
    of_class = t(np.float64(fit(yes, {0: 0.5, 1: 3.0})))
    for kind, x, from_logits in (("bce", one, False), ("bce_with_logits", a[:, :1], True)):
        smooth = L.BinaryCrossentropy(from_logits=from_logits, label_smoothing=0.2)
        loss_case("keras", {"kind": kind, "label_smoothing": 0.2}, x, yes, lambda o, y: smooth(y, o))
        plain = L.BinaryCrossentropy(from_logits=from_logits)
        loss_case("keras", {"kind": kind, "class_weights": [0.5, 3]}, x, yes, lambda o, y: plain(y, o, sample_weight=of_class))
        loss_case("keras", {"kind": kind, "class_weights": [0.5, 3], "label_smoothing": 0.2, "sample_weights": True}, x, yes,
                  lambda o, y: smooth(y, o, sample_weight=of_class * t(four)), four)
    compute_in("float32")  # where 1 - 1e-7 is another number
    saturated, certain = np.float32([[0.0, 1.0, 0.5]]), np.float32([[1.0, 0.0, 0.0]])
    losses.append({"recipe": recipe("keras", loss={"kind": "bce"}, optimizer=SGD), "shape": [1, 3], "output": numbers(saturated), "target": numbers(certain),
                   "loss": float(L.BinaryCrossentropy()(t(certain), t(saturated)))})
    compute_in("float64")
    given = draw(6, low=0, high=3)
    loss_case("keras", {"kind": "output", "sample_weights": True}, given, None, lambda o, y: (o * t(given)).mean(), given)


# ---- optimizers ----

optimizers = []
SHAPES = {"kernel": (4, 3), "wide": (2, 5), "bias": (3,)}
STEPS = 6


def optimizer_case(convention, keys, step, shapes=SHAPES, train=None):
    """`step(weights, gradients)` moves the weights, a dict of arrays, in place."""
    start = {name: draw(*shape) for name, shape in shapes.items()}
    weights = {name: array.copy() for name, array in start.items()}
    gradients, after = [], []
    for i in range(STEPS):
        gradient = {name: draw(*shape) for name, shape in shapes.items()}
        step(weights, gradient)
        gradients.append({name: numbers(array) for name, array in gradient.items()})
        after.append({name: numbers(array) for name, array in weights.items()})
    optimizers.append({"recipe": recipe(convention, loss={"kind": "mse"}, optimizer=keys, **({"train": train} if train else {})),
                       "weights": [{"name": n, "shape": list(a.shape), "start": numbers(a)} for n, a in start.items()], "gradients": gradients, "after": after})


def by_torch(make, before=lambda parameters: None):
    state = {}

    def step(weights, gradient):
        if not state:
            state["p"] = {n: torch.nn.Parameter(torch.tensor(a)) for n, a in weights.items()}
            made = make(state["p"])
            state["o"] = made if isinstance(made, list) else [made]
        for name, p in state["p"].items():
            p.grad = torch.tensor(gradient[name])
        before(state["p"].values())
        for o in state["o"]:
            o.step()
        for name, p in state["p"].items():
            weights[name][...] = p.detach().numpy()
    return step


def by_keras(optimizer):
    state = {}

    def step(weights, gradient):
        if not state:
            for name, array in weights.items():
                state[name] = keras.Variable(np.float32(array), dtype="float32", name=name)
            optimizer.build(list(state.values()))
        optimizer.apply([torch.tensor(gradient[n], dtype=torch.float32) for n in state], list(state.values()))
        for name, v in state.items():
            weights[name][...] = v.numpy()
    return step


def lamb(rate, beta1, beta2, epsilon, decay):
    """You et al. 2020, algorithm 2, written plainly."""
    m, v, t = {}, {}, [0]

    def step(weights, gradient):
        t[0] += 1
        for name, w in weights.items():
            g = gradient[name]
            m[name] = beta1 * m.get(name, 0) + (1 - beta1) * g
            v[name] = beta2 * v.get(name, 0) + (1 - beta2) * g * g
            r = m[name] / (1 - beta1 ** t[0]) / (np.sqrt(v[name] / (1 - beta2 ** t[0])) + epsilon) + decay * w
            w -= rate * np.linalg.norm(w) / np.linalg.norm(r) * r
    return step


def torch_optimizers():
    o = torch.optim
    rows = [("sgd", {"learning_rate": 0.1}, lambda p: o.SGD(p, lr=0.1)),
            ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}, lambda p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1)),
            ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}, lambda p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
            ("adam", {}, lambda p: o.Adam(p)), ("adam", {"learning_rate": 0.1, "amsgrad": True, "weight_decay": 0.1, "epsilon": 1e-3},
                                                lambda p: o.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1, eps=1e-3)),
            ("adamw", {}, lambda p: o.AdamW(p)), ("adamw", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95}, lambda p: o.AdamW(p, lr=0.1, betas=(0.8, 0.95))),
            ("nadam", {}, lambda p: o.NAdam(p)), ("nadam", {"learning_rate": 0.1, "momentum_decay": 0.02, "weight_decay": 0.1},
                                                  lambda p: o.NAdam(p, lr=0.1, momentum_decay=0.02, weight_decay=0.1)),
            ("rmsprop", {}, lambda p: o.RMSprop(p)), ("rmsprop", {"learning_rate": 0.1, "centered": True, "momentum": 0.5, "rho": 0.9},
                                                      lambda p: o.RMSprop(p, lr=0.1, centered=True, momentum=0.5, alpha=0.9)),
            ("adagrad", {}, lambda p: o.Adagrad(p)), ("adagrad", {"learning_rate": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.1},
                                                      lambda p: o.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.2, weight_decay=0.1)),
            ("adamax", {}, lambda p: o.Adamax(p)), ("adamax", {"learning_rate": 0.1, "epsilon": 1e-2, "weight_decay": 0.1},
                                                    lambda p: o.Adamax(p, lr=0.1, eps=1e-2, weight_decay=0.1)),
            ("adadelta", {}, lambda p: o.Adadelta(p)), ("adadelta", {"learning_rate": 0.5, "rho": 0.8, "epsilon": 1e-3, "weight_decay": 0.1},
                                                        lambda p: o.Adadelta(p, lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.1)),
            ("lion", {}, lambda p: Lion(p)), ("lion", {"learning_rate": 0.05, "weight_decay": 0.1, "beta1": 0.8}, lambda p: Lion(p, lr=0.05, weight_decay=0.1, betas=(0.8, 0.99))),
            ("adafactor", {}, lambda p: o.Adafactor(p, eps=(2.0 ** -23, 1e-3))),  # f32's epsilon, whatever the reference computes in
            ("adafactor", {"learning_rate": 0.6, "weight_decay": 0.1, "beta2_decay": -0.5, "clip_threshold": 1.1, "epsilon2": 0.1},
             lambda p: o.Adafactor(p, lr=0.6, weight_decay=0.1, beta2_decay=-0.5, d=1.1, eps=(2.0 ** -23, 0.1)))]
    for kind, keys, make in rows:
        optimizer_case("torch", {"kind": kind} | keys, by_torch(lambda p: make(list(p.values()))))
    optimizer_case("torch", {"kind": "lamb"}, lamb(1e-3, 0.9, 0.999, 1e-6, 0.01))
    optimizer_case("torch", {"kind": "lamb", "learning_rate": 0.1, "weight_decay": 0.2, "epsilon": 1e-3}, lamb(0.1, 0.9, 0.999, 1e-3, 0.2))
    # torch.optim.Muon orthogonalizes in bfloat16, and takes matrices only: here in float64, with AdamW beside it.
    bfloat16, torch.bfloat16 = torch.bfloat16, torch.float64
    matrices = lambda p: [p["kernel"], p["wide"]]
    optimizer_case("torch", {"kind": "muon"}, by_torch(lambda p: [o.Muon(matrices(p)), o.AdamW([p["bias"]], lr=1e-3, weight_decay=0.1)]))
    optimizer_case("torch", {"kind": "muon", "learning_rate": 0.1, "momentum": 0.8, "nesterov": False, "weight_decay": 0.2, "exclude_from_muon": ["wide"]},
                   by_torch(lambda p: [o.Muon([p["kernel"]], lr=0.1, momentum=0.8, nesterov=False, weight_decay=0.2), o.AdamW([p["wide"], p["bias"]], lr=0.1, weight_decay=0.2)]))
    torch.bfloat16 = bfloat16
    for norm in (1.5, 100.0):
        optimizer_case("torch", {"kind": "sgd", "learning_rate": 0.1, "clip_norm": norm},
                       by_torch(lambda p: o.SGD(p.values(), lr=0.1), lambda p: torch.nn.utils.clip_grad_norm_(list(p), norm)))
    optimizer_case("torch", {"kind": "adam", "learning_rate": 0.1, "clip_value": 0.5}, by_torch(lambda p: o.Adam(p.values(), lr=0.1), lambda p: torch.nn.utils.clip_grad_value_(list(p), 0.5)))
    optimizer_case("torch", {"kind": "adamw", "learning_rate": 0.1, "weight_decay": 0.3, "weight_decay_on": "matrices"},
                   by_torch(lambda p: o.AdamW([{"params": matrices(p)}, {"params": [p["bias"]], "weight_decay": 0.0}], lr=0.1, weight_decay=0.3)))
    optimizer_case("torch", {"kind": "adamw", "learning_rate": 0.1, "weight_decay": 0.3, "exclude_from_weight_decay": ["*i*"]},
                   by_torch(lambda p: o.AdamW([{"params": [p["kernel"]]}, {"params": [p["wide"], p["bias"]], "weight_decay": 0.0}], lr=0.1, weight_decay=0.3)))


def keras_optimizers():
    k = keras.optimizers
    compute_in("float32")
    rows = [("sgd", {}, k.SGD()), ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, k.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1)),
            ("adam", {}, k.Adam()), ("adam", {"learning_rate": 0.05, "amsgrad": True, "weight_decay": 0.1, "epsilon": 1e-3}, k.Adam(0.05, amsgrad=True, weight_decay=0.1, epsilon=1e-3)),
            ("adamw", {}, k.AdamW()), ("nadam", {}, k.Nadam()), ("nadam", {"learning_rate": 0.05, "beta1": 0.8}, k.Nadam(0.05, beta_1=0.8)),
            ("rmsprop", {}, k.RMSprop()), ("rmsprop", {"learning_rate": 0.05, "centered": True, "momentum": 0.5, "epsilon": 1e-2},
                                           k.RMSprop(0.05, centered=True, momentum=0.5, epsilon=1e-2)),
            ("adagrad", {}, k.Adagrad()), ("adagrad", {"learning_rate": 0.1, "initial_accumulator_value": 0.3}, k.Adagrad(0.1, initial_accumulator_value=0.3)),
            ("adamax", {}, k.Adamax()), ("adamax", {"learning_rate": 0.1, "epsilon": 1e-2, "weight_decay": 0.1}, k.Adamax(0.1, epsilon=1e-2, weight_decay=0.1)),
            ("adadelta", {}, k.Adadelta()), ("adadelta", {"learning_rate": 0.5, "rho": 0.8, "epsilon": 1e-3}, k.Adadelta(0.5, rho=0.8, epsilon=1e-3)),
            ("lamb", {}, k.Lamb()), ("lamb", {"learning_rate": 0.05, "weight_decay": 0.1, "epsilon": 1e-3}, k.Lamb(0.05, weight_decay=0.1, epsilon=1e-3)),
            ("lion", {}, k.Lion()), ("lion", {"learning_rate": 0.05, "beta1": 0.8, "weight_decay": 0.1}, k.Lion(0.05, beta_1=0.8, weight_decay=0.1)),
            ("muon", {}, k.Muon()), ("muon", {"learning_rate": 0.01, "momentum": 0.8, "nesterov": False, "weight_decay": 0.1},
                                     k.Muon(0.01, momentum=0.8, nesterov=False, weight_decay=0.1, adam_weight_decay=0.1)),
            ("adafactor", {}, k.Adafactor()), ("adafactor", {"learning_rate": 0.6, "weight_decay": 0.1, "beta2_decay": -0.5, "clip_threshold": 0.5, "epsilon2": 0.1},
                                               k.Adafactor(0.6, weight_decay=0.1, beta_2_decay=-0.5, clip_threshold=0.5, epsilon_2=0.1)),
            ("sgd", {"learning_rate": 0.1, "clip_norm": 1.5}, k.SGD(0.1, global_clipnorm=1.5)), ("sgd", {"learning_rate": 0.1, "clip_value": 0.5}, k.SGD(0.1, clipvalue=0.5))]
    for kind, keys, optimizer in rows:
        optimizer_case("keras", {"kind": kind} | keys, by_keras(optimizer))
    average = k.SGD(0.1, momentum=0.9)
    optimizer_case("keras", {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, by_keras(average), train={"ema_decay": 0.9})
    add_averages(optimizers[-1])


def add_averages(average_case):
    """Keras's moving averages for that case: the same steps again, with averages."""
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.9)
    variables = [keras.Variable(np.float32(w["start"]).reshape(w["shape"]), dtype="float32", name=w["name"]) for w in average_case["weights"]]
    optimizer.build(variables)
    averages = []
    for gradient in average_case["gradients"]:
        optimizer.apply([torch.tensor(gradient[w["name"]], dtype=torch.float32).reshape(w["shape"]) for w in average_case["weights"]], variables)
        averages.append({w["name"]: numbers(a.numpy()) for w, a in zip(average_case["weights"], optimizer._model_variables_moving_average)})
    average_case["averages"] = averages


# ---- schedules ----

schedules = []


def schedule_case(convention, keys, steps, per_epoch, rates, rate=0.5):
    schedules.append({"recipe": recipe(convention, loss={"kind": "mse"}, optimizer={"kind": "sgd", "learning_rate": rate}, schedule=keys), "steps": steps, "steps_per_epoch": per_epoch,
                      "rates": numbers(rates)})


def torch_rates(make, steps, rate=0.5):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    scheduler, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def make_schedules():
    s = torch.optim.lr_scheduler
    schedule_case("torch", {"kind": "constant"}, 5, 2, [0.5] * 5)
    schedule_case("torch", {"kind": "constant", "warmup_steps": 4}, 7, 2, torch_rates(lambda o: s.LinearLR(o, 1 / 4, 1, 3), 7))
    schedule_case("torch", {"kind": "cosine", "final_fraction": 0.1, "warmup_steps": 4, "total_steps": 13}, 13, 2,
                  torch_rates(lambda o: s.SequentialLR(o, [s.LinearLR(o, 1 / 4, 1, 3), s.CosineAnnealingLR(o, 9, 0.05)], [4]), 13))
    schedule_case("torch", {"kind": "linear", "final_fraction": 0.2, "total_steps": 8}, 10, 2, torch_rates(lambda o: s.LinearLR(o, 1, 0.2, 8), 10))
    schedule_case("torch", {"kind": "cosine", "final_fraction": 0.1}, 9, 2, torch_rates(lambda o: s.CosineAnnealingLR(o, 9, 0.05), 9))
    schedule_case("torch", {"kind": "exponential", "factor": 0.9}, 6, 1, torch_rates(lambda o: s.ExponentialLR(o, 0.9), 6))
    schedule_case("torch", {"kind": "step", "factor": 0.3, "every": 2}, 9, 1, torch_rates(lambda o: s.StepLR(o, 2, 0.3), 9))
    schedule_case("torch", {"kind": "step", "factor": 0.3, "every_steps": 2}, 9, 3, torch_rates(lambda o: s.StepLR(o, 2, 0.3), 9))
    schedule_case("torch", {"kind": "piecewise", "factor": 0.3, "boundaries": [2, 5, 6]}, 9, 3, torch_rates(lambda o: s.MultiStepLR(o, [2, 5, 6], 0.3), 9))
    schedule_case("torch", {"kind": "cosine_restarts", "every_steps": 3, "final_fraction": 0.1}, 11, 2, torch_rates(lambda o: s.CosineAnnealingWarmRestarts(o, 3, 1, 0.05), 11))
    schedule_case("torch", {"kind": "cosine_restarts", "every": 2, "cycle_growth": 2}, 24, 2, torch_rates(lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2), 24))
    schedule_case("torch", {"kind": "polynomial", "power": 2.0}, 8, 3, torch_rates(lambda o: s.PolynomialLR(o, 8, 2.0), 8))
    schedule_case("torch", {"kind": "one_cycle"}, 20, 3, torch_rates(lambda o: s.OneCycleLR(o, 0.5, total_steps=20, cycle_momentum=False), 19) + [0.5 / 25 / 1e4])
    schedule_case("torch", {"kind": "one_cycle", "pct_start": 0.4, "div_factor": 10.0, "final_div_factor": 100.0}, 11, 3,
                  torch_rates(lambda o: s.OneCycleLR(o, 0.5, total_steps=11, pct_start=0.4, div_factor=10, final_div_factor=100, cycle_momentum=False), 10) + [0.5 / 10 / 100])
    k = keras.optimizers.schedules
    compute_in("float64")
    schedule_case("keras", {"kind": "cosine", "final_fraction": 0.1}, 9, 2, [float(k.CosineDecay(0.5, 9, alpha=0.1)(i)) for i in range(9)])
    rising = k.CosineDecay(0.0, 9, alpha=0.1, warmup_target=0.5, warmup_steps=4)  # whose decay_steps are those behind the warm-up
    schedule_case("keras", {"kind": "cosine", "final_fraction": 0.1, "warmup_steps": 4, "total_steps": 13}, 15, 2, [float(rising(i)) for i in range(15)])
    schedule_case("keras", {"kind": "exponential", "factor": 0.8, "every": 2}, 9, 2, [float(k.ExponentialDecay(0.5, 4, 0.8)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "exponential", "factor": 1.5, "every_steps": 1}, 9, 2, [float(k.ExponentialDecay(0.5, 1, 1.5)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "step", "factor": 0.8, "every": 2}, 9, 2, [float(k.ExponentialDecay(0.5, 4, 0.8, staircase=True)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "polynomial", "power": 1.5, "final_fraction": 0.1, "total_steps": 7}, 9, 2, [float(k.PolynomialDecay(0.5, 7, 0.05, 1.5)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "linear", "final_fraction": 0.1, "total_steps": 7}, 9, 2, [float(k.PolynomialDecay(0.5, 7, 0.05, 1.0)(i)) for i in range(9)])
    for staircase, kind in ((False, "exponential"), (True, "step")):
        schedule_case("keras", {"kind": kind, "factor": 0.8, "every_steps": 3}, 9, 2, [float(k.ExponentialDecay(0.5, 3, 0.8, staircase)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "inverse_time", "factor": 0.8, "every_steps": 3}, 9, 2, [float(k.InverseTimeDecay(0.5, 3, 0.8)(i)) for i in range(9)])
    schedule_case("keras", {"kind": "inverse_time", "factor": 2.5, "every_steps": 5}, 9, 2, [float(k.InverseTimeDecay(0.5, 5, 2.5)(i)) for i in range(9)])
    pieces = k.PiecewiseConstantDecay([2, 5, 6], [0.5, 0.25, 0.1, 0.75])
    schedule_case("keras", {"kind": "piecewise", "boundaries": [2, 5, 6], "fractions": [1, 0.5, 0.2, 1.5]}, 9, 2, [float(pieces(i)) for i in range(9)])
    for growth, peak in ((1, 0.5), (2, 0.75), (1.5, 1), (1, 1.25)):
        cycles = k.CosineDecayRestarts(0.5, 4, t_mul=growth, m_mul=peak, alpha=0.1)
        schedule_case("keras", {"kind": "cosine_restarts", "every_steps": 4, "cycle_growth": growth, "peak_factor": peak, "final_fraction": 0.1}, 30, 2, [float(cycles(i)) for i in range(30)])
    falling = [5, 4, 3, 3.0001, 2.9999, 2.99975, 2.9995, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    for convention in ("torch", "keras"):
        for keys in ({"patience": 2}, {"patience": 1, "cooldown": 2, "factor": 0.5, "min_rate": 0.1}, {"patience": 0, "min_delta": 0.2}):
            plateau_case(convention, keys, falling, "val_loss")
        plateau_case(convention, {"patience": 1, "monitor": "val_accuracy", "min_delta": 0.01}, [0.1, 0.2, 0.205, 0.2, 0.21, 0.5, 0.5, 0.5, 0.4, 0.5, 0.52], "val_accuracy")


class Logged:
    """What keras.callbacks ask of a model."""

    def __init__(self, rate):
        self.optimizer = keras.optimizers.SGD(rate)
        self.stop_training, self.weights, self.restored = False, 0, None

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.restored = weights


def plateau_case(convention, keys, values, monitor):
    upwards = "accuracy" in monitor
    if convention == "torch":
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
        named = {"patience": "patience", "cooldown": "cooldown", "factor": "factor", "min_rate": "min_lr", "min_delta": "threshold"}
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max" if upwards else "min", **{named[n]: v for n, v in keys.items() if n in named})
        rates = []
        for value in values:
            plateau.step(value)
            rates.append(optimizer.param_groups[0]["lr"])
    else:
        compute_in("float64")
        named = {"patience": "patience", "cooldown": "cooldown", "factor": "factor", "min_rate": "min_lr", "min_delta": "min_delta"}
        plateau = keras.callbacks.ReduceLROnPlateau(monitor=monitor, mode="max" if upwards else "min", **{named[n]: v for n, v in keys.items() if n in named})
        model = Logged(0.5)
        plateau.set_model(model)
        plateau.on_train_begin()
        rates = []
        for epoch, value in enumerate(values):
            plateau.on_epoch_end(epoch, {monitor: value})
            rates.append(float(keras.ops.convert_to_numpy(model.optimizer.learning_rate)))
    loss = {"kind": "softmax_cross_entropy"}
    schedules.append({"recipe": recipe(convention, loss=loss, optimizer={"kind": "sgd", "learning_rate": 0.5}, metrics={"list": ["accuracy"]}, schedule={"kind": "plateau"} | keys),
                      "values": values, "rates": rates})


def early_stopping_case(keys, values):
    stopping = keras.callbacks.EarlyStopping(monitor="val_loss", mode="max" if keys.get("monitor") == "val_accuracy" else "min", patience=keys.get("patience", 0),
                                             min_delta=keys.get("min_delta", 0), restore_best_weights=True)
    model = Logged(0.5)
    stopping.set_model(model)
    stopping.on_train_begin()
    stopped = 0
    for epoch, value in enumerate(values):
        model.weights = epoch + 1
        stopping.on_epoch_end(epoch, {"val_loss": value})
        if model.stop_training:
            stopped = epoch + 1
            break
    schedules.append({"recipe": recipe("keras", loss={"kind": "softmax_cross_entropy"}, optimizer=SGD, metrics={"list": ["accuracy"]}, train={"early_stopping": keys}),
                      "monitored": values, "stopped_after": stopped, "best_epoch": stopping.best_epoch + 1})


def make_early_stopping():
    early_stopping_case({"patience": 2}, [5, 4, 4.5, 3, 3.5, 3.2, 3.1, 1])
    early_stopping_case({"patience": 0}, [5, 4, 4.5, 3])
    early_stopping_case({"patience": 0}, [5, 5, 4, 4.5, 3])
    early_stopping_case({"patience": 3, "min_delta": 0.5}, [5, 4.8, 4.6, 4.4, 4.2, 4.0, 3.9, 3.8, 3.7])
    early_stopping_case({"patience": 2, "monitor": "val_accuracy"}, [0.1, 0.5, 0.4, 0.6, 0.6, 0.5, 0.9])
    early_stopping_case({"patience": 5}, [5, 4, 3, 2, 1])


# ---- metrics ----

metrics = []


def metric_case(loss, metric, batches, value, convention="keras"):
    metrics.append({"recipe": recipe(convention, loss=loss, optimizer=SGD, metrics={"list": [metric]}), "metric": metric,
                    "batches": [{"shape": list(x.shape), "output": numbers(x), "target": numbers(y)} for x, y in batches], "value": float(value)})


def updated(metric, batches):
    for x, y in batches:
        metric.update_state(y, x)
    return metric.result()


def make_metrics():
    compute_in("float64")
    m = keras.metrics
    logits = [(draw(5, 4), random.integers(0, 4, 5)), (draw(3, 4), random.integers(0, 4, 3)), (draw(6, 4), random.integers(0, 3, 6))]
    one_hot = [(x, np.eye(4)[y]) for x, y in logits]
    ce = {"kind": "softmax_cross_entropy"}
    metric_case(ce, "accuracy", logits, updated(m.SparseCategoricalAccuracy(), logits))
    for k in (2, 3):
        metric_case(ce, f"top_{k}_accuracy", logits, updated(m.SparseTopKCategoricalAccuracy(k), logits))
    for name, make in (("precision", m.Precision), ("recall", m.Recall)):
        metric_case(ce, name, logits, np.mean([float(updated(make(top_k=1, class_id=c), one_hot)) for c in range(4)]))
    metric_case(ce, "f1", logits, updated(m.F1Score("macro"), one_hot))
    every, classes = np.concatenate([x for x, _ in logits]), np.concatenate([y for _, y in logits])
    metric_case(ce, "perplexity", logits, math.exp(F.cross_entropy(torch.tensor(every), torch.tensor(classes))))
    metric_case(ce | {"class_weights": [1, 2, 3, 4], "label_smoothing": 0.1}, "perplexity", logits, math.exp(F.cross_entropy(torch.tensor(every), torch.tensor(classes))))
    metric_case(ce | {"class_weights": [1, 2, 3, 4]}, "accuracy", logits, updated(m.SparseCategoricalAccuracy(), logits), "torch")
    logp = [(torch.log_softmax(torch.tensor(x), -1).numpy(), y) for x, y in logits]
    metric_case({"kind": "nll"}, "perplexity", logp, math.exp(F.cross_entropy(torch.tensor(every), torch.tensor(classes))))
    ignored = F.cross_entropy(torch.tensor(every), torch.tensor(classes), ignore_index=3)
    metric_case(ce | {"ignore_index": 3}, "perplexity", logits, math.exp(ignored))
    kept = [(x[y != 3], y[y != 3]) for x, y in logits]
    metric_case(ce | {"ignore_index": 3}, "accuracy", logits, updated(m.SparseCategoricalAccuracy(), kept))
    f1_kept = m.F1Score("macro")
    metric_case(ce | {"ignore_index": 3}, "f1", logits, updated(f1_kept, [(x, np.eye(4)[y]) for x, y in kept]))
    scores = [(draw(40, 1, low=0.01, high=0.99), None), (draw(30, 1, low=0.01, high=0.99), None)]
    scores = [(p, np.float64(random.uniform(0, 1, p.shape) < p)) for p, _ in scores]
    logit = [(np.log(p / (1 - p)), y) for p, y in scores]
    two = [(np.concatenate([1 - p, p], 1), y[:, 0].astype(int)) for p, y in scores]
    for name, make in (("accuracy", m.BinaryAccuracy), ("precision", m.Precision), ("recall", m.Recall), ("auc", m.AUC)):
        compute_in("float32" if name == "auc" else "float64")
        value = updated(make(), scores)
        compute_in("float64")
        metric_case({"kind": "bce"}, name, scores, value)
        metric_case({"kind": "bce_with_logits"}, name, logit, value)
        if name == "auc":
            metric_case({"kind": "cross_entropy"}, name, two, value)
            metric_case(ce, name, [(np.log(p), y) for p, y in two], value)
            metric_case({"kind": "nll"}, name, [(np.log(p), y) for p, y in two], value)
    metric_case({"kind": "bce"}, "f1", scores, updated(m.F1Score("macro", threshold=0.5), scores))
    hinged = [(2 * p - 1, 2 * y - 1) for p, y in scores]
    metric_case({"kind": "hinge"}, "accuracy", hinged, updated(m.BinaryAccuracy(), scores))
    for name, make in (("mse", m.MeanSquaredError), ("mae", m.MeanAbsoluteError)):
        metric_case({"kind": "bce"}, name, scores, updated(make(), scores))
        metric_case({"kind": "bce_with_logits"}, name, logit, updated(make(), scores))
        metric_case({"kind": "hinge"}, name, hinged, updated(make(), hinged))
    values = [(draw(5, 3), draw(5, 3)), (draw(2, 3), draw(2, 3))]
    for name, make in (("mse", m.MeanSquaredError), ("mae", m.MeanAbsoluteError), ("r2", m.R2Score)):
        metric_case({"kind": "mse"}, name, values, updated(make(), values))
        metric_case({"kind": "huber"}, name, values, updated(make(), values))


compute_in("float64")
torch_losses()
keras_losses()
write("losses", losses)
compute_in("float64")
torch_optimizers()
keras_optimizers()
write("optimizers", optimizers)
compute_in("float64")
make_schedules()
make_early_stopping()
write("schedules", schedules)
make_metrics()
write("metrics", metrics)
