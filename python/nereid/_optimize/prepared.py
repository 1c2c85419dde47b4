"""A recorded call of the written file as a plan that native code runs whole
(src/nereid/python/plan_runner.h): check, memory, launches, answer.

NEREID_NATIVE_CALLS=0 in the environment leaves calls to the written file, for debugging."""

import contextlib
import functools
import os
import threading
from pathlib import Path

import torch

from .. import _launch, _native, _structure
from .._written import direct

AGAIN = object()  # what a plan answers where Python has to do the call
DRIVER = "libcuda.so.1"
MOST_GRAPHS = 8  # of a plan, each for other addresses
MOST_TRIES = 3
_NO_PLAN = "called by a plan"


def allowed():
    return os.environ.get("NEREID_NATIVE_CALLS") != "0"


def recorded(module, given):
    """(what the written module returns, the steps of the call or None, Triton's driver)."""
    driver = direct._driver()
    if driver is None:
        return module(*given), None, None
    from triton.runtime import jit

    lock = vars(jit).setdefault("_nereid_records", threading.Lock())
    if not lock.acquire(blocking=False):
        return module(*given), None, None
    graph, seen = module.__dict__.get("_graph_captured"), module.__dict__.get("_guard_seen")
    why = getattr(graph, "why", None)
    try:
        if graph is not None:
            graph.why = _NO_PLAN  # so forward runs plainly
        if seen is not None and seen.known is not None:
            seen.known[3][0] = None  # launches that Triton would not see
        return *direct._recorded(lambda: module(*given), driver), driver
    finally:
        if graph is not None:
            graph.why = why
        lock.release()


