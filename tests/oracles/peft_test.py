#!/usr/bin/env python3
"""PEFT must read the adapters that Hone writes, and Hone those that PEFT writes: with either, both compute the same.

usage: peft_test.py --bin BUILD_BIN_DIR
A network with a convolution, an embedding and dense layers is written as ONNX and as a PyTorch module of the same weights. Hone trains adapters for all its layers (lora.export = "separate");
PEFT loads them into the module. Then PEFT writes adapters with another alpha, by which Hone's plan must count them. Exit 0 when outputs agree within 1e-5 of the largest one.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
import peft
import torch
from onnx import TensorProto, helper, numpy_helper
from oracle import parser, run, tools_in

TOLERANCE = 1e-5
WORDS, WIDTH, HIDDEN, CLASSES, LENGTH, SAMPLES, RANK, ALPHA = 11, 6, 10, 3, 5, 24, 2, 6
RECIPE = f"""[lora]
targets = ["words.weight", "*conv.weight", "*fc1.weight", "head.weight"]
rank = {RANK}
alpha = {ALPHA}
export = "separate"
[loss]
kind = "softmax_cross_entropy"
[optimizer]
kind = "adam"
learning_rate = 0.05
[data]
batch_size = 8
[train]
epochs = 4
"""


class Network(torch.nn.Module):
    """ids [N,5] -> embedding -> convolution over the words -> ReLU -> mean -> two dense layers."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.body = torch.nn.ModuleDict({"conv": torch.nn.Conv1d(WIDTH, HIDDEN, 3, padding=1), "fc1": torch.nn.Linear(HIDDEN, HIDDEN)})
        self.head = torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, ids):
        x = torch.relu(self.body["conv"](self.words(ids).transpose(1, 2))).mean(-1)
        return self.head(torch.tanh(self.body["fc1"](x)))


def write_onnx(network, path):
    nodes = [helper.make_node("Gather", ["words.weight", "ids"], ["looked_up"], name="words/Gather"),
             helper.make_node("Transpose", ["looked_up"], ["channels"], perm=[0, 2, 1]),
             helper.make_node("Conv", ["channels", "body.conv.weight", "body.conv.bias"], ["convolved"], name="body/conv/Conv", pads=[1, 1]),
             helper.make_node("Relu", ["convolved"], ["positive"]),
             helper.make_node("ReduceMean", ["positive"], ["mean"], axes=[-1], keepdims=0),
             helper.make_node("Gemm", ["mean", "body.fc1.weight", "body.fc1.bias"], ["dense"], name="body/fc1/Gemm", transB=1),
             helper.make_node("Tanh", ["dense"], ["hidden"]),
             helper.make_node("Gemm", ["hidden", "head.weight", "head.bias"], ["logits"], name="head/Gemm", transB=1)]
    weights = [numpy_helper.from_array(value.detach().numpy(), name) for name, value in network.named_parameters()]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", LENGTH])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def expect_near(what, ours, theirs):
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    print(f"{'ok  ' if error <= TOLERANCE else 'FAIL'} {what}: {error:.2g} of the largest output apart", flush=True)
    return error <= TOLERANCE


def predicted(tool, work, *weights):
    run(tool("hone-run"), "predict", f"{work}/plan.hone", *weights, "--data", f"ids={work}/ids.npy", "--out", f"{work}/out.npy", "--quiet")
    return np.load(f"{work}/out.npy")


def check(tool, work):
    torch.manual_seed(7)
    network = Network()
    ids = torch.randint(0, WORDS, (SAMPLES, LENGTH))
    np.save(f"{work}/ids.npy", ids.numpy())
    np.save(f"{work}/y.npy", (ids.sum(1) % CLASSES).numpy())
    write_onnx(network, f"{work}/network.onnx")
    with open(f"{work}/recipe.toml", "w") as file:
        file.write(RECIPE)
    os.makedirs(f"{work}/ours")
    run(tool("hone-compile"), f"{work}/network.onnx", "-r", f"{work}/recipe.toml", "-o", f"{work}/plan.hone")
    run(tool("hone-run"), "train", f"{work}/plan.hone", "--train", f"ids={work}/ids.npy,y={work}/y.npy", "--quiet", "--out", f"{work}/ours/adapter_model.safetensors")

    weights = {name: value.clone() for name, value in network.state_dict().items()}  # which PEFT wraps
    before = network(ids).detach().numpy()
    wrapped = peft.PeftModel.from_pretrained(network, f"{work}/ours").eval()
    trained = [name for name, _ in wrapped.named_parameters() if ".lora_" in name]
    theirs = wrapped(ids).detach().numpy()
    good = expect_near("PEFT with Hone's adapters", predicted(tool, work, "--weights", f"{work}/ours/adapter_model.safetensors"), theirs)
    if len(trained) != 8 or np.abs(theirs - before).max() < 0.1 * np.abs(before).max():
        print(f"FAIL PEFT has read {len(trained)} factors of 8, or they change nothing")
        good = False

    for alpha, by_root in ((3, False), (5, True)):
        config = peft.LoraConfig(r=RANK, lora_alpha=alpha, use_rslora=by_root, target_modules=["words", "conv", "fc1", "head"], init_lora_weights=False)
        fresh = Network()
        fresh.load_state_dict(weights)
        other = peft.get_peft_model(fresh, config).eval()
        folder = f"{work}/theirs{alpha}"
        other.save_pretrained(folder)
        good &= expect_near(f"Hone with PEFT's adapters, alpha {alpha}{' over the root of the rank' if by_root else ''}",
                            predicted(tool, work, "--weights", f"{folder}/adapter_model.safetensors"), other(ids).detach().numpy())
    return good


def main():
    given = parser().parse_args()
    with tempfile.TemporaryDirectory() as work:
        good = check(tools_in(given.bin), work)
    print(f"{'agrees' if good else 'does not agree'} with PEFT {peft.__version__}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
