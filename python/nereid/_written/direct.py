"""Launches of a file that the compiler wrote, after its first calls, without Triton's dispatch.

`nereid._written.guard` calls `_direct`; src/nereid/compiler/output/guard.cpp copies the text below the line
of dashes into the file."""

# ---- Direct launches ---------------------------------------------------------------------------------------
# `forward` above is what was verified. Triton's dispatch takes longer than a small kernel, so the second call
# is recorded (launches, allocations, PyTorch's operators), and later calls issue the same launches without
# it, after the guard has found the same shapes, strides, dtypes and devices. Everything else goes through
# `forward`: a call that does what cannot be recorded, another version of Triton, a driver that is not
# Triton's own, hooks of a profiler, pointers of another alignment.

_DIRECT_TRIES = 3  # calls that are recorded at most
_DIRECT_TRITON = ("3.6",)  # versions whose launchers are known


class _Unrecorded(Exception):
    """Why a call has no direct launches."""


def _direct(forward: object, tensors: list, cell: list) -> object:
    """The result of `forward`; leaves in cell[0] the function of `tensors` that later calls run, if
    possible."""
    driver = _driver() if cell[1] < _DIRECT_TRIES else None
    if driver is None:
        return forward()
    import contextlib
    import threading

    from triton.runtime import jit

    lock = vars(jit).setdefault("_nereid_records", threading.Lock())  # one for all files of a process
    if not lock.acquire(blocking=False):
        return forward()
    try:
        cell[1] += 1
        result, steps = _recorded(forward, driver)
        # _Unrecorded, or a Triton or a PyTorch that is not as expected: `forward` does it all.
        with contextlib.suppress(Exception):
            cell[0] = _Launches(tensors, steps, result, driver).function()
        return result
    finally:
        lock.release()


def _driver() -> object:
    """Triton's own driver; None if kernels are interpreted, or if launches are watched or replaced."""
    try:
        import torch
        import triton
        from torch.utils._python_dispatch import _get_current_dispatch_mode
        from triton.runtime import driver
        from triton.runtime.jit import JITFunction

        active = driver.active
        known = (
            triton.__version__.startswith(tuple(f"{version}." for version in _DIRECT_TRITON))
            and type(active).__module__.startswith("triton.backends.")
            and JITFunction.run.__module__ == "triton.runtime.jit"
            and not triton.knobs.runtime.debug
            and _get_current_dispatch_mode() is None
            and not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
            and not any(chain.calls for chain in _hooks())
        )
    except Exception:  # noqa: BLE001 (there is no GPU, or another PyTorch or Triton)
        return None
    return active if known else None


def _native() -> object:
    """Nereid's module that issues several launches in one call, where it is installed; else None."""
    try:
        from nereid import _launch

        return _launch if _launch.available() else None
    except Exception:  # noqa: BLE001 (it is not installed, or does not load)
        return None


def _hooks() -> list:
    """The functions that Triton calls around each launch, for a profiler."""
    from triton import knobs

    return [knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook]


