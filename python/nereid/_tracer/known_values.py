"""What can be known without data: constants, integer inputs, and whatever is computed from them.

Nothing is computed until the module asks (`.item()`, `if t.any()`, an output whose shape depends on values).
Then the steps that made the tensor are found by walking the recorded history backwards, and done again on
real CPU tensors. Random numbers, kernels' results and floating-point inputs end the walk: what depends on
them is not known. Integer inputs that an answer depended on are pinned: the trace holds for these values
alone.
"""

import zlib

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import arguments
from .._task.errors import Untraceable
from .ttir_writes import launch_writes

MAX_KNOWN_BYTES = 256 << 20
MAX_PINNED_BYTES = 4 << 20


class KnownValues:
    def __init__(self, recorder, draw):
        self._recorder, self._draw = recorder, draw
        self.kernels = []  # the trace's, which say which tensors a launch only reads
        self.computed = None  # real results of the operator being recorded, where finding its shape gave them

    # -- what the recorder asks -----------------------------------------------------------------------------

    def read(self, func, args, kwargs):
        """The answer of an operator that reads data."""
        args, kwargs = self._real_arguments(args, kwargs, f"`{func._schema.name.split('::')[1]}`")
        with _disable_current_modes(), torch.no_grad():
            return func(*args, **kwargs)

    def tensor(self, fake, what):
        """A real CPU tensor with the content of a fake one; `what` says who asks."""
        with self._recorder.lock:
            return self._real(fake, what)

    def shape_by_value(self, func, args, kwargs):
        """The fake result of an operator whose result's shape depends on data: that of integer and bool
        arguments, which must be known."""
        name = func._schema.name.split("::")[1]
        needs_all = name in _DATA_DECIDES
        real_args, real_kwargs = self._real_arguments(
            args, kwargs, f"the shape of `{name}`'s result", needs_all
        )
        with _disable_current_modes(), torch.no_grad():
            real = func(*real_args, **real_kwargs)
        device = next(a for a in _tensors(args, kwargs)).fake_device
        first = real[0] if isinstance(real, tuple) and real else real
        if name in (
            "_pack_padded_sequence",
            "_pad_packed_sequence",
        ):  # the second result is known, and on the CPU
            self.computed = [None, real[1]]
            return self._fake_like(first, device), self._fake_like(real[1], torch.device("cpu"))
        if (
            needs_all
            or first.dtype in arguments.INTEGRAL
            and not any(t.dtype not in arguments.INTEGRAL for t in _tensors(args, kwargs))
        ):
            self.computed = list(real) if isinstance(real, (tuple, list)) else [real]
        return _map(real, lambda t: self._fake_like(t, device))

    def attach(self, result):
        """Remembers the data of results that were computed for their shape's sake."""
        reals, self.computed = self.computed, None
        for fake, real in zip(result if isinstance(result, (tuple, list)) else [result], reals):
            if real is not None:
                storage = self._recorder.storage_of(fake)
                storage.real = storage.base = (real.untyped_storage(), len(storage.writes))

    def materialize_input(self, fake):
        """The data of an integer input, as this draw has it; None where it is too large or cannot be
        known."""
        storage = self._recorder.storage_of(fake)
        if storage.bytes > MAX_PINNED_BYTES:
            return None
        pinned = [s.pinned for s in self._recorder.storages]
        try:
            self._real(fake, "an input")
        except Untraceable:
            return None
        # It is unread yet: what it was made from may be drawn anew in each trial.
        for s, was in zip(self._recorder.storages, pinned):
            s.pinned = was
        return storage.real[0]

    def constant_bytes(self, storage):
        """The content of a storage that follows from no integer input but those that are pinned already;
        None where it does, or is not known."""
        with self._recorder.lock:
            if storage.real is None or storage.real[1] != len(storage.writes):
                before = [(s.pinned, s.data, s.real) for s in self._recorder.storages]
                try:
                    self._make_known(storage, torch.int64, "a table of addresses")
                except Untraceable:
                    return None
                if any(s.pinned != old[0] for s, old in zip(self._recorder.storages, before)):
                    for s, old in zip(self._recorder.storages, before):
                        s.pinned, s.data, s.real = old
                    return None
            return arguments.bytes_of(storage.real[0]) if storage.real is not None else None

    # -- doing steps again ----------------------------------------------------------------------------------

    def _real_arguments(self, args, kwargs, what, all_needed=True):
        def real(t):
            if not all_needed and t.dtype not in arguments.INTEGRAL:
                with _disable_current_modes():
                    return torch.zeros(t.shape, dtype=t.dtype, device="cpu")
            return self._real(t, what)

        args = tuple(_map(arg, real) for arg in args)
        return args, {key: _map(arg, real) for key, arg in kwargs.items() if key != "device"}

    def _fake_like(self, real, device):
        return self._recorder.new_fake(real.shape, real.stride(), real.dtype, device)

    def _real(self, fake, what):
        storage = self._recorder.storage_of(fake)
        if storage.real is None or storage.real[1] != len(storage.writes):
            self._make_known(storage, fake.dtype, what)
        elif storage.integral_input:
            storage.pinned = True
        data = storage.real[0]
        with _disable_current_modes(), torch.no_grad():
            t = torch.empty(0, dtype=fake.dtype, device="cpu").set_(
                data, fake.storage_offset(), tuple(fake.shape), tuple(fake.stride())
            )
            if fake.is_conj():
                t = t.conj()
            return t.clone()

    def _make_known(self, storage, dtype, what):
        steps, roots = self._slice(storage, what)
        memory = {}
        for root in roots:
            memory[root.id] = _copy(root.real[0])
        with _disable_current_modes(), torch.no_grad():
            drawn = self._run(steps, memory, what)
        if storage.id in drawn and dtype not in arguments.INTEGRAL:
            raise Untraceable(f"{what} reads floating-point data that is drawn at random")
        for root in roots:
            if root.integral_input:
                root.pinned = True
        if storage.id in memory:
            storage.real = (memory[storage.id], len(storage.writes))
        self._pin_draws(steps, drawn, memory)

    def _slice(self, wanted, what):
        """The steps that decide a storage's content now, in order; and the storages that are known
        already."""
        history, storages = self._recorder.history, self._recorder.storages
        needed, roots, stack, seen = set(), {}, [(wanted.id, len(history))], set()
        while stack:
            id, before = stack.pop()
            if (id, before) in seen:
                continue
            seen.add((id, before))
            storage = storages[id]
            writers = [writer for writer in storage.writes if writer < before]
            known = 0
            if storage.real is not None:
                known = storage.real[1]
                if known > len(
                    writers
                ):  # what is kept is newer than what is wanted: start from what it was at first
                    storage.real = storage.base
                    return self._slice(wanted, what)
                roots[id] = storage
            elif not writers:
                raise Untraceable(f"{what} reads the data of {_describe(storage)}")
            for writer in writers[known:]:
                done = history[writer]
                if writer in needed:
                    continue
                needed.add(writer)
                if "launch" in done.step:
                    if not launch_writes(done.step, self.kernels, self._recorder.values, id):
                        needed.discard(writer)
                        continue
                    raise Untraceable(f"{what} reads what the kernel {_kernel_name(done)} computes")
                if done.func is None:
                    raise Untraceable(f"{what} reads the data of {_describe(storage)}")
                stack.extend((read, writer) for read in done.reads)
                stack.extend((other, writer) for other in done.writes if storages[other].writes[0] < writer)
        return [history[index] for index in sorted(needed)], list(roots.values())

    def _run(self, steps, memory, what):
        """Does the steps; answers the ids of storages whose floating-point content was drawn at random."""
        drawn = set()
        for done in steps:
            in_make_inputs = done.phase[0] == "make_inputs"
            if done.random and not in_make_inputs:
                raise Untraceable(f"{what} reads data that is drawn at random in {done.phase[0]}")
            if not in_make_inputs and any(id in drawn for id in done.reads):
                raise Untraceable(f"{what} reads what is computed from floating-point inputs")
            if done.random:
                torch._C.default_generator.manual_seed(_seed(self._draw, done))
            result = self._do(done, memory)
            tainted = done.random or any(id in drawn for id in done.reads)
            for value_id in _value_ids(done.step["result"]) + [
                v for a in done.step["args"] for v in _value_ids(a)
            ]:
                value = self._recorder.values[value_id]
                if value["s"] in done.writes:
                    if tainted and arguments.DTYPE_OF_NAME[value["t"]] not in arguments.INTEGRAL:
                        drawn.add(value["s"])
            del result
        return drawn

    def _do(self, done, memory):
        step = done.step
        total = 0

        def tensor_of(value_id):
            value = self._recorder.values[value_id]
            return _view(memory[value["s"]], value)

        args = [arguments.decode(arg, tensor_of) if not _is_generator(arg) else None for arg in step["args"]]
        kwargs = {
            key: arguments.decode(arg, tensor_of)
            for key, arg in step.get("kwargs", ())
            if not _is_generator(arg) and key not in ("pin_memory",)
        }
        if any(argument.name == "device" for argument in done.func._schema.arguments):
            kwargs["device"] = torch.device("cpu")
        args = [torch.device("cpu") if isinstance(arg, torch.device) else arg for arg in args]
        for id in done.writes:
            total += self._recorder.storages[id].bytes
        if total > MAX_KNOWN_BYTES:
            raise Untraceable(f"host code reads a tensor that takes {total >> 20} MiB to compute")
        result = done.func(*args, **kwargs)
        flat = (
            [result]
            if isinstance(result, torch.Tensor)
            else [t for t in (result or ()) if isinstance(t, torch.Tensor)]
        )
        for value_id, real in zip(_value_ids(step["result"]), flat):
            value = self._recorder.values[value_id]
            if value["s"] not in memory:
                memory[value["s"]] = _storage_holding(real, value, self._recorder.storages[value["s"]].bytes)
        return result

    def _pin_draws(self, steps, drawn, memory):
        """Integer storages that were drawn in this walk hold only for this draw."""
        for done in steps:
            if done.random or any(id in drawn for id in done.reads):
                for id in done.writes:
                    storage = self._recorder.storages[id]
                    if id in drawn or id not in memory or storage.bytes > MAX_PINNED_BYTES:
                        continue
                    storage.real = (memory[id], sum(1 for _ in storage.writes))
                    storage.pinned = True
                    storage.data = arguments.base64_of(memory[id])


