"""Every overload of every function in Triton's libdevice module, against PyTorch in double precision, mpmath
or integers."""

import inspect
import math
import re

import torch

TYPES = {
    "fp32": "f32",
    "fp64": "f64",
    "int32": "i32",
    "int64": "i64",
    "uint32": "u32",
    "uint64": "u64",
    "int1": "i1",
}
WIDE = torch.float64


def overloads():
    """(function, argument types, symbol, result type)."""
    import triton.language.extra.cuda.libdevice as module

    text = inspect.getsource(module)
    for function, body in re.findall(r"def (\w+)\([^)]*\):(.*?)(?=\n@|\Z)", text, re.S):
        for arguments, symbol, result in re.findall(
            r'\(\s*((?:core\.dtype\("\w+"\),?\s*)+)\):\s*\("(__nv_\w+)",\s*core\.dtype\("(\w+)"\)\)', body
        ):
            yield function, tuple(TYPES[t] for t in re.findall(r'"(\w+)"', arguments)), symbol, TYPES[result]


def precisely(f):
    """A function of doubles from mpmath's, element by element."""

    def call(*tensors):
        import mpmath

        mpmath.mp.prec = 120
        out = []
        for values in zip(*(t.double().tolist() for t in tensors)):
            try:
                out.append(float(f(mpmath, *values)))
            except (ValueError, ZeroDivisionError):
                out.append(math.nan)
        return torch.tensor(out, dtype=WIDE)

    return call


def doubles(f):
    return lambda *t: f(*(v.double() for v in t))


# name: (values, reference); the result is rounded to the overload's type.
PLAIN = {
    "sin": ("normal", "sin"), "cos": ("normal", "cos"), "tan": ("normal", "tan"), "exp": ("normal", "exp"),
    "exp2": ("normal", "exp2"),
    "exp10": ("normal", lambda m, x: m.power(10, x)), "expm1": ("normal", "expm1"),
    "log": ("positive", "log"), "log2": ("positive", "log2"),
    "log10": ("positive", "log10"), "log1p": ("positive", "log1p"), "sinh": ("normal", "sinh"),
    "cosh": ("normal", "cosh"), "tanh": ("normal", "tanh"),
    "asin": ("unit", "asin"), "acos": ("unit", "acos"), "atan": ("normal", "atan"),
    "asinh": ("normal", "asinh"), "acosh": ("above_one", "acosh"),
    "atanh": ("unit", "atanh"), "atan2": ("normal", lambda m, x, y: m.atan2(x, y)),
    "sqrt": ("positive", "sqrt"), "rsqrt": ("positive", "rsqrt"),
    "rsqrt_rn": ("positive", "rsqrt"), "cbrt": ("positive", lambda m, x: m.cbrt(x)),
    "rcbrt": ("positive", lambda m, x: 1 / m.cbrt(x)),
    "hypot": ("normal", lambda m, x, y: m.hypot(x, y)), "rhypot": ("normal", lambda m, x,
        y: 1 / m.hypot(x, y)),
    "norm3d": ("normal", lambda m, *v: m.norm(v)), "rnorm3d": ("normal", lambda m, *v: 1 / m.norm(v)),
    "norm4d": ("normal", lambda m, *v: m.norm(v)), "rnorm4d": ("normal", lambda m, *v: 1 / m.norm(v)),
    "erf": ("normal", "erf"), "erfc": ("normal", "erfc"), "erfinv": ("unit", lambda m, x: m.erfinv(x)),
    "erfcinv": ("unit", lambda m, x: m.erfinv(1 - m.mpf(x))),
    "erfcx": ("normal", lambda m, x: m.exp(m.mpf(x) ** 2) * m.erfc(x)),
    "normcdf": ("normal", lambda m, x: m.ncdf(x)),
    "normcdfinv": ("unit", lambda m, x: m.sqrt(2) * m.erfinv(2 * m.mpf(x) - 1)),
    "lgamma": ("positive", lambda m, x: m.loggamma(x)),
    "tgamma": ("positive", lambda m, x: m.gamma(x)), "j0": ("positive", lambda m, x: m.besselj(0, x)),
    "j1": ("positive", lambda m, x: m.besselj(1, x)),
    "y0": ("positive", lambda m, x: m.bessely(0, x)), "y1": ("positive", lambda m, x: m.bessely(1, x)),
    "jn": ("positive", lambda m, n, x: m.besselj(int(n), x)),
    "yn": ("positive", lambda m, n, x: m.bessely(int(n), x)),
    "cyl_bessel_i0": ("normal", lambda m, x: m.besseli(0, x)),
    "cyl_bessel_i1": ("normal", lambda m, x: m.besseli(1, x)),
    "sinpi": ("normal", lambda m, x: m.sinpi(x)), "cospi": ("normal", lambda m, x: m.cospi(x)),
    "pow": ("positive", lambda m, x, y: m.power(x, y)),
    "fast_sinf": ("unit", "sin"), "fast_cosf": ("unit", "cos"), "fast_tanf": ("unit", "tan"),
    "fast_expf": ("unit", "exp"), "fast_exp10f": ("unit", lambda m, x: m.power(10, x)),
    "fast_logf": ("above_one", "log"), "fast_log2f": ("above_one", "log2"),
    "fast_log10f": ("above_one", "log10"), "fast_powf": ("unit", lambda m, x, y: m.power(x, y)),
    "fast_dividef": ("positive", lambda m, x, y: m.mpf(x) / y),
}  # fmt: skip


