"""Operators of one value: elementwise, reductions, casts, comparisons, integers."""

from operators import axes, axis, broadcast, constant, like, operator


@operator("f", 10)
def activation(g, x):
    t = x.text
    forms = [
        (f"F.relu({t})", f"torch.relu({t})", f"{t}.relu()", "nn.ReLU()", f"{t}.clamp(min=0)"),
        (f"F.gelu({t})", "nn.GELU()", f'F.gelu({t}, approximate="tanh")', "nn.GELU(approximate='tanh')"),
        (f"F.silu({t})", "nn.SiLU()", f"{t} * torch.sigmoid({t})", f"{t} * {t}.sigmoid()"),
        (f"torch.sigmoid({t})", f"{t}.sigmoid()", "nn.Sigmoid()", f"F.sigmoid({t})"),
        (f"torch.tanh({t})", f"{t}.tanh()", "nn.Tanh()", f"F.tanh({t})"),
        (f"F.softplus({t})", f"F.softplus({t}, beta=2.0)", "nn.Softplus()", "nn.Softplus(0.5, threshold=10)"),
        (f"F.elu({t})", f"F.elu({t}, alpha=0.5)", "nn.ELU()", "nn.ELU(alpha=1.5)"),
        (f"F.leaky_relu({t}, 0.2)", f"F.leaky_relu({t}, negative_slope=0.1)", "nn.LeakyReLU(0.2)"),
        (f"F.hardtanh({t})", f"F.hardtanh({t}, -2.0, 2.0)", "nn.Hardtanh(min_val=-0.5, max_val=0.5)"),
        (f"F.hardswish({t})", "nn.Hardswish()", f"F.hardsigmoid({t})", "nn.Hardsigmoid()"),
        (f"F.mish({t})", "nn.Mish()", f"F.selu({t})", "nn.SELU()"),
        (f"F.celu({t}, alpha=1.2)", "nn.CELU()"),
        (f"F.relu6({t})", "nn.ReLU6()", f"F.logsigmoid({t})", "nn.LogSigmoid()"),
        (f"F.softsign({t})", "nn.Softsign()"),
        (f"F.threshold({t}, 0.1, 0.0)", "nn.Threshold(0.1, 0.0)", f"F.softshrink({t})", "nn.Hardshrink()"),
        (f"F.tanhshrink({t})", "nn.Tanhshrink()", f"F.hardshrink({t}, lambd=0.4)", f"F.rrelu({t})"),
    ]  # fmt: skip
    text = g.pick(*g.pick(*forms))
    return g.let(f"{g.layer(text)}({t})" if text.startswith("nn.") else text)


@operator("f", 8)
def function(g, x):
    t = x.text
    return g.let(g.pick(f"torch.abs({t})", f"{t}.abs()", f"-{t}", f"torch.neg({t})", f"{t}.square()",
        f"torch.square({t})", f"{t} ** 2", f"torch.pow({t}, 2)", f"{t}.pow(3)", f"torch.sin({t})",
        f"{t}.cos()", f"torch.erf({t})", f"torch.exp(-{t}.abs())", f"torch.exp({t}.clamp(max=4))",
        f"torch.log1p({t}.abs())", f"{t}.abs().sqrt()", f"torch.sqrt({t}.abs() + 1e-6)",
        f"torch.rsqrt({t} * {t} + 1e-2)", f"1 / (1 + {t} ** 2)", f"torch.reciprocal({t}.abs() + 1)",
        f"torch.floor({t})", f"{t}.ceil()", f"torch.round({t})", f"{t}.trunc()", f"torch.sign({t})",
        f"{t}.clamp(-1, 1)", f"torch.clamp({t}, min=-0.5, max=0.5)", f"{t}.clamp_min(0.1)",
        f"torch.clamp({t}, max=1.0)", f"torch.nan_to_num({t})", f"torch.expm1({t}.clamp(max=2.0))",
        f"torch.exp2({t}.clamp(-4, 4))", f"torch.log({t}.abs() + 1)", f"torch.atan({t})", f"{t}.frac()",
        f"torch.sinh({t}.clamp(-2, 2))", f"torch.log2({t}.abs() + 1e-3)", f"{t}.detach() * 2",
        f"{t}.clone()", f"{t}.contiguous()"))  # fmt: skip


