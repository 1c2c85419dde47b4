"""The states of random generators: nothing that a trace could hold, so the replay keeps them and puts them
back.

`get_state` hands out a tensor that stands for the state; its data is not known. `set_state` takes that tensor
alone.
"""

import contextlib

import torch

from . import tracing
from .._task.errors import Untraceable

_BYTES = {"cpu": 5056, "cuda": 16}  # as PyTorch's


def save(generator, device):
    """The tensor that stands for `generator`'s state now; None: the default one."""
    recorder = tracing.recorder()
    with recorder.lock:
        number = len(recorder.generator_states)
        recorder.call("nereid::save_generator", (number, generator))
        state = recorder.new_fake((_BYTES[device],), (1,), torch.uint8, "cpu")
        recorder.generator_states[recorder.storage_of(state).id] = number, recorder.phase
        return state


def restore(generator, state):
    recorder = tracing.recorder()
    with recorder.lock:
        number, phase = _saved(recorder, state)
        if phase != recorder.phase:
            raise Untraceable(
                f"a random generator's state that was taken in {phase[0]}: each phase draws from a seed of"
                " its own, so take it and put it back in one"
            )
        recorder.call("nereid::restore_generator", (number, generator))


def _saved(recorder, state):
    fake = recorder.adopt(state) if isinstance(state, torch.Tensor) else None
    found = recorder.generator_states.get(recorder.storage_of(fake).id) if fake is not None else None
    if found is None:
        raise Untraceable(
            "a random generator's state that is not the tensor which get_state gave: a copy or bytes of one's"
            " own cannot be put back in a trace"
        )
    return found


def tracing_now():
    recorder = tracing.recorder()
    return recorder is not None and recorder.steps is not None


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, *args, **kwargs):
    """torch.random.fork_rng"""
    if not enabled or not tracing_now():
        yield
        return
    state = save(None, "cpu")
    try:
        yield
    finally:
        restore(None, state)
