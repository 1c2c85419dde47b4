"""Writes the large suite: 250 tasks whose inputs take 0.1 to 8 GB, the same files on every machine.

    bench/suite/large/tasks.py DIR [--nereid NEREID] [--count 250]

Every module of bench/suite/real is one task, its batch the largest power of two times its own that keeps it
within MOST; the rest are programs sampled by `nereid synth` in bands of traffic, of one, two and five
operators. Sizes are found by running each module on meta tensors, without data. DIR/index.jsonl has a line a
task: input bytes, parameter bytes, bytes of all results, FLOPs.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEED = 20261125
LEAST_INPUT, MOST_INPUT = 100e6, 8e9
MOST = {"inputs": MOST_INPUT, "results": 24e9, "flops": 1e12}
# level, programs, bounds of the bytes that the steps move
BANDS = [(1, 39, 2**28, 2**30), (1, 24, 2**30, 2**32), (1, 12, 2**32, 2**34),
         (2, 32, 2**28, 2**30), (2, 20, 2**30, 2**32), (2, 10, 2**32, 2**34),
         (5, 25, 2**28, 2**30), (5, 15, 2**30, 2**33)]
SCALED = ("BATCH", "ROWS", "TOKENS", "BOXES", "POINTS", "WINDOWS", "NODES")


class Results(TorchDispatchMode):
    """Bytes of the results of all operators that make new memory."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if not function.is_view:
            self.bytes += sum(t.numel() * t.element_size() for t in tree_leaves(out)
                              if isinstance(t, torch.Tensor))
        return out


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def measured(source):
    """What a task takes, or None where it does not run on meta tensors."""
    scope = {"__name__": "task"}
    try:
        with torch.device("meta"), torch.no_grad():
            exec(compile(source, "task", "exec"), scope)
            model = scope["Model"](*scope["get_init_inputs"]())
            inputs = scope["get_inputs"]()
            with Results() as results, FlopCounterMode(display=False) as flops:
                model(*inputs)
    except Exception as error:  # an operator without a meta kernel, a value that is looked at
        return {"trouble": f"{type(error).__name__}: {error}"}
    state = {id(t): t for t in [*model.parameters(), *model.buffers()]}
    return {"inputs": bytes_of(tree_leaves(inputs)), "parameters": bytes_of(state.values()),
            "results": results.bytes,
            "flops": flops.get_total_flops()}


def fits(size):
    return "trouble" not in size and all(size[key] <= most for key, most in MOST.items())


def real_tasks():
    for path in sorted((ROOT / "bench/suite/real").glob("*.py")):
        source = path.read_text()
        best, size = source, measured(source)
        name = next((n for n in SCALED if re.search(rf"^{n} = \d+$", source, re.M)), None)
        for doubling in range(1, 20) if name else ():
            bigger = re.sub(rf"^{name} = (\d+)$", lambda m: f"{name} = {int(m.group(1)) << doubling}", source,
                            flags=re.M)
            now = measured(bigger)
            if not fits(now):
                break
            best, size = bigger, now
            if now["inputs"] > MOST_INPUT / 4:  # many tasks, not one size
                break
        yield path.stem, best, size


def sampled_tasks(nereid):
    for band, (level, count, least, most) in enumerate(BANDS):
        found = 0
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([nereid, "synth", "--operators", str(level), "--count", str(3 * count), "--seed",
                            str(SEED + band), "--min-bytes", str(least), "--max-bytes", str(most),
                            "--max-elements", "2^30", "--max-work", "2^39", "-o", folder],
                           check=True, stdout=subprocess.DEVNULL)
            for path in sorted(pathlib.Path(folder).glob("*.py")):
                source = path.read_text()
                size = measured(source)
                if not fits(size) or size["inputs"] + size["parameters"] < LEAST_INPUT:
                    continue
                yield f"L{level}_{'abcdefgh'[band]}{found:03}", source, size
                found += 1
                if found == count:
                    break
        if found < count:
            print(f"{found} of {count} programs of {level} operators between {least} and {most} "
                  f"bytes", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--nereid", default=str(ROOT / "build/release/bin/nereid"))
    parser.add_argument("--count", type=int, default=250, help="stop after so many, spread over all kinds")
    arguments = parser.parse_args()
    tasks = [*real_tasks(), *sampled_tasks(arguments.nereid)]
    if arguments.count < len(tasks):
        tasks = [tasks[k * len(tasks) // arguments.count] for k in range(arguments.count)]
    arguments.folder.mkdir(parents=True)
    with open(arguments.folder / "index.jsonl", "w") as index:
        for name, source, size in tasks:
            (arguments.folder / f"{name}.py").write_text(source)
            index.write(json.dumps({"task": name, **size}) + "\n")
    sizes = sorted(size["inputs"] for _, _, size in tasks if "inputs" in size)
    print(f"{len(tasks)} tasks; inputs {sizes[0] / 1e9:.3f} to {sizes[-1] / 1e9:.2f} GB, median "
          f"{sizes[len(sizes) // 2] / 1e9:.2f} GB, "
          f"{sum(sizes) / 1e9:.0f} GB in all")


if __name__ == "__main__":
    main()
