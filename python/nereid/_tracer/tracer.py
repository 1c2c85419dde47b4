"""The tracer: runs a module once without data and answers what it did, as docs/trace_format.md says.

`warm()` is called once in a process that then forks for every request; `handle(request)` does the work in a
child. By hand: `python -m nereid._tracer.tracer FILE [--class ModelNew] [--reference FILE] [--json]`.
"""

import copy
import dataclasses
import gc
import traceback
import types
import warnings
from time import perf_counter  # the function itself: a traced file may patch the module

import torch

from . import light_modules

light_modules.install()  # before anything imports what they stand for

import torch.func  # noqa: F401
from torch._subclasses.fake_tensor import FakeTensorMode

from .._task import included_files, source
from . import (
    arguments,
    backward,
    constants,
    fake_cuda,
    fake_tensors,
    grad_modes,
    inert,
    layers,
    streams,
    tracing,
    triton_front_end,
)
from .bindings import Bindings
from .._task.errors import KernelDoesNotCompile, Malformed
from .known_values import KnownValues
from .pointers import Pointers
from .recorder import Recorder

FORMAT_VERSION = 1
_cuda_float = torch.cuda.FloatTensor  # before constants.py puts a stand-in there
_installed = False


def install():
    """Patches torch and triton in this process, for good."""
    global _installed
    if _installed:
        return
    _installed = True
    warnings.simplefilter("ignore")
    fake_cuda.install()
    fake_tensors.install()
    constants.install()
    grad_modes.install()
    backward.install()
    inert.install()
    layers.install()
    triton_front_end.install()
    torch._C._set_default_tensor_type(_cuda_float)


