"""Nereid turns PyTorch modules into Triton kernels and verifies Triton kernels against PyTorch.

Judge a kernel
    verdict = nereid.verify("softmax.py", "my_softmax.py")    # paths, or source text
    verdict.verified, verdict.reason, verdict.evidence

Judge many, as a trainer does
    with nereid.Judge(jobs=8, reward="hierarchical") as judge:
        rewards = judge.rewards(prompts, completions, references)
    with nereid.Client("http://judge:8000") as judge:         # the same, judged by `nereid serve`
        rewards = judge.rewards(prompts, completions, ["softmax", "relu"])
    nereid.rewards has adapters for TRL, verl, slime, OpenRLHF, verifiers, SkyRL, Atropos and NeMo-Gym.

Optimize a live module
    fast = nereid.optimize(module, (x,), budget="60s")        # shares parameters and buffers with `module`
    fast(x)                                                   # verified kernels, else the original
    nereid.explain(fast, y)                                   # why a call would run the original
    torch.compile(module, backend="nereid")                   # per graph; verdicts: nereid.compiled_graphs()

Other commands
    nereid.trace(file)     what a module computes, operator by operator (docs/trace_format.md)
    nereid.lower(file)     the compiler's kernels, not judged
    nereid.synth(count)    random programs, each a task

Errors
    InputError     the input cannot be judged: a missing file, a task that does not run, a bad option
    NereidError    a fault of Nereid or of the machine; it says nothing about a candidate
    A verdict, of whatever kind, is never an exception.

A task is a file with `class Model`, `get_inputs()` and `get_init_inputs()`; a candidate is a file with
`class ModelNew`, or a model's answer with such a file in a code block. `python -m nereid` runs the command
line program. Importing nereid does not import torch.
"""

from typing import TYPE_CHECKING

_HOMES = {
    "InputError": "_exceptions",
    "NereidError": "_exceptions",
    "Evidence": "_verdict",
    "Verdict": "_verdict",
    "Reward": "_reward",
    "Span": "_reward",
    "Judge": "_judge",
    "Client": "_client",
    "verify": "_judge",
    "optimize": "_optimize",
    "explain": "_optimize",
    "Optimized": "_optimize",
    "compile_backend": "_compile",
    "compiled_graphs": "_compile",
    "CompiledGraph": "_compile",
    "trace": "_commands",
    "lower": "_commands",
    "synth": "_commands",
}

__all__ = [*_HOMES, "rewards"]

if TYPE_CHECKING:
    from . import rewards as rewards
    from ._client import Client as Client
    from ._commands import lower as lower
    from ._commands import synth as synth
    from ._commands import trace as trace
    from ._compile import CompiledGraph as CompiledGraph
    from ._compile import compile_backend as compile_backend
    from ._compile import compiled_graphs as compiled_graphs
    from ._exceptions import InputError as InputError
    from ._exceptions import NereidError as NereidError
    from ._judge import Judge as Judge
    from ._judge import verify as verify
    from ._optimize import Optimized as Optimized
    from ._optimize import explain as explain
    from ._optimize import optimize as optimize
    from ._reward import Reward as Reward
    from ._reward import Span as Span
    from ._verdict import Evidence as Evidence
    from ._verdict import Verdict as Verdict


def __getattr__(name):
    import importlib

    if name in _HOMES:
        value = getattr(importlib.import_module("." + _HOMES[name], __name__), name)
        globals()[name] = value
        return value
    if name in __all__:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'nereid' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
