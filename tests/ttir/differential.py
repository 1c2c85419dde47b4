"""Operation by operation: the TTIR executor against Triton's own interpreter.

    .venv/bin/python tests/ttir/differential.py [build/release/bin/nereid-ttir-run] [words that a case's name must hold]

Small kernels are written from the tables below, one for each operation, type and shape. One process takes them through
Triton's front end, another runs them in the interpreter and, from their TTIR, in the executor, on the same data. Prints
what differs; exit code 1 where anything does.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HEADER = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"
POINTERS = {"f32": "*fp32", "f16": "*fp16", "bf16": "*bf16", "f64": "*fp64", "i8": "*i8", "i16": "*i16", "i32": "*i32",
            "i64": "*i64", "u8": "*u8", "u32": "*u32"}


class Case:
    """`body` computes `r` from tiles x, y (and z) of `shape`, read from pointers a, b (c), and stores it to o."""

    def __init__(self, name, body, inputs, output, shape=(64,), out_shape=None, values="normal", tolerance=0.0):
        self.name, self.body, self.inputs, self.output = name, body, inputs, output
        self.shape, self.out_shape, self.values, self.tolerance = shape, out_shape or shape, values, tolerance

    def source(self):
        def index(shape):
            terms = []
            for d, size in enumerate(shape):
                after = 1
                for s in shape[d + 1:]:
                    after *= s
                place = ", ".join(":" if k == d else "None" for k in range(len(shape)))
                terms.append(f"tl.arange(0, {size})[{place}] * {after}" if len(shape) > 1 else f"tl.arange(0, {size})")
            return " + ".join(terms) if terms else "0"
        names = "abc"[: len(self.inputs)]
        lines = [f"@triton.jit\ndef {self.name}({', '.join(names)}, o, n):", f"    i = {index(self.shape)}"]
        lines += [f"    {v} = tl.load({p} + i)" for v, p in zip("xyz", names)]
        lines += ["    " + line for line in self.body.split("\n")]
        lines.append(f"    tl.store(o + ({index(self.out_shape)}), r)" if self.out_shape != () else "    tl.store(o, r)")
        return "\n".join(lines) + "\n\n\n"


def cases():
    all_cases = []

    def add(name, *arguments, **keywords):
        all_cases.append(Case(name, *arguments, **keywords))

    floats, integers = ["f32", "f16", "bf16", "f64"], ["i8", "i16", "i32", "i64"]
    for t in floats:
        exact = 0.0 if t in ("f32", "f64") else 0.01
        for op in ("+", "-", "*", "/"):
            add(f"float_{ {'+': 'add', '-': 'sub', '*': 'mul', '/': 'div'}[op]}_{t}", f"r = x {op} y", [t, t], t, tolerance=1e-6 + exact)
        for op in ("maximum", "minimum"):
            add(f"float_{op}_{t}", f"r = tl.{op}(x, y)", [t, t], t)
        for op in ("<", "<=", ">", ">=", "==", "!="):
            word = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}[op]
            add(f"float_{word}_{t}", f"r = (x {op} y).to(tl.int32)", [t, t], "i32")
        add(f"where_{t}", "r = tl.where(x > 0, x, y)", [t, t], t)
        add(f"neg_{t}", "r = -x", [t], t)
        add(f"abs_{t}", "r = tl.abs(x)", [t], t)
    for t in ("f32", "f64"):
        for op in ("exp", "exp2", "sin", "cos", "floor", "ceil", "erf", "sigmoid"):
            add(f"math_{op}_{t}", f"r = tl.{op}(x)", [t], t, tolerance=2e-6)
        for op in ("log", "log2", "sqrt", "rsqrt"):
            add(f"math_{op}_{t}", f"r = tl.{op}(tl.abs(x) + 0.1)", [t], t, tolerance=2e-6)
        add(f"math_fma_{t}", "r = tl.fma(x, y, x)", [t, t], t, tolerance=1e-6)
        add(f"clamp_{t}", "r = tl.clamp(x, -0.5, 0.5)", [t], t)
    for t in integers:
        for op in ("+", "-", "*", "&", "|", "^"):
            word = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}[op]
            add(f"int_{word}_{t}", f"r = x {op} y", [t, t], t, values="integers")
        for op in ("//", "%"):
            add(f"int_{ {'//': 'div', '%': 'rem'}[op]}_{t}", f"r = x {op} tl.where(y == 0, 3, y)", [t, t], t, values="integers")
        for op in ("<<", ">>"):
            add(f"int_{ {'<<': 'shl', '>>': 'shr'}[op]}_{t}", f"r = x {op} (y & 7)", [t, t], t, values="integers")
        for op in ("maximum", "minimum"):
            add(f"int_{op}_{t}", f"r = tl.{op}(x, y)", [t, t], t, values="integers")
        for op in ("<", "==", ">="):
            word = {"<": "lt", ">=": "ge", "==": "eq"}[op]
            add(f"int_{word}_{t}", f"r = (x {op} y).to(tl.int32)", [t, t], "i32", values="integers")
    for op in ("//", "%", ">>"):
        word = {"//": "div", "%": "rem", ">>": "shr"}[op]
        add(f"uint_{word}_u32", f"r = x {op} ((y & 7) + 1)", ["u32", "u32"], "u32", values="integers")
    add("umulhi_u32", "r = tl.umulhi(x, y)", ["u32", "u32"], "u32", values="integers")
    types = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "f64": "float64", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}
    for a in types:
        for b in types:
            if a != b:
                add(f"cast_{a}_{b}", f"r = x.to(tl.{types[b]})", [a], b, values="small")
    for t in ("f32", "i32"):
        for shape in ((64,), (8, 16), (16, 8), (4, 8, 2)):
            for axis in range(len(shape)):
                out = tuple(s for d, s in enumerate(shape) if d != axis)
                tag = f"{t}_{'x'.join(map(str, shape))}_{axis}"
                for op in ("sum", "max", "min"):
                    add(f"reduce_{op}_{tag}", f"r = tl.{op}(x, {axis})", [t], t, shape, out, values="small" if t == "i32" else "normal", tolerance=1e-5)
                for op in ("argmax", "argmin"):
                    add(f"reduce_{op}_{tag}", f"r = tl.{op}(x, {axis})", [t], "i32", shape, out, values="integers" if t == "i32" else "normal")
                add(f"scan_cumsum_{tag}", f"r = tl.cumsum(x, {axis})", [t], t, shape, values="small" if t == "i32" else "normal", tolerance=1e-5)
    add("reduce_xor_i32", "r = tl.xor_sum(x, 0)", ["i32"], "i32", (64,), (), values="integers")
    add("scan_cumprod_f32", "r = tl.cumprod(x * 0.1 + 1, 0)", ["f32"], "f32", tolerance=1e-5)
    add("scan_reverse_f32", "r = tl.cumsum(x, 0, reverse=True)", ["f32"], "f32", tolerance=1e-5)
    for t in ("f32", "i32"):
        add(f"sort_{t}", "r = tl.sort(x)", [t], t, values="integers" if t == "i32" else "normal")
        add(f"sort_down_{t}", "r = tl.sort(x, descending=True)", [t], t, (4, 16), values="integers" if t == "i32" else "normal")
        add(f"flip_{t}", "r = tl.flip(x, 0)", [t], t, values="integers" if t == "i32" else "normal")
    for t in ("f32", "f16", "i8", "i64"):
        v = "normal" if t[0] == "f" else "small"
        add(f"trans_{t}", "r = tl.trans(x)", [t], t, (8, 16), (16, 8), values=v)
        add(f"permute_{t}", "r = tl.permute(x, (2, 0, 1))", [t], t, (4, 8, 2), (2, 4, 8), values=v)
        add(f"reshape_{t}", "r = tl.reshape(x, (4, 32))", [t], t, (8, 16), (4, 32), values=v)
        add(f"join_{t}", "r = tl.join(x, y)", [t, t], t, (16,), (16, 2), values=v)
        add(f"interleave_{t}", "r = tl.interleave(x, y)", [t, t], t, (16,), (32,), values=v)
        add(f"split_{t}", "p, q = tl.split(x)\nr = p - q", [t], t, (16, 2), (16,), values=v)
        add(f"broadcast_{t}", "r = tl.broadcast_to(x[:, None], (16, 4))", [t], t, (16,), (16, 4), values=v)
    add("gather_f32", "r = tl.gather(x, tl.abs(y) % 64, 0)", ["f32", "i32"], "f32", values="small")
    add("histogram_i32", "r = tl.histogram(tl.abs(x) % 16, 16)", ["i32"], "i32", (64,), (16,), values="integers")
    add("loop_f32", "r = x\nfor k in range(n):\n    r = r * 0.5 + y * k", ["f32", "f32"], "f32", tolerance=1e-5)
    add("branch_f32", "if n > 3:\n    r = x + 1\nelse:\n    r = y * 2", ["f32", "f32"], "f32", tolerance=1e-6)
    add("while_i32", "k = 0\nr = x\nwhile k < n:\n    r += k\n    k += 2", ["i32"], "i32", values="small")
    add("masked_f32", "r = tl.load(a + i, mask=i < n * 4, other=-3.0) + tl.load(a + 63 - i, mask=i >= 60, other=1.5)", ["f32"], "f32", tolerance=1e-6)
    add("masked_2d_f32", "m = (tl.arange(0, 8)[:, None] < n) & (tl.arange(0, 8)[None, :] > 2)\nr = tl.load(a + i, mask=m, other=7.0)", ["f32"], "f32", (8, 8))
    add("diagonal_mask_f32", "m = tl.arange(0, 8)[:, None] >= tl.arange(0, 8)[None, :]\nr = tl.load(a + i, mask=m, other=7.0)", ["f32"], "f32", (8, 8))
    add("strided_f32", "r = tl.load(a + (i * 3) % 64)", ["f32"], "f32")
    add("transposed_load_f32", "r = tl.load(a + tl.arange(0, 8)[:, None] + tl.arange(0, 8)[None, :] * 8)", ["f32"], "f32", (8, 8))
    add("tile_index_i32", "r = (i // 7) * 3 + i % 5 + (i < n).to(tl.int32)", ["i32"], "i32", values="small")
    add("bitcast_f32_i32", "r = x.to(tl.int32, bitcast=True)", ["f32"], "i32")
    add("rand_f32", "r = tl.rand(n, i)", ["f32"], "f32")
    add("randn_f32", "r = tl.randn(n, i)", ["f32"], "f32", tolerance=1e-4)
    for a, out, tolerance in (("f32", "f32", 1e-4), ("f16", "f32", 1e-3), ("bf16", "f32", 1e-3), ("f64", "f64", 1e-9)):
        add(f"dot_{a}", f"r = tl.dot(x, tl.trans(y), input_precision='ieee'{', out_dtype=tl.float64' if a == 'f64' else ''})", [a, a], out, (16, 32), (16, 16), tolerance=tolerance)
    add("dot_batched_f32", "r = tl.dot(x, tl.permute(y, (0, 2, 1)), input_precision='ieee')", ["f32", "f32"], "f32", (2, 16, 16), (2, 16, 16), tolerance=1e-4)
    add("dot_i8", "r = tl.dot(x, tl.trans(y))", ["i8", "i8"], "i32", (16, 32), (16, 16), values="integers")
    return all_cases


def module_of(path):
    spec = importlib.util.spec_from_file_location("differential_kernels", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["differential_kernels"] = module
    spec.loader.exec_module(module)
    return module


def emit(folder, names):
    """Writes NAME.ttir for every case, or NAME.error where the front end refuses it."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "golden"))
    from kernels import ttir
    module = module_of(folder + "/kernels_under_test.py")
    for case in cases():
        if case.name not in names:
            continue
        signature = {p: POINTERS[t] for p, t in zip("abc", case.inputs)} | {"o": POINTERS[case.output], "n": "i32"}
        try:
            text = ttir(getattr(module, case.name), signature, {})
            pathlib.Path(folder, case.name + ".ttir").write_text(text)
        except Exception as error:  # pylint: disable=broad-except
            pathlib.Path(folder, case.name + ".error").write_text(str(error)[-300:])


