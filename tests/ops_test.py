"""Every row of the operator catalogue against PyTorch: each form, at several sizes, in each spelling.

Shapes and dtypes are what the row says; values are finite where it says that inputs are well conditioned, and
nearly those of float64; the spellings agree; FLOPs of contractions, convolutions and attention are
torch.utils.flop_counter's; the schema that the row names exists. Bytes are those of the tensors."""

import json
import math
import os
import subprocess
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

COUNTED = {"contraction", "convolution", "attention", "recurrent"}
failures = []


def make(range_name, shape, below, generator):
    if range_name == "normal":
        return torch.randn(shape, generator=generator)
    if range_name == "weight":
        return torch.randn(shape, generator=generator) / math.sqrt(
            max(1, shape[-2] if len(shape) > 1 else shape[0])
        )
    if range_name == "positive":
        return torch.rand(shape, generator=generator) + 0.5
    if range_name == "mask":
        return torch.rand(shape, generator=generator) < 0.5
    if range_name == "index":
        return torch.randint(0, below, shape, generator=generator)
    if range_name == "sign":
        return torch.randint(0, 2, shape, generator=generator) * 2.0 - 1
    if range_name == "probability":
        return torch.rand(shape, generator=generator).add(0.1).log_softmax(-1).exp()
    raise ValueError(range_name)


def as_double(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def schema_exists(name):
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return packet is not None and (not overload or overload in packet.overloads())


def same(a, b):
    return torch.equal(a, b) if not a.is_floating_point() else torch.allclose(a, b, rtol=1e-4, atol=1e-5)


def check(row, form, what):
    generator = torch.Generator().manual_seed(5)
    operands = [make(o["range"], o["shape"], o.get("below"), generator) for o in form["operands"]]
    scope = {"torch": torch, "nn": nn, "F": F, "x": operands[0]}
    if len(operands) > 3 or row["name"] == "stack":
        scope.update({f"y{i}": operand for i, operand in enumerate(operands) if i})
    else:
        scope.update(zip("xyz", operands))
    weights = [weight["name"] for weight in form["weights"]]
    torch.manual_seed(7)
    for weight in form["weights"]:
        scope[weight["name"]] = eval(weight["made"], scope)

    def expect(condition, message):
        if not condition:
            failures.append(f"{what}: {message}")

    with FlopCounterMode(display=False) as counter:
        result = eval(form["functional"], dict(scope))
    expect(list(result.shape) == form["result"], f"shape {form['result']}, PyTorch's {list(result.shape)}")
    expect(str(result.dtype) == "torch." + form["dtype"], f"dtype {form['dtype']}, PyTorch's {result.dtype}")
    if result.is_floating_point():
        expect(bool(torch.isfinite(result).all()), "values that are not finite")
        exact = eval(form["functional"], {name: as_double(value) for name, value in scope.items()})
        scale = max(1e-3, exact.abs().max().item())
        expect((result.double() - exact).abs().max().item() <= 2e-5 * scale, "values far from float64's")
    if row["lowering"] in COUNTED and len(operands[-1].shape) > 1:  # the counter knows no matrix times vector
        fused = (
            row["lowering"] == "attention" and counter.get_total_flops() == 0
        )  # nor the CPU's fused attention
        expect(
            fused or counter.get_total_flops() == form["flops"],
            f"{form['flops']} FLOPs, PyTorch's counter {counter.get_total_flops()}",
        )
    tensors = operands + [scope[name] for name in weights] + [result]
    moved = sum(t.numel() * t.element_size() for t in tensors)
    expect(moved == form["bytes"], f"{form['bytes']} bytes, the tensors have {moved}")
    if form["method"]:
        *before, expression = form["method"].split("\n")
        names = dict(scope)
        exec("\n".join(before), names)
        expect(same(eval(expression, names), result), f"another result of {form['method']}")
    if form["module"]:
        module = eval(form["module"], dict(scope))
        parameters = list(module.parameters())
        if any(name.startswith("running_") for name in weights):
            parameters += [buffer for name, buffer in module.named_buffers() if name.startswith("running_")]
        expect(len(parameters) == len(weights) or not parameters, f"parameters of {form['module']}")
        with torch.no_grad():
            for parameter, name in zip(parameters, weights):
                parameter.copy_(scope[name])
            by_module = eval(form["call"], {**scope, "m": module})
        expect(same(by_module, result), f"another result of {form['module']}")


def main():
    rows = 0
    every = os.environ.get("NEREID_TEST_PART") == "all"
    numbers = range(8) if every else (0, 2, 3, 5)  # from 3 on with windows and layers drawn
    for sizes in numbers:
        listed = subprocess.run(
            [sys.argv[1], "ops", "--json", "--sizes", str(sizes)], capture_output=True, text=True, check=True
        )
        for line in listed.stdout.splitlines():
            row = json.loads(line)
            rows += 1
            if not schema_exists(row["aten"]):
                failures.append(f"{row['name']}: no operator {row['aten']}")
            for number, form in enumerate(row["forms"]):
                what = f"{row['name']}#{number} at sizes {sizes}: {form['functional']}"
                try:
                    check(row, form, what)
                except Exception as error:  # reported with its form; the others are still checked
                    failures.append(f"{what}: {type(error).__name__}: {error}")
    assert rows >= len(numbers) * 90, rows
    print(f"{rows} rows checked, {len(failures)} failures")
    for failure in failures[:60]:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