def high_word(x, half):
    return ((x.view(torch.int64) + half) & ~0xFFFFFFFF).view(WIDE)


EXACT = {
    "abs": lambda x: x.abs(), "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
    "rint": torch.round, "nearbyint": torch.round,
    "round": lambda x: torch.where((x - x.trunc()).abs() == 0.5, x.trunc() + x.sign(), x.round()),
    "saturatef": lambda x: x.clamp(0, 1),
    "copysign": torch.copysign, "fdim": lambda x, y: (x - y).clamp(min=0), "fmod": torch.fmod,
    "remainder": lambda x, y: torch.tensor([math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist())],
        dtype=x.dtype), "nextafter": torch.nextafter,
    "signbit": lambda x: torch.signbit(x).int(), "isinf": lambda x: x.isinf().int(),
    "isnan": lambda x: x.isnan().int(), "finitef": lambda x: x.isfinite().int(),
    "isfinited": lambda x: x.isfinite().int(), "ldexp": lambda x, k: torch.ldexp(x, k % 8),
    "scalbn": lambda x, k: torch.ldexp(x, k % 8),
    "ilogb": lambda x: x.abs().log2().floor().int(), "logb": lambda x: x.abs().double().log2().floor(),
    "llrint": lambda x: torch.round(x).long(), "llround": lambda x: torch.where((x - x.trunc()).abs() == 0.5,
        x.trunc() + x.sign(), x.round()).long(),
    "float_as_int": lambda x: x.view(torch.int32), "float_as_uint": lambda x: x.view(torch.int32),
    "int_as_float": lambda x: x.view(torch.float32),
    "uint_as_float": lambda x: x.view(torch.float32), "longlong_as_double": lambda x: x.view(WIDE),
    "double_as_longlong": lambda x: x.view(torch.int64),
    "double2loint": lambda x: x.view(torch.int64).to(torch.int32),
    "double2hiint": lambda x: (x.view(torch.int64) >> 32).to(torch.int32),
    "hiloint2double": lambda h, low: ((h.long() << 32) | (low.long() & 0xFFFFFFFF)).view(WIDE),
    "rcp64h": lambda x: high_word(1 / high_word(x, 0), 1 << 31),
}  # fmt: skip


def wrap(value, bits, is_signed):
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> (bits - 1) else value


def byte_perm(x, y, s):
    octets = ((y & 0xFFFFFFFF) << 32 | (x & 0xFFFFFFFF)).to_bytes(8, "little")
    return sum(octets[s >> (4 * k) & 7] << (8 * k) for k in range(4))


INTEGER = {  # on Python's integers, with their width: the result is wrapped to the overload's type
    "clz": lambda w, x: w - (x & ((1 << w) - 1)).bit_length(), "popc": lambda w,
    x: bin(x & ((1 << w) - 1)).count("1"), "byte_perm": lambda w, *v: byte_perm(*v),
    "mulhi": lambda w, x, y: x * y >> w, "mul24": lambda w, x, y: None, "brev": lambda w,
    x: int(format(x & ((1 << w) - 1), f"0{w}b")[::-1], 2),
    "sad": lambda w, x, y, z: abs(x - y) + z, "hadd": lambda w, x, y: (x + y) >> 1, "rhadd": lambda w, x,
    y: (x + y + 1) >> 1,
    "ffs": lambda w, x: 0 if x == 0 else (x & -x).bit_length(),
}  # fmt: skip


def integers(function, types, result):
    width, is_signed = int(types[0][1:]), types[0][0] == "i"

    def call(*tensors):
        from cases import DTYPES

        out = []
        for values in zip(*(t.tolist() for t in tensors)):
            if function == "mul24":
                value = wrap(values[0], 24, is_signed) * wrap(values[1], 24, is_signed)
            else:
                value = INTEGER[function](width, *values)
            out.append(wrap(value, int(result[1:]), result[0] == "i"))
        if result == "u64":
            return torch.tensor([wrap(v, 64, True) for v in out], dtype=torch.int64).view(torch.uint64)
        return torch.tensor(out, dtype=torch.int64).to(DTYPES[result])

    return call


def toward(x, exact, way, dtype):
    """The number of `dtype` next to the exact fraction, in a direction; x is near it."""
    from fractions import Fraction

    one = torch.tensor(x, dtype=dtype)
    step = lambda v, to: torch.nextafter(v, torch.tensor(to, dtype=dtype))  # noqa: E731
    for _ in range(4):
        value = Fraction(one.item())
        if way == "rd" or (way == "rz" and exact > 0):
            if value > exact:
                one = step(one, -math.inf)
            elif Fraction(step(one, math.inf).item()) <= exact:
                one = step(one, math.inf)
        elif way == "ru" or way == "rz":
            if value < exact:
                one = step(one, math.inf)
            elif Fraction(step(one, -math.inf).item()) >= exact:
                one = step(one, -math.inf)
        else:
            below, above = step(one, -math.inf), step(one, math.inf)
            one = min((one, below, above), key=lambda v: abs(Fraction(v.item()) - exact))
    return one


