"""Operators that move or choose: views, cuts, joins, indices, sorting."""

import torch
from operators import axis, like, operator, result_of


@operator("fib", 12, rank=1)
def view(g, x):
    t, s, r = x.text, x.shape, x.rank
    texts = [f"{t}.unsqueeze({g.pick('0', '-1', '1')})", f"{t}.flatten()", f"{t}.reshape(-1)",
        f"{t}.flip({axis(g, x)})", f"torch.flip({t}, dims=[{axis(g, x)}])",
        f"{t}.roll({g.pick('1', '-1', '2')}, dims={axis(g, x)})", f"{t}[None]",
        f"{t}[..., :{max(1, s[-1] // 2)}]", f"{t}[..., ::2]", f"{t}[..., {s[-1] // 2}:]", f"{t}[..., -1]",
        f"{t}[..., 0]", f"{t}[1:]", f"{t}.repeat_interleave(2, dim={axis(g, x)})",
        f"{t}.unsqueeze(-1).expand({'-1, ' * r}{g.pick('2', '3', '4')})", f"{t}.repeat({'1, ' * (r - 1)}2)",
        f"{t}.narrow({r - 1}, 0, {max(1, s[-1] // 2)})", f"{t}.select({axis(g, x)}, 0)"]  # fmt: skip
    if r > 1:
        a, b = g.random.sample(range(r), 2)
        texts += [f"{t}.transpose({a}, {b})", f"torch.transpose({t}, {a}, {b - r})",
            f"{t}.flatten({r - 2})", f"{t}.swapaxes({a}, {b})", f"{t}.transpose(-1, -2).contiguous()",
            f"{t}.reshape({g.size(s[0])}, -1)", f"{t}.view({t}.size(0), -1)",
            f"{t}[:, {g.pick('0', '-1', ':1', '1:', '::2', ':-1')}]", f"{t}.flatten(1)", f"{t}.mT",
            f"torch.movedim({t}, {a}, {b})", f"{t}.reshape({t}.shape[0], -1)",
            f"torch.flatten({t}, start_dim=1)"] * 2  # fmt: skip
        order = g.random.sample(range(r), r)
        texts += [
            f"{t}.permute({', '.join(map(str, order))})",
            f"torch.permute({t}, ({', '.join(map(str, order))}))",
        ] * 2
    if s[-1] % 2 == 0:
        texts += [f"{t}.unflatten(-1, (2, {g.size(s[-1] // 2)}))", f"{t}.view(*{t}.shape[:-1], 2, -1)"]
    return g.let(g.pick(*texts))


@operator("fi", 10, rank=1)
def cut(g, x):
    """Parts of a value: chunk, split, unbind."""
    t, d = x.text, axis(g, x)
    n = x.shape[d]
    parts = g.pick(*[k for k in (2, 3, 4) if n % k == 0 and n > k] or [0])
    if not parts or (n <= 4 and g.chance(0.7)):
        if n > 4 or n < 2:
            raise ValueError
        return g.unpack(g.pick(f"{t}.unbind({d})", f"torch.unbind({t}, dim={d})"), n)[0]
    first = g.random.randint(1, n - 1)
    some = g.unpack(
        *g.pick(
            (f"{t}.chunk({parts}, dim={d})", parts),
            (f"torch.chunk({t}, {parts}, dim={d})", parts),
            (f"torch.split({t}, {g.size(n // parts)}, dim={d})", parts),
            (f"{t}.split([{first}, {n - first}], dim={d})", 2),
            (f"torch.split({t}, ({first}, {n - first}), {d})", 2),
        )
    )
    if len(some) == 2 and some[0].shape == some[1].shape and x.kind == "f" and g.chance(0.6):
        g.current = some[0]
        a, b = some[0].text, some[1].text
        return g.let(g.pick(f"{a} * torch.sigmoid({b})", f"torch.cat([-{b}, {a}], dim={d})", f"{a} + {b}",
            f"F.gelu({a}) * {b}", f"{a} * F.silu({b})", f"torch.tanh({a}) * {b}",
            f"torch.cat(({b}, {a}), dim={d})"))  # fmt: skip
    return some[0]


