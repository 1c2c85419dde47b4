"""Sequences and groups: recurrent layers, segments, bags, rotations, positions, whole tuples of results."""

import torch
from operators import axis, like, operator


@operator("f", 7, rank=2, most=3)
def recurrent(g, x):
    """A recurrent layer over a short sequence: its outputs, its last state, or both."""
    steps, n, hidden = x.shape[-2], x.shape[-1], g.pick(4, 6, 8, 12, 16, 24, 32)
    if steps > 40 or n > 96 or x.shape[0] > 64:
        raise ValueError
    kind = g.pick("RNN", "RNN", "GRU", "LSTM")
    options = ", batch_first=True" if x.rank == 3 and g.chance(0.7) else ""
    options += ", bias=False" if g.chance(0.15) else ""
    options += ", nonlinearity='relu'" if kind == "RNN" and g.chance(0.25) else ""
    layer = g.layer(f"nn.{kind}({g.size(n, True)}, {g.size(hidden, True)}{options})")
    t = x.text
    if kind == "LSTM":
        if g.chance(0.3):
            return g.let(f"{layer}({t})[0]")
        out, h, c = g.fresh_values(3)
        return g.unpack_as(f"{layer}({t})", f"{out}, ({h}, {c})", (out, h, c))[g.pick(0, 0, 1)]
    way = g.random.randrange(4)
    if way == 0:
        return g.let(f"{layer}({t})[{g.pick('0', '0', '1')}]")
    if way == 1:
        some = g.unpack(f"{layer}({t})", 2)
        return g.let(g.pick(f"{some[0].text}[-1]", f"{some[1].text}[-1]", f"{some[0].text}[..., -1, :]"))
    return g.unpack(f"{layer}({t})", 2)[g.pick(0, 0, 1)]


@operator("f", 4, rank=2, most=2)
def written_recurrence(g, x):
    """A loop over rows, as authors write a scan."""
    if not 2 <= x.shape[0] <= 12:
        raise ValueError
    state, t, n = g.fresh_values(1)[0], x.text, x.shape[0]
    rows = g.fresh_values(1)[0]
    step = g.pick(f"torch.tanh({t}[i] + {state})", f"0.9 * {state} + 0.1 * {t}[i]",
        f"{state} * torch.sigmoid({t}[i]) + {t}[i]", f"torch.maximum({state}, {t}[i])")  # fmt: skip
    text = (
        f"{state} = torch.zeros_like({t}[0])\n        {rows} = []\n        for i in range({n}):\n"
        f"            {state} = {step}\n            {rows}.append({state})"
    )
    g.statement(text, (state, rows))
    return g.let(f"torch.stack({rows})")


@operator("fi", 7, rank=1, most=3)
def segments(g, x):
    """Rows added, averaged or compared by the group that each belongs to."""
    t, n, groups = x.text, x.shape[0], g.pick(2, 3, 4, 5, 8, 10, 16)
    ids = g.input((n,), torch.int64, below=groups).text
    rest = "".join(f", {g.size(d)}" for d in x.shape[1:])
    made = g.pick(f"torch.zeros({groups}{rest}, dtype={t}.dtype, device={t}.device)",
                  f"{t}.new_zeros(({groups}{rest or ','}))")  # fmt: skip
    if x.rank == 1:
        forms = [f"{made}.scatter_add(0, {ids}, {t})", f"{made}.index_add(0, {ids}, {t})"]
        if x.kind == "f":
            forms += [f"torch.bincount({ids}, minlength={groups})", f"torch.bincount({ids}, {t}, {groups})"]
        return g.let(g.pick(*forms))
    total = g.keep(g.pick(f"{made}.index_add(0, {ids}, {t})", f"{made}.index_add_(0, {ids}, {t})"))
    if x.kind == "f" and g.chance(0.5):
        count = g.keep(f"torch.bincount({ids}, minlength={groups}).clamp(min=1)")
        ones = "[:, None]" if x.rank == 2 else "[:, None, None]"
        return g.let(f"{total.text} / {count.text}{ones}")
    return total


@operator("f", 5, rank=2, most=3)
def lengths(g, x):
    """Rows of which a length, one a batch, counts."""
    t, (b, n) = x.text, x.shape[:2]
    count = g.input((b,), torch.int64, below=n).text
    seen = g.keep(f"torch.arange({g.size(n)}, device={t}.device)[None, :] < {count}[:, None]")
    m = seen.text + ("[..., None]" if x.rank == 3 else "")
    return g.let(g.pick(f"{t} * {m}", f"{t}.masked_fill(~{m}, 0)",
        f"({t} * {m}).sum(1) / {count}.clamp(min=1){'[:, None]' if x.rank == 3 else ''}",
        f"torch.where({m}, {t}, 0.0)", f"{t}.masked_fill(~{m}, {g.pick('-1e9', '-1e4')}).softmax(1)",
        f"{t}.masked_fill(~{m}, torch.finfo({t}.dtype).min).amax(1)"))  # fmt: skip


