#!/usr/bin/env python3
"""Writes master_weights.json beside itself: what PyTorch makes of weights in f32 that a model reads as f16 or bf16, as its users train narrow models.

tests/golden_numbers/master_weights_test.cc reads it. Written with PyTorch 2.15.0:  python make_master_weights.py
"""
import json
import pathlib

import torch

OPTIMIZERS = {
    "adam": lambda w: torch.optim.Adam(w, lr=1e-3),
    "adamw": lambda w: torch.optim.AdamW(w, lr=1e-3, weight_decay=0.01),
    "rmsprop": lambda w: torch.optim.RMSprop(w, lr=1e-3),
    "sgd": lambda w: torch.optim.SGD(w, lr=1e-4),  # less than bf16's last place
}
RECIPES = {"adam": "learning_rate = 1e-3", "adamw": "learning_rate = 1e-3\nweight_decay = 0.01", "rmsprop": "learning_rate = 1e-3", "sgd": "learning_rate = 1e-4"}


def trained(kind, dtype, steps=6):
    """y = x w + b. The third input is always 0, and so is the gradient of its weights: in f16 Adam would divide 0 by 0 + 1e-8 = 0."""
    weight = torch.tensor([[0.5, -1.25], [2.0, 0.375], [1.0, -0.5]], requires_grad=True)
    bias = torch.tensor([0.25, 0.0], requires_grad=True)
    optimizer = OPTIMIZERS[kind]([weight, bias])
    recorded = []
    for i in range(steps):
        x = torch.tensor([[0.5 * (i % 3) - 0.25, 1.0, 0.0], [-1.5, 0.25 * i, 0.0]])
        target = torch.tensor([[0.125 * i, -0.5], [1.0, 0.75]])
        optimizer.zero_grad()
        y = x.to(dtype) @ weight.to(dtype) + bias.to(dtype)
        loss = torch.nn.functional.mse_loss(y.float(), target)
        loss.backward()
        optimizer.step()
        recorded.append({"x": x.flatten().tolist(), "target": target.flatten().tolist(), "loss": loss.item(), "weight": weight.flatten().tolist(), "bias": bias.tolist()})
    recipe = f'[loss]\nkind = "mse"\n[optimizer]\nkind = "{kind}"\n{RECIPES[kind]}\n'
    return {"recipe": recipe, "dtype": {torch.float16: "f16", torch.bfloat16: "bf16"}[dtype], "steps": recorded}


cases = [trained(kind, dtype) for dtype in (torch.float16, torch.bfloat16) for kind in OPTIMIZERS]
(pathlib.Path(__file__).parent / "master_weights.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
