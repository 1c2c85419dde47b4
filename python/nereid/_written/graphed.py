"""The CUDA graph of a file that `nereid optimize --cuda-graph` writes.

src/nereid/compiler/output/guard.cpp copies the text below the line of dashes into the file, before its guard;
the file as a whole is what is verified."""

# ---- CUDA graph --------------------------------------------------------------------------------------------
# The first call launches the kernels as `forward` says. The second captures these launches as a CUDA graph
# over static input buffers. From then on a call copies its inputs into them, replays the graph and returns
# copies of the results. The graph is captured again if a parameter or a buffer of the module has moved, or on
# another stream. Calls on a CPU, calls inside of another capture, and calls that cannot be captured run
# `forward`.


class _Captured:
    """A module's graph; not copied or stored with it."""

    calls, key, why = 0, None, None

    def __init__(self) -> None:
        import threading

        self.lock = threading.Lock()

    def __reduce__(self) -> tuple:
        return _Captured, ()


def _graphed(cls: type, fresh: bool) -> None:
    """`fresh`: each call returns its own results; else all calls return the graph's."""
    import functools
    import inspect
    import warnings

    import torch
    from torch.utils._pytree import tree_flatten, tree_unflatten

    plain, available = cls.forward, functools.cache(torch.cuda.is_available)
    simple = (bool, int, float, str, type(None), torch.dtype, torch.device)

    def leaves_of(tree: object) -> tuple:
        if type(tree) is tuple and all(isinstance(item, torch.Tensor) for item in tree):
            return tree, None
        return tree_flatten(tree)

    def rebuilt(leaves: list, form: object) -> object:
        return tuple(leaves) if form is None else tree_unflatten(leaves, form)

    def separate(tensor: torch.Tensor) -> bool:
        """No two elements are at one address."""
        end = 0
        for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
            if size > 1:
                if stride <= end:
                    return False
                end += (size - 1) * stride
        return True

    def place(tensor: torch.Tensor) -> tuple:
        """Memory with the shape and the strides of a tensor."""
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)

    def capture(self: object, held: _Captured, leaves: list, form: object, kwargs: dict) -> None:
        for leaf in leaves:
            if not (isinstance(leaf, simple) or (isinstance(leaf, torch.Tensor) and separate(leaf))):
                raise ValueError(f"an input is a {type(leaf).__name__} that has no static buffer")
        held.inputs = [place(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        held.static = [held.inputs[i] for i in held.tensors]
        args, named = rebuilt(held.inputs, form) if kwargs else (rebuilt(held.inputs, form), {})
        held.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(held.graph, capture_error_mode="thread_local"):
            result = plain(self, *args, **named)
        held.single = isinstance(result, torch.Tensor)
        held.outputs, held.form = ([result], None) if held.single else tree_flatten(result)
        others = [*held.static]
        others += [t for d in held.holders for t in d.values() if t is not None]
        seen = {t.untyped_storage()._cdata for t in others}
        for leaf in held.outputs:
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()._cdata
                if not separate(leaf) or storage in seen:
                    raise ValueError("a result shares memory with an input, with the module or with another")
                seen.add(storage)
            elif not isinstance(leaf, simple):
                raise TypeError(f"a result is a {type(leaf).__name__}")

    def state_of(held: object) -> list:
        return [t.data_ptr() for d in held.holders for t in d.values() if t is not None]

    def key_of(held: object, leaves: list, form: object) -> list:
        key = [
            (x.dtype, x.shape, x.stride()) if isinstance(x, torch.Tensor) else (type(x), repr(x))
            for x in leaves
        ]
        return [*key, form, torch.cuda.current_stream(), *state_of(held)]

    def replayed(held: object, leaves: list) -> object:
        if len(held.tensors) == 1:
            held.inputs[held.tensors[0]].copy_(leaves[held.tensors[0]])
        elif held.tensors:
            torch._foreach_copy_(held.static, [leaves[i] for i in held.tensors])
        held.graph.replay()
        outputs = held.outputs
        if fresh:
            outputs = [copied(x) if isinstance(x, torch.Tensor) else x for x in outputs]
        return outputs[0] if held.single else tree_unflatten(outputs, held.form)

    def copied(x: object) -> object:
        return x.clone() if x.is_contiguous() else place(x).copy_(x)

    @functools.wraps(plain)
    def forward(self: object, *args: object, **kwargs: object) -> object:
        held = self.__dict__.get("_graph_captured")
        if held is None:
            held = self.__dict__["_graph_captured"] = _Captured()
        leaves, form = leaves_of((args, kwargs) if kwargs else args)
        on_gpu = all(leaf.is_cuda for leaf in leaves if isinstance(leaf, torch.Tensor))
        if held.why or not on_gpu or not available() or torch.cuda.is_current_stream_capturing():
            return plain(self, *args, **kwargs)
        with held.lock:
            held.calls += 1
            if held.calls == 1:  # Triton compiles the kernels
                modules = list(self.modules())
                held.holders = [d for m in modules for d in (m._parameters, m._buffers) if d]
                held.nests = [m._modules for m in modules if m._modules]
                held.inside = [m for d in held.nests for m in d.values()]
                return plain(self, *args, **kwargs)
            if [m for d in held.nests for m in d.values()] != held.inside:
                held.calls, held.key = 0, None
                return plain(self, *args, **kwargs)
            held.tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
            key = key_of(held, leaves, form)
            if held.key != key:
                held.key = None
                try:
                    capture(self, held, leaves, form, kwargs)
                except (RuntimeError, TypeError, ValueError) as error:
                    held.why = str(error)
                    warnings.warn(f"{cls.__name__} runs without a CUDA graph: {held.why}", stacklevel=2)
                    return plain(self, *args, **kwargs)
                held.key = key
            return replayed(held, leaves)

    forward.__signature__ = inspect.signature(plain)
    cls.forward = forward
    return cls