class Phases:
    """One trace being made: the file's phases in their order."""

    def __init__(self, request):
        self._request = request
        self._started = perf_counter()
        self._source = source.Source(request["source"], request.get("path", "model.py"))
        self._class = request.get("class", "Model")
        self._draw = int(request.get("draw", 0))
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=False)
        self.recorder = Recorder(self._source.path, self.fake_mode)
        self.recorder.known = KnownValues(self.recorder, self._draw)
        self.pointers = Pointers(self.recorder, request["source"])
        self.launches = triton_front_end.Session(self.recorder, self.pointers)
        self.recorder.known.kernels = self.launches.kernels
        self.phases, self.phase = [], "module"
        self.init_inputs, self.state = [], []
        self.bindings = Bindings(self.recorder)
        tracing.start(self.recorder)
        streams.begin_trace()
        fake_tensors.set_pointers(self.pointers)
        triton_front_end.set_session(self.launches)

    # -- the order of things --------------------------------------------------------------------------------

    def trace(self):
        code = self._source.compile()
        reference = self._request.get("reference")
        given = GivenInputs(self.recorder, reference) if reference is not None else None
        with torch.no_grad(), self.fake_mode, self.recorder:
            grad_modes.exclude(True)
            self.recorder.user_keys = grad_modes.UserKeys()
            module, init_inputs = self._in_phase("module", 0, lambda steps: self._load(code, given))
            instance = self._in_phase("init", 0, lambda steps: self._construct(module, init_inputs))
            self._take_state(instance)
            for call in range(int(self._request.get("calls", 3))):
                inputs = self._in_phase(
                    "make_inputs", call, lambda steps: self._make_inputs(module, given, call)
                )
                self.phases[-1]["inputs"] = self._encode_given(inputs)
                output = self._in_phase("forward", call, lambda steps: self._call(instance, inputs))
                self.phases[-1]["inputs"] = self.phases[-2]["inputs"]
                self.phases[-1]["output"] = self._encode_output(output)
        self.recorder.closed = True
        return self._document()

    def _in_phase(self, name, call, work):
        inert.seed_python(name, call, self._draw)
        self.phase = name
        phase = {"phase": name, "call": call, "steps": []}
        self.phases.append(phase)
        self.recorder.phase, self.recorder.steps = (name, call), phase["steps"]
        streams.begin_phase()
        result = work(phase["steps"])
        inert.finish_threads()
        if joined := streams.end_of_phase():
            phase["joined"] = joined
        self.recorder.steps = None
        return result

    def _load(self, code, given):
        module = self._source.run(code, self._request.get("globals") or {})
        if not isinstance(getattr(module, self._class, None), type) and not callable(
            getattr(module, self._class, None)
        ):
            raise Malformed(f"no class {self._class} in {self._source.path}")
        if given is not None:
            init_inputs = given.init_inputs()
        else:
            for name in ("get_inputs", "get_init_inputs"):
                if not callable(getattr(module, name, None)):
                    raise Malformed(f"no function {name} in {self._source.path}")
            init_inputs = module.get_init_inputs()
        self.init_inputs = self._encode_given(init_inputs)
        return module, init_inputs

    def _construct(self, module, init_inputs):
        make = getattr(module, self._class)
        instance = make(**init_inputs) if isinstance(init_inputs, dict) else make(*_listed(init_inputs))
        return instance.cuda() if isinstance(instance, torch.nn.Module) else instance

    def _make_inputs(self, module, given, call):
        if given is not None:
            return given.inputs(call)
        self.given = set()  # values of the inputs of this call
        inputs = module.get_inputs()
        if self._request.get("other_numbers"):
            inputs = _with_leaves(inputs, float, _other_number)
        inputs = _with_tensors(inputs, self._input)
        if isinstance(inputs, tuple):
            inputs = tuple(inputs)  # a named one is no more than its places here
        self._name_inputs(inputs)
        return inputs

    def _input(self, tensor):
        """An input on the GPU. One that is given twice is two inputs: a caller may give different ones."""
        tensor = tensor.cuda()
        value = self.recorder.value_of(tensor)
        if value in self.given:
            copy = tensor.clone()
            tensor = copy if copy.stride() == tensor.stride() else tensor
        self.given.add(value)
        return tensor

    def _call(self, instance, inputs):
        call = instance if callable(instance) else instance.forward
        self.bindings.give(tensors_with_paths(inputs))
        output = call(**inputs) if isinstance(inputs, dict) else call(*_listed(inputs))

        def replace(change):
            nonlocal output
            output = _with_tensors(output, change)

        self.bindings.settle(instance, lambda: [tensor for _, tensor in tensors_with_paths(output)], replace)
        return output

    # -- what is known of storages --------------------------------------------------------------------------

    def _name_inputs(self, inputs):
        for path, tensor in tensors_with_paths(inputs):
            storage = self.recorder.storage_of(self.recorder.adopt(tensor))
            if storage.role == "temporary":
                storage.role, storage.name = "input", path
            if tensor.dtype in arguments.INTEGRAL and storage.data is None:
                real = self.recorder.known.materialize_input(self.recorder.adopt(tensor))
                if real is not None:
                    storage.data = arguments.base64_of(real)
                    storage.real = storage.base = (real, len(storage.writes))
                    storage.integral_input, storage.pinned = True, False

    def _take_state(self, instance):
        if not isinstance(instance, torch.nn.Module):
            return
        transient = set()
        for prefix, module in instance.named_modules(remove_duplicate=False):
            transient.update(
                f"{prefix}.{name}" if prefix else name for name in module._non_persistent_buffers_set
            )
        named = [(name, tensor, True) for name, tensor in instance.named_parameters(remove_duplicate=False)]
        named += [(name, tensor, False) for name, tensor in instance.named_buffers(remove_duplicate=False)]
        for name, tensor, is_parameter in named:
            value = self.recorder.value_of(tensor) if not layers.is_uninitialized(tensor) else None
            if value is None:
                continue
            storage = self.recorder.storages[self.recorder.values[value]["s"]]
            if storage.role == "temporary":
                storage.role, storage.name = "parameter" if is_parameter else "buffer", name
            self.state.append(
                {"name": name, "value": value, "parameter": is_parameter, "persistent": name not in transient}
            )
            self.bindings.hold(name, tensor, value)
        self.bindings.name_attributes(instance)

    def _encode_output(self, output):
        return self.recorder.encode(output)

    def _encode_given(self, given):
        encode = self.recorder.encode
        encode.configurations = True
        try:
            return encode(given)
        finally:
            encode.configurations = False

    def _document(self):
        recorder = self.recorder
        return {
            "nereid_trace": FORMAT_VERSION, "file": self._source.path, "class": self._class,
            "draw": self._draw,
            "seconds": round(perf_counter() - self._started, 6),
            "storages": [storage.encode() for storage in recorder.storages], "values": recorder.values,
            "kernels": self.launches.kernels, "phases": self.phases, "state": self.state,
            "init_inputs": self.init_inputs,
            "flags": flags(), "notes": recorder.notes,
        }  # fmt: skip

    # -- what went wrong ------------------------------------------------------------------------------------

    def untraceable(self, error):
        frames = _frames(error)
        mine = [frame for frame in frames if frame.filename == self._source.path]
        last = mine[-1] if mine else None
        return {"untraceable": {
            "phase": self.phase, "type": type(error).__name__,
            "message": _message(error) + included_files.advice(error),
            "file": self._source.path if last else "", "line": last.lineno if last else 0,
            "code": self._source.line(last.lineno) if last else "",
            "traceback": [f"{source.display_name(f.filename)}:{f.lineno} "
                          f"{(f.line or '').strip()}"[:300] for f in frames[-12:]],
        }}  # fmt: skip


