"""The graph of a module: torch.export's, else make_fx's."""

import contextlib
import warnings

import torch

from .. import _structure
from .._structure import Unsupported
from .foreign import Inlined
from .known import Known, check_shapes


ASSERTIONS = (torch.ops.aten._assert_async.default, torch.ops.aten._assert_async.msg)


class _Seen:
    """What forward returned; outside of the module, whose attributes torch.export puts back."""

    outputs = None


class Flat(torch.nn.Module):
    """The module as a function of a flat list of tensors."""

    def __init__(self, module, inputs, call, autocast, functions=False):
        super().__init__()
        self.module, self._functions = module, functions
        self._inputs, self._call, self._seen = inputs, call, _Seen()
        self._autocast = autocast

    @property
    def outputs(self):
        return self._seen.outputs

    def forward(self, *tensors):
        with contextlib.ExitStack() as regions:  # export records a region, not what is around the call
            for kind, dtype in self._autocast:
                regions.enter_context(torch.autocast(kind, dtype=dtype))
            regions.enter_context(Inlined(self._functions))
            bound = _structure.unflatten(self._inputs, iter(tensors))
            held = _held(self.module)
            result = self._call(self.module, bound)
        self._check(bound, tensors, held)
        found = []
        self._seen.outputs = _structure.flatten(result, found, "output")
        return tuple(found)

    def _check(self, bound, tensors, held):
        """Kernels write to tensors alone: containers among the arguments, parameters and buffers have to be
        the same objects after forward."""
        now = []
        why = _structure.differs("argument", self._inputs, _structure.flatten(bound, now))
        if why is not None or any(a is not b for a, b in zip(now, tensors)):
            raise Unsupported(f"forward changes a container among its arguments{f': {why}' if why else ''}")
        for (name, before), (_, after) in zip(held, _held(self.module)):
            if before.keys() != after.keys():
                raise Unsupported(f"forward adds or removes parameters or buffers of {name or 'the module'}")
            for key, value in before.items():
                if after[key] is not value:
                    raise Unsupported(
                        f"forward replaces {f'{name}.{key}' if name else key}; .copy_() writes to it"
                    )


def _held(module):
    """Parameters and buffers of each part, as they are now."""
    return [(name, {**part._parameters, **part._buffers}) for name, part in module.named_modules()]


def program_of(flat, tensors, leading):
    """torch.export's graph; where that refuses, make_fx's, with the same interface."""
    modes = {name: module.training for name, module in flat.module.named_modules()}
    flat.training = flat.module.training
    shapes = None
    if any(leading):
        shapes = (tuple({0: torch.export.Dim.AUTO} if is_batch else None for is_batch in leading),)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(flat, tuple(tensors), dynamic_shapes=shapes, strict=False)
        if shapes is not None or not any(node.target in ASSERTIONS for node in program.graph.nodes):
            return program
        first = Unsupported("an assertion on data")
    except Unsupported:
        raise
    except Exception as error:
        first = error
    finally:
        for name, module in flat.module.named_modules():
            module.training = modes.get(name, module.training)
    if shapes is not None:
        raise Unsupported(f"torch.export with any batch: {short(first)}")
    try:
        return Traced(flat, tensors)
    except Unsupported:
        raise
    except Exception as error:
        raise Unsupported(f"torch.export: {short(first)}; make_fx: {short(error)}") from first


def short(error):
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300] if lines else ''}"


class Traced:
    """make_fx on fake tensors but for what sizes and constants make, as an ExportedProgram of which the
    writer reads graph, signature and state."""

    def __init__(self, flat, tensors):
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        state = {**dict(flat.named_parameters()), **dict(flat.named_buffers())}
        names = list(state)

        def function(values, inputs):
            with Known():
                return torch.func.functional_call(
                    flat, dict(zip(names, values)), tuple(inputs), tie_weights=True
                )

        mode = FakeTensorMode(allow_non_fake_inputs=True)
        values = [mode.from_tensor(value) for value in state.values()]
        fakes = [mode.from_tensor(value) for value in tensors]
        with torch.no_grad():
            self.graph_module = make_fx(function, tracing_mode="real", pre_dispatch=True)(values, fakes)
        check_shapes(self.graph_module.graph)
        self.state_names, self.state = names, state