# Operators the shape of whose result depends on all their data, not on indices and masks alone.
_DATA_DECIDES = frozenset(
    "nonzero unique _unique _unique2 unique_dim unique_consecutive argwhere bincount nonzero_static".split()
)


def _tensors(args, kwargs):
    from .recorder import tensors_in

    return tensors_in(args, kwargs)


def _map(tree, function):
    if isinstance(tree, torch.Tensor):
        return function(tree)
    if type(tree) in (list, tuple):
        return type(tree)(_map(item, function) for item in tree)
    if isinstance(tree, torch.device):
        return torch.device("cpu")
    return tree


def _value_ids(arg):
    if isinstance(arg, list):
        return [id for item in arg for id in _value_ids(item)]
    if isinstance(arg, dict):
        if "v" in arg:
            return [arg["v"]]
        if "tuple" in arg:
            return _value_ids(arg["tuple"])
    return []


def _is_generator(arg):
    return isinstance(arg, dict) and "generator" in arg


def _view(storage, value):
    t = torch.empty(0, dtype=arguments.DTYPE_OF_NAME[value["t"]], device="cpu").set_(
        storage, value["o"], value["n"], value["d"]
    )
    return t.conj() if value.get("conj") else t


def _storage_holding(real, value, bytes_needed):
    """A storage in which `value`'s view shows `real`."""
    if (
        list(real.stride()) == value["d"]
        and real.storage_offset() == value["o"]
        and real.untyped_storage().nbytes() >= bytes_needed
    ):
        return real.untyped_storage()
    storage = torch.zeros(bytes_needed, dtype=torch.uint8, device="cpu").untyped_storage()
    _view(storage, value).copy_(real)
    return storage


def _copy(storage):
    with _disable_current_modes():
        return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage).clone().untyped_storage()


def _seed(draw, done):
    """Every random step of a draw has a seed of its own, so that it draws the same whenever it is done
    again."""
    return (
        draw * 1_000_003 + done.phase[1] * 10_007 + zlib.crc32(str(done.step["result"]).encode())
    ) & 0x7FFFFFFF


def _describe(storage):
    if storage.role == "input":
        return (
            f"input {storage.name}, which is floating-point"
            if not storage.integral_input
            else f"input {storage.name}"
        )
    if storage.role in ("parameter", "buffer"):
        return f"the {storage.role} {storage.name}"
    return "a tensor that is not known without running the module"


def _kernel_name(done):
    return f"launched at {done.step['at'][0]}:{done.step['at'][1]}"
