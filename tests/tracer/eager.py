"""Runs modules eagerly on the CPU in an unpatched PyTorch; the other side of the bit-identity tests.

    eager.py CASES.json OUT.pt

CASES is a list of {"name", "source", "pins": {"CALL.PATH": [base64 data]}}; OUT maps a name to the outputs of
each call, or to an error.
"""

import base64
import json
import os
import sys
import types
import zlib

os.environ["TORCHDYNAMO_DISABLE"] = (
    "1"  # torch.compile's modules run eagerly: compiling it takes longer than all other cases
)

import torch  # noqa: E402


def seed_of(phase, call):
    return zlib.crc32(f"{phase} {call}".encode())


def plain(tree):
    """Outputs as the trace holds them: dataclasses and mappings as dicts, named tuples as tuples."""
    import dataclasses

    if isinstance(tree, torch.Tensor):
        return tree.detach().clone()
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    if isinstance(tree, tuple):
        return tuple(plain(item) for item in tree)
    if isinstance(tree, dict):
        return {str(key): plain(item) for key, item in tree.items()}
    if dataclasses.is_dataclass(tree):
        return {field.name: plain(getattr(tree, field.name)) for field in dataclasses.fields(tree)}
    return tree


def put_pins(inputs, call, pins):
    for key, data in pins.items():
        number, path = key.split(".", 1)
        if int(number) != call:
            continue
        tensor = inputs
        for part in path.split("."):
            tensor = tensor[int(part) if part.isdigit() else part]
        raw = bytearray(base64.b64decode(data))
        tensor.untyped_storage().copy_(torch.frombuffer(raw, dtype=torch.uint8).untyped_storage())


def run(case):
    with torch.no_grad():
        module = types.ModuleType("case")
        sys.modules["case"] = module
        torch.manual_seed(seed_of("module", 0))
        exec(compile(case["source"], case["name"], "exec"), module.__dict__)
        arguments = module.get_init_inputs()
        torch.manual_seed(seed_of("init", 0))
        instance = module.Model(*arguments)
        outputs = []
        for call in range(3):
            torch.manual_seed(seed_of("make_inputs", call))
            inputs = module.get_inputs()
            put_pins(inputs, call, case.get("pins", {}))
            torch.manual_seed(seed_of("forward", call))
            outputs.append(plain(instance(**inputs) if isinstance(inputs, dict) else instance(*inputs)))
        return outputs


def main():
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    results = {}
    for case in cases:
        try:
            results[case["name"]] = run(case)
        except Exception as error:
            results[case["name"]] = f"{type(error).__name__}: {error}"[:500]
    torch.save(results, sys.argv[2])


if __name__ == "__main__":
    main()