def _frames(error):
    try:
        return traceback.extract_tb(error.__traceback__, limit=-60)
    except Exception:
        return []


def _message(error):
    try:
        return str(error)[:4000]
    except Exception:
        return "(an exception that cannot be printed)"


class GivenInputs:
    """A candidate's inputs: those that the reference's trace describes."""

    def __init__(self, recorder, reference):
        self._recorder, self._reference = recorder, reference
        self._storages = {}

    def init_inputs(self):
        return arguments.decode(self._reference.get("init_inputs"), self._tensor)

    def inputs(self, call):
        encoded = self._reference["inputs"]
        self._storages = {}
        return arguments.decode(encoded[call % len(encoded)], self._tensor)

    def _tensor(self, value_id):
        value = self._reference["values"][value_id]
        storage = self._storage(value["s"])
        return self._recorder.view(
            storage, arguments.DTYPE_OF_NAME[value["t"]], value["n"], value["d"], value.get("o", 0)
        )

    def _storage(self, id):
        found = self._storages.get(id)
        if found is not None:
            return found
        given = self._reference["storages"][id]
        flat = self._recorder.new_fake((given["bytes"],), (1,), torch.uint8, given.get("device", "cuda"))
        storage = self._storages[id] = self._recorder.storage_of(flat)
        storage.role, storage.name = "input", given.get("name", "")
        if given.get("data") is not None:
            storage.data = given["data"]
            real = arguments.storage_of_base64(given["data"], given["bytes"])
            storage.real = storage.base = (real, 0)
            storage.integral_input = True
        return storage


def _listed(inputs):
    return inputs if isinstance(inputs, (list, tuple)) else [inputs]


def _other_number(number):
    """A number of the same kind: between 0 and 1 stays there, signs stay, and infinities."""
    return number * 0.75 if 0 < number <= 1 else number * 1.25 or 0.25


def _with_tensors(inputs, change):
    """Nested inputs with `change` applied to every tensor."""
    return _with_leaves(inputs, torch.Tensor, change)


def _with_leaves(inputs, kind, change, depth=0):
    """Nested inputs with `change` applied to every object of a type."""
    if isinstance(inputs, kind):
        return change(inputs)
    if depth > arguments.MAX_DEPTH:
        return inputs
    if type(inputs) is list:
        return [_with_leaves(item, kind, change, depth + 1) for item in inputs]
    if type(inputs) is tuple:
        return tuple(_with_leaves(item, kind, change, depth + 1) for item in inputs)
    if type(inputs) is dict:
        return {key: _with_leaves(item, kind, change, depth + 1) for key, item in inputs.items()}
    if isinstance(inputs, tuple) and hasattr(type(inputs), "_fields"):
        return tuple.__new__(type(inputs), [_with_leaves(item, kind, change, depth + 1) for item in inputs])
    fields = _fields_with_tensors(inputs)
    if fields:
        inputs = copy.copy(inputs)
        for name, item in fields.items():
            object.__setattr__(inputs, name, _with_leaves(item, kind, change, depth + 1))
    return inputs