class _Steps(direct._Launches):
    """The steps of a recorded call, all of which have to be launches or memory."""

    def __init__(self, tensors, steps, result, driver):
        super().__init__(tensors, steps, result, driver)
        self.native, self.made = _launch, []  # memory that the call makes, in order

    def make(self, made, text):
        (tensor,) = made
        if tensor.storage_offset():
            raise direct._Unrecorded("memory with an offset")
        name = f"m{len(self.made)}"
        self.made.append((name, tensor.shape, tensor.stride(), tensor.dtype))
        self.home[tensor.untyped_storage().data_ptr()] = ("made", name, f"a{name}")
        self.names[f"like {name}"] = tensor

    def through_triton(self, *launch):
        raise direct._Unrecorded("a launch that Triton does alone")

    def walk(self):
        """Leaves `queued` launches, their `slots`, and `made`."""
        whole, scratch = self.storages([self.result]), 0
        for kind, *step in self.steps:
            if kind == "other":
                raise direct._Unrecorded(step[0])
            if kind == "launch":
                self.launch(*step)
                continue
            operator, _, _, made = step
            if operator.is_view:
                continue
            if not self.is_allocation(operator):
                raise direct._Unrecorded(f"{operator} is PyTorch's")
            address = made.untyped_storage().data_ptr()
            if made.numel() and address not in whole:
                self.home[address] = ("scratch", scratch)
                scratch += -(-made.untyped_storage().nbytes() // 256) * 256
            else:
                self.make([made], "")
        if scratch:
            self.made.append(("scratch", (scratch,), (1,), torch.uint8))
        return self

    def leaf(self, tensor):
        """A tensor of the result as an answer, with its place's name."""
        kind, where, *_ = self.home_of(tensor)
        whole = self.tensors[where] if kind == "given" else self.names.get(f"like {where}")
        name = f"t{where}" if kind == "given" else where
        if whole is None or whole.dtype != tensor.dtype:
            raise direct._Unrecorded("a view of another type, or of memory without a tensor")
        looks = [(t.shape, t.stride(), t.storage_offset()) for t in (whole, tensor)]
        if looks[0] == looks[1]:
            return "tensor", name
        if kind == "given":
            raise direct._Unrecorded("a view of an argument")
        return "view", name, (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def description_of(kernels, exported, call, recording, answer):
    """What PlanRunner takes. `kernels`: of the recorded call; `call`: (its tensors that the written module
    takes, their indices among the call's); `recording`: (results, steps, driver); `answer`: a function of
    results and the call's tensors. Raises _Unrecorded."""
    given, indices = call
    result, steps, driver = recording
    state = kernels.state()
    walked = _Steps([*given, *(mapping[key] for mapping, key in state)], steps, result, driver).walk()
    leaves = [walked.leaf(tensor) for tensor in result]
    # Places: arguments and state that kernels or answers read, then memory.
    names = [f"t{slot[1:]}" if slot[0] == "p" else slot.removeprefix("a") for slot in walked.slots]
    ones = [(f"t{a}", f"t{b}") for a, b in walked.same]
    needed = {*names, *(leaf[1] for leaf in leaves), *(name for pair in ones for name in pair)}
    sources = [("argument", i) for i in indices] + [("state", mapping, key) for mapping, key in state]
    places = {f"t{i}": source for i, source in enumerate(sources) if f"t{i}" in needed}
    device = driver.get_current_device()
    samples = [walked.tensors[int(name[1:])] for name in places]
    kind = samples[0].device.type if samples else None
    if any(t.device.type != kind or kind == "cuda" and t.device.index != device for t in samples):
        raise direct._Unrecorded("tensors of several devices, or none")
    for name, *memory in walked.made:
        places[name] = memory_of(kind, *memory)
    place = {name: i for i, name in enumerate(places)}
    launches = tuple(
        (function, tuple(grid), threads, shared, bool(cooperative), (*parameters, (0, -1), (0, -1)))
        for function, grid, threads, shared, cooperative, parameters in walked.queued
    )
    if not launches:
        raise direct._Unrecorded("nothing is launched")
    return {
        "tensors": tuple(places.values()),
        "slots": tuple(place[name] for name in names),
        "same": tuple((place[a], place[b]) for a, b in ones),
        "launches": launches,
        "answer": answer_text(exported, [(kind, place[name], *more) for kind, name, *more in leaves], answer),
        "samples": tuple(samples),
        "sample": samples[0],
        "functions": functions_of(walked, driver, device, MOST_GRAPHS if kernels.graphed else 0),
        "kept": (walked.kept, driver),
    }


def memory_of(kind, shape, strides, dtype):
    narrow = getattr(torch._C._dynamo.guards, f"_empty_strided_{kind}", None)
    if narrow is not None:
        return "made", narrow, (tuple(shape), tuple(strides), dtype)
    make = functools.partial(torch.empty_strided, tuple(shape), tuple(strides), dtype=dtype, device=kind)
    return "made", make, ()


def functions_of(walked, driver, device, graphs):
    several = torch.cuda.device_count() > 1
    return (
        DRIVER,
        str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"),
        _native.extension().CallGuard(watched(walked, driver)),
        torch._C._cuda_getDevice if several else None,
        device,
        driver.get_current_stream,
        torch.Tensor.as_strided,
        torch.Tensor.data_ptr,
        torch.Tensor.get_device,
        AGAIN,
        graphs,
    )


def watched(walked, driver):
    """Of Triton what written files look at before they launch directly, as lists of a CallGuard."""
    from triton import knobs
    from triton.runtime import driver as config
    from triton.runtime.jit import JITFunction

    names = "owners entries attributes answers state absent sizes refusals functions".split()
    lists = {name: [] for name in names}
    calls = [chain.calls for chain in direct._hooks()] + list(walked.hooks.values())
    lists["sizes"] = [(one, 0) for one in calls]
    attributes = ("launch_enter_hook", "launch_exit_hook", "debug")
    lists["attributes"] = [(knobs.runtime, name, getattr(knobs.runtime, name)) for name in attributes]
    lists["attributes"].append((JITFunction, "run", JITFunction.run))
    if vars(config).get("_active") is driver:
        lists["entries"].append((vars(config), "_active", driver))
    else:
        lists["attributes"].append((config, "active", driver))
    return lists


def answer_text(exported, leaves, finish):
    """The answer as PlanRunner builds it; by `finish` where it is more than lists, tuples and dictionaries of
    what was computed."""
    rest = iter(exported.returned)

    def text(node):
        if isinstance(node, _structure.Node):
            items = tuple(text(item) for item in node.items)
            if node.cls in (list, tuple):
                return node.kind, items
            if node.cls is dict:
                return "dict", items, tuple(node.keys)
            raise LookupError
        if not isinstance(node, type(_structure.TENSOR)):
            return "constant", node
        kind, which = next(rest)
        if kind != "computed":
            raise LookupError
        return leaves[which]

    try:
        return text(exported.outputs)
    except LookupError:
        return "finished", tuple(leaves), finish


def poisoned(description):
    """The same, whose memory is full of ones before the kernels write to it."""

    def make(function, args):
        made = function(*args)
        made.untyped_storage().fill_(255)
        return made

    places = tuple(
        ("made", functools.partial(make, place[1], place[2]), ()) if place[0] == "made" else place
        for place in description["tensors"]
    )
    return {**description, "tensors": places}


def same_numbers(one, other):
    """Whether two answers agree but for the order of sums."""
    found = [], []
    for answer, tensors in zip((one, other), found):
        _structure.flatten(answer, tensors)
    for a, b in zip(*found):
        if (a.dtype, a.shape, a.stride(), a.device) != (b.dtype, b.shape, b.stride(), b.device):
            return False
        if torch.equal(a, b):
            continue
        wide = torch.complex128 if a.is_complex() else torch.float64
        a, b = a.detach().to(wide), b.detach().to(wide)
        if not torch.equal(a.isfinite(), b.isfinite()) or not torch.equal(a.isnan(), b.isnan()):
            return False
        a, b = (t.masked_fill(~t.isfinite(), 0) for t in (a, b))
        if (a - b).norm() > 1e-3 * b.norm():
            return False
    return len(found[0]) == len(found[1])


def plan_of(description, tensors, answer):
    """The PlanRunner; None where it does not compute `answer` from the call's `tensors`, in memory where
    nothing lies of an earlier call."""
    native = _native.extension()
    again = native.PlanRunner(poisoned(description)).run_checked(tuple(tensors))
    if again is AGAIN or not same_numbers(again, answer):
        return None
    return native.PlanRunner(description)


def prepare(kernels, exported, call, tensors, answer):
    """(the results of this call, a PlanRunner for later ones or None, whether it was tried). `kernels`: a
    Kernels; `call`: as description_of takes it; `answer`: a function of results and the call's tensors."""
    recording = results, steps, _ = kernels.recorded(call[0])
    if steps is None:
        return results, None, False
    # _Unrecorded, or a Triton or a PyTorch that is not as expected: the written file does it all.
    with contextlib.suppress(Exception):
        description = description_of(kernels, exported, call, recording, answer)
        return results, plan_of(description, tensors, answer(results, tensors)), True
    return results, None, True
