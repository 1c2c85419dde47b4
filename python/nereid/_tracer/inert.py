"""What is switched off, or made harmless, while a module is traced: compilers, threads' own order, Python's
random seeds."""

import functools
import random
import threading
import types
import zlib

import torch
from torch._decomp import decomposition_table
from torch.autograd import forward_ad

from . import grad_modes, light_modules, tracing
from .._task.errors import Untraceable


def seed_python(phase, call, draw):
    seed = zlib.crc32(f"{phase}.{call}.{draw}".encode())
    random.seed(seed)
    try:
        import numpy

        numpy.random.seed(seed & 0xFFFFFFFF)
    except ImportError:
        pass


def _identity_compile(model=None, *args, **kwargs):
    """torch.compile, torch.jit.script and their kin: the module as it is."""
    if model is None:
        return lambda model: model
    return model


def _scripting(script, load):
    """`load`, which scripts the formulas of forward-mode derivatives when one is first asked for, as it is
    before anything is inert."""

    def wrapped():
        # The reference's decomposition of trace, imported with fake tensors, cannot be scripted; the one that
        # `load` has can.
        inert, torch.jit.script = torch.jit.script, script
        trace = decomposition_table.pop(torch.ops.aten.trace.default, None)
        try:
            load()
        finally:
            torch.jit.script = inert
            if trace is not None:
                decomposition_table[torch.ops.aten.trace.default] = trace

    return wrapped


def _identity_trace(function, *args, **kwargs):
    return function


_start = threading.Thread.start
_run = threading.Thread._bootstrap_inner
_threads = []


def _bootstrap(self):
    """A thread's modes are its own: one that the module starts gets those of the trace."""
    recorder = tracing.recorder()
    if recorder is None or recorder.steps is None:
        return _run(self)
    with torch.no_grad(), recorder.fake_mode, recorder:
        grad_modes.exclude(True)
        return _run(self)


def _tracked_start(self):
    recorder = tracing.recorder()
    if recorder is not None:
        tracing.note("a thread was started")
        _threads.append(self)
    return _start(self)


def finish_threads():
    """Work that a phase's threads have not done within a second is never done."""
    while _threads:
        thread = _threads.pop()
        if thread is not threading.current_thread():
            thread.join(1.0)


def _assert(condition, message):
    """torch._assert: a tensor's value cannot be asked; whatever else is checked."""
    if not isinstance(condition, torch.Tensor):
        assert condition, message


def _distribution(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None):
    """A distribution's constructor without its checks, which read what it is given."""
    self._batch_shape, self._event_shape, self._validate_args = batch_shape, event_shape, False


def install():
    torch.compile = _identity_compile
    forward_ad._maybe_load_decompositions = _scripting(
        torch.jit.script, forward_ad._maybe_load_decompositions
    )
    torch.jit.script = torch.jit.script_method = torch.jit.ignore = torch.jit.export = torch.jit.freeze = (
        _identity_compile
    )
    torch.jit.optimize_for_inference = _identity_compile
    torch.jit.trace = torch.jit.trace_module = _identity_trace
    torch._assert = _assert
    torch.nn.Module.compile = lambda self, *args, **kwargs: None
    torch.nn.RNNBase.flatten_parameters = _flatten_parameters
    torch.library.wrap_triton = lambda kernel: kernel
    torch.nn.functional.gaussian_nll_loss = _without_check_of_values(torch.nn.functional.gaussian_nll_loss)
    _refuse_compilers()
    torch.distributions.Distribution.__init__ = _distribution
    threading.Thread._bootstrap_inner = _bootstrap
    threading.Thread.start = _tracked_start


def _refuse_compilers():
    """C++ and CUDA compilers take minutes to fail here; what they would build could not be traced."""

    def refuse(*args, **kwargs):
        raise Untraceable("C++ and CUDA extensions: only what PyTorch and Triton do is traced")

    light_modules.stand_in("torch.utils.cpp_extension", {"load": refuse, "load_inline": refuse}, lasting=True)


class _TorchWithoutAny:
    """torch, where any() finds nothing."""

    def __getattr__(self, name):
        return (lambda *args, **kwargs: False) if name == "any" else getattr(torch, name)


def _without_check_of_values(function):
    """The function without its check of what its arguments hold, which is not known here."""
    checked = types.FunctionType(function.__code__, {**function.__globals__, "torch": _TorchWithoutAny()},
                                 function.__name__,
                                 function.__defaults__, function.__closure__)  # fmt: skip
    checked.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(checked)


def _flatten_parameters(self):
    recorder = tracing.recorder()
    weights = [weight for weight in getattr(self, "_flat_weights", ()) if isinstance(weight, torch.Tensor)]
    if recorder is not None and recorder.steps is not None and weights:
        recorder.call("nereid::flatten_rnn_weights", (weights,))
