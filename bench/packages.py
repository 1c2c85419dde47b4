"""Other people's models through `nereid.optimize`: how many get verified kernels, and why the others do not.
bench/packages.md has the table.

    python -m venv VENV
    VENV/bin/pip install torch==2.11.* triton==3.6.* numpy torchvision torchaudio timm transformers diffusers
    VENV/bin/python bench/packages.py -o RESULTS.jsonl [--sample 100] [--only transformers/BertModel ...]
    VENV/bin/python bench/packages.py -o RESULTS.jsonl --table

Each module is asked for kernels under `strict`, and under `hybrid` where nothing was verified (what is
verified under strict is under hybrid). Configurations are small (package_models.py), so that a CPU judges
each in seconds. Kernels run in Triton's interpreter and are compared with the original at the example's
batch; at two other batches the call must give what the original gives. Modules are taken in a random order
that --seed fixes: the first ones are a sample.
"""

import argparse
import copy
import json
import math
import os
import pathlib
import random
import re
import signal
import sys
import time
import warnings

os.environ["TRITON_INTERPRET"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python"), str(ROOT / "bench")]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")

import interpreted  # noqa: E402
import nereid  # noqa: E402
import package_models  # noqa: E402
import torch  # noqa: E402

warnings.simplefilter("ignore")


class _TooLong(Exception):
    pass


def limited(seconds, work):
    """What `work` returns, or _TooLong."""

    def stop(*_):
        raise _TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return work()
    finally:
        signal.alarm(0)


def tensors_of(value):
    found = []
    nereid._structure.flatten(value, found)
    return found


def called(module, inputs):
    inputs = copy.deepcopy(inputs)
    return module(**inputs) if isinstance(inputs, dict) else module(*inputs)


def same(one, other):
    one, other = tensors_of(one), tensors_of(other)
    return len(one) == len(other) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-4, equal_nan=True)
        for a, b in zip(one, other)
    )


# The cause of a reason, for the table: the first that is found in it.
CAUSES = (
    (r"hooks", "a submodule has hooks"),
    (
        r"attributes cannot be watched|of type \w+$",
        "a submodule or parameter of a type that cannot be watched",
    ),
    (r"argument of type|output of type", "an argument or output of a type that is not taken apart"),
    (
        r"data.dependent|DataDependent|GuardOnData|UserError|control flow",
        "reads values of tensors, or branches on them",
    ),
    (
        r"no operator of PyTorch's own|operator .*(torchvision|torchaudio|custom)",
        "an operator that is not PyTorch's own",
    ),
    (r"computes nothing", "computes nothing"),
    (r"not exported", "torch.export and make_fx refuse, for another cause"),
    (r"the exported program", "the exported program is not traced"),
    (r"no kernel for|has no kernel|not lowered", "an operator without a kernel"),
    (r"Mismatch", "the written kernels were refused: Mismatch"),
    (r"Disallowed", "the written kernels were refused: Disallowed"),
    (r"Unsafe", "the written kernels were refused: Unsafe"),
    (r"TimedOut|time|deadline|budget", "out of time"),
)


def cause(reason):
    for pattern, name in CAUSES:
        if re.search(pattern, reason):
            return name
    return "another cause"


@torch.no_grad()
def judged(name, make, inputs, options):
    """One line of the results."""
    torch.manual_seed(0)
    module = make().eval()
    example = inputs(2)
    called(module, example)  # what does not run itself is no module to optimize
    answer = {"name": name, "parameters": sum(p.numel() for p in module.parameters()), "attempts": {}}
    fast = None
    for policy in ("strict", "hybrid"):
        start = time.time()
        try:
            fast = limited(
                options["limit"], lambda: nereid.optimize(module, example, policy=policy, **options["search"])
            )
            attempt = {"verified": fast.nereid_reason is None, "reason": fast.nereid_reason}
        except _TooLong:
            attempt = {"verified": False, "reason": "out of time"}
        except Exception as error:
            attempt = {"verified": False, "reason": f"{type(error).__name__}: {error}"[:500]}
        answer["attempts"][policy] = {**attempt, "seconds": round(time.time() - start, 1)}
        if attempt["verified"]:
            break
        if "not exported" in (attempt["reason"] or ""):  # whatever the policy
            answer["attempts"]["hybrid"] = answer["attempts"][policy]
            break
    answer["strict"] = answer["attempts"]["strict"]["verified"]
    answer["hybrid"] = answer["strict"] or answer["attempts"]["hybrid"]["verified"]
    if fast is None:
        return {**answer, "right": "no module", "other_batches": "no module"}
    answer["kernels"] = sum(
        line.startswith("@triton.jit") for line in (fast.nereid_source or "").splitlines()
    )
    same_names = [n for n, _ in fast.named_parameters()] == [n for n, _ in module.named_parameters()]
    answer["same_parameters"] = same_names and list(fast.state_dict()) == list(module.state_dict())
    for key, batches in (("right", (example,)), ("other_batches", (inputs(1), inputs(3)))):
        try:
            answer[key] = limited(
                options["check"], lambda: all(agrees(fast, module, more) for more in batches)
            )
        except _TooLong:
            answer[key] = "too long for the interpreter"
        except Exception as error:  # Triton's interpreter wraps what it meets
            text = f"{type(error).__name__}: {error}"[:300]
            answer[key] = "too long for the interpreter" if "_TooLong" in text else text
    return answer


