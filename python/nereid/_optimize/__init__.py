"""`nereid.optimize`: a live module's verified kernels, as a module that takes the original's place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .._exceptions import InputError
from .call import Call
from .module import Optimized
from .plan import Plan, Settings, exported_module


def optimize(
    module: torch.nn.Module,
    example_inputs: Any,
    *,
    budget: str = "60s",
    policy: str = "mostly",
    precision: str = "default",
    report: str | Path | None = None,
    dynamic: str | None = None,
    specialize: int = 1,
    on_error: str = "original",
    example_kwargs: Mapping[str, Any] | None = None,
    operators: bool = False,
    **options: Any,
) -> Optimized:
    """The module with verified Triton kernels where they hold, and the original forward elsewhere.

    module           any live nn.Module: from a notebook, a function, a package
    example_inputs   forward's arguments: a tuple of positional ones, a dictionary of keyword ones, or one
                     tensor. Kernels hold for their shapes, dtypes, strides and structure. Values are drawn
                     anew, integers in the example's range
    budget           time for all of it, tracing and writing included: "30s", "5m"
    policy           strict (no PyTorch operator that computes), mostly (90 % Triton), hybrid (any mixture)
    precision        of float32 products: ieee, tf32 (PyTorch's `high`), or default: torch's flags
    report           where a page that shows graph, times and kernels goes: "fast.html"
    dynamic          "batch": kernels for any leading size, verified at three
    specialize       how many sets of shapes, dtypes, strides and numbers get kernels, at most. A call with
                     another set is exported, and done by the original while its kernels are verified in the
                     background; `fast.nereid_wait()` waits for them
    on_error         where kernels raise in a call: "original", whose forward then runs, with one warning, or
                     "raise"
    example_kwargs   keyword arguments next to a tuple in `example_inputs`
    operators        True: torch.export (strict=False) sees the kernels as an operator, a triton_op on a GPU,
                     so that AOTInductor compiles them; for sizes that are fixed, and without gradients. The
                     process that exported such a program can run it; others can run what AOTInductor made of
                     it. False: the original's operators are seen
    options          more options of `nereid optimize` by their names: proposers="compiler", first=True,
                     keep_slower=True, seed=7

    Returns a module that shares parameters, buffers and submodules with `module`: its state dict is the
    original's, and `.to()`, `.half()`, `copy.deepcopy`, pickling and `torch.save` work. It takes the same
    arguments and returns the same structure. A call outside of what was verified (another shape, dtype,
    stride, device or structure; integers outside of the example's range, on a CPU; a changed training mode,
    attribute, global, closure, function or hook; a gradient, a function transform; autocast) is done by the
    original's forward, with one warning; `nereid.explain` says why. So is every call of a forward that
    changes attributes or globals (one that fills a cache is taken once the cache is full), draws Python's or
    NumPy's random numbers or reads a clock. Files, and what forward reaches by names that it computes, cannot
    be watched; what it prints is not printed. Kernels do not check indices in a GPU's memory.

    fast.nereid_verdict    the Verdict of the kernels; None where the module could not be exported
    fast.nereid_reason     why there are no kernels; None where there are
    fast.save("fast.py")   writes the kernels as a file

    Where nothing was verified, or forward itself fails, the result is the original, wrapped. Raises
    InputError where an argument is wrong, NereidError where Nereid fails.
    """
    if isinstance(module, Optimized):
        module = module._nereid_original
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"optimize: expected an nn.Module, got a {type(module).__name__}")
    if precision not in ("ieee", "tf32", "default"):
        raise InputError(f"optimize(precision={precision!r}): expected 'ieee', 'tf32' or 'default'")
    if dynamic not in (None, "batch"):
        raise InputError(f"optimize(dynamic={dynamic!r}): expected 'batch' or None")
    if on_error not in ("original", "raise"):
        raise InputError(f"optimize(on_error={on_error!r}): expected 'original' or 'raise'")
    if isinstance(specialize, bool) or not isinstance(specialize, int) or specialize < 1:
        raise InputError(f"optimize(specialize={specialize!r}): expected a number from 1")
    args, kwargs = _examples(example_inputs, example_kwargs)
    call = Call(module)
    try:
        bound = call.bind(args, kwargs)
    except TypeError as error:
        raise InputError(f"optimize(example_inputs=...): {type(module).__name__}.forward: {error}") from error
    search = {"budget": budget, "policy": policy, "dynamic": dynamic, **options}
    settings = Settings(specialize, precision, search, on_error, bool(operators))
    plan = Plan()
    more = {"report": Path(report).absolute()} if report else {}
    plan.make(lambda: exported_module(module, call, bound, settings), bound, {**search, **more})
    return Optimized(module, plan, settings)


def explain(fast: Optimized, *args: Any, **kwargs: Any) -> str | None:
    """Why the call `fast(*args, **kwargs)` would run the original forward; None where it runs the verified
    kernels.

    The sentence names the argument, parameter or mode, what was expected and what was found. Nothing is
    computed."""
    if not isinstance(fast, Optimized):
        raise InputError(f"explain: expected what nereid.optimize returned, got a {type(fast).__name__}")
    return fast._nereid_choice(args, kwargs)[1]


def _examples(given, more):
    more = dict(more or {})
    if isinstance(given, dict):
        return (), {**given, **more}
    if isinstance(given, (tuple, list)) and not hasattr(given, "_fields"):
        return tuple(given), more
    return (given,), more
