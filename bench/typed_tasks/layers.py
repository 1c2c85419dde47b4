"""Layers: contractions, convolutions, pooling, norms, attention, cells, losses."""

import torch
from operators import BOOL, axis, constant, like, operator


def called(g, x, constructor, **options):
    return g.let(f"{g.layer(constructor, **options)}({x.text})")


@operator("f", 9, rank=1)
def linear(g, x):
    n, m = x.shape[-1], g.dimension(256)
    a, b = g.size(n, True), g.size(m, True)
    if g.chance(0.5):
        return called(g, x, g.pick(f"nn.Linear({a}, {b})", f"nn.Linear({a}, {b}, bias=False)",
                                   f"nn.Linear(in_features={a}, out_features={b})"))  # fmt: skip
    w = g.parameter((m, n)).text
    bias = g.pick("", f", {g.parameter((m,)).text}")
    return g.let(
        g.pick(f"F.linear({x.text}, {w}{bias})", f"{x.text} @ {w}.t()", f"torch.matmul({x.text}, {w}.T)")
    )


@operator("f", 8, rank=1)
def block(g, x):
    """nn.Sequential, or a list of layers in a loop."""
    n, m = x.shape[-1], g.dimension(128)
    a, b = g.size(n, True), g.size(m, True)
    act = g.pick("nn.ReLU()", "nn.GELU()", "nn.SiLU()", "nn.Tanh()", "nn.Sigmoid()", "nn.ReLU(inplace=True)")
    inner = g.pick(f"nn.Linear({a}, {b}), {act}", f"nn.Linear({a}, {b}), {act}, nn.Linear({b}, {a})",
        f"nn.LayerNorm({a}), nn.Linear({a}, {b})",
        f"nn.Linear({a}, {b}), {act}, nn.Dropout(0.0)")  # fmt: skip
    if g.float_type is torch.float32 or g.whole_module_cast:
        layer = g.layer(f"nn.Sequential({inner})")
        return g.let(g.pick(f"{layer}({x.text})", f"{layer}({x.text})", f"{x.text} + {layer}({x.text})"))
    return called(g, x, act)


@operator("f", 7, rank=2, most=4)
def product(g, x):
    t, k = x.text, x.shape[-1]
    n = g.dimension(128)
    y = g.input(x.shape[:-2] + (k, n), x.dtype).text
    z = g.input(x.shape[:-2] + (n, k), x.dtype).text
    texts = [f"{t} @ {y}", f"torch.matmul({t}, {y})", f"{t}.matmul({y})", f"{t} @ {z}.transpose(-2, -1)",
        f"{t} @ {z}.mT", f"torch.matmul({t}, {z}.transpose(-1, -2)) * {k}**-0.5"]  # fmt: skip
    if x.rank == 2:
        texts += [f"torch.mm({t}, {y})", f"torch.einsum('ij,jk->ik', {t}, {y})",
            f"torch.einsum('bd,nd->bn', {t}, {z})",
            f"torch.addmm({g.parameter((n,), x.dtype).text}, {t}, {y})"]  # fmt: skip
    if x.rank == 3:
        w = g.parameter((k, n), x.dtype).text
        texts += [f"torch.bmm({t}, {y})", f"torch.einsum('bij,bjk->bik', {t}, {y})",
            f"torch.einsum('bqd,bkd->bqk', {t}, {z})", f"torch.einsum('bld,de->ble', {t}, {w})",
            f"{t} @ {w}", f"torch.bmm({t}, {t}.transpose(1, 2))"]  # fmt: skip
    if x.rank == 4:
        texts += [f"torch.einsum('bhqd,bhkd->bhqk', {t}, {z})", f"torch.einsum('bhij,bhjk->bhik', {t}, {y})"]
    # One of the two inputs is not read, and goes.
    return g.let(g.pick(*texts))


@operator("f", 2, rank=1, most=2)
def vector_product(g, x):
    t = x.text
    if x.rank == 1:
        return g.let(g.pick(f"torch.dot({t}, {like(g, x)})", f"torch.outer({t}, {like(g, x)})",
            f"{t}.unsqueeze(1) * {t}.unsqueeze(0)", f"{t}[:, None] - {t}[None, :]"))  # fmt: skip
    v = g.input(x.shape[-1:], x.dtype).text
    return g.let(g.pick(f"torch.mv({t}, {v})", f"{t} @ {v}", f"torch.einsum('ij,j->i', {t}, {v})",
        f"({t} * {like(g, x)}).sum(-1)", f"torch.einsum('bi,bi->b', {t}, {like(g, x)})",
        f"torch.cdist({t}, {t})"))  # fmt: skip


