"""What the tests against other programs share: running the tools, ONNX Runtime's outputs, and a line for each case."""
import argparse
import os
import subprocess

import numpy as np

SKIPPED = 77  # what ctest counts as skipped


def run(*command, stdout=subprocess.PIPE):
    """Raises RuntimeError with what the command says if it fails."""
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])} exits with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:500]}")


def session(model):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def outputs(of_session, batch):
    """By name."""
    return dict(zip([output.name for output in of_session.get_outputs()], of_session.run(None, batch)))


def recorded_arrays(folder):
    """All arrays of a recorded run, as --train takes them."""
    data = f"{folder}/train.npz"
    return ",".join(f"{name}={data}:{name}" for name in np.load(data).files)


def first_batch(folder, work):
    """Arrays of batch 0 by input name, and the same as --data takes them."""
    data = np.load(f"{folder}/train.npz")
    batch = {name: data[name][0] for name in data.files if name != "target"}
    paths = []
    for number, (name, array) in enumerate(batch.items()):
        np.save(f"{work}/in{number}.npy", array)
        paths.append(f"{name}={work}/in{number}.npy")
    return batch, ",".join(paths)


def predicted(tool, plan, weights, paths, work):
    """What hone-run computes with these weights, by output name."""
    run(tool("hone-run"), "predict", plan, "--weights", weights, "--data", paths, "--out", f"{work}/out.npz", "--quiet")
    with np.load(f"{work}/out.npz") as arrays:
        return dict(arrays)


def apart(ours, theirs):
    """Relative to the largest element of an output, for the output that is furthest."""
    for name, expected in theirs.items():
        if ours[name].shape != expected.shape:
            raise RuntimeError(f"output {name} is {ours[name].shape}, expected {expected.shape}")
    return max(float(np.abs(ours[name] - expected).max() / np.abs(expected).max()) for name, expected in theirs.items())


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("--bin", required=True)
    return made


def tools_in(folder):
    return lambda tool: os.path.join(folder, tool)


def judge(cases, check, judged_by):
    """The exit code. `cases` are names and arguments of `check`, which returns a line about what is good and raises what is not."""
    if not cases:
        print("skipped: the models are not here")
        return SKIPPED
    failures = 0
    for name, arguments in cases:
        try:
            print(f"ok   {name:28s} {check(*arguments)}", flush=True)
        except Exception as problem:  # one bad case does not hide the others
            failures += 1
            print(f"FAIL {name:28s} {problem}", flush=True)
    print(f"{len(cases) - failures} of {len(cases)} agree with {judged_by}")
    return 1 if failures else 0
