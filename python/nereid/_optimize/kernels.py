"""The written file, loaded."""

import importlib.util
import linecache
import os
import re
import sys
import tempfile
from pathlib import Path

import torch

from .. import _export, _structure
from .._exceptions import NereidError
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


AGAIN = object()  # of Kernels.direct


class Kernels:
    """The written file, loaded, on the original's parameters and buffers."""

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

    def direct(self, exported):
        """A function of a call's tensors that issues the launches which the written file has recorded, for a
        call that has been checked: the answer, or AGAIN where they cannot be issued now. None while there are
        no such launches, or where the call takes more than them."""
        known = getattr(self._module.__dict__.get("_guard_seen"), "known", None)
        launches = known[3][0] if known is not None else None
        special = exported.written or exported.mutates_inputs or exported.leading or any(exported.copied)
        if launches is None or special or self._renamed:
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
        for holder, name, mine, theirs in self._renamed:
            holder[name] = mine[theirs]
        results = self._module(*tensors)
        return (results,) if self._single else results