@operator("f", 16, rank=3, most=5)
def convolution(g, x):
    nd, c = x.rank - 2, x.shape[1]
    out = g.pick(2, 4, 6, 8, 16, 24, 32)
    k = (
        [g.pick(1, 2, 3, 3, 3, 5) for _ in range(nd)]
        if g.chance(0.25)
        else [g.pick(1, 2, 3, 3, 3, 4, 5, 7)] * nd
    )
    written = str(k[0]) if len(set(k)) == 1 else f"({', '.join(map(str, k))})"
    if g.chance(0.5):
        written = f"kernel_size={written}"
    options = ""
    transposed = g.chance(0.2)
    if g.chance(0.5):
        options += f", stride={g.pick('2', '2', '1', '3')}"
    if g.chance(0.6) and not transposed:
        options += f", padding={k[0] // 2}" if g.chance(0.7) or "stride" in options else ", padding='same'"
    elif g.chance(0.5):
        options += ", padding=1"
    groups = 1
    if g.chance(0.25):
        groups = c if g.chance(0.5) else 2
        out = c * g.pick(1, 1, 2)
        if c % groups:
            groups = 1
        else:
            options += f", groups={g.size(groups, True)}"
    if g.chance(0.15):
        options += ", dilation=2"
    if g.chance(0.3):
        options += ", bias=False"
    if transposed and "stride=2" in options and g.chance(0.5):
        options += ", output_padding=1"
    elif not transposed and "padding=" in options and g.chance(0.1):
        options += f", padding_mode='{g.pick('zeros', 'reflect', 'replicate', 'circular')}'"
    a, b = g.size(c, True), g.size(out, True)
    return called(g, x, f"nn.Conv{'Transpose' * transposed}{nd}d({a}, {b}, {written}{options})")


@operator("f", 12, rank=3, most=5)
def pooling(g, x):
    nd, t = x.rank - 2, x.text
    k = g.pick("2", "3", "3", "2", "4")
    if nd > 1 and g.chance(0.15):
        k = f"({', '.join(g.pick('1', '2', '3') for _ in range(nd))})"
    options = g.pick(
        "",
        "",
        ", stride=1",
        ", stride=2",
        ", 2",
        ", stride=2, padding=1",
        ", ceil_mode=True",
        ", stride=1, padding=1",
    )
    kind = g.pick("max", "avg", "avg", "adaptive_avg", "adaptive_max", "lp")
    if kind == "avg" and g.chance(0.3):
        options += ", count_include_pad=False"
    if kind == "max" and g.chance(0.2):
        options += ", dilation=2" if "padding" not in options else ""
    if kind.startswith("adaptive"):
        size = (
            g.pick("1", "1", "2", "4", f"({', '.join(g.pick('1', '2', '3') for _ in range(nd))})")
            if nd > 1
            else g.pick("1", "2", "4")
        )
        name = "Avg" if kind.endswith("avg") else "Max"
        return (
            g.let(f"F.{kind}_pool{nd}d({t}, {size})")
            if g.chance(0.5)
            else called(g, x, f"nn.Adaptive{name}Pool{nd}d({size})")
        )
    if kind == "lp":
        if nd == 3:
            raise ValueError
        return g.let(f"F.lp_pool{nd}d({t}.abs(), 2, kernel_size={k})")
    named = g.pick("", "kernel_size=") if options != ", 2" else ""
    if g.chance(0.5):
        return g.let(f"F.{kind}_pool{nd}d({t}, {named}{k}{options})")
    return called(g, x, f"nn.{kind.capitalize()}Pool{nd}d({named}{k}{options})")


@operator("f", 6, rank=3, most=5)
def resampling(g, x):
    nd, t = x.rank - 2, x.text
    mode = g.pick("reflect", "replicate", "circular")
    texts = [f"F.interpolate({t}, scale_factor=2, mode='nearest')", f"F.interpolate({t}, scale_factor=2)",
        f"F.pad({t}, ({g.pick('1, 1', '0, 2', '1, 0', '2, 2')}))", f"F.pad({t}, (1, 1), value=1.0)",
        f"F.pad({t}, (1, 1{', 1, 1' * (nd - 1)}), mode='{mode}')"]  # fmt: skip
    if nd == 2:
        texts += [
            f"F.interpolate({t}, scale_factor=2, mode='bilinear', align_corners={g.pick('False', 'True')})",
            f"F.interpolate({t}, size=(8, 8), mode='bilinear')", f"F.pixel_shuffle({t}, 2)",
            f"F.pixel_unshuffle({t}, 2)", f"{t}.mean(dim=(2, 3))", f"{t}.flatten(2).transpose(1, 2)",
            f"F.unfold({t}, kernel_size=3, padding=1)", f"F.adaptive_avg_pool2d({t}, 1).flatten(1)",
            f"{t} * {t}.mean((2, 3), keepdim=True).sigmoid()"] * 2  # fmt: skip
    text = g.pick(*texts)
    if text.startswith("F.interpolate") and g.chance(0.5):
        return called(g, x, "nn.Upsample(" + text.split(", ", 1)[1])
    return g.let(text)


