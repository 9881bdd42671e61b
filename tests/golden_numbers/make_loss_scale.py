#!/usr/bin/env python3
"""Writes loss_scale.json beside itself: weights and scales after each step of torch.amp.GradScaler, where some gradients are infinite or NaN.

tests/golden_numbers/loss_scale_test.cc reads it. Written with PyTorch 2.15.0:  python make_loss_scale.py
"""
import json
import pathlib

import torch

BAD = [float("inf"), float("-inf"), float("nan")]


def trained(kind, scale, interval, bad_steps, steps):
    """One weight whose mean loss is the sum of w * c; where a step is bad, one element of the gradient is not finite."""
    weight = torch.tensor([0.5, -1.25, 2.0], requires_grad=True)
    optimizer = {"sgd": lambda: torch.optim.SGD([weight], lr=0.1, momentum=0.5), "adam": lambda: torch.optim.Adam([weight], lr=0.01)}[kind]()
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    recorded = []
    for i in range(steps):
        factors = torch.tensor([0.25 * (i % 3) - 0.3, 1.0 / (i + 1), 0.125 * i - 0.5])
        poison = [0.0, BAD[i % 3], 0.0] if i in bad_steps else [0.0, 0.0, 0.0]
        optimizer.zero_grad()
        used = scaler.get_scale()
        scaler.scale((weight * factors).sum()).backward()
        weight.grad += torch.tensor(poison)
        scaler.step(optimizer)
        scaler.update()
        recorded.append({"factors": factors.tolist(), "poison": [str(p) for p in poison], "scale": used, "next_scale": scaler.get_scale(), "weight": weight.tolist()})
    recipe = f'[loss]\nkind = "output"\n[optimizer]\nkind = "{kind}"\nlearning_rate = {0.1 if kind == "sgd" else 0.01}\n' + ("momentum = 0.5\n" if kind == "sgd" else "")
    recipe += f'[train]\nprecision = "f16"\nloss_scale = {float(scale)}\nloss_scale_growth_steps = {interval}\n'
    return {"recipe": recipe, "steps": recorded}


cases = [
    trained("sgd", 2.0**16, 3, {0, 1, 5, 6, 14}, 20),
    trained("adam", 2.0**10, 4, {3, 4, 12}, 20),
    trained("sgd", 1000.0, 1, {2}, 6),
    trained("sgd", 2.0**126, 2, set(), 8),  # twice of it is no f32 any more in the end
]
(pathlib.Path(__file__).parent / "loss_scale.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
