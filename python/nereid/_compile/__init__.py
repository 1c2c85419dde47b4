"""`torch.compile(model, backend="nereid")`: verified kernels for the graphs that Dynamo takes from a model.

A graph is compiled at its first call, when real tensors are there: its parameters and buffers become the
state of a module, its sizes become numbers, and the module goes the way of `nereid.optimize`. Where that
fails the graph is split at the operators that cannot be exported, and each part is tried alone. All else, and
every call outside of what was verified, is Inductor's or eager PyTorch's.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from .._exceptions import InputError
from .graph import CompiledGraph, graphs

_OWN_OPTIONS = {"background", "fallback", "specialize", "cache", "precision"}
_FALLBACKS = ("inductor", "eager")
_RESERVED = {"dynamic", "report", "example_kwargs"}  # of nereid.optimize, without a meaning for a graph


def compile_backend(
    graph: torch.fx.GraphModule,
    example_inputs: list,
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
    **more: Any,
) -> Callable:
    """The backend "nereid" of torch.compile:
    `torch.compile(model, backend="nereid", options={"budget": "30s"})`.

    Options
      policy        hybrid (any mixture of Triton and PyTorch, the default), mostly or strict
      budget        time for each graph, tracing and writing included: "60s"
      precision     of float32 products: ieee, tf32, or default (what torch's flags say at the first call)
      background    True: a first call does not wait; the fallback runs until kernels are verified
      fallback      what runs elsewhere: "inductor" (the default) or "eager"
      specialize    how many sets of sizes of a graph with dynamic shapes get kernels, at most (8)
      cache         False: verified kernels are neither read from the folder next to the store nor kept there
      others        options of `nereid optimize` by their names: proposers="compiler", first=True, seed=7

    Kernels run where shapes, dtypes, strides and devices are those that were verified, and no gradient is
    asked for. All else is done by the fallback, with one warning for each graph. `nereid.compiled_graphs()`
    lists the graphs with their verdicts. Raises InputError for a wrong option.
    """
    settings = Settings.of({**(options or {}), **more}, mode)
    return CompiledGraph(graph, settings)


def compiled_graphs() -> "list[CompiledGraph]":
    """The graphs that the backend holds, in the order in which they were made: `graph.reason`,
    `graph.verdicts`, `graph.calls`."""
    return sorted(graphs, key=lambda graph: graph.number)


@dataclasses.dataclass(frozen=True)
class Settings:
    fallback: str
    background: bool
    specialize: int
    cache: bool
    precision: str
    mode: str | None
    search: dict

    @classmethod
    def of(cls, given, mode):
        search = {key: value for key, value in given.items() if key not in _OWN_OPTIONS}
        for key in search:
            if key in _RESERVED or not key.isidentifier():
                raise InputError(
                    f'torch.compile(backend="nereid", options={{{key!r}: ...}}): a graph has no such option'
                )
        fallback, precision = given.get("fallback", "inductor"), given.get("precision", "default")
        if fallback not in _FALLBACKS:
            raise InputError(f"the option fallback: expected 'inductor' or 'eager', got {fallback!r}")
        if precision not in ("ieee", "tf32", "default"):
            raise InputError(f"the option precision: expected 'ieee', 'tf32' or 'default', got {precision!r}")
        specialize = given.get("specialize", 8)
        if isinstance(specialize, bool) or not isinstance(specialize, int) or specialize < 1:
            raise InputError(f"the option specialize: expected a number from 1, got {specialize!r}")
        return cls(
            fallback=fallback,
            background=bool(given.get("background", False)),
            specialize=specialize,
            cache=bool(given.get("cache", True)),
            precision=precision,
            mode=mode,
            search={"policy": "hybrid", "budget": "60s", **search},
        )


def register() -> None:
    """Makes the name "nereid" known to torch.compile where no entry point does (a checkout)."""
    from torch._dynamo.backends import registry

    if "nereid" not in torch._dynamo.list_backends(exclude_tags=()):
        registry.register_backend(compile_backend, name="nereid")


register()