def agrees(fast, module, inputs):
    """Whether both give the same, or both fail."""
    torch.manual_seed(1)
    try:
        want = called(module, inputs)
    except _TooLong:
        raise
    except Exception as error:
        try:
            called(fast, inputs)
        except type(error):
            return True
        return False
    torch.manual_seed(1)
    return same(called(fast, inputs), want)


def interval(count, of, z=1.96):
    """Wilson's 95 % interval of a share."""
    if of == 0:
        return (0.0, 1.0)
    share = count / of
    middle, spread = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return tuple((middle + sign * spread) / (1 + z * z / of) for sign in (-1, 1))


def table(results, total):
    """The results as Markdown."""
    lines = [
        f"{len(results)} of {total} modules ran.",
        "",
        "| package | modules | hybrid | strict | right answers |",
        "|---|---|---|---|---|",
    ]
    packages = sorted({one["name"].split("/")[0] for one in results})

    def row(name, some):
        def share(key):
            count = sum(one[key] is True for one in some)
            low, high = interval(count, len(some))
            return f"{count} ({100 * count / max(len(some), 1):.0f} %, {100 * low:.0f} to {100 * high:.0f})"

        checked = [one for one in some if one["right"] != "too long for the interpreter"]
        right = sum(one["right"] is True and one["other_batches"] is True for one in checked)
        return f"| {name} | {len(some)} | {share('hybrid')} | {share('strict')} | {right} of {len(checked)} |"

    lines += [
        row(package, [one for one in results if one["name"].startswith(package + "/")])
        for package in packages
    ]
    lines += [row("all", results), ""]
    for policy in ("hybrid", "strict"):
        found = {}
        for one in results:
            if one[policy] is not True:
                attempt = one["attempts"].get(policy) or one["attempts"]["strict"]
                found.setdefault(cause(attempt["reason"] or ""), []).append(one["name"])
        lines += [f"Not verified under {policy}:", "", "| cause | modules | examples |", "|---|---|---|"]
        for name, which in sorted(found.items(), key=lambda pair: -len(pair[1])):
            lines.append(f"| {name} | {len(which)} | {', '.join(which[:4])} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="60s", help="of each search (60s)")
    parser.add_argument(
        "--limit", type=int, default=240, help="seconds of each search with its export, at most (240)"
    )
    parser.add_argument(
        "--check", type=int, default=60, help="seconds of a comparison in the interpreter, at most (60)"
    )
    parser.add_argument("--only", nargs="*", default=(), help="names of modules (all)")
    parser.add_argument("--sample", type=int, help="how many, drawn at random (all)")
    parser.add_argument("--seed", type=int, default=0, help="of the order (0)")
    parser.add_argument("--table", action="store_true", help="print the table of what --output holds")
    parser.add_argument(
        "-o", "--output", help="a file of JSON lines; modules that it holds are not judged again"
    )
    given = parser.parse_args()
    interpreted.libdevice()
    search = dict(budget=given.budget, first=True, proposers="compiler", device="cpu", trials=1, seed=5)
    options = dict(search=search, limit=given.limit, check=given.check)
    path = pathlib.Path(given.output) if given.output else None
    lines = path.read_text().splitlines() if path and path.exists() else []
    known = {one["name"]: one for one in map(json.loads, lines)}
    modules = package_models.all_modules()
    if given.table:
        print(table(list(known.values()), len(modules)))
        return
    names = sorted(modules)
    random.Random(given.seed).shuffle(names)
    names = [name for name in names if name in given.only] if given.only else names[: given.sample]
    for name in names:
        if name in known:
            continue
        try:
            known[name] = judged(name, *modules[name], options)
        except Exception as error:  # of the package: this module cannot be made here
            print(f"{name}: not made: {type(error).__name__}: {error}"[:300], file=sys.stderr, flush=True)
            continue
        print(json.dumps(known[name]), flush=True)
        if path:
            with path.open("a") as file:
                file.write(json.dumps(known[name]) + "\n")
    print(table(list(known.values()), len(modules)))


if __name__ == "__main__":
    main()
