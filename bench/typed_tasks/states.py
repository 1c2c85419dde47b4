"""Operators that leave state: buffers that a forward changes, inputs that it writes to."""

import torch
from operators import like, operator
from writer import Refused, Statement


@operator("f", 3, rank=1, most=4)
def running_buffer(g, x):
    """An average over calls in a buffer, updated in place or rebound, and what is made of it."""
    if x.dtype is not torch.float32 or g.float_type is not torch.float32:
        raise Refused("type")
    t, width = x.text, x.shape[-1]
    rate = g.pick("0.1", "0.01", "0.2")
    rest = {"0.1": "0.9", "0.01": "0.99", "0.2": "0.8"}[rate]
    size = g.size(width, True)
    average = g.buffer(g.pick(f"torch.zeros({size})", f"torch.ones({size})")).text
    over = ", ".join(str(d) for d in range(x.rank - 1))
    mean = f"{t}.mean(dim=({over},))" if over else t
    mean = g.pick(f"{t}.mean({over})", mean) if x.rank == 2 else mean
    updates = [
        f"{average}.mul_({rest}).add_({mean}, alpha={rate})", f"{average}.lerp_({mean}, {rate})",
        f"{average} = {rest} * {average} + {rate} * {mean}", f"{average}.copy_({average} + {mean})",
        f"{average} += {rate} * ({mean} - {average})",
    ]  # fmt: skip
    text = g.pick(*updates)
    before = g.chance(0.3)
    made = g.let(f"{t} - {average}") if before else None
    with torch.no_grad():
        exec(text, g.scope)
    g.statements.append(Statement(text, "", True))
    if before:
        g.statements[-1].whole = g.statements[made.statement].whole = True
        return made
    return g.let(g.pick(f"{t} - {average}", f"{t} * {average}", f"{t} / ({average}.abs() + 1e-5)"))


@operator("f", 2, rank=1)
def changed_input(g, x):
    """Writes to an argument of forward, and continues with it."""
    if x.text not in [name for name, _ in g.inputs]:
        raise Refused("no input")
    t = x.text
    text = g.pick(f"{t} += {like(g, x)}", f"{t}.mul_(0.5)", f"{t}.add_({like(g, x)})", f"{t}.relu_()",
        f"{t}[..., 0] = 0", f"{t}.clamp_(-1.0, 1.0)", f"{t} -= {like(g, x)}")  # fmt: skip
    with torch.no_grad():
        exec(text, g.scope)
    g.check(x.tensor)
    g.statements.append(Statement(text, "", True))
    return g.let(g.pick(f"torch.tanh({t})", f"{t} * 0.5", f"{t}.sum(-1)", f"{t}.exp()"))
