"""TensorBoard's own reader against metrics.jsonl: every scalar of a run, and what a run leaves that was killed.

Usage: tensorboard_test.py --bin FOLDER
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def run(*command):
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def scalars(folder):
    """{tag: [(step, value)]} as TensorBoard shows them."""
    reader = EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def lines(folder, kind):
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        return [line for line in map(json.loads, file) if line["kind"] == kind]


def expect_same(found, expected, what):
    assert [step for step, _ in found] == [step for step, _ in expected], f"{what}: steps {found} and {expected}"
    for (step, a), (_, b) in zip(found, expected):
        assert abs(a - b) <= 1e-6 * abs(b), f"{what} at {step}: {a} and {b}"


def expect_whole_run(folder):
    train, validation = scalars(os.path.join(folder, "train")), scalars(os.path.join(folder, "validation"))
    steps, epochs = lines(folder, "step"), lines(folder, "epoch")
    for tag, key in [("batch_loss", "loss"), ("batch_learning_rate", "learning_rate"), ("batch_samples_per_s", "samples_per_s")]:
        expect_same(train[tag], [(line["step"], line[key]) for line in steps], tag)
    for tag, key in [("epoch_loss", "loss"), ("epoch_accuracy", "accuracy"), ("epoch_learning_rate", "learning_rate")]:
        expect_same(train[tag], [(line["epoch"] - 1, line[key]) for line in epochs], tag)
    for tag, key in [("epoch_loss", "val_loss"), ("epoch_accuracy", "val_accuracy")]:
        expect_same(validation[tag], [(line["epoch"] - 1, line[key]) for line in epochs], "validation " + tag)
    print(f"{len(steps)} steps and {len(epochs)} epochs agree")


def expect_readable_after_kill(command, folder):
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not os.path.exists(os.path.join(folder, "metrics.jsonl")) or len(lines_so_far(folder)) < 20:
        assert process.poll() is None, "the run was over before it was killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    read, written = scalars(os.path.join(folder, "train"))["batch_loss"], lines_so_far(folder)
    assert len(written) - len(read) in (0, 1), f"{len(read)} events and {len(written)} lines"  # the line goes first
    print(f"{len(read)} steps can be read of a run that was killed")


def leave_checkpoints_up_to(folder, step):
    for name in os.listdir(folder):
        if name.startswith("checkpoint-") and int(name.split("-")[1]) > step:
            shutil.rmtree(os.path.join(folder, name))


def lines_so_far(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        return [line for line in file.read().split("\n")[:-1] if '"kind":"step"' in line]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--bin", required=True)
    tool = lambda name: os.path.join(arguments.bin, name)
    arguments = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        with open(at("train.toml"), "w") as file:
            file.write('[loss]\nkind = "softmax_cross_entropy"\n[optimizer]\nkind = "adam"\nlearning_rate = 1e-3\n[metrics]\nlist = ["accuracy"]\n'
                       "[data]\nbatch_size = 20\n[train]\nepochs = 3\n")
        run(tool("digits"), "model", at("digits.onnx"))
        run(tool("digits"), "data", at("data"), "400")
        run(tool("hone-compile"), at("digits.onnx"), "-r", at("train.toml"), "-o", at("digits.hone"))
        data = lambda part: f"x={at('data')}/{part}_images.npy,y={at('data')}/{part}_labels.npy"
        train = [tool("hone-run"), "train", at("digits.hone"), "--train", data("train"), "--valid", data("valid"), "--threads", "1", "--run-dir"]
        run(*train, at("run"), "--log-every", "3")
        expect_whole_run(at("run"))
        run(*train, at("resumed"), "--save-steps", "4", "--keep", "1000")
        leave_checkpoints_up_to(at("resumed"), 8)  # within the first epoch, so all three are written again
        run(*train, at("resumed"), "--log-every", "3", "--resume")
        expect_whole_run(at("resumed"))
        expect_readable_after_kill([*train, at("killed"), "--log-every", "1", "--epochs", "100000"], at("killed"))


main()
