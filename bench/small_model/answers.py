"""What the writers of training data (reshaped.py, joined.py, renamed.py) have in common: tasks become pairs
by `nereid train pairs`, and what that gives per minute of one core is counted."""

import ast
import builtins
import collections
import json
import keyword
import multiprocessing
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

from evaluate import NEREID
from reworded import methods_of, model_of


# Names that a module or its text has already, besides Python's own.
TAKEN = set(dir(builtins)) | set(keyword.kwlist) | set(
    "torch nn math triton tl self functional training forward train eval apply to type float half double "
    "bfloat "
    "cpu cuda parameters buffers children modules compile register_buffer register_parameter add_module "
    "named_parameters named_modules state_dict zero_grad requires_grad_ extra_repr".split()
)  # fmt: skip


class LeftOut(Exception):
    """Why a task is not made; counted by its text."""


def read_tasks(paths, max_characters=6000):
    """Tasks of JSONL files: lines with `code` or `task` (pairs: each task once), or folders of Python
    files."""
    found = {}
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            for file in sorted(path.glob("*.py")):
                found.setdefault(file.read_text(), file.stem)
            continue
        with open(path) as file:
            for number, line in enumerate(file):
                row = json.loads(line)
                if row.get("split", "train") == "train" and (code := row.get("task") or row.get("code")):
                    found.setdefault(code, str(row.get("id") or f"{path.stem}-{number}"))
    return [
        (name, code) for code, name in found.items() if "class Model" in code and len(code) <= max_characters
    ]


def function_of(tree, name):
    """The one function of this name at the outer level."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(found) != 1:
        raise LeftOut(f"no {name}")
    return found[0]


def returned(function):
    """What a function returns at its only return, which is its last statement."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or function.body[-1] is not returns[0] or returns[0].value is None:
        raise LeftOut("another return")
    return returns[0].value


def forward_of(tree):
    found = methods_of(tree, "forward")
    if len(found) != 1:
        raise LeftOut("no forward")
    arguments = found[0].args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise LeftOut("another signature")
    return found[0]


def parsed(code):
    """The tree of a task; LeftOut where it has no plain class Model."""
    try:
        tree = ast.parse(code)
        model_of(tree)
    except (SyntaxError, StopIteration, ValueError) as error:
        raise LeftOut(type(error).__name__) from None
    return tree


def text_of(tree):
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


state = {}


def begin(tasks, make):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    state["tasks"], state["make"] = tasks, make


def attempt(seed):
    rng = random.Random(seed)
    try:
        return *state["make"](state["tasks"], rng), None
    except LeftOut as error:
        return "", "", str(error)
    except (
        SyntaxError,
        RecursionError,
        AttributeError,
        IndexError,
        KeyError,
        ValueError,
        TypeError,
    ) as error:
        return "", "", type(error).__name__


def made_tasks(args, tasks, make, kind):
    """Lines of distinct new tasks, at most --count; why others were left out."""
    known, left_out, lines = {code for _, code in tasks}, collections.Counter(), []
    first, began = args.seed << 32, time.monotonic()
    with multiprocessing.Pool(args.jobs, begin, (tasks, make)) as pool:
        for number, (source, code, why) in enumerate(
            pool.imap(attempt, range(first, first + 8 * args.count), chunksize=8)
        ):
            if why or code in known:
                left_out[why or "came before"] += 1
            else:
                known.add(code)
                name = f"{kind}-{args.seed}-{number}"
                lines.append({"id": name, "code": code, "from": source, "split": "train"})
            if len(lines) >= args.count or time.monotonic() - began > args.seconds / 4:
                pool.terminate()
                break
    return lines, left_out


def answered(args, tasks_file, seconds):
    """Pairs of these tasks; the report of `nereid train pairs`. Interrupted by --seconds it leaves whole
    lines."""
    words = [
        *NEREID,
        "train",
        "pairs",
        tasks_file,
        "-o",
        args.out,
        "--variants",
        args.variants,
        "--seed",
        args.seed,
    ]
    words += ["--verify-every", args.verify_every, "--threads", args.jobs, "--json"]
    process = subprocess.Popen(
        list(map(str, words)), stdout=subprocess.PIPE, text=True, env={**os.environ, "NEREID_KEEP_WARM": "0"}
    )
    try:
        said = process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
    lines = said.strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


def add_options(parser):
    parser.add_argument(
        "tasks", nargs="+", help="JSONL files with `code` or `task`, or folders of Python files"
    )
    parser.add_argument("out", type=pathlib.Path, help="file of pairs; its tasks are in OUT.tasks.jsonl")
    parser.add_argument("--count", type=int, default=1000, help="number of tasks (default: 1000)")
    parser.add_argument("--variants", type=int, default=1, help="answers to each task (default: 1)")
    parser.add_argument("--verify-every", type=int, default=8, help="judge one task in so many (default: 8)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all draws (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument(
        "--seconds", type=float, default=1e6, help="end after so many seconds, with what is there"
    )


def run(args, make, kind):
    """Makes tasks and their pairs; prints counts, and pairs per minute of one core."""
    began, processor = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    tasks = read_tasks(args.tasks)
    lines, left_out = made_tasks(args, tasks, make, kind)
    tasks_file = args.out.with_name(args.out.name + ".tasks.jsonl")
    tasks_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = answered(args, tasks_file, max(args.seconds - (time.monotonic() - began), 1)) if lines else {}
    pairs = sum(1 for line in open(args.out)) if args.out.exists() else 0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - processor.ru_utime - processor.ru_stime
    print(json.dumps({
        "kind": kind, "from": len(tasks), "tasks": len(lines), "pairs": pairs,
        "not_lowered": said.get("not_lowered"),
        "verdicts": said.get("verdicts", {}), "left_out": dict(left_out.most_common()),
        "seconds": round(time.monotonic() - began, 1), "processor_seconds": round(seconds, 1),
        "pairs_per_core_minute": round(60 * pairs / seconds, 1) if seconds else None,
    }))  # fmt: skip