@operator("i", 10, rank=1, most=2)
def bag(g, x):
    """Sums, means or maxima of a table's rows."""
    rows, width = g.pick(10, 16, 32, 50), g.dimension(48)
    small = g.keep(f"{x.text}.long() % {rows}")
    mode = g.pick("sum", "mean", "max")
    a, b = g.size(rows, True), g.size(width, True)
    way = g.random.randrange(3)
    if way == 0 and x.rank == 2:
        return g.let(f"{g.layer(f'nn.EmbeddingBag({a}, {b}, mode={mode!r})')}({small.text})")
    if way == 1 and x.rank == 2:
        table = g.parameter((rows, width)).text
        return g.let(f"F.embedding_bag({small.text}, {table}, mode={mode!r})")
    layer = g.layer(f"nn.Embedding({a}, {b}{g.pick('', ', padding_idx=0')})")
    reduced = g.pick(".sum(-2)", ".mean(dim=-2)", f" * {width}**0.5", ".amax(-2)", "")
    return g.let(f"{layer}({small.text}){reduced}")


@operator("f", 6, rank=2, most=4)
def rotary(g, x):
    """Rotary and sinusoidal positions."""
    t, n, d = x.text, x.shape[-2], x.shape[-1]
    if d % 2 or d < 4:
        raise ValueError
    base = g.pick("10000", "10000.0", "500.0")
    freqs = f"{base} ** (-torch.arange(0, {g.size(d, True)}, 2).float() / {g.size(d, True)})"
    angles = f"torch.arange({g.size(n, True)}).float()[:, None] * ({freqs})[None, :]"
    cast = "" if x.dtype is torch.float32 else f".to({t}.dtype)"
    if g.chance(0.5):
        angle = g.buffer(angles).text
    else:
        angle = g.keep(angles).text
    cos, sin = f"{angle}.cos(){cast}", f"{angle}.sin(){cast}"
    way = g.random.randrange(4)
    if way == 0:
        both = g.keep(f"torch.cat([{angle}, {angle}], dim=-1)").text
        a, b = g.unpack(f"{t}.chunk(2, dim=-1)", 2)
        turned = f"torch.cat([-{b.text}, {a.text}], dim=-1)"
        return g.let(f"{t} * {both}.cos(){cast} + {turned} * {both}.sin(){cast}")
    if way == 1:
        c, s = g.keep(cos).text, g.keep(sin).text
        a, b = g.keep(f"{t}[..., ::2]").text, g.keep(f"{t}[..., 1::2]").text
        joined = g.pick("dim=-1).flatten(-2)", "-1).flatten(-2)")
        return g.let(f"torch.stack([{a} * {c} - {b} * {s}, {a} * {s} + {b} * {c}], {joined}")
    if way == 2:
        h = d // 2
        c, s = g.keep(cos).text, g.keep(sin).text
        a, b = g.keep(f"{t}[..., :{h}]").text, g.keep(f"{t}[..., {h}:]").text
        return g.let(f"torch.cat([{a} * {c} - {b} * {s}, {b} * {c} + {a} * {s}], dim=-1)")
    return g.let(f"{t} + torch.cat([{sin}, {cos}], dim=-1)")


@operator("f", 6, rank=1, most=4)
def gated(g, x):
    """Gated feed-forward layers."""
    n, m = x.shape[-1], g.pick(8, 16, 24, 32, 48, 64)
    act = g.pick("F.silu", "F.gelu", "torch.sigmoid", "torch.tanh", "F.relu")
    a, b = g.size(n, True), g.size(m, True)
    bias = g.pick("", ", bias=False", ", bias=False")
    if g.chance(0.5):
        both = g.keep(f"{g.layer(f'nn.Linear({a}, 2 * {b}{bias})')}({x.text})")
        u, v = g.unpack(f"{both.text}.chunk(2, dim=-1)", 2)
        inner = f"{act}({u.text}) * {v.text}"
    else:
        u, v = (g.layer(f"nn.Linear({a}, {b}{bias})") for _ in range(2))
        inner = f"{act}({u}({x.text})) * {v}({x.text})"
    if g.chance(0.5):
        return g.let(f"{g.layer(f'nn.Linear({b}, {a}{bias})')}({inner})")
    return g.let(inner)


