"""The kernels of one set of sizes: how they are found, and what they hold for."""

import dataclasses
import random
import sys
import tempfile
from pathlib import Path

import torch

from .. import _commands, _export, _program, _structure
from .._verdict import Verdict
from .tensors import aliases_of, function_modes, meta_of, range_of
from .watched import Watched, unwatched

_REPLACED = ("_flat_weights", "_flat_weight_refs")  # of torch.nn.RNNBase, by torch.export
_PRECISIONS = {"ieee": (False, False), "tf32": (True, True)}


@dataclasses.dataclass
class Settings:
    """How further sets of sizes are compiled."""

    specialize: int
    precision: str
    search: dict
    on_error: str = "original"
    operators: bool = False  # torch.export sees the kernels


def exported_module(module, call, bound, settings):
    if (why := unwatched(module)) is not None:
        raise _structure.Unsupported(why)
    batch = settings.search.get("dynamic") == "batch"
    run = without_effects(call.run, module)
    try:
        return _export.export(
            module, bound, run, batch=batch, flags=flags_of(settings.precision), functions=True
        )
    except _structure.Unsupported:
        raise
    except Exception as error:  # of export's own: the original runs
        raise _structure.Unsupported(_export.program.short(error)) from error


def without_effects(run, original):
    """`run(module, bound)`, which raises Unsupported where forward leaves attributes, globals or closures
    other than they were, or draws Python's or NumPy's random numbers: kernels would do neither. `module` is
    `original` or, where that holds a submodule twice, torch.export's stand-in for it."""

    def call(module, bound):
        watched, drawn = Watched(original, without=_REPLACED), host_random()
        if watched.unknown is not None:
            raise _structure.Unsupported(watched.unknown)
        try:
            result = run(module, bound)
        except BaseException:
            if watched.cached() or watched.differs() is not None:
                watched.restore()
            raise
        if (why := watched.differs()) is not None:
            watched.restore()
            raise _structure.Unsupported(f"forward changes more than tensors: {why}")
        if filled := watched.cached():
            watched.restore()
            raise _structure.Unsupported(
                f"forward fills the cache of {filled[0].__qualname__}: call the module once before"
            )
        if host_random() != drawn:
            raise _structure.Unsupported("forward draws random numbers of Python or NumPy")
        return result

    return call


def host_random():
    """The state of the random numbers that Python and NumPy draw."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state(legacy=False) if numpy is not None else None
    return random.getstate(), drawn and (drawn["state"]["key"].tobytes(), drawn["state"]["pos"])


def flags_of(precision):
    """The lines of a task that set float32's precision."""
    matmul, cudnn = _PRECISIONS.get(precision) or (
        torch.backends.cuda.matmul.allow_tf32,
        torch.backends.cudnn.allow_tf32,
    )
    return [
        f"torch.backends.cuda.matmul.allow_tf32 = {bool(matmul)}",
        f"torch.backends.cudnn.allow_tf32 = {bool(cudnn)}",
        "",
    ]


class Plan:
    """The kernels' source and what they hold for. Plain data: it is copied and pickled with the module."""

    def __init__(self):
        self.reason = "nothing was verified"
        self.verdict = self.source = self.task = self.exported = None
        self.tensors, self.aliases, self.state_meta = [], (), {}
        self.autocast, self.dtype, self.modes, self.ranges = None, None, (), []
        self.valid = True

    def make(self, export, bound, options):
        """Exports and searches; what cannot be done is the reason."""
        try:
            self.take(export(), bound)
            self.search({key: value for key, value in options.items() if value is not None})
        except _structure.Unsupported as error:
            self.reason = f"not exported: {error}" if self.exported is None else str(error)

    def take(self, exported, bound):
        self.exported, self.task = exported, exported.source
        found = []
        _structure.flatten(bound, found)
        self.tensors = [meta_of(tensor) for tensor in found]
        self.aliases, self.modes = aliases_of(found), function_modes()
        ranges = [(i, range_of(tensor)) for i, tensor in enumerate(found)]
        self.ranges = [(i, bounds) for i, bounds in ranges if bounds is not None]
        if exported.mutates_inputs and len(set(self.aliases)) != len(found):
            raise _structure.Unsupported("forward writes to an argument that shares memory with another one")
        self.autocast, self.dtype = _export.autocast_of(found), torch.get_default_dtype()

    def search(self, options):
        """Runs `nereid optimize` on the task; leaves source, verdict and reason."""
        keep_slower = options.pop(
            "keep_slower", not torch.cuda.is_available()
        )  # without a clock no kernel is known to be slower
        with tempfile.TemporaryDirectory(prefix="nereid-") as folder:
            task, out = Path(folder) / "model.py", Path(folder) / "fast.py"
            task.write_text(self.task)
            arguments = [
                "optimize",
                task,
                "-o",
                out,
                "--json",
                *_commands.flags({"keep_slower": keep_slower, **options}),
            ]
            try:
                result = _program.parse("optimize", _program.start(*arguments))
            except _program.Answered as answered:
                if answered.code == _program.NO_EXIT and answered.json is not None:
                    result = answered.json
                elif answered.code in (_program.NO_EXIT, _program.INPUT_EXIT) and (
                    "model.py" in answered.text or "cannot be written for any batch" in answered.text
                ):
                    raise _structure.Unsupported(
                        f"the exported program: {answered.text[-500:]}"
                    ) from answered
                elif answered.code == _program.OWN_EXIT and "Error: " in answered.text:  # of every candidate
                    raise _structure.Unsupported(
                        f"a fault of Nereid's own: {answered.text[-500:]}"
                    ) from answered
                else:
                    raise answered.as_error() from answered
            self._judge(result)
            if out.exists() and result.get("output"):
                self.source, self.reason = out.read_text(), None

    def _judge(self, result):
        if not result.get("verdict"):
            tried = [one for one in result.get("tried") or () if one.get("verdict") or one.get("word")]
            closest = dict(tried[-1]) if tried else {}
            declined = "; ".join(f"{one['proposer']}: {one['why']}" for one in result.get("declined") or ())
            evidence = result.get("evidence") or ""
            self.reason = "nothing was verified: " + (one_line(evidence) or declined or "no proposal")
            kind = closest.get("verdict") or closest.get("word")
            if "aten-compute" in evidence or "aten-share" in evidence:
                self.reason += '; policy="hybrid" allows PyTorch\'s operators where there is no kernel'
            if kind:
                self.verdict = Verdict.from_json(
                    {"verdict": kind, "reason": closest.get("reason") or one_line(evidence)}
                )
            return
        batches = [one for one in result.get("batches") or () if one.get("verdict") != "Verified"]
        answer = batches[0] if batches else result
        known = {
            key: value
            for key, value in result.items()
            if key in ("times", "seconds", "coverage") and value is not None
        }
        self.verdict = Verdict.from_json(
            {**known, "verdict": answer["verdict"], "reason": answer.get("reason") or ""}
        )
        if result.get("slower_than_eager") and not result.get("output"):
            self.reason = "the verified kernels are slower than eager PyTorch; keep_slower=True uses them"
        elif not result.get("output"):
            self.reason = f"nothing was verified: {self.verdict}"


def one_line(text):
    return " ".join(str(text).split())[:500]
