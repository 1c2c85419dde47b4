"""The kernels of the differential test: one small kernel for each operation, type and class of shape, from
tables.

A case computes on inputs a, b, c and writes o (and p). What it must give comes from Triton's own interpreter,
or, where that is wrong or knows no answer (bf16, libdevice, inline assembly, `dot_scaled`, float8), from
`want`, in PyTorch.
"""

import re

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64,
          "i1": torch.bool,
          "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
          "u16": torch.uint16,
          "u32": torch.uint32, "u64": torch.uint64, "f8e4m3fn": torch.float8_e4m3fn,
          "f8e5m2": torch.float8_e5m2}  # fmt: skip
POINTERS = {"f32": "*fp32", "f16": "*fp16", "bf16": "*bf16", "f64": "*fp64", "i1": "*i1", "i8": "*i8",
            "i16": "*i16", "i32": "*i32",
            "i64": "*i64", "u8": "*u8", "u16": "*u16", "u32": "*u32", "u64": "*u64", "f8e4m3fn": "*fp8e4nv",
            "f8e5m2": "*fp8e5"}  # fmt: skip
LANGUAGE = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i8": "int8",
            "i16": "int16", "i32": "int32",
            "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
            "f8e4m3fn": "float8e4nv",
            "f8e5m2": "float8e5"}  # fmt: skip
FLOATS = ("f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2")
N = 5  # what every kernel is given as its last argument


class Case:
    """`kernel` is the body of a kernel of a, b, c (as many as inputs), o, p (as many as outputs) and n.

    inputs and outputs: (type, shape, values); an output whose values are not None is an argument that is also
    read. A result may differ from what is wanted by `ulps` of its type, or by `atol` times the output's
    largest magnitude (at least 1); on a GPU by `gpu_ulps` or `gpu_atol`. `unordered`: the elements may come
    in any order. `gpu_defined`, of the inputs: the elements of which a GPU's result means something.
    """

    def __init__(
        self,
        name,
        kernel,
        inputs,
        outputs,
        want=None,
        ulps=0,
        atol=0.0,
        gpu_ulps=None,
        gpu_atol=None,
        slow=False,
        helpers="",
        unordered=False,
        gpu_defined=None,
    ):
        self.name, self.kernel, self.inputs, self.outputs = name, kernel, inputs, outputs
        self.want, self.slow, self.helpers = want, slow, helpers
        self.ulps, self.atol = ulps, atol
        self.gpu_ulps, self.gpu_atol = (
            ulps if gpu_ulps is None else gpu_ulps,
            atol if gpu_atol is None else gpu_atol,
        )
        self.unordered, self.gpu_defined = unordered, gpu_defined
        self.group = name.split("_")[0]

    def parameters(self):
        return [*"abcd"[: len(self.inputs)], *"op"[: len(self.outputs)], "n"]

    def signature(self):
        types = [POINTERS[t] for t, _, _ in (*self.inputs, *self.outputs)]
        return dict(zip(self.parameters(), [*types, "i32"]))

    def source(self):
        body = "\n".join("    " + line for line in self.kernel.split("\n"))
        return f"{self.helpers}@triton.jit\ndef {self.name}({', '.join(self.parameters())}):\n{body}\n\n\n"


def index(shape):
    """The row-major places of a tile of this shape, as source."""
    if not shape:
        return "0"
    if len(shape) == 1:
        return f"tl.arange(0, {shape[0]})"
    terms = []
    for d, size in enumerate(shape):
        after = 1
        for s in shape[d + 1 :]:
            after *= s
        place = ", ".join(":" if k == d else "None" for k in range(len(shape)))
        terms.append(f"tl.arange(0, {size})[{place}] * {after}")
    return " + ".join(terms)


def values_of(t, shape, kind, generator):
    count = 1
    for s in shape:
        count *= s
    dtype = DTYPES[t]
    randn = torch.randn(count, dtype=torch.float64, generator=generator)
    if kind == "zeros":
        return torch.zeros(shape, dtype=dtype)
    if kind == "float8":  # bytes that are neither NaN nor infinite, in either format
        return (
            (
                (torch.randint(0, 0x78, (count,), generator=generator) % 0x78)
                | (torch.randint(0, 2, (count,), generator=generator) << 7)
            )
            .to(dtype)
            .reshape(shape)
        )
    if kind == "patterns":  # every bit pattern there is, again and again
        width = {1: torch.uint8, 2: torch.int16}[torch.empty(0, dtype=dtype).element_size()]
        return torch.arange(count, dtype=torch.int64).to(width).view(dtype).reshape(shape)
    if t in FLOATS:
        if kind == "unit":
            values = torch.rand(count, dtype=torch.float64, generator=generator) * 0.96 + 0.02
        elif kind == "positive":
            values = randn.abs() + 0.1
        elif kind == "above_one":
            values = randn.abs() + 1.01
        elif kind == "small":
            values = randn * 20
        elif kind == "special":
            edge = torch.tensor(
                [
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    0.5,
                    1.5,
                    2.5,
                    -2.5,
                    float("inf"),
                    -float("inf"),
                    float("nan"),
                    2.0**-14,
                    2.0**-24,
                    3e4,
                    -7e4,
                    448.0,
                    464.0,
                    1e-9,
                ]
            )
            values = torch.where(
                torch.rand(count, generator=generator) < 0.7,
                edge[torch.randint(0, len(edge), (count,), generator=generator)].double(),
                randn,
            )
        elif kind == "whole":
            values = torch.randint(-3, 4, (count,), generator=generator).double()
        else:
            values = randn
        return values.to(dtype).reshape(shape)
    if t == "i1":
        return (randn > 0).reshape(shape)
    bits = {"i8": 7, "i16": 15, "i32": 31, "i64": 62, "u8": 8, "u16": 16, "u32": 32, "u64": 62}[t]
    low, high = {"small": (-100, 100), "few": (0, 4), "index": (0, count), "scale": (118, 134)}.get(
        kind, (-(1 << bits), 1 << bits)
    )
    if t[0] == "u":
        low = max(low, 0)
    values = torch.randint(low, high, (count,), dtype=torch.int64, generator=generator)
    if kind == "edges":
        edge = torch.tensor([0, 1, -1, 2, 7, (1 << bits) - 1, -(1 << bits) if t[0] == "i" else 3, 31])
        values = torch.where(
            torch.rand(count, generator=generator) < 0.6,
            edge[torch.randint(0, len(edge), (count,), generator=generator)],
            values,
        )
    return values.to(dtype).reshape(shape)