@operator("f", 12, rank=3, most=5)
def channel_norm(g, x):
    nd, c = x.rank - 2, x.shape[1]
    n, eps = g.size(c, True), g.pick("", "", ", eps=1e-3", ", eps=1e-6")
    kind = g.pick("batch", "batch", "eval", "group", "group", "instance", "lrn")
    if kind in ("batch", "eval"):
        options = g.pick("", "", ", affine=False", ", track_running_stats=False", ", momentum=0.01")
        return called(g, x, f"nn.BatchNorm{nd}d({n}{eps}{options})", evaluated=kind == "eval")
    if kind == "group":
        groups = g.pick(*[k for k in (1, 2, 3, 4, 8, c) if c % k == 0])
        if g.chance(0.3):
            return g.let(f"F.group_norm({x.text}, {groups}{eps})")
        return called(g, x, f"nn.GroupNorm({groups}, {n}{eps}{g.pick('', '', ', affine=False')})")
    if kind == "lrn":
        return called(g, x, f"nn.LocalResponseNorm({g.pick('3', '5', '2')})")
    if g.chance(0.3):
        return g.let(f"F.instance_norm({x.text}{eps})")
    return called(g, x, f"nn.InstanceNorm{nd}d({n}{eps}{g.pick('', ', affine=True')})")


@operator("f", 8, rank=2, most=5)
def row_norm(g, x):
    t, n = x.text, g.size(x.shape[-1], True)
    eps = g.pick("", "", ", eps=1e-6", ", eps=1e-3", ", eps=1e-12")
    way = g.random.randrange(7)
    if way == 0:
        return g.let(
            g.pick(f"F.layer_norm({t}, ({g.size(x.shape[-1])},){eps})", f"F.layer_norm({t}, {t}.shape[-1:])")
        )
    if way == 1:
        w, b = g.parameter(x.shape[-1:]).text, g.parameter(x.shape[-1:]).text
        return g.let(f"F.layer_norm({t}, ({g.size(x.shape[-1])},), {w}, {b}{eps})")
    if way == 2:
        w = g.parameter(x.shape[-1:], x.dtype).text
        v = g.keep(
            g.pick(
                f"{t}.pow(2).mean(-1, keepdim=True)",
                f"{t}.float().pow(2).mean(dim=-1, keepdim=True).to({t}.dtype)",
            )
        )
        return g.let(
            g.pick(f"{w} * ({t} * torch.rsqrt({v.text} + 1e-6))", f"{t} * torch.rsqrt({v.text} + 1e-5) * {w}")
        )
    if way == 3 and x.rank == 2:
        return called(g, x, f"nn.BatchNorm1d({n}{eps})", evaluated=g.chance(0.5))
    if way == 4:
        return called(g, x, f"nn.RMSNorm({n}{eps})")
    if way == 5:
        return g.let(f"F.rms_norm({t}, ({g.size(x.shape[-1])},){eps})")
    options = g.pick("", "", ", elementwise_affine=False", ", bias=False")
    return called(g, x, f"nn.LayerNorm({n}{eps}{options})")


@operator("f", 14, rank=3, most=4)
def attention(g, x):
    t, s = x.text, x.shape
    if s[-2] * s[-2] > 65536:
        raise ValueError
    k, v = g.input(s, x.dtype).text, g.input(s, x.dtype).text
    way = g.random.randrange(7)
    if way == 0:
        m = g.input((s[-2], s[-2]), kind="b", dtype=BOOL).text
        seen = f"{m} | torch.eye({s[-2]}, dtype=torch.bool)"  # no row without a key
        return g.let(f"F.scaled_dot_product_attention({t}, {k}, {v}, attn_mask={seen})")
    if way == 1:
        option = g.pick("is_causal=True", "scale=0.2", "dropout_p=0.0")
        return g.let(f"F.scaled_dot_product_attention({t}, {k}, {v}, {option})")
    if way == 2:
        return g.let(f"F.scaled_dot_product_attention({t}, {k}, {v})")
    scores = g.keep(
        f"{t} @ {k}.transpose(-2, -1) {g.pick(f'/ math.sqrt({s[-1]})', f'* {s[-1]} ** -0.5', '* 0.125')}"
    )
    if way == 3:
        n = g.size(s[-2], True)
        causal = g.buffer(f"torch.tril(torch.ones({n}, {n}))").text
        scores = g.keep(f"{scores.text}.masked_fill({causal} == 0, float('-inf'))")
    weights = g.keep(g.pick(f"F.softmax({scores.text}, dim=-1)", f"{scores.text}.softmax(dim=-1)"))
    return g.let(g.pick(f"{weights.text} @ {v}", f"torch.matmul({weights.text}, {v})"))


