"""The recorder: a dispatch mode that writes down every operator, with the storages and views it works on.

It runs above FakeTensorMode, which computes shapes, strides, dtypes and devices without data. Autograd's
dispatch keys are excluded while gradients are off (see `grad_modes.py`), so the recorder sees operators as
they were called, composites included, also those that C++ calls. Work may come from several threads; one lock
orders it.
"""

import contextlib
import inspect
import threading

import torch
from torch._C import DispatchKey
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .._task import source
from . import arguments, composites, streams
from .._task.errors import Untraceable
from .operators import ADVICE, Kind, operator
from .records import Done, Storage

MAX_STEPS = 200_000
MAX_CONSTANT_BYTES = 128 << 20
MAX_STORAGES = 1_000_000


def written_tensors(facts, args, kwargs):
    written = []
    for position, name in zip(facts.written_positions, facts.written_names):
        argument = args[position] if position < len(args) else kwargs.get(name)
        if isinstance(argument, torch.Tensor):
            written.append(argument)
        elif isinstance(argument, (list, tuple)):
            written.extend(tensor for tensor in argument if isinstance(tensor, torch.Tensor))
    return written


def set_over_tensor(recorder, args, kwargs):
    """`set_` to a storage, as the overload that takes a tensor over it: a trace's arguments are views."""
    target, source = args[0], args[1]
    fake = source._untyped_storage if isinstance(source, torch.TypedStorage) else source
    id = recorder._storage_ids.get(fake._cdata)
    if id is None:
        raise Untraceable("set_ to a storage that belongs to no tensor")
    storage, width = recorder.storages[id], target.element_size()
    count = fake.nbytes() // width
    offset, size, strides = (
        *args[2:],
        *[kwargs[key] for key in ("storage_offset", "size", "stride") if key in kwargs],
        None,
        None,
        None,
    )[:3]
    if size is None:
        offset, size, strides = 0, [count], [1]
    if not strides:
        strides = list(composites.contiguous(size))
    func = torch.ops.aten.set_.source_Tensor_storage_offset
    return (
        func,
        operator(func),
        (target, recorder.view(storage, target.dtype, (count,), (1,), 0), offset, list(size), list(strides)),
        {},
    )