@operator("fi", 9)
def arithmetic(g, x):
    t = x.text
    c = constant(g, x)
    return g.let(g.pick(
        f"{t} * {c}", f"{c} * {t}", f"{t} + {c}", f"{t} - {c}", f"{c} - {t}", f"torch.mul({t}, {c})",
        f"torch.add({t}, {c})", f"{t}.mul({c})", f"{t}.add({c})", f"{t}.sub({c})",
        f"{t} / {c}" if x.kind == "f" else f"{t} // {c}", f"{t} * {c} + 1",
        f"torch.div({t}, {c})" if x.kind == "f" else f"{t} % {c}"))  # fmt: skip


@operator("fi", 9)
def of_two(g, x):
    t, y = x.text, like(g, x)
    texts = [f"{t} + {y}", f"{t} - {y}", f"{t} * {y}", f"torch.maximum({t}, {y})",
        f"torch.minimum({t}, {y})", f"torch.add({t}, {y})", f"{t}.sub({y})", f"torch.mul({t}, {y})",
        f"torch.where({t} > {y}, {t}, {y})", f"{t} + 2 * {y}", f"torch.add({t}, {y}, alpha=2)",
        f"torch.abs({t} - {y})", f"({t} - {y}) ** 2"]  # fmt: skip
    if x.kind == "f":
        texts += [f"{t} / ({y}.abs() + 1)", f"torch.lerp({t}, {y}, {g.pick('0.3', '0.5', '0.9')})",
            f"{t} * torch.sigmoid({y})", f"torch.addcmul({t}, {y}, {y}, value=0.5)",
            f"torch.hypot({t}, {y})", f"torch.sub({t}, {y}, alpha=0.5)", f"F.silu({t}) * {y}",
            f"({t} + {y}) / 2", f"torch.atan2({t}, {y}.abs() + 1)"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("fi", 10, rank=1)
def with_broadcast(g, x):
    t, y = x.text, broadcast(g, x)
    return g.let(g.pick(f"{t} + {y}", f"{t} * {y}", f"{t} - {y}", f"{y} * {t}", f"torch.add({t}, {y})",
                        f"{t} * (1 + {y})", f"torch.maximum({t}, {y})"))  # fmt: skip


@operator("f", 8, rank=1)
def reduction(g, x):
    t, d = x.text, axes(g, x)
    keep = g.pick("", "", ", keepdim=True", ", keepdim=False")
    name = g.pick("sum", "mean", "mean", "sum", "amax", "amin", "logsumexp", "var", "std", "norm")
    if name in ("var", "std"):
        keep += g.pick("", ", unbiased=False", ", correction=0")
        if "correction" in keep and "unbiased" in keep:
            keep = ""
    if name == "norm":
        return g.let(g.pick(f"{t}.norm(dim={d}{keep})", f"torch.norm({t}, p=2, dim={d}{keep})",
            f"{t}.norm(p=1, dim={d}{keep})", f"torch.linalg.vector_norm({t}, dim={d}{keep})",
            f"torch.linalg.vector_norm({t}, ord=float('inf'), dim={d}{keep})"))  # fmt: skip
    named = g.pick("dim=", "dim=", "") if name not in ("amax",) else "dim="
    if name == "sum" and g.chance(0.15):
        return g.let(f"{t}.sum({named}{d}{keep}, dtype={g.pick('torch.float32', 'torch.float64')})")
    return g.let(g.pick(f"torch.{name}({t}, {named}{d}{keep})", f"{t}.{name}({named}{d}{keep})"))


@operator("fi", 3)
def whole_reduction(g, x):
    t = x.text
    texts = [f"{t}.sum()", f"torch.sum({t})", f"{t}.max()", f"{t}.min()", f"torch.max({t})", f"{t}.amax()"]
    if x.kind == "f":
        texts += [f"{t}.mean()", f"torch.mean({t})", f"{t}.norm()", f"{t}.var()", f"{t}.std(unbiased=False)",
                  f"{t}.square().mean()", f"torch.logsumexp({t}.flatten(), 0)"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("fi", 4, rank=1)
def scan(g, x):
    t, d = x.text, axis(g, x)
    texts = [f"torch.cumsum({t}, dim={d})", f"{t}.cumsum({d})", f"{t}.cumsum(dim={d})",
        f"torch.cummax({t}, dim={d})[0]", f"torch.cummin({t}, dim={d}).values", f"{t} - {t}.roll(1, {d})",
        f"torch.diff({t}, dim={d})"]  # fmt: skip
    if x.kind == "f":
        texts += [f"torch.cumprod(torch.sigmoid({t}), dim={d})",
            f"torch.cumsum({t}.flip({d}), {d}).flip({d})", f"torch.logcumsumexp({t}, dim={d})"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("f", 6, rank=1)
def softmax(g, x):
    t, d = x.text, axis(g, x)
    c = constant(g, x)
    text = g.pick(f"F.softmax({t}, dim={d})", f"torch.softmax({t}, dim={d})", f"{t}.softmax({d})",
        f"nn.Softmax(dim={d})", f"F.log_softmax({t}, dim={d})", f"torch.log_softmax({t}, {d})",
        f"F.softmax({t} / {c}, dim={d})", f"nn.LogSoftmax(dim={d})", f"F.softmin({t}, dim={d})",
        f"{t}.softmax(dim={d}).sqrt()", f"F.softmax({t}.float(), dim={d}).to({t}.dtype)",
        f"F.softmax({t}, dim={d}, dtype=torch.float32)", f"F.normalize({t}, dim={d})",
        f"F.normalize({t}, p=2.0, dim={d}, eps=1e-6)", f"F.normalize({t}, p=1, dim={d})",
        f"{t} / ({t}.norm(dim={d}, keepdim=True) + 1e-6)", f"{t} - {t}.mean(dim={d}, keepdim=True)",
        f"{t} - {t}.amax({d}, keepdim=True)", f"{t} / {t}.abs().sum({d}, keepdim=True).clamp(min=1e-5)",
        f"({t} - {t}.mean({d}, keepdim=True)) / ({t}.std({d}, keepdim=True) + 1e-5)",
        f"F.glu({t}, dim={d})")  # fmt: skip
    return g.let(f"{g.layer(text)}({t})" if text.startswith("nn.") else text)


@operator("fib", 5)
def cast(g, x):
    t = x.text
    return g.let(g.pick(f"{t}.float()", f"{t}.to(torch.float32)", f"{t}.half()", f"{t}.to(torch.float16)",
        f"{t}.to(torch.bfloat16)", f"{t}.bfloat16()", f"{t}.double()", f"{t}.to(torch.float64)",
        f"{t}.to(dtype=torch.float16)", f"{t}.long()", f"{t}.int()", f"{t}.to(torch.int32)",
        f"{t}.to(torch.int64)", f"{t}.type(torch.float32)", f"{t}.bool()", f"{t}.float() / 255",
        f"({t} * 4).round().to(torch.int32)",
        f"{t}.to(torch.uint8)" if x.kind == "b" else f"{t}.float()"))  # fmt: skip


@operator("fi", 5)
def comparison(g, x):
    t, c = x.text, constant(g, x)
    texts = [f"{t} > {c}", f"{t} < {c}", f"{t} >= 0", f"{t} <= {c}", f"{t} != 0", f"{t} > 0",
        f"torch.gt({t}, {c})", f"{t}.lt({c})", f"({t} > -1) & ({t} < 1)", f"({t} < -1) | ({t} > 1)",
        f"torch.ge({t}, 0)"]  # fmt: skip
    if x.kind == "i":
        texts += [f"{t} == {g.pick('0', '1', '3')}", f"{t} % 2 == 0", f"torch.eq({t}, 2)", f"{t}.ne(1)"]
    if x.rank and g.chance(0.5):
        texts = [
            f"{t} > {t}.float().mean()",
            f"{t} >= {t}.amax({axis(g, x)}, keepdim=True)",
            f"{t} > {like(g, x)}",
        ]
    return g.let(g.pick(*texts))


@operator("b", 14)
def of_mask(g, x):
    t = x.text
    d = axis(g, x) if x.rank else None
    texts = [f"~{t}", f"torch.logical_not({t})", f"{t}.sum()", f"{t}.float()", f"{t}.int()",
        f"{t}.to(torch.int64)", f"{t}.any()", f"{t}.all()", f"torch.count_nonzero({t})"]  # fmt: skip
    if d is not None:
        texts += [f"{t}.any(dim={d})", f"{t}.all({d})", f"torch.any({t}, dim={d}, keepdim=True)",
            f"{t}.sum({d})", f"{t}.float().mean(dim={d})", f"{t}.long().cumsum({d})",
            f"{t}.sum(dim={d}, keepdim=True)"] * 2  # fmt: skip
    return g.let(g.pick(*texts))


@operator("fi", 7, rank=1)
def masked(g, x):
    t, c = x.text, constant(g, x)
    masks = [v.text for v in g.values if v.kind == "b" and v.shape == x.shape]
    m = (
        g.pick(*masks)
        if masks and g.chance(0.7)
        else g.input(x.shape, kind="b", dtype=__import__("torch").bool).text
    )
    texts = [f"{t}.masked_fill({m}, 0)", f"{t}.masked_fill(~{m}, {c})",
        f"torch.where({m}, {t}, {like(g, x)})", f"{t} * {m}",
        f"torch.where({m}, {t}, torch.zeros_like({t}))", f"torch.where({m}, {t}, 0)",
        f"{t}.masked_fill({m} == 0, 0)"]  # fmt: skip
    if x.kind == "f":
        d = axis(g, x)
        texts += [f"{t}.masked_fill({m}, -1e4).softmax(dim={d})", f"{t} * {m}.float()",
            f"torch.where({m}, {t}, -{t})", f"({t} * {m}).sum({d}) / {m}.sum({d}).clamp(min=1)",
            f"{t}.where({m}, torch.zeros_like({t}))"]  # fmt: skip
    return g.let(g.pick(*texts))


@operator("i", 14)
def of_integers(g, x):
    t = x.text
    c = g.pick("2", "3", "4", "5", "7", "8")
    return g.let(g.pick(f"{t} % {c}", f"{t} // {c}", f"torch.remainder({t}, {c})",
        f"torch.div({t}, {c}, rounding_mode='floor')", f"torch.div({t}, {c}, rounding_mode='trunc')",
        f"{t} & 3", f"{t} | 1", f"{t} ^ 5", f"{t} << 1", f"{t} >> 1", f"{t}.abs()", f"-{t}",
        f"{t}.clamp(0, {c})", f"{t} * {t}", f"{t} / {c}", f"{t}.sum()", f"{t}.sign()",
        f"{t}.float().sqrt().nan_to_num(0)", f"torch.bitwise_and({t}, 7)", f"torch.clamp({t}, min=1)",
        f"{t}.float() * 0.5", f"torch.fmod({t}, {c})"))  # fmt: skip


@operator("i", 5, rank=1)
def reduction_of_integers(g, x):
    t, d = x.text, axis(g, x)
    return g.let(g.pick(f"{t}.sum({d})", f"{t}.sum(dim={d}, keepdim=True)", f"{t}.amax(dim={d})",
        f"{t}.max(dim={d}).values", f"{t}.float().mean({d})", f"{t}.argmax({d})", f"({t} > 0).sum({d})",
        f"{t}.prod({d})", f"{t}.cumsum({d})", f"{t}.min({d})[0]",
        f"{t}.sum(dim={d}, dtype=torch.int32)"))  # fmt: skip


@operator("f", 6, rank=1)
def in_place(g, x):
    t, c = x.text, constant(g, x)
    if not x.text.isidentifier():
        c = "0.5"
    end = g.pick("0", "1", "-1") if x.shape[-1] > 1 else "0"
    if g.chance(0.4):
        x = g.keep(g.pick(f"{t}.clone()", f"torch.zeros_like({t}) + {t}", f"{t} * 2", f"{t} + 1"))
        t = x.text
    return g.in_place(x, g.pick(f"{t}.mul_({c})", f"{t}.add_({c})", f"{t} += {c}", f"{t} *= {c}",
        f"{t}.relu_()", f"{t}.clamp_(min=0)", f"{t}.neg_()", f"{t} += {like(g, x)}",
        f"{t}.mul_({like(g, x)})", f"{t}[..., {end}] = 0", f"{t}[..., {end}] += 1", f"{t}.sigmoid_()",
        f"{t}.tanh_()", f"{t}.masked_fill_({t} < 0, 0.1)", f"{t}[..., :{max(1, x.shape[-1] // 2)}] *= 2",
        f"{t} -= {c}", f"{t}.sub_({like(g, x)})", f"{t}.add_({like(g, x)}, alpha=0.1)",
        f"{t}.copy_({t}.abs())", f"F.relu({t}, inplace=True)"))  # fmt: skip