@operator("f", 8, rank=3, most=3)
def heads(g, x):
    t, (b, n, d) = x.text, x.shape
    h = g.pick(*[k for k in (2, 4, 8) if d % k == 0] or [1])
    head, size = g.size(h), g.size(d // h)
    return g.let(g.pick(f"{t}.view({g.size(b)}, {g.size(n)}, {head}, {size}).transpose(1, 2)",
                        f"{t}.reshape({g.size(b)}, -1, {head}, {size}).permute(0, 2, 1, 3)",
                        f"{t}.unflatten(-1, ({head}, {size})).transpose(1, 2)",
                        f"{t}.view({t}.size(0), {t}.size(1), {head}, -1)"))  # fmt: skip


@operator("f", 9, rank=2, most=2)
def cell(g, x):
    n, hidden = x.shape[-1], g.dimension(64)
    if n > 128 or x.shape[0] > 128:
        raise ValueError
    kind = g.pick("RNN", "GRU", "LSTM")
    layer = g.layer(
        f"nn.{kind}Cell({g.size(n, True)}, {g.size(hidden, True)}{g.pick('', '', ', bias=False')})"
    )
    h = g.input((x.shape[0], hidden)).text
    if kind == "LSTM":
        return g.unpack(f"{layer}({x.text}, ({h}, {g.input((x.shape[0], hidden)).text}))", 2)[0]
    return g.let(f"{layer}({x.text}, {h})")


@operator("f", 8, rank=1)
def loss(g, x):
    t, y = x.text, like(g, x)
    r = g.pick("", "", ", reduction='sum'", ", reduction='none'", ', reduction="mean"')
    name, option = g.pick(
        ("mse", ""),
        ("l1", ""),
        ("smooth_l1", ""),
        ("smooth_l1", ", beta=0.5"),
        ("huber", ""),
        ("huber", ", delta=0.5"),
    )
    names = {"mse": "MSELoss", "l1": "L1Loss", "smooth_l1": "SmoothL1Loss", "huber": "HuberLoss"}
    way = g.random.randrange(6)
    if way == 0 and x.rank == 2:
        target = g.input(x.shape[:1], torch.int64, below=x.shape[1]).text
        smooth = g.pick("", "", ", label_smoothing=0.1", ", ignore_index=0")
        return g.let(
            g.pick(
                f"F.cross_entropy({t}, {target}{r}{smooth})",
                f"F.nll_loss(F.log_softmax({t}, dim=-1), {target}{r})",
            )
        )
    if way == 1:
        target = f"{g.input(x.shape, BOOL, kind='b').text}.to({t}.dtype)"
        return g.let(
            g.pick(
                f"F.binary_cross_entropy_with_logits({t}, {target}{r})",
                f"F.binary_cross_entropy(torch.sigmoid({t}), {target}{r})",
            )
        )
    if way == 2 and x.rank == 2:
        kl = g.pick("batchmean", "sum", "none")
        return g.let(g.pick(f"F.cosine_similarity({t}, {y}, dim={axis(g, x)})",
            f"F.pairwise_distance({t}, {y})",
            f"F.kl_div(F.log_softmax({t}, -1), F.softmax({y}, -1), reduction='{kl}')",
            f"F.cosine_similarity({t}, {y}, eps=1e-6)",
            f"1 - F.cosine_similarity({t}, {y}, dim=-1).mean()"))  # fmt: skip
    if way == 3:
        return g.let(f"{g.layer(f'nn.{names[name]}(' + (r + option)[2:] + ')')}({t}, {y})")
    if way == 4:
        return g.let(
            g.pick(
                f"({t} - {y}).pow(2).mean()",
                f"(({t} - {y}).abs() * {constant(g, x)}).mean(-1)",
                f"F.relu({t} - {y} + 1).mean()",
            )
        )
    return g.let(f"F.{name}_loss({t}, {y}{r}{option})")