@operator("fi", 6, rank=1)
def join(g, x):
    t, d, y = x.text, axis(g, x), like(g, x)
    texts = [f"torch.cat([{t}, {y}], dim={d})", f"torch.cat(({t}, {y}), {d})",
        f"torch.stack([{t}, {y}], dim={g.pick('0', '-1', '1')})", f"torch.concat([{y}, {t}], dim={d})",
        f"torch.stack(({t}, {y}))", f"torch.cat([{t}, {t}.abs()], dim={d})", f"torch.hstack([{t}, {y}])",
        f"torch.vstack(({t}, {y}))"]  # fmt: skip
    if x.kind == "f":
        texts += [f"torch.stack([{t}.sin(), {t}.cos()], dim=-1).flatten(-2)",
            f"torch.cat([{t}, torch.zeros_like({t})], {d})", f"torch.stack([{t}, {y}]).mean(0)",
            f"torch.cat([torch.sin({t}), torch.cos({t})], dim=-1)"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("fi", 8, rank=1)
def extremes(g, x):
    t, d = x.text, axis(g, x)
    k = g.random.randint(1, min(8, x.shape[d]))
    keep = g.pick("", "", ", keepdim=True")
    way = g.random.randrange(6)
    if way == 0:
        return g.let(
            g.pick(
                f"{t}.argmax(dim={d}{keep})",
                f"torch.argmax({t}, dim={d}{keep})",
                f"{t}.argmin({d}{keep})",
                f"{t}.argmax()",
            )
        )
    if way == 1:
        largest = g.pick("", "", ", largest=False", ", sorted=True")
        return result_of(
            g, g.pick(f"torch.topk({t}, {k}, dim={d}{largest})", f"{t}.topk({k}, dim={d}{largest})"), 2
        )
    if way == 2:
        return result_of(
            g, g.pick(f"{t}.max(dim={d}{keep})", f"torch.max({t}, dim={d}{keep})", f"{t}.min({d}{keep})"), 2
        )
    if way == 3:
        return result_of(
            g,
            g.pick(
                f"torch.sort({t}, dim={d})",
                f"{t}.sort(dim={d}, descending=True)",
                f"torch.sort({t}, dim={d}, stable=True)",
            ),
            2,
        )
    if way == 4:
        return g.let(g.pick(f"torch.argsort({t}, dim={d})", f"{t}.argsort({d}, descending=True)",
            f"{t}.median(dim={d}).values", f"torch.kthvalue({t}, {k}, dim={d}).values"))  # fmt: skip
    if x.kind == "i":
        return g.unpack(f"torch.aminmax({t}, dim={d})", 2)[0]
    return g.unpack(
        g.pick(
            f"torch.aminmax({t}, dim={d})",
            f"torch.var_mean({t}, dim={d})",
            f"torch.std_mean({t}, dim={d}, unbiased=False)",
        ),
        2,
    )[0]


@operator("fi", 10, rank=1)
def chosen(g, x):
    """Rows or elements by integers from outside or from before."""
    t, s = x.text, x.shape
    d = axis(g, x) % x.rank
    below, count = s[d], g.dimension(64)
    way = g.random.randrange(6)
    if way < 2:
        i = g.input((count,), torch.int64, below=below).text
        before = ":, " * d
        return g.let(
            g.pick(f"torch.index_select({t}, {d}, {i})", f"{t}.index_select({d}, {i})", f"{t}[{before}{i}]")
        )
    shape = s[:d] + (min(count, 16),) + s[d + 1 :]
    i = g.input(shape, torch.int64, below=below).text
    if way == 2:
        return g.let(
            g.pick(
                f"torch.gather({t}, {d}, {i})",
                f"{t}.gather({d}, {i})",
                f"torch.gather({t}, dim={d}, index={i})",
            )
        )
    if way == 3:
        return g.let(f"torch.take_along_dim({t}, {i}, dim={d})")
    if way == 4:
        best = g.keep(
            g.pick(
                f"{t}.argmax(dim={d}, keepdim=True)", f"{t}.argmin({d}, keepdim=True)", f"{t}.argsort({d})"
            )
        )
        return g.let(g.pick(f"{t}.gather({d}, {best.text})", f"torch.gather({t}, {d}, {best.text})"))
    source = g.input(shape, x.dtype).text
    return g.let(
        g.pick(
            f"{t}.scatter({d}, {i}, 0)",
            f"{t}.scatter_add({d}, {i}, {source})",
            f"torch.scatter_add({t}, {d}, {i}, {source})",
        )
    )


@operator("i", 30)
def table(g, x):
    """Integers as rows of a table, as classes."""
    t = x.text
    rows, width = g.pick(8, 10, 16, 32, 50, 100), g.dimension(96)
    small = g.keep(
        g.pick(
            f"{t} % {rows}",
            f"{t}.clamp(0, {rows - 1})",
            f"torch.remainder({t}, {rows})",
            f"{t}.abs() % {rows}",
        )
    )
    if x.dtype is not torch.int64:
        small = g.keep(f"{small.text}.long()")
    a, b = g.size(rows, True), g.size(width, True)
    way = g.random.randrange(4)
    if way == 0:
        text = f"F.one_hot({small.text}, num_classes={rows})"
        return g.let(g.pick(text, text + ".float()", f"F.one_hot({small.text}, {rows})"))
    if way == 1:
        return g.let(
            g.pick(
                f"F.embedding({small.text}, {g.parameter((rows, width)).text})",
                f"{g.parameter((rows, width)).text}[{small.text}]",
            )
        )
    if way == 2:
        made = g.pick(f"torch.linspace(-1, 1, {rows})", f"torch.arange({rows}) * 2")
        return g.let(f"{g.buffer(made).text}[{small.text}]")
    return g.let(f"{g.layer(f'nn.Embedding({a}, {b})')}({small.text})")


@operator("fi", 4, rank=2)
def positions(g, x):
    """What depends on the place: triangles, distances, ranges of integers."""
    t, s = x.text, x.shape
    n, m = g.size(s[-1]), g.size(s[-2])
    texts = [f"torch.triu({t}, diagonal={g.pick('1', '0', '-1')})", f"torch.tril({t})", f"{t}.tril(-1)",
        f"{t}.triu()", f"torch.where(torch.arange({n}) < {max(1, s[-1] // 2)}, {t}, 0)",
        f"{t} * (torch.arange({n}, device={t}.device) % 2 == 0)",
        f"{t}.masked_fill(torch.arange({m})[:, None] < torch.arange({n})[None, :], 0)",
        f"{t} + torch.arange({n}, dtype={t}.dtype)"]  # fmt: skip
    if s[-1] == s[-2]:
        texts += [f"torch.diagonal({t}, dim1=-2, dim2=-1)", f"{t} + torch.eye({n})"] * 3
    return g.let(g.pick(*texts))
