"""The written file, loaded."""

import importlib.util
import linecache
import os
import re
import sys
import tempfile
from pathlib import Path

import torch

from .. import _export, _native, _structure
from .._exceptions import NereidError
from . import prepared
from .prepared import AGAIN
from .tensors import state_of, view_of


def load(source):
    """(the written file as a Python module, its ModelNew without memory)."""
    written = tempfile.NamedTemporaryFile(
        "w", suffix=".py", prefix="nereid_", delete=False
    )  # triton reads a kernel's source
    try:
        with written as file:
            file.write(source)
        name = "_nereid_" + re.sub(r"\W", "_", Path(written.name).stem)
        spec = importlib.util.spec_from_file_location(name, written.name)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
    finally:
        os.unlink(written.name)
    # Inductor asks for the lines of kernels again. None: the entry is not compared with the file.
    linecache.cache[written.name] = (len(source), None, source.splitlines(True), written.name)
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        module = loaded.ModelNew()
    return loaded, module.requires_grad_(False)


def answer_of(exported, results, tensors, original):
    """Forward's answer in the original's structure, from what the task's forward returned."""
    outputs = []
    for kind, which in exported.returned:
        if kind == "computed":
            outputs.append(results[which])
        elif kind == "input":
            outputs.append(tensors[which])
        elif kind == "view":
            (base, name), *place = which
            held = tensors[name] if base == "input" else state_of(original, name)
            outputs.append(view_of(held, *place))
        else:
            outputs.append(state_of(original, which))
    return _structure.unflatten(exported.outputs, iter(outputs))


def takes_more(exported):
    """Whether a call does more than to launch kernels for sizes that are fixed."""
    return exported.written or exported.mutates_inputs or exported.leading or any(exported.copied)


class Kernels:
    """The written file, loaded, on the original's parameters and buffers."""

    graphed = False  # a CUDA graph is wanted
    _tries = 0  # to record a call for a plan, that are left

    def __init__(self, plan, original):
        loaded, self._module = load(plan.source)
        self.not_verified = getattr(loaded, "NotVerified", NereidError)
        for path, part in list(self._module.named_modules()):
            if path == _export.writer.CONSTANTS:
                device = next((t.device for t in [*original.parameters(), *original.buffers()]), None)
                for i, tensor in enumerate(plan.exported.constants):
                    if f"c{i}" in part._buffers:
                        part._buffers[f"c{i}"] = (
                            tensor.detach().to(device) if device is not None else tensor.detach()
                        )
        self._renamed = []  # (dictionary of the kernels' module, its name, the original's, its name)
        parts = {}
        for theirs, ours in plan.exported.state_names.items():
            (path, _, last), (own_path, _, own_last) = theirs.rpartition("."), ours.rpartition(".")
            mine, part = original.get_submodule(path), self._module.get_submodule(own_path)
            if last == own_last:
                parts[own_path] = (part, mine)
            for kind in ("_parameters", "_buffers"):
                if last != own_last and last in getattr(mine, kind):
                    self._renamed.append((getattr(part, kind), own_last, getattr(mine, kind), last))
        for part, mine in parts.values():
            if not any(holder in (part._parameters, part._buffers) for holder, *_ in self._renamed):
                part.__dict__["_parameters"], part.__dict__["_buffers"] = mine._parameters, mine._buffers
            else:
                for kind in ("_parameters", "_buffers"):
                    held = getattr(part, kind)
                    self._renamed += [
                        (held, name, getattr(mine, kind), name)
                        for name in held
                        if name in getattr(mine, kind)
                    ]
        self._single = plan.exported.computed == 1
        self.graphed = "\n_graphed(ModelNew, fresh=True)\n" in plan.source
        # Launches that may be recorded: the compiler's, or what a CUDA graph captures.
        recorded = self.graphed or (hasattr(loaded, "_direct") and not hasattr(loaded, "_graphed"))
        self._tries = prepared.MOST_TRIES if recorded else 0

    def direct(self, exported):
        """A function of a call's tensors that issues the launches which the written file has recorded, for a
        call that has been checked: the answer, or AGAIN where they cannot be issued now. None while there are
        no such launches, or where the call takes more than them."""
        known = getattr(self._module.__dict__.get("_guard_seen"), "known", None)
        launches = known[3][0] if known is not None else None
        if launches is None or takes_more(exported) or self._renamed:
            return None
        used = [i for i, is_used in enumerate(exported.used) if is_used]
        held = [(holder, key) for holder in known[0][4] for key, value in holder.items() if value is not None]
        device, again = known[2], launches.__globals__["AGAIN"]
        plain = exported.returned == [("computed", 0)] and exported.outputs is _structure.TENSOR

        def call(tensors, original):
            given = [tensors[i] for i in used]
            given += [holder[key] for holder, key in held]
            if device is not None and (
                torch.cuda.current_device() != device or any(t.get_device() != device for t in given)
            ):
                return AGAIN
            made = launches(*given)
            if made is again:
                return AGAIN
            if plain:
                return made
            return answer_of(exported, (made,) if self._single else made, tensors, original)

        return call

    def run(self, tensors):
        self._take_state()
        results = self._module(*tensors)
        return (results,) if self._single else results

    def to_prepare(self, exported):
        """Whether the next call is to be recorded, for a plan that native code runs."""
        if self._tries == 0 or takes_more(exported) or not prepared.allowed():
            return False
        return _native.extension() is not None

    def prepare(self, exported, call, tensors, original):
        """(what `run` returns, a PlanRunner or None). `call`: as of prepared.prepare."""
        self._tries -= 1
        self._take_state()

        def answer(results, tensors):
            return answer_of(exported, results, tensors, original)

        results, runner, tried = prepared.prepare(self, exported, call, tensors, answer)
        if tried:  # another time would not help
            self._tries = 0
        return results, runner

    def recorded(self, given):
        """(what the written module returns as a tuple, its steps or None, Triton's driver)."""
        results, steps, driver = prepared.recorded(self._module, given)
        return (results,) if self._single else results, steps, driver

    def state(self):
        """Where the parameters and buffers are that the written module reads, each as (dictionary, key)."""
        places = {(id(holder), name): (mine, theirs) for holder, name, mine, theirs in self._renamed}
        held = []
        for part in self._module.modules():
            for holder in (part._parameters, part._buffers):
                names = [name for name, tensor in holder.items() if tensor is not None]
                held += [places.get((id(holder), name), (holder, name)) for name in names]
        return held

    def _take_state(self):
        for holder, name, mine, theirs in self._renamed:
            holder[name] = mine[theirs]