def directed(base, way, result):
    from cases import DTYPES

    def exact(values):
        import mpmath
        from fractions import Fraction

        mpmath.mp.prec = 400
        v = [Fraction(x) for x in values]
        if base == "sqrt":
            root = mpmath.sqrt(mpmath.mpf(v[0].numerator) / v[0].denominator)
            return Fraction(int(root.man), 1) * Fraction(2) ** int(root.exp)
        return {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
                "div": lambda x, y: x / y, "rcp": lambda x: 1 / x,
                "fma": lambda x, y, z: x * y + z}.get(base, lambda x: x)(*v)  # fmt: skip

    def call(*tensors):
        out = []
        for values in zip(*(t.tolist() for t in tensors)):
            value = exact(values)
            if result[0] in "iu":
                whole = {"rz": math.trunc, "rd": math.floor, "ru": math.ceil, "rn": round}[way](value)
                unsigned = re.search(
                    r"2u(int|ll)$", base
                )  # the table calls their results signed; what is negative becomes 0
                out.append(max(whole, 0) if unsigned else whole)
            else:
                out.append(toward(float(value), value, way, DTYPES[result]).item())
        if result[0] in "iu":
            return torch.tensor(out, dtype=torch.int64).to(DTYPES[result])
        return torch.tensor(out, dtype=WIDE).to(DTYPES[result])

    return call


def reference(function, types, result):
    """(values, function of tensors, ulps) or None."""
    from cases import DTYPES

    rounding = re.fullmatch(r"(\w+)_(rn|rz|rd|ru)", function)
    if function in PLAIN:
        values, f = PLAIN[function]
        call = (
            doubles(getattr(torch, f))
            if isinstance(f, str) and result == "f32"
            else precisely(
                (
                    lambda m, x, f=f: (
                        1 / m.sqrt(x)
                        if f == "rsqrt"
                        else (
                            m.log(x, 2) if f == "log2" else m.power(2, x) if f == "exp2" else getattr(m, f)(x)
                        )
                    )
                )
                if isinstance(f, str)
                else f
            )
        )
        return values, lambda *v: call(*v).to(DTYPES[result])
    if function in EXACT:
        return "small" if types[0][0] != "f" or function not in ("asin",) else "unit", lambda *v: EXACT[
            function
        ](*v).to(DTYPES[result])
    if function in INTEGER:
        return "edges", integers(function, types, result)
    if rounding or function == "fma":
        base, way = rounding.groups() if rounding else ("fma", "rn")
        positive = base == "sqrt" or (result[0] == "u")
        return ("positive" if positive else "small"), directed(base, way, result)
    return None


def add(table):
    for function, types, symbol, result in overloads():
        found = reference(function, types, result)
        if found is None:
            raise SystemExit(f"libdevice {function} {types}: there is nothing to compare it with")
        values, want = found
        kinds = [
            (
                values
                if t[0] == "f" or values == "edges"
                else "few"
                if function in ("jn", "yn", "ldexp", "scalbn")
                else "integers"
            )
            for t in types
        ]
        exact = function not in PLAIN
        names = ", ".join("xyzw"[: len(types)])
        name = f"libdevice_{function}_{'_'.join(types)}"
        shape = (32,)
        lines = [f"i = tl.arange(0, {shape[0]})"]
        lines += [f"{v} = tl.load({p} + i)" for v, p in zip("xyzw", "abcd")][: len(types)]
        stored = "i32" if result == "i1" else result
        lines.append(
            f"tl.store(o + i, libdevice.{function}({names}){'.to(tl.int32)' if stored != result else ''})"
        )
        bessel = function in (
            "j0",
            "j1",
            "y0",
            "y1",
            "jn",
            "yn",
            "lgamma",
            "erfcinv",
            "normcdfinv",
        )  # they cross zero
        fast = function.startswith("fast")
        # rcp64h is an approximation by definition: two of the last bits that it keeps.
        if exact:
            close = dict(ulps=0, gpu_ulps=2**33 if function == "rcp64h" else 0)
        elif fast:
            close = dict(ulps=4096, atol=1e-5, gpu_ulps=4096, gpu_atol=1e-5)
        elif bessel:
            single = result == "f32"
            close = dict(ulps=8 if single else 64, atol=2e-6 if single else 1e-13, gpu_ulps=16, gpu_atol=1e-5)
        else:
            close = dict(ulps=8 if function == "rnorm4d" else 4, atol=0, gpu_ulps=16, gpu_atol=0)
        table.add(
            name,
            "\n".join(lines),
            [(t, shape, k) for t, k in zip(types, kinds)],
            [(stored, shape, None)],
            want=want,
            **close,
        )