class Table:
    def __init__(self):
        self.cases = []

    def add(self, name, kernel, inputs, outputs, **keywords):
        self.cases.append(Case(name, kernel, inputs, outputs, **keywords))

    def tile(
        self, name, body, inputs, output, shape=(64,), out_shape=None, values="normal", setup="", **keywords
    ):
        """`body` computes r from tiles x, y (and z) of one shape."""
        kinds = values if isinstance(values, (list, tuple)) else [values] * len(inputs)
        out_shape = shape if out_shape is None else out_shape
        lines = [f"i = {index(shape)}"]
        lines += [f"{v} = tl.load({p} + i)" for v, p in zip("xyz", "abc"[: len(inputs)])]
        lines += [*([setup] if setup else []), body, f"tl.store(o + ({index(out_shape)}), r)"]
        self.add(
            name,
            "\n".join(lines),
            [(t, shape, kind) for t, kind in zip(inputs, kinds)],
            [(output, out_shape, None)],
            **keywords,
        )

    # Classes of shape: what the executor keeps lazily, row by row, or by elements.
    SHAPES = {"scalar": (), "one": (1,), "line": (64,), "rows": (8, 16), "cube": (4, 8, 2), "long": (2048,)}

    def elementwise(self, name, body, inputs, output, want=None, **keywords):
        """In every class of shape, and with an operand that is one element for all. By default one of them,
        in turn."""
        turn = len(self.cases)
        for k, (word, shape) in enumerate(self.SHAPES.items()):
            self.tile(f"{name}_{word}", body, inputs, output, shape,
                      want=(lambda *v, b=body: evaluated(b, v)) if want else None,
                      slow=k != turn % 6 and word != "line", **keywords)  # fmt: skip
        if len(inputs) == 2:
            kinds = keywords.pop("values", "normal")
            for k, v in enumerate("xy"):
                keywords.pop("setup", None)
                self.tile(f"{name}_uniform{k}", body, inputs, output, (8, 16), values=kinds, slow=True,
                          setup=f"{v} = tl.load({'ab'[k]} + 3)",
                          want=(lambda *v, b=body, k=k: evaluated(b,
                              [t.reshape(-1)[3] if j == k else t for j,
                                  t in enumerate(v)])) if want else None,
                          **keywords)  # fmt: skip


def evaluated(body, inputs):
    """A case's body with PyTorch in Triton's place."""
    import types

    names = {
        name: getattr(torch, name)
        for name in ("maximum", "minimum", "where", "abs", *dict.fromkeys(LANGUAGE.values()))
        if hasattr(torch, name)
    }
    scope = {
        "tl": types.SimpleNamespace(**names, clamp=lambda x, low, high: torch.clamp(x, low, high)),
        **dict(zip("xyz", inputs)),
    }
    exec(body, scope)  # pylint: disable=exec-used
    return scope["r"]