def evaluated(case, inputs):
    """A case's body with PyTorch in Triton's place."""
    import types
    import torch
    language = types.SimpleNamespace(maximum=torch.maximum, minimum=torch.minimum, where=torch.where, abs=torch.abs, int8=torch.int8,
                                     int16=torch.int16, int32=torch.int32, int64=torch.int64, float16=torch.float16,
                                     float32=torch.float32, float64=torch.float64, bfloat16=torch.bfloat16)
    scope = {"tl": language, **dict(zip("xyz", inputs))}
    exec(case.body, scope)  # pylint: disable=exec-used
    return scope["r"]


def compare(folder, names, tool):
    import torch
    torch.manual_seed(0)
    dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8,
              "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "u32": torch.uint32}
    module = module_of(folder + "/kernels_under_test.py")

    def values(case, t):
        if case.values == "normal":
            return torch.randn(case.shape, dtype=torch.float64).to(dtypes[t])
        if t in ("f32", "f16", "bf16", "f64"):
            return (torch.randn(case.shape, dtype=torch.float64) * 20).to(dtypes[t])
        bits = {"i8": 7, "i16": 15, "i32": 31, "i64": 62, "u8": 8, "u32": 32}[t]
        low, high = (-100, 100) if case.values == "small" else (0 if t[0] == "u" else -(1 << bits), 1 << bits)
        return torch.randint(low, high, case.shape, dtype=torch.int64).to(dtypes[t])

    wrong, ran, refused = [], 0, []
    for case in cases():
        if case.name not in names:
            continue
        if not pathlib.Path(folder, case.name + ".ttir").exists():
            refused.append(case.name)
            continue
        inputs = [values(case, t) for t in case.inputs]
        want = torch.zeros(case.out_shape, dtype=dtypes[case.output])
        try:
            # The interpreter keeps bf16 as 16-bit words and computes on those: PyTorch says what is right.
            if "bf16" in (*case.inputs, case.output) and not case.name.startswith("dot"):
                want.copy_(evaluated(case, inputs))
            else:
                getattr(module, case.name)[(1,)](*inputs, want, 5)
        except Exception as error:  # pylint: disable=broad-except
            refused.append(f"{case.name} (interpreter: {str(error)[:80]})")
            continue
        got = torch.zeros_like(want)
        buffers = []
        for k, t in enumerate([*inputs, got]):
            path = f"{folder}/{k}.bin"
            pathlib.Path(path).write_bytes(bytes(t.contiguous().reshape(-1).view(torch.uint8).numpy()))
            buffers.append({"file": path, "element_bytes": t.element_size(), "written": k < len(inputs)})
        buffers[-1]["output"] = True
        spec = {"ttir": f"{folder}/{case.name}.ttir", "buffers": buffers, "threads": 1,
                "arguments": [{"buffer": k} for k in range(len(buffers))] + [{"scalar": 5, "type": "i32"}]}
        done = subprocess.run([tool, "-"], input=json.dumps(spec), capture_output=True, text=True, check=False)
        report = json.loads(done.stdout or "{}")
        ran += 1
        if not report.get("ok"):
            wrong.append(f"{case.name}: {report.get('error') or report.get('findings') or done.stderr}")
            continue
        raw = bytearray(pathlib.Path(buffers[-1]["file"]).read_bytes())
        result = torch.frombuffer(raw, dtype=got.dtype).reshape(want.shape)
        a, b = result.to(torch.float64), want.to(torch.float64)
        if case.output in ("i64", "i32"):
            same = torch.equal(result, want)
        else:
            same = bool(((a - b).abs() <= case.tolerance * (1 + b.abs())).logical_or(a == b).logical_or(a.isnan() & b.isnan()).all())
        if not same:
            at = int((a - b).abs().nan_to_num(1e30).reshape(-1).argmax())
            wrong.append(f"{case.name}: element {at} is {result.reshape(-1)[at].item()}, the interpreter says {want.reshape(-1)[at].item()}")
    for line in wrong:
        print("DIFFERS", line)
    for line in refused:
        print("not compared:", line)
    print(f"{ran} cases compared, {len(wrong)} differ, {len(refused)} refused by Triton")
    return 1 if wrong or ran == 0 else 0


def main():
    if sys.argv[1:2] == ["--emit"]:
        return emit(sys.argv[2], set(json.loads(sys.argv[3])))
    if sys.argv[1:2] == ["--compare"]:
        return compare(sys.argv[2], set(json.loads(sys.argv[3])), sys.argv[4])
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    tool = sys.argv[1] if len(sys.argv) > 1 else str(root / "build/release/bin/nereid-ttir-run")
    names = [c.name for c in cases() if all(w in c.name for w in sys.argv[2:])]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernels_under_test.py").write_text(HEADER + "\n\n" + "".join(c.source() for c in cases() if c.name in names))
        environment = {**os.environ, "TRITON_INTERPRET": "0"}
        subprocess.run([sys.executable, __file__, "--emit", folder, json.dumps(names)], check=True, env=environment)
        environment["TRITON_INTERPRET"] = "1"
        return subprocess.run([sys.executable, __file__, "--compare", folder, json.dumps(names), tool], check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