def _fields_with_tensors(x):
    """Of a dataclass, a SimpleNamespace, or an instance of a class of the file's: its fields, where a tensor
    may be in them."""
    if dataclasses.is_dataclass(x) and not isinstance(x, (type, dict)):
        return {
            field.name: getattr(x, field.name) for field in dataclasses.fields(x) if hasattr(x, field.name)
        }
    if (
        type(x) is types.SimpleNamespace
        or type(x).__module__ == source.MODULE_NAME
        and not isinstance(x, (type, torch.nn.Module))
    ):
        return dict(getattr(x, "__dict__", ()))
    return {}


def tensors_with_paths(tree, path=""):
    """("1.mask", tensor) for every tensor in nested inputs."""
    if isinstance(tree, torch.Tensor):
        yield path, tree
    elif isinstance(tree, (list, tuple)):
        for index, item in enumerate(tree):
            yield from tensors_with_paths(item, f"{path}.{index}" if path else str(index))
    elif isinstance(tree, dict):
        for key, item in tree.items():
            yield from tensors_with_paths(item, f"{path}.{key}" if path else str(key))
    else:
        for key, item in _fields_with_tensors(tree).items():
            yield from tensors_with_paths(item, f"{path}.{key}" if path else str(key))


def flags():
    backends, matmul = torch.backends, torch.backends.cuda.matmul
    read = {
        "matmul.allow_tf32": lambda: matmul.allow_tf32,
        "cudnn.allow_tf32": lambda: backends.cudnn.allow_tf32,
        "cudnn.enabled": lambda: backends.cudnn.enabled, "cudnn.benchmark": lambda: backends.cudnn.benchmark,
        "cudnn.deterministic": lambda: backends.cudnn.deterministic,
        "matmul.allow_fp16_reduced_precision_reduction": lambda: (
            matmul.allow_fp16_reduced_precision_reduction),
        "matmul.allow_bf16_reduced_precision_reduction": lambda: (
            matmul.allow_bf16_reduced_precision_reduction),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
        "autocast": lambda: torch.is_autocast_enabled("cuda"),
    }  # fmt: skip
    return {name: _flag(get) for name, get in read.items()}


def _flag(get):
    try:
        value = get()
    except RuntimeError:  # the newer names of precisions were set, and the older ones cannot be read: TF32
        return 1
    return int(bool(value[0] if isinstance(value, tuple) else value))


def compile_failure(error):
    """What Triton's front end said, if that is why the module stopped."""
    seen = 0
    while error is not None and seen < 50:
        failure = error if isinstance(error, KernelDoesNotCompile) else getattr(error, "nereid_kernel", None)
        if isinstance(failure, KernelDoesNotCompile):
            return {"compile_failed": {"kernel": failure.kernel, "message": failure.message,
                                       "file": failure.file,
                                       "line": failure.line, "code": failure.code}}  # fmt: skip
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


_last = None


def handle(request):
    """One file, or `several` of one author in one process: as much as they could do to each other, they could
    do to themselves."""
    if "several" not in request:
        return _handle_one(request)
    with triton_front_end.remembering():
        return {"several": [_handle_one(each) for each in request["several"]]}


def _handle_one(request):
    global _last
    install()
    collects = gc.isenabled()
    gc.disable()  # a trace is short; what a collection looks through is mostly torch's own modules
    try:
        phases = Phases(request)
        _last = phases  # taking it apart would be for nothing: a child ends when it has answered
        try:
            return {"trace": phases.trace()}
        except Malformed as error:
            return {"malformed": {"message": str(error)}}
        except (
            BaseException
        ) as error:  # SystemExit and KeyboardInterrupt of the module's own are no reason to stop answering
            return compile_failure(error) or phases.untraceable(error)
        finally:
            phases.recorder.closed = True
            grad_modes.exclude(False)
    except Malformed as error:
        return {"malformed": {"message": str(error)}}
    finally:
        if collects:
            gc.enable()


def warm():
    """Imports and runs once whatever a trace may need, so that forked children find it done."""
    install()
    from . import warm_up

    warm_up.run(handle)
    forget()
    triton_front_end.make_contexts()


def forget():
    """Lets go of the last trace."""
    global _last
    _last = None
    triton_front_end.set_session(None)


def warm_up():
    """What every child does."""
    from . import warm_up

    warm_up.run(handle)


def main():
    from . import command

    raise SystemExit(command.run(handle))


if __name__ == "__main__":
    import sys

    sys.modules.setdefault("nereid._tracer.tracer", sys.modules["__main__"])
    main()