def add_elementwise(table):
    comparisons = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
    for t in ("f32", "f16", "bf16", "f64"):
        want = t == "bf16"  # the interpreter keeps bf16 as 16-bit words and computes on those
        add = lambda name, body, inputs, output, **k: table.elementwise(
            name, body, inputs, output, want=want, **k
        )  # noqa: E731
        for op, word in {"+": "add", "-": "sub", "*": "mul"}.items():
            add(f"float_{word}_{t}", f"r = x {op} y", [t, t], t)
        add(
            f"float_div_{t}",
            "r = (x / y)" + (f".to(tl.{LANGUAGE[t]})" if t in ("f16", "bf16") else ""),
            [t, t],
            t,
            gpu_ulps=2,
        )
        for op in ("maximum", "minimum"):
            add(f"float_{op}_{t}", f"r = tl.{op}(x, y)", [t, t], t)
        for op, word in comparisons.items():
            add(f"float_{word}_{t}", f"r = (x {op} y).to(tl.int32)", [t, t], "i32", values="special")
        add(f"float_where_{t}", "r = tl.where(x > 0, x, y)", [t, t], t)
        add(f"float_neg_{t}", "r = -x", [t], t)
        add(f"float_abs_{t}", "r = tl.abs(x)", [t], t)
        add(f"float_clamp_{t}", "r = tl.clamp(x, -0.5, 0.5)", [t], t) if t in ("f32", "f64") else None
    for t in ("f32", "f64"):
        for op in ("exp", "exp2", "sin", "cos", "floor", "ceil", "erf", "sigmoid"):
            exact = op in ("floor", "ceil")
            table.elementwise(f"math_{op}_{t}", f"r = tl.{op}(x)", [t], t, ulps=0 if exact else 3,
                              atol=0 if exact else 1e-7 if t == "f32" else 1e-15,
                              gpu_ulps=0 if exact else 16, gpu_atol=0 if exact else 1e-6)  # fmt: skip
        for op in ("log", "log2", "sqrt", "rsqrt"):
            table.elementwise(
                f"math_{op}_{t}",
                f"r = tl.{op}(tl.abs(x) + 0.1)",
                [t],
                t,
                ulps=2,
                atol=1e-7 if t == "f32" else 1e-15,
                gpu_ulps=8,
                gpu_atol=1e-6,
            )
        table.elementwise(
            f"math_fma_{t}",
            "r = tl.fma(x, y, x)",
            [t, t],
            t,
            want=None,
            ulps=0 if t == "f64" else 1,
            atol=1e-7,
        )
        table.tile(f"math_sqrtrn_{t}", "r = tl.sqrt_rn(tl.abs(x))", [t], t) if t == "f32" else None
        table.tile(f"math_divrn_{t}", "r = tl.div_rn(x, y)", [t, t], t) if t == "f32" else None
    for t in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        for op, word in {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}.items():
            table.elementwise(f"int_{word}_{t}", f"r = x {op} y", [t, t], t, values="edges")
        for op, word in {"//": "div", "%": "rem"}.items():
            table.elementwise(
                f"int_{word}_{t}", f"r = x {op} tl.where(y == 0, 3, y)", [t, t], t, values="integers"
            )
        for op, word in {"<<": "shl", ">>": "shr"}.items():
            table.elementwise(f"int_{word}_{t}", f"r = x {op} (y & 7)", [t, t], t, values="edges")
        for op in ("maximum", "minimum"):
            table.elementwise(f"int_{op}_{t}", f"r = tl.{op}(x, y)", [t, t], t, values="edges")
        for op, word in comparisons.items():
            table.elementwise(
                f"int_{word}_{t}", f"r = (x {op} y).to(tl.int32)", [t, t], "i32", values="edges"
            )
        table.elementwise(f"int_where_{t}", "r = tl.where(x > y, x, y)", [t, t], t, values="edges")
        if (
            t[0] == "i"
        ):  # NumPy has no ~ of unsigned numbers by way of -1, which is how the interpreter does it
            table.elementwise(f"int_invert_{t}", "r = ~x", [t], t, values="edges")
            table.elementwise(f"int_abs_{t}", "r = tl.abs(x)", [t], t, values="small")
            table.elementwise(f"int_neg_{t}", "r = -x", [t], t, values="edges")
    for t in ("u32", "u64"):
        table.elementwise(f"int_umulhi_{t}", "r = tl.umulhi(x, y)", [t, t], t, values="integers")
    # The interpreter takes i32 as signed here; the front end makes it `mulhiui`.
    table.tile("int_umulhi_i32", "r = tl.umulhi(x, y)", ["i32", "i32"], "i32", values="edges",
               want=lambda x, y: torch.tensor([wrapped((p & 0xFFFFFFFF) * (q & 0xFFFFFFFF) >> 32) for p,
                   q in zip(x.tolist(), y.tolist())], dtype=torch.int32))  # fmt: skip
    for a, b in (("u32", "i32"), ("i8", "i32"), ("u8", "i64"), ("f16", "f32"), ("i32", "f32")):  # promotion
        kind = "small" if a[0] != "f" else "normal"
        table.tile(f"promote_{a}_{b}", f"r = (x + y).to(tl.{LANGUAGE[b]})", [a, b], b, values=kind)
    casts = ("f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "u32")
    for a in casts:
        for b in casts:
            if a != b and not (
                a in FLOATS and b[0] == "u"
            ):  # out of an unsigned integer's range the result is undefined
                # As the interpreter narrows by way of bits, bf16 is PyTorch's to say.
                table.tile(f"cast_{a}_{b}", f"r = x.to(tl.{LANGUAGE[b]})", [a], b, values="small",
                           want=(lambda x, b=b: x.to(DTYPES[b])) if "bf16" in (a, b) else None)  # fmt: skip
    table.tile("cast_bool_f32", "r = (x > 0).to(tl.float32)", ["f32"], "f32")
    table.tile("cast_bool_i8", "r = (x > 0).to(tl.int8)", ["f32"], "i8")
    table.tile(
        "cast_i32_bool",
        "r = (x & 2).to(tl.int1).to(tl.int32)",
        ["i32"],
        "i32",
        want=lambda x: ((x & 2) != 0).to(torch.int32),
    )
    for a, b in (("f32", "i32"), ("f16", "i16"), ("i64", "f64"), ("bf16", "i16")):
        table.tile(f"bitcast_{a}_{b}", f"r = x.to(tl.{LANGUAGE[b]}, bitcast=True)", [a], b)
    for way in ("rtne", "rtz"):
        for b in ("f16", "bf16"):
            table.tile(f"round_{way}_{b}", f'r = x.to(tl.{LANGUAGE[b]}, fp_downcast_rounding="{way}")',
                       ["f32"], b, values="small",
                       want=lambda x, b=b, way=way: rounded(x, DTYPES[b], way))  # fmt: skip
    return table


def wrapped(value):
    return value - (1 << 32) if value >> 31 else value


def rounded(x, dtype, way):
    near = x.to(dtype)
    if way == "rtne":
        return near
    bits = near.view(torch.int16)
    return torch.where(near.double().abs() > x.double().abs(), bits - 1, bits).view(dtype)


def to_float8(x, dtype):
    """Nearest even, what is too large saturated, as `cvt.rn.satfinite` does; NaN stays NaN."""
    most = torch.finfo(dtype).max
    return torch.where(x.isnan(), x, x.clamp(-most, most)).to(dtype)


def add_float8(table):
    for f8 in ("f8e4m3fn", "f8e5m2"):
        for wide in ("f32", "f16", "bf16"):
            # Triton's code for e5m2 to bf16 gives finite numbers for infinities and NaNs, against the format.
            finite = (
                {"gpu_defined": lambda x: x.float().isfinite()} if (f8, wide) == ("f8e5m2", "bf16") else {}
            )
            table.tile(f"float8_{f8}_{wide}", f"r = x.to(tl.{LANGUAGE[wide]})", [f8], wide, (256,),
                       values="patterns",
                       want=lambda x, wide=wide: x.to(DTYPES[wide]), **finite)  # fmt: skip
        for wide in ("f16", "bf16"):  # every number there is
            table.tile(f"float8_{wide}_{f8}", f"r = x.to(tl.{LANGUAGE[f8]})", [wide], f8, (65536,),
                       values="patterns",
                       want=lambda x, f8=f8: to_float8(x.float(), DTYPES[f8]))  # fmt: skip
            table.tile(f"float8_f32_{wide}_{f8}", f"r = x.to(tl.float32).to(tl.{LANGUAGE[f8]})", [wide], f8,
                       (65536,), values="patterns",
                       want=lambda x, f8=f8: to_float8(x.float(), DTYPES[f8]))  # fmt: skip
        table.tile(
            f"float8_random_{f8}",
            f"r = x.to(tl.{LANGUAGE[f8]})",
            ["f32"],
            f8,
            (16384,),
            want=lambda x, f8=f8: to_float8(x, DTYPES[f8]),
        )
    table.tile(
        "float8_widen_f16",
        "r = x.to(tl.float32)",
        ["f16"],
        "f32",
        (65536,),
        values="patterns",
        want=lambda x: x.float(),
    )
    table.tile(
        "float8_widen_bf16",
        "r = x.to(tl.float32)",
        ["bf16"],
        "f32",
        (65536,),
        values="patterns",
        want=lambda x: x.float(),
    )


COMBINES = """
@triton.jit
def log_add(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def merge(ma, sa, ca, mb, sb, cb):
    c = ca + cb
    d = mb - ma
    return ma + d * (cb / c), sa + sb + d * d * (ca * cb / c), c


@triton.jit
def first_of_equal(va, ia, vb, ib):
    better = (va > vb) | ((va == vb) & (ia < ib))
    return tl.where(better, va, vb), tl.where(better, ia, ib)


@triton.jit
def linear(ga, xa, gb, xb):
    return ga * gb, gb * xa + xb


@triton.jit
def last_nonzero(a, b):
    return tl.where(b == 0, a, b)


"""


def add_reductions(table):
    for t in ("f32", "f16", "f64", "i8", "i32", "i64", "u32"):
        is_float = t[0] == "f"
        for shape in ((64,), (8, 16), (16, 8), (4, 8, 2), (1, 32), (1024,)):
            for axis in range(len(shape)):
                out = tuple(s for d, s in enumerate(shape) if d != axis)
                tag = f"{t}_{'x'.join(map(str, shape))}_{axis}"
                values = "normal" if is_float else "small"
                slow = t not in ("f32", "i32") and shape != (8, 16)
                close = dict(
                    atol={"f32": 1e-5, "f64": 1e-12, "f16": 0.15}.get(t, 0), ulps=2 if is_float else 0
                )
                narrow = t in ("i8",)  # Triton sums them in i32
                table.tile(
                    f"reduce_sum_{tag}",
                    f"r = tl.sum(x, {axis})",
                    [t],
                    "i32" if narrow else t,
                    shape,
                    out,
                    values=values,
                    slow=slow,
                    **close,
                )
                for op in ("max", "min"):
                    table.tile(
                        f"reduce_{op}_{tag}",
                        f"r = tl.{op}(x, {axis})",
                        [t],
                        "i32" if narrow else t,
                        shape,
                        out,
                        values=values,
                        slow=slow,
                    )
                for op in ("argmax", "argmin"):  # few values: many ties, of which the first counts
                    table.tile(f"reduce_{op}_{tag}", f"r = tl.{op}(x, {axis})", [t], "i32", shape, out,
                               values="whole" if is_float else "few", slow=slow,
                               want=lambda x, op=op, axis=axis: first_extreme(x, op, axis))  # fmt: skip
                table.tile(f"scan_cumsum_{tag}", f"r = tl.cumsum(x, {axis})", [t], "i32" if narrow else t,
                           shape, values=values, slow=slow,
                           want=(lambda x, axis=axis: x.cumsum(axis, dtype=torch.int32)) if narrow else None,
                           **close)  # fmt: skip
    for t in ("i8", "i32", "i64"):
        table.tile(
            f"reduce_xor_{t}",
            "r = tl.xor_sum(x, 0)",
            [t],
            t,
            (64,),
            (),
            values="integers",
            want=lambda x: folded(x, torch.bitwise_xor),
        )
        table.tile(
            f"reduce_or_{t}",
            "r = tl.reduce_or(x, 0)",
            [t],
            t,
            (64,),
            (),
            values="few",
            want=lambda x: folded(x, torch.bitwise_or),
        )
    table.tile("reduce_all_f32", "r = tl.sum(x)", ["f32"], "f32", (8, 16), (), atol=1e-5)
    table.tile(
        "reduce_keep_f32", "r = tl.sum(x, 1, keep_dims=True)", ["f32"], "f32", (8, 16), (8, 1), atol=1e-5
    )
    table.tile(
        "reduce_maxwith_f32",
        "v, k = tl.max(x, 1, return_indices=True)\nr = v * 100 + k",
        ["f32"],
        "f32",
        (8, 16),
        (8,),
        values="whole",
    )
    table.tile("reduce_minright_i32",
               "v, k = tl.min(x, 1, return_indices=True, return_indices_tie_break_left=True)\nr = v * 100 "
               "+ k", ["i32"], "i32",
               (8, 16), (8,), values="few", want=lambda x: (x.min(1).values * 100 + first_extreme(x,
                   "argmin", 1)).to(torch.int32))  # fmt: skip
    table.tile("scan_cumprod_f32", "r = tl.cumprod(x * 0.1 + 1, 0)", ["f32"], "f32", atol=1e-5)
    for shape, axis in (((64,), 0), ((8, 16), 1), ((8, 16), 0)):
        table.tile(
            f"scan_reverse_{len(shape)}{axis}_f32",
            f"r = tl.cumsum(x, {axis}, reverse=True)",
            ["f32"],
            "f32",
            shape,
            atol=1e-5,
        )
    # Regions of one's own.
    table.tile(
        "custom_logadd_f32",
        "r = tl.reduce(x, 1, log_add)",
        ["f32"],
        "f32",
        (8, 16),
        (8,),
        want=lambda x: x.double().logsumexp(1).float(),
        ulps=4,
        atol=1e-6,
    )
    table.tile("custom_welford_f32",
               "m, s, k = tl.reduce((x, x * 0, x * 0 + 1), 1, merge)\nr = m + 10 * s / k", ["f32"], "f32",
               (8, 16), (8,),
               want=lambda x: (x.double().mean(1) + 10 * x.double().var(1, unbiased=False)).float(),
               atol=2e-5)  # fmt: skip
    table.tile("custom_first_i32", "v, k = tl.reduce((x, tl.broadcast_to(tl.arange(0, 16)[None, :], (8, "
                                   "16))), 1, first_of_equal)\nr = v * 100 + k", ["i32"],
               "i32", (8, 16), (8,), values="few", want=lambda x: (x.max(1).values * 100 + first_extreme(x,
                   "argmax", 1)).to(torch.int32))  # fmt: skip
    table.tile("custom_linear_f32", "g, r = tl.associative_scan((x * 0.2, y), 1, linear)", ["f32", "f32"],
               "f32", (8, 16),
               want=linear_recurrence, atol=1e-5)  # fmt: skip
    table.tile("custom_linearback_f32", "g, r = tl.associative_scan((x * 0.2, y), 1, linear, reverse=True)",
               ["f32", "f32"], "f32", (8, 16),
               want=lambda x, y: linear_recurrence(x.flip(1), y.flip(1)).flip(1), atol=1e-5)  # fmt: skip
    table.tile(
        "custom_fill_i32",
        "r = tl.associative_scan(tl.where(x > 1, x, 0), 0, last_nonzero)",
        ["i32"],
        "i32",
        (64,),
        values="few",
        want=filled,
    )
    for case in table.cases:
        if case.name.startswith("custom_"):
            case.helpers = ""


def first_extreme(x, op, axis):
    x = x.double() if x.dtype.is_floating_point else x.to(torch.int64)
    best = (x.max(axis, keepdim=True) if op == "argmax" else x.min(axis, keepdim=True)).values
    return (x == best).to(torch.int32).argmax(axis).to(torch.int32)


def folded(x, op):
    r = x[0]
    for v in x[1:]:
        r = op(r, v)
    return r


def linear_recurrence(x, y):
    out, h = [], torch.zeros(x.shape[0], dtype=torch.float64)
    for k in range(x.shape[1]):
        h = x[:, k].double() * 0.2 * h + y[:, k].double()
        out.append(h)
    return torch.stack(out, 1).float()


def filled(x):
    out, last = [], 0
    for k, v in enumerate(x.tolist()):
        v = v if v > 1 else 0
        last = v if v != 0 or k == 0 else last
        out.append(last)
    return torch.tensor(out, dtype=torch.int32)


def add_shapes(table):
    for t in ("f32", "i32", "f16", "i64", "i8"):
        values = "integers" if t[0] == "i" else "normal"
        for shape in ((64,), (4, 16), (2, 4, 8)):
            tag = f"{t}_{'x'.join(map(str, shape))}"
            slow = t in ("i8", "i64") and len(shape) > 1
            table.tile(
                f"sort_up_{tag}",
                "r = tl.sort(x)",
                [t],
                t,
                shape,
                values=values,
                slow=slow,
                want=lambda x: x.sort(-1).values,
            )
            table.tile(
                f"sort_down_{tag}",
                "r = tl.sort(x, descending=True)",
                [t],
                t,
                shape,
                values=values,
                slow=slow,
                want=lambda x: x.sort(-1, descending=True).values,
            )
        table.tile(
            f"topk_{t}",
            "r = tl.topk(x, 4)",
            [t],
            t,
            (4, 16),
            (4, 4),
            values=values,
            want=lambda x: x.topk(4, -1).values,
        )
        table.tile(f"flip_{t}", "r = tl.flip(x, 0)", [t], t, values=values)
    for t in ("f32", "f16", "bf16", "i8", "i64"):
        v = "normal" if t in FLOATS else "small"
        table.tile(f"shape_trans_{t}", "r = tl.trans(x)", [t], t, (8, 16), (16, 8), values=v)
        table.tile(
            f"shape_permute_{t}", "r = tl.permute(x, (2, 0, 1))", [t], t, (4, 8, 2), (2, 4, 8), values=v
        )
        table.tile(f"shape_reshape_{t}", "r = tl.reshape(x, (4, 32))", [t], t, (8, 16), (4, 32), values=v)

        table.tile(f"shape_ravel_{t}", "r = tl.ravel(x)", [t], t, (8, 16), (128,), values=v)
        table.tile(f"shape_join_{t}", "r = tl.join(x, y)", [t, t], t, (16,), (16, 2), values=v)
        table.tile(f"shape_join2_{t}", "r = tl.join(x, y)", [t, t], t, (4, 16), (4, 16, 2), values=v)
        # can_reorder, without which there is no tl.cat: the result is a multiset.
        table.tile(
            f"shape_cat_{t}",
            "r = tl.cat(x, y, can_reorder=True)",
            [t, t],
            t,
            (16,),
            (32,),
            values=v,
            want=lambda x, y: torch.cat([x, y]),
            unordered=True,
        )
        table.tile(f"shape_interleave_{t}", "r = tl.interleave(x, y)", [t, t], t, (16,), (32,), values=v)
        table.tile(f"shape_split_{t}", "p, q = tl.split(x)\nr = tl.join(q, p)", [t], t, (16, 2), values=v)
        table.tile(
            f"shape_broadcast_{t}",
            "r = tl.broadcast_to(x[:, None], (16, 4))",
            [t],
            t,
            (16,),
            (16, 4),
            values=v,
        )
        table.tile(f"shape_expand_{t}", "r = tl.expand_dims(x, 0) + tl.zeros((2, 16), x.dtype)", [t], t,
                   (16,), (2, 16), values=v,
                   want=lambda x: x.expand(2, 16))  # fmt: skip
        table.tile(
            f"shape_gather_{t}",
            "r = tl.gather(x, tl.abs(y) % 64, 0)",
            [t, "i32"],
            t,
            values=v if v == "small" else ["normal", "small"],
        )
        table.tile(
            f"shape_gather1_{t}",
            "r = tl.gather(x, tl.abs(y) % 16, 1)",
            [t, "i32"],
            t,
            (8, 16),
            values=v if v == "small" else ["normal", "small"],
        )
        table.tile(
            f"shape_gather0_{t}",
            "r = tl.gather(x, tl.abs(y) % 8, 0)",
            [t, "i32"],
            t,
            (8, 16),
            values=v if v == "small" else ["normal", "small"],
        )
    table.tile(
        "histogram_i32", "r = tl.histogram(tl.abs(x) % 16, 16)", ["i32"], "i32", (64,), (16,), values="small"
    )
    table.tile("histogram_one_i32", "r = tl.histogram(x * 0, 4)", ["i32"], "i32", (64,), (4,), values="small")
    table.tile("histogram_masked_i32", "r = tl.histogram(tl.abs(x) % 16, 16, mask=i < 37)", ["i32"], "i32",
               (64,), (16,), values="small",
               want=lambda x: torch.bincount((x.abs() % 16)[:37].long(),
                   minlength=16).to(torch.int32))  # fmt: skip


def add_control(table):
    def tile(name, body, inputs, output, **k):
        table.tile("control_" + name, body, inputs, output, **k)

    tile("loop", "r = x\nfor k in range(n):\n    r = r * 0.5 + y * k", ["f32", "f32"], "f32", atol=1e-5)
    tile(
        "loop_step",
        "r = x\nfor k in range(1, n * 3, 4):\n    r += k * y",
        ["i32", "i32"],
        "i32",
        values="small",
    )
    tile("loop_down", "r = x\nfor k in range(n, -3, -2):\n    r = r * 3 + k", ["i32"], "i32", values="small")
    tile("loop_none", "r = x\nfor k in range(n, n):\n    r += 1", ["i32"], "i32", values="small")
    tile(
        "loop_nested",
        "r = x\nfor k in range(n):\n    for j in range(k, n):\n        r = r * 2 + j * k",
        ["i32"],
        "i32",
        values="small",
    )
    tile(
        "static_range",
        "r = x\nfor k in tl.static_range(4):\n    r = r * 3 + k",
        ["i32"],
        "i32",
        values="small",
    )
    tile("branch", "if n > 3:\n    r = x + 1\nelse:\n    r = y * 2", ["f32", "f32"], "f32")
    tile(
        "branch_data",
        "r = x\nif tl.max(x, 0) > tl.max(y, 0):\n    r = x * 2\nelif tl.sum(y, 0) > 0:\n    r = y",
        ["f32", "f32"],
        "f32",
    )
    tile("while", "k = 0\nr = x\nwhile k < n:\n    r += k\n    k += 2", ["i32"], "i32", values="small")
    tile("while_data", "r = x\nwhile tl.max(r, 0) > 3:\n    r = r // 2", ["i32"], "i32", values="small")
    tile("assume", "tl.assume(n > 0)\nr = x // n", ["i32"], "i32", values="small")
    tile(
        "swap", "r = x\ns = y\nfor k in range(n):\n    r, s = s, r + s", ["i32", "i32"], "i32", values="small"
    )
    tile("index", "r = (i // 7) * 3 + i % 5 + (i < n).to(tl.int32)", ["i32"], "i32", values="small")
    tile("index_wide", "j = (i.to(tl.int64) << 20) * 4099\nr = (j >> 13) ^ x", ["i64"], "i64", values="small")
    for name, body, out in (("rand", "tl.rand(n, i)", "f32"), ("randn", "tl.randn(n, i)", "f32"),
                            ("randint", "tl.randint(n, i)", "u32"),
                            ("randint64", "tl.randint(n, i.to(tl.int64))", "u32")):  # fmt: skip
        loose = (
            dict(atol=1e-4, gpu_atol=1e-4) if name == "randn" else dict(gpu_ulps=2) if name == "rand" else {}
        )
        tile(
            name,
            f"r = {body}",
            [out],
            out,
            shape=(256,),
            values="normal" if out == "f32" else "integers",
            **loose,
        )
    tile("rand4x", "p, q, s, t = tl.rand4x(n, i)\nr = p + 2 * q + 4 * s + 8 * t", ["f32"], "f32", atol=1e-6)
    tile(
        "randint4x", "p, q, s, t = tl.randint4x(n, i)\nr = p ^ (q + s) ^ t", ["u32"], "u32", values="integers"
    )


def add_memory(table):
    def tile(name, body, inputs, output, *rest, **k):
        table.tile("memory_" + name, body, inputs, output, *rest, **k)

    for t in ("f32", "f16", "i8", "i64", "i32"):
        v = "normal" if t in FLOATS else "small"
        tile(
            f"masked_{t}",
            "r = tl.load(a + i, mask=i < n * 4, other=-3) + tl.load(a + 63 - i, mask=i >= 60, other=1)",
            [t],
            t,
            values=v,
        )
        tile(f"masked_none_{t}", "r = tl.load(a + i, mask=i > 100, other=-3)", [t], t, values=v)
        tile(
            f"masked_2d_{t}",
            "m = (tl.arange(0, 8)[:, None] < n) & (tl.arange(0, 8)[None, :] > 2)\nr = tl.load(a + i, mask=m,"
            " other=7)",
            [t],
            t,
            (8, 8),
            values=v,
        )
        tile(
            f"masked_or_{t}",
            "m = (tl.arange(0, 8)[:, None] < n) | (tl.arange(0, 8)[None, :] > 2)\nr = tl.load(a + i, mask=m,"
            " other=7)",
            [t],
            t,
            (8, 8),
            values=v,
        )
        tile(
            f"masked_not_{t}",
            "m = ~((tl.arange(0, 8)[:, None] < n) & (tl.arange(0, 8)[None, :] > 2))\nr = tl.load(a + i,"
            " mask=m, other=7)",
            [t],
            t,
            (8, 8),
            values=v,
        )
        tile(
            f"diagonal_{t}",
            "m = tl.arange(0, 8)[:, None] >= tl.arange(0, 8)[None, :]\nr = tl.load(a + i, mask=m, other=7)",
            [t],
            t,
            (8, 8),
            values=v,
        )
        tile(f"other_tile_{t}", "r = tl.load(a + i, mask=i % 3 == 0, other=y)", [t, t], t, values=v)
        tile(f"strided_{t}", "r = tl.load(a + (i * 3) % 64)", [t], t, values=v)
        tile(f"backward_{t}", "r = tl.load(a + 63 - i)", [t], t, values=v)
        tile(f"every_other_{t}", "r = tl.load(a + i // 2 * 2)", [t], t, values=v)
        tile(
            f"transposed_{t}",
            "r = tl.load(a + tl.arange(0, 8)[:, None] + tl.arange(0, 8)[None, :] * 8)",
            [t],
            t,
            (8, 8),
            values=v,
        )
        tile(f"one_for_all_{t}", "r = tl.load(a + n) + x * 0", [t], t, values=v)
        tile(f"indirect_{t}", "r = tl.load(a + y)", [t, "i32"], t, values=[v, "index"])
    for t in ("f32", "i32", "f16"):
        v = "normal" if t in FLOATS else "small"
        ins, outs = [(t, (8, 16), v)], [(t, (8, 16), "zeros")]
        tile(f"store_masked_{t}", "r = x", [t], t, values=v)
        table.add(f"memory_store_2d_{t}", "r = tl.arange(0, 8)[:, None]\nk = tl.arange(0, 16)[None, :]\n"
                  "tl.store(o + r * 16 + k, tl.load(a + r * 16 + k), mask=(r < n) & (k % 2 == 1))", ins,
                  outs)  # fmt: skip
        table.add(f"memory_store_transposed_{t}",
                  "r = tl.arange(0, 8)[:, None]\nk = tl.arange(0, 16)[None, :]\n"
                  "tl.store(o + k * 8 + r, tl.load(a + r * 16 + k))",
                  ins, outs)  # fmt: skip
        table.add(f"memory_store_scalar_{t}", "tl.store(o + n, tl.load(a + 2))", ins, outs)
        table.add(
            f"memory_store_uniform_{t}",
            "tl.store(o + tl.arange(0, 16), tl.load(a + 2), mask=tl.arange(0, 16) < n)",
            ins,
            outs,
        )
        table.add(
            f"memory_store_scattered_{t}",
            "k = tl.arange(0, 128)\ntl.store(o + (k * 37) % 128, tl.load(a + k))",
            ins,
            outs,
        )
        for order in ("(1, 0)",):
            load = f"p1 = tl.make_block_ptr(a, (8, 16), (16, 1), (%s, %s), (4, 8), {order})\n"
            block = f"p2 = tl.make_block_ptr(o, (8, 16), (16, 1), (0, 0), (4, 8), {order})\n"
            table.add(f"block_inside_{t}", load % (2, 4) + block + "tl.store(p2, tl.load(p1))", ins, outs)
            table.add(
                f"block_checked_{t}",
                load % (6, 12)
                + block
                + 'tl.store(p2, tl.load(p1, boundary_check=(0, 1), padding_option="zero"))',
                ins,
                outs,
            )
            table.add(f"block_advanced_{t}",
                      load % (0, 0) + block + "for k in range(0, 2):\n    tl.store(p2, tl.load(p1, "
                                              "boundary_check=(0,)), boundary_check=(0,))\n"
                      "    p1 = tl.advance(p1, (3, 8))\n    p2 = tl.advance(p2, (4, 4))", ins,
                      outs)  # fmt: skip
            table.add(f"block_edge_{t}", load % (0,
                      0) + "p2 = tl.make_block_ptr(o, (7, 13), (16, 1), (4, 8), (4, 8), (1, 0))\n"
                      "tl.store(p2, tl.load(p1), boundary_check=(0, 1))", ins, outs)  # fmt: skip
        if t != "i32":
            table.add(
                f"block_nan_{t}",
                load % (6, 12)
                + block
                + 'tl.store(p2, tl.load(p1, boundary_check=(0, 1), padding_option="nan"))',
                ins,
                outs,
            )
        make = (
            "d = tl.make_tensor_descriptor(a, [8, 16], [16, 1], [4, 16])\ne = tl.make_tensor_descriptor(o,"
            " [8, 16], [16, 1], [4, 16])\n"
        )
        table.add(f"descriptor_copy_{t}", make + "e.store([0, 0], d.load([4, 0]))", ins, outs)
        table.add(
            f"descriptor_past_{t}",
            make + "e.store([2, 0], d.load([6, 0]))\ne.store([6, 0], d.load([-2, 0]))",
            ins,
            outs,
        )
        table.add(
            f"descriptor_column_{t}",
            make + "e.store([0, 0], d.load([0, 8]))\ne.store([4, 8], d.load([1, 0]))",
            ins,
            outs,
        )
        table.add(f"descriptor_cube_{t}",
                  "d = tl.make_tensor_descriptor(a, [2, 4, 16], [64, 16, 1], [1, 4, 16])\n"
                  "e = tl.make_tensor_descriptor(o, [2, 4, 16], [64, 16, 1], [1, 4, 16])\n"
                  "e.store([0, 0, 0], d.load([1, 1, 0]))", ins, outs)  # fmt: skip
        table.add(f"descriptor_gather_{t}",
                  "d = tl.make_tensor_descriptor(a, [8, 16], [16, 1], [1, 16])\n"
                  "rows = (tl.arange(0, 8) * 3) % 8\n"
                  "tl.store(o + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], d.gather(rows, "
                  "0))", ins, outs)  # fmt: skip
        table.add(f"descriptor_scatter_{t}",
                  "e = tl.make_tensor_descriptor(o, [8, 16], [16, 1], [1, 16])\n"
                  "rows = (tl.arange(0, 8) * 3) % 8\n"
                  "e.scatter(tl.load(a + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]), rows, "
                  "0)", ins, outs)  # fmt: skip
    into = [("i32", (8, 16), "small")]
    for op, f in {
        "add": torch.add,
        "min": torch.minimum,
        "max": torch.maximum,
        "and": torch.bitwise_and,
        "or": torch.bitwise_or,
        "xor": torch.bitwise_xor,
    }.items():
        table.add(f"descriptor_atomic_{op}", "e = tl.make_tensor_descriptor(o, [8, 16], [16, 1], [4, 16])\n"
                  f"e.atomic_{op}([4, 0], tl.load(a + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, "
                  f":]))", [("i32", (8, 16), "small")], into,
                  want=lambda x, o, f=f: torch.cat([o[:4], f(o[4:], x[:4])]))  # fmt: skip


def add_atomics(table):
    """Every kind by type, under no mask, a mask, and where many lanes meet at one address; the old values,
    too."""
    simple = {"add": lambda o, v: o + v, "max": torch.maximum, "min": torch.minimum,
              "and": torch.bitwise_and, "or": torch.bitwise_or,
              "xor": torch.bitwise_xor, "xchg": lambda o, v: v}  # fmt: skip
    types = {"add": ("i32", "u32", "i64", "u64", "f32", "f64", "f16", "bf16"),
             "max": ("i32", "u32", "i64", "u64", "f32", "f64"),
             "min": ("i32", "u32", "i64", "u64", "f32", "f64"), "and": ("i32", "i64", "u32"),
             "or": ("i32", "i64", "u32"), "xor": ("i32", "i64", "u32"),
             "xchg": ("i32", "i64", "f32", "f64")}  # fmt: skip

    def signed(f):  # PyTorch has no maximum of u32 and u64
        def call(o, v):
            wide = torch.int64 if o.dtype in (torch.uint32, torch.uint64) else o.dtype
            return f(o.to(wide), v.to(wide)).to(o.dtype)

        return call

    for op, of in types.items():
        f = signed(simple[op])
        for t in of:
            v = "normal" if t in FLOATS else "small"
            ins, outs = [(t, (64,), v)], [(t, (64,), v), (t, (64,), None)]
            table.add(f"atomic_{op}_{t}", f"i = tl.arange(0, 64)\ntl.store(p + i, tl.atomic_{op}(o + i, "
                                          f"tl.load(a + i)))", ins, outs,
                      want=lambda x, o, f=f: (f(o, x), o))  # fmt: skip
            table.add(f"atomic_{op}_masked_{t}",
                      f"i = tl.arange(0, 64)\nm = i % 3 < 2\n"
                      f"tl.store(p + i, tl.atomic_{op}(o + i, tl.load(a + i), mask=m), mask=m)\n"
                      "tl.store(p + i, tl.load(a + i), mask=i % 3 == 2)", ins, outs,
                      want=lambda x, o, f=f: tuple(torch.where(torch.arange(64) % 3 < 2, y.double(),
                          z.double()).to(x.dtype) for y, z in ((f(o, x), o), (o, x))))  # fmt: skip
            table.add(f"atomic_{op}_scalar_{t}",
                      f'old = tl.atomic_{op}(o + n, tl.load(a + 1), sem="relaxed")\ntl.store(p, old)', ins,
                      [outs[0], (t, (1,), None)],
                      want=lambda x, o, f=f: (torch.cat([o[:N], f(o[N:N + 1], x[1:2]), o[N + 1:]]),
                          o[N:N + 1]))  # fmt: skip
            if op != "xchg" and t not in ("f16", "bf16"):
                table.add(f"atomic_{op}_shared_{t}",
                          f"i = tl.arange(0, 64)\ntl.atomic_{op}(o + i % 4, tl.load(a + i))", ins,
                          [(t, (64,), v)],
                          want=lambda x, o, f=f: shared(f, o, x),
                          atol=1e-5 if t in ("f32", "f64") else 0)  # fmt: skip
    for t in ("i32", "i64", "i16"):
        table.add(f"atomic_cas_{t}", "i = tl.arange(0, 64)\ntl.store(p + i, tl.atomic_cas(o + i, tl.load(b + "
                                     "i), tl.load(a + i)))",
                  [(t, (64,), "few"), (t, (64,), "few")], [(t, (64,), "few"), (t, (64,), None)],
                  want=lambda x, y, o: (torch.where(o == y, x, o), o))  # fmt: skip
        table.add(f"atomic_cas_scalar_{t}", "tl.store(p, tl.atomic_cas(o, tl.load(b), tl.load(a)))",
                  [(t, (1,), "few"), (t, (1,), "few")],
                  [(t, (1,), "few"), (t, (1,), None)], want=lambda x, y,
                  o: (torch.where(o == y, x, o), o))  # fmt: skip


def shared(f, o, x):
    o = o.clone()
    for k in range(64):
        o[k % 4 : k % 4 + 1] = f(o[k % 4 : k % 4 + 1], x[k : k + 1])
    return o


FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def scaled_operand(words, kind, scale, compute):
    """words: [rows, k] in `kind` (e2m1: two to a byte, the low half first); scale: [rows, k / 32], exponents
    with a bias of 127.

    A GPU without scaled matrix units multiplies in `compute`, bf16 or fp16, whose range is then the scale's.
    """
    if kind == "e2m1":
        w = words.view(torch.uint8).long()
        x = torch.stack([FP4[w & 15], FP4[w >> 4]], -1).reshape(w.shape[0], -1)
    elif kind in ("e4m3", "e5m2"):
        x = words.view(torch.float8_e4m3fn if kind == "e4m3" else torch.float8_e5m2).double()
    else:
        x = words.double()
    if scale is not None:
        x = x.to(compute) * torch.exp2(scale.double() - 127).to(compute).repeat_interleave(
            x.shape[1] // scale.shape[1], 1
        )
    return x.to(compute).double()


def add_dots(table):
    for a, out, atol in (
        ("f32", "f32", 1e-4),
        ("f16", "f32", 1e-3),
        ("bf16", "f32", 1e-3),
        ("f64", "f64", 1e-12),
    ):
        for m, n, k in ((16, 16, 32), (32, 16, 16), (64, 32, 64)):
            double = ", out_dtype=tl.float64" if a == "f64" else ""
            table.add(f"dot_{a}_{m}x{n}x{k}",
                      f"x = tl.load(a + ({index((m, k))}))\ny = tl.load(b + ({index((k, n))}))\n"
                      f"tl.store(o + ({index((m, n))}), tl.dot(x, y, input_precision='ieee'{double}))",
                      [(a, (m, k), "normal"), (a, (k, n), "normal")],
                      [(out, (m, n), None)], want=lambda x, y,
                      out=out: (x.double() @ y.double()).to(DTYPES[out]), atol=atol)  # fmt: skip
    for precision, atol in (("tf32", 0.05), ("tf32x3", 2e-5), ("bf16x3", 3e-3), ("bf16x6", 5e-5)):
        table.tile(f"dot_{precision}", f"r = tl.dot(x, tl.trans(y), input_precision='{precision}')",
                   ["f32", "f32"], "f32", (16, 32), (16, 16),
                   want=lambda x, y: (x.double() @ y.double().T).float(), atol=atol)  # fmt: skip
    table.tile(
        "dot_accumulate",
        "r = tl.dot(x, y, x, input_precision='ieee')",
        ["f32", "f32"],
        "f32",
        (16, 16),
        want=lambda x, y: (x.double() @ y.double() + x.double()).float(),
        atol=1e-4,
    )
    table.tile("dot_out_f16", "r = tl.dot(x, tl.trans(y), out_dtype=tl.float16)", ["f16", "f16"], "f16",
               (16, 32), (16, 16),
               want=lambda x, y: (x.double() @ y.double().T).half(), atol=0.06)  # fmt: skip
    table.tile(
        "dot_batched",
        "r = tl.dot(x, tl.permute(y, (0, 2, 1)), input_precision='ieee')",
        ["f32", "f32"],
        "f32",
        (2, 16, 16),
        atol=1e-4,
    )
    table.tile("dot_i8", "r = tl.dot(x, tl.trans(y))", ["i8", "i8"], "i32", (16, 32), (16, 16),
               values="integers",
               want=lambda x, y: (x.long() @ y.long().T).to(torch.int32))  # fmt: skip
    for f8 in ("f8e4m3fn", "f8e5m2"):
        table.tile(
            f"dot_{f8}",
            "r = tl.dot(x, tl.trans(y))",
            [f8, f8],
            "f32",
            (32, 32),
            want=lambda x, y: (x.double() @ y.double().T).float(),
            atol=2e-2,
        )
    kinds = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
    words = {
        "e2m1": ("u8", "integers"),
        "e4m3": ("u8", "float8"),
        "e5m2": ("u8", "float8"),
        "bf16": ("bf16", "normal"),
        "fp16": ("f16", "normal"),
    }
    m, n, k = 32, 32, 64
    for left in kinds:
        for right in kinds:
            for scales in ("both", "left"):
                if scales == "left" and right not in ("bf16", "fp16"):
                    continue
                if scales == "both" and right in ("bf16", "fp16"):
                    continue
                if left in ("bf16", "fp16") and (right != "e2m1" and left == right or scales == "left"):
                    continue
                ka, kb = k // (2 if left == "e2m1" else 1), k // (2 if right == "e2m1" else 1)
                body = [
                    f"x = tl.load(a + ({index((m, ka))}))",
                    f"y = tl.load(b + ({index((n, kb))}))",
                    f"s = tl.load(c + ({index((m, k // 32))}))",
                ]
                body.append(f"t = tl.load(d + ({index((n, k // 32))}))")
                sides = (
                    ("None" if left in ("bf16", "fp16") else "s"),
                    ("None" if right in ("bf16", "fp16") else "t"),
                )
                body.append(
                    f"tl.store(o + ({index((m, n))}), tl.dot_scaled(x, {sides[0]}, '{left}', tl.trans(y),"
                    f" {sides[1]}, '{right}'))"
                )

                def want(x, y, s, t, left=left, right=right, sides=sides):
                    compute = torch.float16 if "fp16" in (left, right) else torch.bfloat16
                    p = scaled_operand(x, left, None if sides[0] == "None" else s, compute)
                    q = scaled_operand(y, right, None if sides[1] == "None" else t, compute)
                    return (p @ q.T).float()

                table.add(f"dotscaled_{left}_{right}", "\n".join(body),
                          [(words[left][0], (m, ka), words[left][1]),
                              (words[right][0], (n, kb), words[right][1]),
                          ("u8", (m, k // 32), "scale"), ("u8", (n, k // 32), "scale")],
                          [("f32", (m, n), None)], want=want, ulps=1, atol=2e-6, gpu_atol=1e-3)  # fmt: skip


ASSEMBLY = {
    # name: (assembly, constraints, argument types, result type, pack, want, gpu ulps)
    "tanh": ("tanh.approx.f32 $0, $1;", "=f,f", ["f32"], "f32", 1, torch.tanh, 2**13),
    "ex2": ("ex2.approx.ftz.f32 $0, $1;", "=f,f", ["f32"], "f32", 1, torch.exp2, 4),
    "rcp": ("rcp.approx.ftz.f32 $0, $1;", "=f,f", ["f32"], "f32", 1, lambda x: 1 / x, 4),
    "abs": ("abs.f32 $0, $1;", "=f,f", ["f32"], "f32", 1, torch.abs, 0),
    "add": ("add.f32 $0, $1, $2;", "=f,f,f", ["f32", "f32"], "f32", 1, lambda x, y: x + y, 0),
    "mul": ("{ mul.rn.f32 $0, $1, $2; }", "=f, f, f", ["f32", "f32"], "f32", 1, lambda x, y: x * y, 0),
    "max": ("max.f32 $0, $1, $2;", "=f,f,f", ["f32", "f32"], "f32", 1, torch.maximum, 0),
    "fma": ("fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", ["f32", "f32", "f32"], "f32", 1, lambda x, y,
        z: (x.double() * y.double() + z.double()).float(), 0),
    "constant": ("mul.f32 $0, $1, 0f40490FDB;", "=f,f", ["f32"], "f32", 1,
        lambda x: x * torch.tensor(0x40490FDB, dtype=torch.int32).view(torch.float32), 0),
    "two_steps": ("{\n.reg .f32 t;\nmul.rn.f32 t, $1, $2;\nadd.rn.f32 $0, t, $1;\n}", "=f,f,f",
        ["f32", "f32"], "f32", 1, lambda x, y: x * y + x, 0),
    # Without a rounding modifier ptxas may make one fma of them.
    "contracted": ("{ .reg .f32 t; mul.f32 t, $1, $2; add.f32 $0, t, $1; }", "=f,f,f", ["f32", "f32"], "f32",
        1, lambda x, y: x * y + x, 0),
    "silu": ("{ .reg .f32 t; mul.f32 t, $1, 0fBFB8AA3B; ex2.approx.f32 t, t; add.f32 t, t, 0f3F800000; "
             "rcp.approx.f32 t, t; mul.f32 $0, $1, t; }", "=f,f", ["f32"],
             "f32", 1, lambda x: x * torch.sigmoid(x), 16),
    "relu": ("max.f32 $0, $1, 0f00000000;", "=f,f", ["f32"], "f32", 1, torch.relu, 0),
    "addi": ("add.s32 $0, $1, $2;", "=r,r,r", ["i32", "i32"], "i32", 1, lambda x, y: x + y, 0),
    "shift": ("shl.b32 $0, $1, 3;", "=r,r", ["i32"], "i32", 1, lambda x: x << 3, 0),
    "lop": ("and.b32 $0, $1, $2;", "=r,r,r", ["i32", "i32"], "i32", 1, lambda x, y: x & y, 0),
    "bits": ("{ .reg .b32 t; and.b32 t, $1, 0x7fffffff; mov.b32 $0, t; }", "=r,r", ["f32"], "f32", 1,
        torch.abs, 0),
    "select": ("{ .reg .pred p; setp.gt.f32 p, $1, $2; selp.f32 $0, $1, $2, p; }", "=f,f,f", ["f32", "f32"],
        "f32", 1, torch.maximum, 0),
    "popc": ("popc.b32 $0, $1;", "=r,r", ["i32"], "i32", 1,
        lambda x: torch.tensor([bin(v & 0xFFFFFFFF).count("1") for v in x.tolist()], dtype=torch.int32), 0),
    "cvt": ("cvt.rni.s32.f32 $0, $1;", "=r,f", ["f32"], "i32", 1, lambda x: x.round().to(torch.int32), 0),
    "half": ("add.f16x2 $0, $1, $2;", "=r,r,r", ["f16", "f16"], "f16", 2, lambda x, y: x + y, 0),
    "fma_half": ("fma.rn.f16x2 $0, $1, $2, $2;", "=r,r,r", ["f16", "f16"], "f16", 2, lambda x,
        y: (x.double() * y.double() + y.double()).half(), 0),
}  # fmt: skip


def add_assembly(table):
    for name, (text, constraints, arguments, result, pack, want, gpu_ulps) in ASSEMBLY.items():
        values = "small" if arguments[0] == "i32" else "normal"
        loose = dict(
            ulps=2**14 if name == "tanh" else gpu_ulps,
            gpu_ulps=gpu_ulps,
            gpu_atol=1e-6 if name == "contracted" else None,
        )
        table.tile(f"asm_{name}", f"r = tl.inline_asm_elementwise({text!r}, {constraints!r}, "
                                  f"[{', '.join('xyz'[: len(arguments)])}], dtype=tl.{LANGUAGE[result]}, "
                                  f"is_pure=True, pack={pack})",
                   arguments, result, values=values, want=want, **loose)  # fmt: skip


def all_cases():
    table = Table()
    for add in (
        add_elementwise,
        add_float8,
        add_reductions,
        add_shapes,
        add_control,
        add_memory,
        add_atomics,
        add_dots,
        add_assembly,
    ):
        add(table)
    import libdevice_cases

    libdevice_cases.add(table)
    names = set()
    for case in table.cases:
        if case.name in names or not re.fullmatch(r"\w+", case.name):
            raise SystemExit(f"two cases are named {case.name}")
        names.add(case.name)
    return table.cases


HEADER = (
    "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n" + COMBINES
)