@operator("fi", 8, rank=1)
def part(g, x):
    """Single rows, first and last ones, ranges: what has few elements."""
    t, s = x.text, x.shape
    k = g.random.randrange(s[0])
    texts = [f"{t}[:1]", f"{t}[-1:]", f"{t}[{k}]", f"{t}[{-k - 1}]", f"{t}[:{k + 1}]", f"{t}[{k}:]",
        f"{t}[:1].sum(dim=-1)", f"{t}[-1:].sum(-1)", f"{t}[0].sum()", f"{t}[::2]", f"{t}[{k}:{k + 1}]",
        f"{t}.sum(dim={axis(g, x)}, keepdim=True)", f"{t}.sum().reshape(1)", f"{t}.sum().view(1, 1)",
        f"{t}.max().unsqueeze(0)", f"{t}[..., 1:] - {t}[..., :-1]"]  # fmt: skip
    if x.kind == "f":
        texts += [f"{t}.mean(dim={axis(g, x)}, keepdim=True)", f"{t}.mean().reshape(1)",
            f"{t}.prod(dim={axis(g, x)})", f"{t}.clamp(-1, 1).prod({axis(g, x)})", f"{t}.mean(0)[None]",
            f"torch.stack([{t}.mean(-1), {t}.amax(-1)], dim=-1)",
            f"torch.nan_to_num({t}, nan=0.0, posinf={g.pick('10.0', '1e4')}, neginf=-1.0)"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("fi", 4, rank=1)
def looked_up(g, x):
    """Places in sorted edges, nearest rows, permutations."""
    t, n = x.text, g.pick(5, 8, 10, 16)
    edges = g.buffer(f"torch.linspace(-2, 2, {n})").text
    right = g.pick("", "", ", right=True")
    texts = [f"torch.bucketize({t}, {edges}{right})", f"torch.searchsorted({edges}, {t}{right})",
        f"{t}[torch.arange({x.shape[0]} - 1, -1, -1)]"]  # fmt: skip
    if x.kind == "f" and x.rank == 2 and x.shape[-1] <= 128:
        rows = g.parameter((n, x.shape[-1]), x.dtype).text
        texts += [f"torch.cdist({t}, {rows}).argmin(-1)", f"torch.cdist({t}, {rows})",
            f"({t}[:, None] - {rows}).square().sum(-1).argmin(dim=1)"]  # fmt: skip
    return g.let(g.pick(*texts))


def whole_result(g, x):
    """An expression with several results, which `forward` returns as they are."""
    if not x.rank or x.kind == "b":
        raise ValueError
    t, d = x.text, axis(g, x)
    n = x.shape[d]
    k = g.random.randint(1, min(8, n))
    keep = g.pick("", "", ", keepdim=True")
    forms = [f"{t}.max(dim={d}{keep})", f"torch.max({t}, dim={d}{keep})", f"torch.min({t}, {d}{keep})",
        f"{t}.min({d})", f"torch.topk({t}, {k}, dim={d})", f"{t}.topk({k}, dim={d}, largest=False)",
        f"torch.sort({t}, dim={d})", f"{t}.sort({d}, descending=True)", f"torch.sort({t}, {d}, stable=True)",
        f"torch.kthvalue({t}, {k}, dim={d})", f"{t}.median(dim={d}{keep})", f"torch.aminmax({t}, dim={d})",
        f"torch.cummax({t}, dim={d})", f"torch.cummin({t}, {d})"]  # fmt: skip
    if x.kind == "f":
        forms += [f"torch.var_mean({t}, dim={d}{keep})", f"torch.std_mean({t}, dim={d}, unbiased=False)"]
    parts = [each for each in (2, 3, 4) if n % each == 0 and n > each]
    if parts:
        p = g.pick(*parts)
        forms += [f"{t}.chunk({p}, dim={d})", f"torch.split({t}, {n // p}, dim={d})",
            f"list({t}.chunk({p}, {d}))", f"torch.tensor_split({t}, {p}, dim={d})"]  # fmt: skip
    if 2 <= n <= 5:
        forms += [f"{t}.unbind({d})", f"torch.unbind({t}, dim={d})"]
    if x.kind == "f":
        forms += [f"F.relu({t}), torch.tanh({t})", f"{t} * 2, {t}.sum({d})", f"{t} + {like(g, x)}, {t}",
            f"[{t}.abs(), {t}]", f"({t}.mean({d}), {t}.amax({d}), {t}.amin({d}))",
            f"[{t} ** k for k in range(1, {g.pick('3', '4', '6', '9')})]",
            f"tuple({t} * k for k in range(1, {g.pick('3', '4', '7')}))",
            f"[{t} * s for s in (0.5, 1.0, 2.0)]",
            f"[torch.relu({t} - k) for k in range({g.pick('2', '3', '5')})]",
            f"[p.tanh() for p in {t}.chunk(2, dim={d})]",
            f"{t}, {t}.transpose(-1, -2)" if x.rank > 1 else f"{t}, -{t}",
            f"{t}.exp(), {t}[..., ::2]"]  # fmt: skip
    text = g.pick(*forms)
    with torch.no_grad():
        for each in eval(text, dict(g.scope)):
            g.check(each)
    return text
