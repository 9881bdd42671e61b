#!/usr/bin/env python3
"""What a training step takes PyTorch on a GPU: one JSON line for torch.compile, and one with CUDA graphs (mode "reduce-overhead"); eager where a recurrent layer is not compiled.

benchmarks/gpu_compare runs it. The networks are those of the comparison (--peers names its peers.py), and torchvision's ResNet-50 and a GPT-2 of 124 million parameters besides. Data lie on the
GPU, f32 is f32 (no TF32), bf16 is autocast, ResNet-50's images lie channels last, optimizers are the fused ones. It compiles, leaves FOLDER/ready.WORKLOAD.PRECISION, and times when FOLDER/go is there and it
is its turn.
"""
import argparse
import fcntl
import importlib.util
import json
import os
import statistics
import time

OWN = {
    "resnet50": dict(kind="resnet50", shape=(3, 224, 224), classes=1000, batch=64, opt="sgd", lr=0.05, momentum=0.9, wd=1e-4),
    "gpt2": dict(kind="gpt", layers=12, heads=12, width=768, ctx=1024, vocab=50257, batch=8, opt="adamw", lr=1e-3, wd=0.1),
}
BATCHES = 8


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--batch", type=int, default=0, help="0: the workload's own")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--folder", default="/tmp")
    return parser.parse_args()


def make_model(peers, work):
    if work["kind"] != "resnet50":
        return peers.torch_model(work)
    import torchvision

    return torchvision.models.resnet50()


def make_data(peers, name, work):
    import torch

    if name == "resnet50":
        return torch.rand(work["batch"], *work["shape"]), torch.randint(0, work["classes"], (work["batch"],))
    if name == "gpt2":
        return torch.randint(0, work["vocab"], (work["batch"], work["ctx"])), torch.randint(0, work["vocab"], (work["batch"], work["ctx"]))
    x, y = peers.load_data(work, BATCHES * work["batch"], "")
    return torch.from_numpy(x), torch.from_numpy(y) if work["kind"] == "mlp_mse" else torch.from_numpy(y).long()


def make_optimizer(work, model):
    import torch

    params = list(model.parameters())
    if work["opt"] == "adam":
        return torch.optim.Adam(params, lr=work["lr"], fused=True)
    if work["opt"] == "nadam":
        return torch.optim.NAdam(params, lr=work["lr"], foreach=True)
    if work["opt"] == "adamw":
        groups = [dict(params=[p for p in params if p.dim() > 1], weight_decay=work["wd"]), dict(params=[p for p in params if p.dim() < 2], weight_decay=0.0)]
        return torch.optim.AdamW(groups, lr=work["lr"], betas=(0.9, 0.99), fused=True)
    return torch.optim.SGD(params, lr=work["lr"], momentum=work["momentum"], weight_decay=work["wd"], fused=True)


def make_step(peers, work, precision, mode, xs, ys):
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    torch._dynamo.reset()
    images = work["kind"] == "resnet50"
    model = make_model(peers, work).to("cuda", memory_format=torch.channels_last if images else torch.preserve_format).train()
    optimizer = make_optimizer(work, model)

    def loss_of(x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            out = model(x)
            if work["kind"] == "mlp_mse":
                return F.mse_loss(out, y)
            return F.cross_entropy(out.flatten(0, 1), y.flatten()) if work["kind"] == "gpt" else F.cross_entropy(out, y)

    if mode != "eager":
        loss_of = torch.compile(loss_of, dynamic=False, mode="reduce-overhead" if mode == "graphs" else None)

    def step(i):
        loss = loss_of(xs[i % len(xs)], ys[i % len(ys)])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for i in range(6):
        step(i)
    torch.cuda.synchronize()
    return step


def time_steps(step, seconds):
    import torch

    chunk, times, end = 10, [], time.perf_counter() + seconds
    for i in range(chunk):
        step(i)
    torch.cuda.synchronize()
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        for i in range(chunk):
            step(i)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / chunk * 1e3)
    return times


def main():
    args = arguments()
    spec = importlib.util.spec_from_file_location("peers", args.peers)
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    work = dict(OWN.get(args.workload) or peers.WORKLOADS[args.workload])
    work["batch"] = args.batch or work["batch"]
    x, y = make_data(peers, args.workload, work)
    if work["kind"] == "resnet50":
        x = x.contiguous(memory_format=torch.channels_last)
    xs, ys = list(x.to("cuda").split(work["batch"])), list(y.to("cuda").split(work["batch"]))
    steps = {}
    for mode in ("eager",) if work["kind"] == "lstm" else ("compile", "graphs"):
        try:
            steps[mode] = make_step(peers, work, args.precision, mode, xs, ys)
        except Exception as error:  # one way of running it that fails leaves the others
            print(json.dumps(dict(workload=args.workload, precision=args.precision, framework="torch-" + mode, error=str(error)[:200])), flush=True)
    open(os.path.join(args.folder, f"ready.{args.workload}.{args.precision}"), "w").close()
    while not os.path.exists(os.path.join(args.folder, "go")):
        time.sleep(0.05)
    with open(os.path.join(args.folder, "turn"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for mode, step in steps.items():
            times = time_steps(step, args.seconds)
            print(json.dumps(dict(workload=args.workload, precision=args.precision, framework="torch-" + mode, batch=work["batch"], ms_per_step_median=round(statistics.median(times), 4),
                                  ms_best=round(min(times), 4), version="torch " + torch.__version__)), flush=True)


main()