class Recorder(TorchDispatchMode):
    def __init__(self, path, fake_mode):
        super().__init__()
        self.path, self.fake_mode = path, fake_mode
        self.storages, self._storage_ids = [], {}
        self.values, self._value_ids = [], {}
        self.steps = None  # the current phase's list; None outside phases
        self.tuners = {}  # what chooses among alternatives -> its number
        self.step_count = 0
        self.history = []  # of Done, across phases
        self.phase = ("", 0)
        self.parts = None  # names of what a composite becomes, while one is being taken apart
        self.lock = threading.RLock()
        self.closed = False
        self.capturing = False
        self.constant_bytes = 0
        self.notes = []
        self.encode = arguments.Encoder(self.value_of)
        self.user_keys = None  # set by the tracer once its modes are active: grad_modes.UserKeys
        self.known = None  # set by the tracer: KnownValues
        self.generator_states = {}  # storage id -> (number, phase); see generator_states.py
        self._adopted = {}

    # -- storages and values --------------------------------------------------------------------------------

    def storage_of(self, tensor):
        if tensor.layout is not torch.strided:
            raise Untraceable(f"tensors of layout {tensor.layout} cannot be traced")
        fake = tensor.untyped_storage()
        key = fake._cdata
        id = self._storage_ids.get(key)
        if id is None:
            id = len(self.storages)
            if id >= MAX_STORAGES:
                raise Untraceable(f"more than {MAX_STORAGES} tensors were allocated")
            self._storage_ids[key] = id
            self.storages.append(Storage(id, fake, "cpu" if tensor.fake_device.type == "cpu" else "cuda"))
        return self.storages[id]

    def value_of(self, tensor):
        """The id of a tensor's view, or None for a tensor that is none of ours."""
        if type(tensor) is not FakeTensor:
            tensor = self.adopt(tensor)
            if tensor is None:
                return None
        storage = self.storage_of(tensor)
        held = storage.fake.nbytes()
        if held < storage.held:
            raise Untraceable("a tensor whose storage was made smaller (UntypedStorage.resize_) is used")
        storage.held = held
        dtype, shape, strides, offset = tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()
        lazy = (tensor.is_conj(), tensor.is_neg())
        key = (storage.id, dtype, shape, strides, offset, lazy)
        id = self._value_ids.get(key)
        if id is None:
            id = self._value_ids[key] = len(self.values)
            value = {
                "s": storage.id,
                "t": arguments.dtype_name(dtype),
                "n": list(shape),
                "d": list(strides),
                "o": offset,
            }
            if lazy[0]:
                value["conj"] = True
            if lazy[1]:
                value["neg"] = True
            self.values.append(value)
            if 0 not in shape:
                last = offset + 1 + sum((n - 1) * d for n, d in zip(shape, strides))
                storage.bytes = max(storage.bytes, last * dtype.itemsize)
        return id

    def adopt(self, tensor):
        """The fake of a tensor that is real or of another class: a real one becomes a constant."""
        if isinstance(tensor, FakeTensor):
            return tensor
        key = id(tensor)
        found = self._adopted.get(key)
        if found is not None and found[0] is tensor:
            return found[1]
        if tensor.device.type == "meta" or type(tensor) not in (
            torch.Tensor,
            torch.nn.Parameter,
            torch.nn.Buffer,
        ):
            fake = self._fake_of_meta_storage(tensor)
        else:
            fake = self.constant(tensor, "cpu")
        self._adopted[key] = (tensor, fake)
        return fake

    def _fake_of_meta_storage(self, tensor):
        """A subclass made from a fake tensor shares its meta storage."""
        try:
            id = self._storage_ids.get(tensor.untyped_storage()._cdata)
        except (NotImplementedError, RuntimeError):
            return None
        if id is None:
            return None
        return self.view(
            self.storages[id], tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()
        )

    def new_fake(self, shape, strides, dtype, device):
        """A fresh fake tensor that no step made."""
        guards = torch._C._DisableTorchDispatch(), torch._C._DisableFuncTorch()
        try:
            meta = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device="meta")
            return FakeTensor(self.fake_mode, meta, torch.device(device))
        finally:
            del guards

    def view(self, storage, dtype, shape, strides, offset):
        """A fake tensor over a storage of the trace."""
        guards = torch._C._DisableTorchDispatch(), torch._C._DisableFuncTorch()
        try:
            meta = torch.empty(0, dtype=dtype, device="meta").set_(
                storage.fake, offset, tuple(shape), tuple(strides)
            )
            return FakeTensor(self.fake_mode, meta, torch.device(storage.device))
        finally:
            del guards

    def view_of(self, value):
        """A fake tensor that is the value of this id."""
        of = self.values[value]
        dtype = arguments.DTYPE_OF_NAME[of["t"]]
        return self.view(self.storages[of["s"]], dtype, of["n"], of["d"], of["o"])

    def constant(self, real, device, requires_grad=False):
        """A fake tensor whose content is that of a real one; the trace carries the data."""
        with self.lock:
            with _disable_current_modes(), torch.no_grad(), torch._C._DisableFuncTorch():
                real = real.detach()
                if real.device.type != "cpu":
                    raise Untraceable(f"a tensor on {real.device} came from nowhere")
                real = real.clone(memory_format=torch.contiguous_format)
            self.constant_bytes += real.untyped_storage().nbytes()
            if self.constant_bytes > MAX_CONSTANT_BYTES:
                raise Untraceable(
                    f"the module makes more than {MAX_CONSTANT_BYTES >> 20} MiB of tensors from data"
                )
            fake = self.new_fake(real.shape, real.stride(), real.dtype, device)
            storage = self.storage_of(fake)
            storage.role = "constant"
            storage.real = storage.base = (real.untyped_storage(), 1)
            storage.data = arguments.base64_of(real.untyped_storage())
            value = self.value_of(fake)
            self._append(
                {"call": "nereid::constant", "args": [], "result": {"v": value}}, None, (), (storage,), False
            )
            return fake

    # -- steps ----------------------------------------------------------------------------------------------

    def _append(self, step, func, read, written, random):
        """`read` and `written` are Storages."""
        if self.steps is None:
            raise Untraceable("work that was started outside of the constructor and of forward")
        if self.step_count >= MAX_STEPS:
            raise Untraceable(f"more than {MAX_STEPS} operators were called")
        self.step_count += 1
        step["at"] = source.place(self.path, 3)
        order = None if self.capturing else streams.order()
        if order is not None:
            step["stream"] = order
        for storage in written:
            storage.writes.append(len(self.history))
        self.history.append(
            Done(func, step, [s.id for s in read], [s.id for s in written], self.phase, random)
        )
        self.steps.append(step)

    def note(self, text):
        if text not in self.notes and len(self.notes) < 100:
            self.notes.append(text)

    def call(self, name, args=(), kwargs=None, result=None):
        """Records an operator of our own."""
        with self.lock:
            step = {"call": name, "args": [self.encode(arg) for arg in args], "result": self.encode(result)}
            if kwargs:
                step["kwargs"] = [[key, self.encode(arg)] for key, arg in kwargs.items()]
            self._append(step, None, (), (), False)

    def launch(self, alternatives, tensors, tuner=None, tuning=None):
        """Records a kernel launch; `tensors` are those it has pointers to. Launches with equal `tuner` choose
        as one. `tuning`: what hooks do around the runs of the call that tunes."""
        with self.lock:
            touched = [self.storage_of(tensor) for tensor in tensors]
            step = {"launch": alternatives}
            if tuner is not None:
                step["tuner"] = self.tuners.setdefault(tuner, len(self.tuners))
            if tuning is not None:
                step["tuning"] = tuning
            self._append(step, None, touched, touched, False)

    @contextlib.contextmanager
    def diverted(self):
        """Calls made inside go to a list of their own, not to the phase."""
        with self.lock:
            steps, self.steps = self.steps, []
        try:
            yield self.steps
        finally:
            self.steps = steps

    def extend(self, steps):
        """Puts diverted calls into the phase after all."""
        with self.lock:
            self.steps.extend(steps)

    # -- captured graphs ------------------------------------------------------------------------------------

    def capture_begin(self):
        with self.lock:
            outer, self.steps = self.steps, []
            self.capturing = True
            return outer, self.steps, len(self.history)

    def capture_end(self, token):
        """What was captured: steps that did not run yet."""
        outer, captured, first = token
        with self.lock:
            self.steps, self.capturing = outer, False
            return captured, self.history[first:]

    def repeat(self, captured):
        """Does captured steps, now."""
        steps, history = captured
        with self.lock:
            for step, done in zip(steps, history):
                read = [self.storages[id] for id in done.reads]
                self._append(
                    dict(step), done.func, read, [self.storages[id] for id in done.writes], done.random
                )

    def busy(self):
        """Whether this thread is inside the recorder."""
        return self.lock._is_owned()

    # -- the dispatch mode ----------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        try:
            facts = operator(func)
        except AttributeError:
            return self._higher_order(func, args, kwargs)
        kind = facts.kind
        if kind == Kind.QUERY:
            return args[0].fake_device if facts.name == "prim::device" else self._query(func, args, kwargs)
        with self.lock:
            if self.closed:
                raise Untraceable("work that went on after forward had returned")
            if facts.layout is not None:
                raise Untraceable(f"{facts.layout} tensors cannot be traced: {ADVICE[facts.layout]}")
            if self.parts is not None:
                return self._part(func, facts, args, kwargs)
            if kind == Kind.EXPAND and (facts.recorded_when is None or not facts.recorded_when(args, kwargs)):
                with self, self.user_keys.guard():
                    return facts.composite(*args, **kwargs)
            if kind == Kind.CUSTOM:
                with self, self.user_keys.guard():
                    return facts.composite(*args, **kwargs)
            args = self._adopt_all(args)
            if kwargs:
                kwargs = {key: self._adopt_one(arg) for key, arg in kwargs.items()}
            if facts.takes_storage:
                func, facts, args, kwargs = set_over_tensor(self, args, kwargs)
            if kind == Kind.READ:
                streams.current().synchronize()
                return self.known.read(func, args, kwargs)
            return self._record(func, facts, args, kwargs)

    def _query(self, func, args, kwargs):
        with self.fake_mode:
            return func(*args, **kwargs)

    def _part(self, func, facts, args, kwargs):
        if facts.shape is not None:
            self.parts.extend(facts.parts)
            return facts.shape(self.new_fake, *args, **kwargs)
        if facts.kind == Kind.EXPAND or facts.kind == Kind.COMPOSITE:
            with self, self.user_keys.guard():
                return facts.composite(*args, **kwargs)
        if facts.kind == Kind.READ:
            return self.known.read(func, args, kwargs)
        if len(self.parts) < 4096:
            self.parts.append(facts.name)
        return self._compute(func, facts, args, kwargs)

    def _record(self, func, facts, args, kwargs):
        encoded_args = [self.encode(arg) for arg in args]
        encoded_kwargs = [[key, self.encode(arg)] for key, arg in kwargs.items()] if kwargs else None
        if facts.kind == Kind.RECORD:
            parts = None
            result = self._compute(func, facts, args, kwargs)
        elif facts.shape is not None:
            parts, result = facts.parts, facts.shape(self.new_fake, *args, **kwargs)
        else:
            self.parts = parts = []
            try:
                with self, self.user_keys.guard():
                    result = facts.composite(*args, **kwargs)
            finally:
                self.parts = None
        if type(result) is FakeTensor and result.fake_device.type == "meta":
            return result  # shapes alone: no work
        encoded_result = self.encode((result[0], *[None] * (len(result) - 1)) if facts.first_only else result)
        step = {"call": facts.recorded_name, "args": encoded_args, "result": encoded_result}
        if facts.makes_dtype and torch.get_default_dtype() is not torch.float32:
            encoded_kwargs = self._with_dtype(args, kwargs, encoded_kwargs, result)
        if encoded_kwargs:
            step["kwargs"] = encoded_kwargs
        if parts:
            step["parts"] = parts
        read = {storage.id: storage for storage in map(self.storage_of, tensors_in(args, kwargs))}
        written = {
            storage.id: storage for storage in map(self.storage_of, written_tensors(facts, args, kwargs))
        }
        for tensor in tensors_in((result,), {}):
            storage = self.storage_of(tensor)
            if storage.id not in read:
                written[storage.id] = storage
        self._append(step, func, read.values(), written.values(), facts.random)
        if self.known.computed:
            self.known.attach(result)
        return result

    def _with_dtype(self, args, kwargs, encoded, result):
        """A factory's keywords with the dtype that it took from the default: a replay's default is
        float32."""
        if (
            kwargs.get("dtype") is not None
            or tensors_in(args, kwargs)
            or not isinstance(result, torch.Tensor)
        ):
            return encoded
        return [pair for pair in encoded or () if pair[0] != "dtype"] + [["dtype", self.encode(result.dtype)]]

    def _compute(self, func, facts, args, kwargs):
        """Shapes and strides of the result: FakeTensorMode's work, helped by what is known."""
        if facts.generator and kwargs.get("generator") is not None:
            kwargs = {**kwargs, "generator": None}
        elif facts.generator and any(isinstance(arg, torch._C.Generator) for arg in args):
            args = tuple(None if isinstance(arg, torch._C.Generator) else arg for arg in args)
        if facts.factory is not None:
            made = facts.factory(self.new_fake, *args, **kwargs)
            if made is not None:
                return made
        if facts.by_value:
            return self.known.shape_by_value(func, args, kwargs)
        try:
            return func(*args, **kwargs)
        except (fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException):
            return self.known.shape_by_value(func, args, kwargs)

    def _adopt_one(self, argument):
        if isinstance(argument, torch.Tensor):
            return argument if type(argument) is FakeTensor else self._adopt_or_refuse(argument)
        if type(argument) in (list, tuple) and any(
            isinstance(x, torch.Tensor) and type(x) is not FakeTensor for x in argument
        ):
            return type(argument)(self._adopt_one(x) for x in argument)
        return argument

    def _adopt_or_refuse(self, tensor):
        fake = self.adopt(tensor)
        if fake is None:
            raise Untraceable(
                f"a tensor of class {type(tensor).__name__} has no storage that could be traced"
            )
        return fake

    def _adopt_all(self, args):
        for argument in args:
            kind = type(argument)
            if kind is not FakeTensor and (
                kind is list or kind is tuple or isinstance(argument, torch.Tensor)
            ):
                return tuple(self._adopt_one(argument) for argument in args)
        return args

    supports_higher_order_operators = True

    def _higher_order(self, func, args, kwargs):
        """flex_attention and its kin: what their eager kernels do is recorded."""
        for key in (DispatchKey.CUDA, DispatchKey.CompositeExplicitAutograd, DispatchKey.CPU):
            kernel = getattr(func, "py_kernels", {}).get(key)
            if kernel is not None:
                with self.lock, self, self.user_keys.guard():
                    return kernel(*args, **kwargs)
        raise Untraceable(f"the higher-order operator {func} cannot be traced")


# torch wraps every mode's handler so that torch.compile leaves it alone; nothing compiles here.
Recorder.__torch_dispatch__ = inspect.unwrap(Recorder.__torch_dispatch__)
FakeTensorMode.__torch_dispatch__ = inspect.unwrap(FakeTensorMode.__torch_dispatch__)


def tensors_in(args, kwargs):
    """Every tensor in an operator's arguments: they nest one level at most."""
    found = []
    for argument in args if not kwargs else (*args, *kwargs.values()):
        if isinstance(argument, torch.Tensor):
            found.append(argument)
        elif type(argument) in (list, tuple) or isinstance(argument, tuple):
            found.extend(item for item in argument if isinstance(item, torch.Tensor))
    return found
