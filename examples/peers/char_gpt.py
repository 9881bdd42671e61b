#!/usr/bin/env python3
"""The net and recipe of char_gpt.cc in PyTorch, to hold the validation losses side by side.

  python char_gpt.py input.txt [--steps 2000] [--seed 0]
"""
import argparse
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 128, 4, 4, 12
RATE, FINAL_FRACTION, WARMUP, CLIP = 1e-3, 0.1, 100, 1.0
VALIDATION_BATCHES = 200


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, HEADS, c // HEADS).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, 2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(n, t, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.table, self.positions = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        x = self.table(x) + self.positions.weight
        return self.norm(self.blocks(x)) @ self.table.weight.T


def windows(ids, random):
    at = random.integers(0, len(ids) - CONTEXT, BATCH)
    rows = at[:, None] + np.arange(CONTEXT)
    return torch.from_numpy(ids[rows]), torch.from_numpy(ids[rows + 1])


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def rate_at(step, steps):
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    done = (step - WARMUP) / max(1, steps - WARMUP)
    return RATE * (FINAL_FRACTION + (1 - FINAL_FRACTION) * 0.5 * (1 + math.cos(math.pi * done)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    text = np.frombuffer(open(arguments.text, "rb").read(), np.uint8)
    letters, ids = np.unique(text, return_inverse=True)
    ids = ids.astype(np.int64)
    split = len(ids) * 9 // 10
    model = Gpt(len(letters))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}], lr=RATE, betas=(0.9, 0.99))
    random = np.random.default_rng(arguments.seed)
    for step in range(arguments.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, arguments.steps)
        loss = loss_of(model, *windows(ids[:split], random))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
    random = np.random.default_rng(12345)
    with torch.no_grad():
        validation = np.mean([loss_of(model, *windows(ids[split:], random)).item() for _ in range(VALIDATION_BATCHES)])
    print(f"PyTorch {torch.__version__}, seed {arguments.seed}: validation loss {validation:.4f} after {arguments.steps} steps")


if __name__ == "__main__":
    main()
