"""The table of operators, and what they have in common: axes, further operands."""

import torch

TABLE = []  # (function, kinds of the first operand, weight, least rank, most rank)


def operator(kinds, weight, rank=0, most=5):
    def enter(function):
        TABLE.append((function, kinds, weight, rank, most))
        return function

    return enter


def axis(g, x):
    """One axis, counted from either end."""
    d = g.pick(x.rank - 1, g.random.randrange(x.rank))
    return d if g.chance(0.5) else d - x.rank


def axes(g, x):
    """One axis, or a tuple or list of several."""
    if x.rank < 2 or g.chance(0.6):
        return str(axis(g, x))
    some = sorted(g.random.sample(range(x.rank), g.random.randint(2, min(3, x.rank))))
    if g.chance(0.4):
        some = [d - x.rank for d in some]
    listed = ", ".join(map(str, some))
    return g.pick(f"({listed})", f"({listed})", f"[{listed}]")


def constant(g, x):
    """A number of the operand's kind."""
    return g.number() if x.kind == "f" else g.number(g.pick("2", "3", "5", "4"))


def like(g, x):
    """A further operand of the same shape and type: an earlier value, an input, a parameter."""
    same = [v.text for v in g.values if v.shape == x.shape and v.dtype == x.dtype and v.text != x.text]
    if same and g.chance(0.7):
        return g.pick(*same)
    if x.kind == "f" and x.rank < 3 and g.chance(0.25):
        return g.parameter(x.shape, x.dtype).text
    return g.input(x.shape, x.dtype).text


def broadcast(g, x):
    """A further operand that is broadcast: one of the last axis, of channels, with ones, a buffer."""
    last, way = x.shape[-1:], g.random.randrange(7)
    if x.kind == "i":
        return g.pick(f"torch.arange({g.size(last[0])}, device={x.text}.device)", g.input(last, x.dtype).text)
    if way == 0:
        return g.input(last, x.dtype).text
    if way == 1 and x.rank > 1:
        shape = x.shape[:-1] + (1,)
        return g.input(shape, x.dtype).text
    if way == 2 and x.rank > 2:
        c = g.size(x.shape[1])
        ones = ", ".join(["1"] * (x.rank - 2))
        return g.parameter(x.shape[1:2], x.dtype).text + g.pick(
            f".view(1, {c}, {ones})", f".reshape({c}, {ones})"
        )
    if way == 3 and x.rank > 1:
        return g.parameter(x.shape[-2:-1], x.dtype).text + g.pick("[:, None]", ".unsqueeze(-1)")
    if way == 4 or (way == 6 and g.chance(0.5)):
        n = g.size(last[0], True)
        made = g.pick(
            f"torch.linspace(0, 1, {n})",
            f"torch.arange({n}).float()",
            f"torch.ones({n}) * 0.5",
            f"torch.arange({n}) / {n}",
        )
        return g.buffer(made).text
    if way == 5:
        return g.parameter((1,), x.dtype).text
    return g.parameter(last, x.dtype).text


def result_of(g, text, count):
    """One of several results, or all of them: `values, indices = torch.topk(...)`."""
    if g.chance(0.5):
        return g.unpack(text, count)[0]
    one = g.pick(0, 0, 1)
    named = ("values", "indices")[one]
    return g.let(g.pick(f"{text}[{one}]", f"{text}.{named}") if count == 2 else f"{text}[{one}]")


BOOL = torch.bool