def _recorded(forward: object, driver: object) -> tuple:
    """The result of a call, and its steps in order: ("launch", kernel, compiled kernel, grid, arguments),
    ("call", operator, arguments, keywords, result), ("other", why) for what cannot be recorded."""
    import threading

    from torch.utils._python_dispatch import TorchDispatchMode
    from triton.runtime.jit import JITFunction

    steps, thread, run = [], threading.get_ident(), JITFunction.run

    class Watch(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:  # else its first operator imports torch._dynamo: seconds
            return False

        def __torch_dispatch__(
            self, operator: object, types: object, args: tuple = (), kwargs: dict | None = None
        ) -> object:
            made = operator(*args, **(kwargs or {}))
            steps.append(("call", operator, args, kwargs or {}, made))
            return made

    def launched(kernel: object, *args: object, grid: object, warmup: bool, **options: object) -> object:
        compiled = run(kernel, *args, grid=grid, warmup=warmup, **options)
        if threading.get_ident() == thread and not warmup:
            try:
                bound = kernel.device_caches[driver.get_current_device()][4](*args, **options)[0]
                sizes = tuple(grid(bound) if callable(grid) else grid)
                steps.append(("launch", kernel, compiled, sizes, list(bound.values())))
            except Exception as error:  # noqa: BLE001
                steps.append(("other", repr(error)))
        return compiled

    JITFunction.run = launched
    try:
        with Watch():
            return forward(), steps
    finally:
        JITFunction.run = run


class _Launches:
    """A function of the given tensors that does the recorded steps."""

    def __init__(self, tensors: list, steps: list, result: object, driver: object) -> None:
        import torch

        self.torch, self.driver, self.tensors, self.steps, self.result = torch, driver, tensors, steps, result
        self.names = {}  # of the function's globals
        self.lines, self.pointers = [], {}  # pointers: indices of given tensors whose addresses are read
        self.hooks, self.kept = (
            {},
            [],
        )  # hooks: lists, by id, that are empty unless something watches launches
        self.native = _native()
        self.queued, self.slots = [], []  # launches that native code issues at the next flush; their pointers
        # By address of a storage that the call makes: ("made", name, pointer) or ("scratch", offset).
        self.home = {}
        self.same = []  # pairs of given tensors that are one
        self.given = {}  # by address of a storage: (first byte, end, i) of the given tensors that lie in it
        for i, tensor in enumerate(tensors):
            same = next((a for a in range(i) if tensors[a] is tensor), None)
            if same is not None:
                self.same.append((same, i))
                continue
            low, extent = (
                tensor.data_ptr(),
                sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1,
            )
            parts = self.given.setdefault(tensor.untyped_storage().data_ptr(), [])
            high = low + extent * tensor.element_size()
            if any(low < end and begin < high for begin, end, _ in parts):
                raise _Unrecorded("two tensors share memory")
            parts.append((low, high, i))

    def constant(self, value: object) -> str:
        """A name, or the text of a plain one."""
        if value is None or type(value) in (bool, int):
            return repr(value)
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def home_of(self, tensor: object) -> tuple:
        address = tensor.untyped_storage().data_ptr()
        for low, high, i in self.given.get(address, ()):
            if low <= tensor.data_ptr() < high:
                return "given", i
        found = self.home.get(address)
        if found is None or address == 0:
            raise _Unrecorded("a tensor that is neither given nor made in the call")
        return found

    def address(self, tensor: object) -> tuple:
        """(the name of an address, bytes from there)."""
        kind, where, *more = self.home_of(tensor)
        base = tensor.untyped_storage().data_ptr()
        if kind == "given":
            if self.tensors[where].data_ptr() % 16:
                raise _Unrecorded("a pointer that is not aligned")
            self.pointers[where] = True
            name, base = f"p{where}", self.tensors[where].data_ptr()
        elif kind == "made":
            name = more[0]
        else:
            name, base = "scratch", base - where
        return name, tensor.data_ptr() - base

    def pointer(self, tensor: object) -> str:
        name, distance = self.address(tensor)
        return f"{name} + {distance}" if distance else name

    def tensor(self, tensor: object) -> str:
        kind, where, *_ = self.home_of(tensor)
        whole = self.tensors[where] if kind == "given" else self.names.get(f"like {where}")
        name = f"t{where}" if kind == "given" else where
        if whole is None:
            raise _Unrecorded("memory without a tensor")
        looks = [(t.dtype, t.shape, t.stride(), t.storage_offset()) for t in (whole, tensor)]
        if looks[0] == looks[1]:
            return name
        if whole.dtype != tensor.dtype:
            raise _Unrecorded("a view of another type")
        further = tensor.storage_offset() - whole.storage_offset()
        layout = f"{tuple(tensor.shape)}, {tensor.stride()}"
        return f"{name}.as_strided({layout}, {name}.storage_offset() + {further})"

    def text(self, value: object) -> str:
        """A tree with its tensors by name."""
        if isinstance(value, self.torch.Tensor):
            return self.tensor(value)
        if type(value) in (list, tuple):
            items = "".join(self.text(item) + ", " for item in value)
            return f"[{items}]" if type(value) is list else f"({items})"
        if type(value) is dict:
            return "{" + "".join(f"{self.constant(k)}: {self.text(v)}, " for k, v in value.items()) + "}"
        simple = (
            type(None), bool, int, float, complex, str,
            self.torch.dtype, self.torch.device, self.torch.layout, self.torch.memory_format,
        )  # fmt: skip
        if type(value) not in simple:
            raise _Unrecorded(f"a value of type {type(value).__name__}")
        return self.constant(value)

    def flat(self, value: object) -> list:
        if isinstance(value, self.torch.Tensor):
            return [value]
        if isinstance(value, dict):
            value = list(value.values())
        return [t for item in value for t in self.flat(item)] if isinstance(value, (list, tuple)) else []

    def storages(self, values: list) -> set:
        return {t.untyped_storage().data_ptr() for value in values for t in self.flat(value)}

    def is_allocation(self, operator: object) -> bool:
        aten = self.torch.ops.aten
        return operator in (aten.empty.memory_format, aten.empty_strided.default)

    def function(self) -> object:
        whole = self.storages([self.result])  # what must be a tensor, and not a part of the scratch
        for kind, operator, *rest in self.steps:
            if kind == "call" and not self.is_allocation(operator) and not operator.is_view:
                whole |= self.storages([list(rest[0]), rest[1]])
        scratch, like = 0, None
        for kind, *step in self.steps:
            if kind == "other":
                raise _Unrecorded(step[0])
            if kind == "launch":
                self.launch(*step)
                continue
            operator, args, kwargs, made = step
            if operator.is_view:
                continue  # only where a view lies matters
            if self.is_allocation(operator):
                address = made.untyped_storage().data_ptr()
                if made.numel() and address not in whole:
                    self.home[address], like = ("scratch", scratch), made
                    scratch += -(-made.untyped_storage().nbytes() // 256) * 256
                    continue
                options = f"dtype={self.constant(made.dtype)}, device={self.constant(made.device)}"
                text = f"empty_strided({tuple(made.shape)}, {made.stride()}, {options})"
                self.make([made], text)
            else:
                self.call(operator, args, kwargs, made)
        self.flush()
        result = self.text(self.result)
        self.names.update(empty=self.torch.empty, empty_strided=self.torch.empty_strided)
        self.names.update(current_stream=self.driver.get_current_stream)
        head = [f"def launches({', '.join(f't{i}' for i in range(len(self.tensors)))}):"]
        head += [f"if t{a} is not t{b}: return AGAIN" for a, b in self.same]
        for name, chain in zip(("launch_enter_hook", "launch_exit_hook"), _hooks()):
            self.hooks[id(chain.calls)] = chain.calls
            head.append(f"if runtime.{name} is not {self.constant(chain)}: return AGAIN")
        watched = " or ".join(self.constant(calls) for calls in self.hooks.values())
        head.append(
            f"if {watched} or runtime.debug or config.active is not driver or JIT.run is not run: "
            "return AGAIN"
        )
        head += [f"p{i} = t{i}.data_ptr()" for i in self.pointers]
        if self.pointers:
            head.append(f"if ({' | '.join(f'p{i}' for i in self.pointers)}) & 15: return AGAIN")
        if scratch:
            options = f"dtype={self.constant(self.torch.uint8)}, device={self.constant(like.device)}"
            head += [f"memory = empty({scratch}, {options})", "scratch = memory.data_ptr()"]
        head.append(f"stream = current_stream({self.driver.get_current_device()})")
        from triton import knobs
        from triton.runtime import driver as config
        from triton.runtime.jit import JITFunction

        self.names.update(runtime=knobs.runtime, config=config, driver=self.driver, AGAIN=_direct)
        self.names.update(JIT=JITFunction, run=JITFunction.run, kept=self.kept)
        names = {name: value for name, value in self.names.items() if not name.startswith("like ")}
        exec("\n    ".join([*head, *self.lines, f"return {result}"]), names)  # noqa: S102 (text of our own)
        return names["launches"]

    def make(self, made: list, text: str) -> None:
        names = [f"m{len(self.lines)}_{i}" for i in range(len(made))]
        self.lines.append(f"{', '.join(names)} = {text}")
        for name, tensor in zip(names, made):
            self.lines.append(
                f"a{name} = {name}.untyped_storage().data_ptr()"
                if tensor.storage_offset()
                else f"a{name} = {name}.data_ptr()"
            )
            self.home[tensor.untyped_storage().data_ptr()] = ("made", name, f"a{name}")
            self.names[f"like {name}"] = tensor

    def call(self, operator: object, args: tuple, kwargs: dict, made: object) -> None:
        self.flush()
        tags = self.torch.Tag
        if {tags.data_dependent_output, tags.dynamic_output_shape} & set(operator.tags):
            raise _Unrecorded(f"{operator} reads data")
        options = "".join(f", {name}={self.text(value)}" for name, value in kwargs.items())
        text = f"{self.constant(operator)}({', '.join(self.text(value) for value in args)}{options})"
        known = {*self.home, *self.given}
        fresh = [t for t in self.flat(made) if t.untyped_storage().data_ptr() not in known]
        if not fresh:
            self.lines.append(text)
        elif len(fresh) == len(self.flat(made)) and (len(fresh) == 1 or type(made) in (list, tuple)):
            self.make(fresh, text if isinstance(made, self.torch.Tensor) or len(fresh) > 1 else f"{text}[0]")
        else:
            raise _Unrecorded(f"{operator} returns a part of what it was given")

    def launch(self, kernel: object, compiled: object, grid: tuple, arguments: list) -> None:
        compiled = compiled.result() if hasattr(compiled, "result") else compiled
        self.hooks[id(kernel.pre_run_hooks)] = kernel.pre_run_hooks
        self.kept.append(compiled)  # its code stays loaded
        types, grid = list(compiled.src.signature.values()), [*grid, 1, 1][:3]
        if len(types) != len(arguments):
            raise _Unrecorded("a kernel takes a tuple")
        for kind, value in zip(types, arguments):
            plain = type(value) in (bool, int, float) or isinstance(value, self.torch.Tensor)
            if kind != "constexpr" and not plain:
                raise _Unrecorded(f"a kernel takes a {type(value).__name__}")
        if self.native is None or not self.queue(compiled, grid, types, arguments):
            self.flush()
            self.lines.append(self.through_triton(compiled, grid, types, arguments))

    def through_triton(self, compiled: object, grid: list, types: list, arguments: list) -> str:
        """A line that calls Triton's launcher."""
        launcher, given = compiled.run, []
        for kind, value in zip(types, arguments):
            if kind == "constexpr":
                given.append("None")
            else:
                tensor = isinstance(value, self.torch.Tensor)
                given.append(self.pointer(value) if tensor else self.constant(value))
        before = [*map(str, grid), "stream", self.constant(compiled.function)]
        call = launcher.launch
        if launcher.global_scratch_size == 0 == launcher.profile_scratch_size:
            flags = (launcher.launch_cooperative_grid, launcher.launch_pdl)
            before += [*map(self.constant, flags), "None", "None"]  # no memory of the launcher's own
        else:
            call = launcher
        before += [self.constant(compiled.packed_metadata), "None", "None", "None"]
        return f"{self.constant(call)}({', '.join(before + given)})"

    def queue(self, compiled: object, grid: list, types: list, arguments: list) -> bool:
        """Whether native code can issue this launch; then it is queued."""
        launcher = compiled.run
        warps, clusters, shared = compiled.packed_metadata[:3]
        simple = (
            type(launcher).__module__ == "triton.backends.nvidia.driver"
            and launcher.global_scratch_size == 0 == launcher.profile_scratch_size
            and clusters == 1
            and not launcher.launch_pdl
        )
        if not simple:
            return False
        parameters = []
        for kind, value in zip(types, arguments):
            if kind == "constexpr":
                continue
            if isinstance(value, self.torch.Tensor):
                name, distance = self.address(value)
                if name not in self.slots:
                    self.slots.append(name)
                parameters.append((distance, self.slots.index(name)))
            else:
                parameters.append(self.native.parameter(kind, value))
        if None in parameters:
            return False
        if all(grid):  # else there is nothing to launch
            cooperative = launcher.launch_cooperative_grid
            self.queued.append((compiled.function, grid, 32 * warps, shared, cooperative, parameters))
        return True

    def flush(self) -> None:
        """A line that issues what is queued."""
        if not self.queued:
            return
        plan = self.native.Plan(self.queued, len(self.slots))
        self.kept.append(plan)
        issue, pack = map(self.constant, (self.native.library().nereid_launch, plan.pack))
        self.names.update(failed=self.native.failed, NO_CONTEXT=self.native.NO_CONTEXT)
        self.lines.append(f"code = {issue}({plan.address}, stream, {pack}({', '.join(self.slots)}))")
        self.lines.append("if code == NO_CONTEXT: return AGAIN")
        self.lines.append("if code: failed(code)")
        self.queued, self.slots = [], []
