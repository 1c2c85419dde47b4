"""The file around a forward(): imports, globals, constructor, annotations, comments, helper methods."""

import re

DOCSTRINGS = ["Model.", "A small module.", "Computes the result of forward.",
    "Simple layer used in a larger network.", "Reference implementation.", "Block of the encoder.",
    "Post-processing of the scores.", "Fused in production.", "One stage of the pipeline.", ]  # fmt: skip
COMMENTS = ["apply the layer", "normalize", "combine both", "reduce", "shape: (batch, ...)",
    "keep the type", "see the paper", "mix", "no gradient here", "gate", "project", "scores", "TODO: fuse",
    "numerically stable", "per row", ]  # fmt: skip


def module_text(g, body, inputs, before, used):
    names = [name for name, _ in inputs]
    arguments = [each for each in g.arguments if each.split("=")[0] in used]
    helper = helper_of(g, body, names, arguments) if len(body) > 2 and g.chance(0.2) else ""
    g.init = read_of(g, "\n".join(body) + helper)
    if not any(".BatchNorm" in line for line in g.init):
        g.evaluated = False
    g.config = g.word("config", "cfg", "args") if taken(g) and g.chance(0.2) else ""
    constructor, config = constructor_of(g), config_of(g)
    forward = forward_of(g, body, names, arguments, inputs)
    maker = inputs_of(g, inputs)
    init = "def get_init_inputs():\n    return [" + init_values(g, constructor) + "]\n"
    head = imports(g, before + config + init, constructor + forward + helper + maker)
    words = constructor + forward + helper + maker + init + config
    constants = constants_of(
        g, [(name, n) for n, name in g.globals.items() if re.search(rf"(?<![\w.]){name}\b", words)]
    )
    doc = f'    """{g.pick(*DOCSTRINGS)}"""\n\n' if g.chance(0.25) else ""
    gap = g.pick("\n\n", "\n\n", "\n")
    shown = constants + gap if constants else ""
    base = (
        g.pick("nn.Module", "nn.Module", "nn.Module", "torch.nn.Module")
        if "import torch\n" in head
        else "nn.Module"
    )
    parts = [constructor, forward, helper] if g.chance(0.5) else [constructor, helper, forward]
    text = head + gap + (before + gap if before else "") + shown + (config + gap if config else "")
    text += f"class Model({base}):\n" + doc + "\n".join(part for part in parts if part)
    return re.sub(r"\n{4,}", "\n\n\n", text + gap + maker + gap + init)


def constants_of(g, pairs):
    """Constants, one a line or all in one."""
    if len(pairs) > 1 and g.chance(0.25):
        return f"{', '.join(name for name, _ in pairs)} = {', '.join(str(number) for _, number in pairs)}\n"
    return "".join(f"{name} = {number}\n" for name, number in pairs)


def read_of(g, text):
    """Lines of the constructor whose attribute `text` reads, and a few others."""
    read = set(re.findall(r"self\.(\w+)", text))
    name = r"self\.register_buffer\(.(\w+)|self\.(\w+) ="
    spare = 0.15 if g.chance(0.2) else 0.0
    return [line for line in g.init if set(re.match(name, line).groups()) & read or g.chance(spare)]


def config_of(g):
    """A dataclass of the constructor's arguments, where it takes them as one."""
    if not g.config or g.chance(0.5):
        return ""
    g.config_class = g.pick("Config", "Configuration", "Options", "Args")
    lines = [f"    {n}: {'float' if '.' in str(v) or 'e-' in str(v) else 'int'} = {v}\n" for n, v in taken(g)]
    return f"@dataclass\nclass {g.config_class}:\n" + "".join(lines)


def init_values(g, constructor):
    if g.config:
        if getattr(g, "config_class", ""):
            return f"{g.config_class}()"
        return f"SimpleNamespace({', '.join(f'{name}={value}' for name, value in taken(g))})"
    return "" if "=" in constructor.split(":\n")[0] else ", ".join(str(value) for _, value in taken(g))


def taken(g):
    init = "\n".join(g.init)
    return [(n, v) for n, v in g.init_arguments.items() if re.search(rf"(?<![\w.]){n}\b(?!\s*=[^=])", init)]


def constructor_of(g):
    if not g.init and g.chance(0.85):
        return ""
    hints, given = g.chance(0.3), taken(g)
    defaults = g.chance(0.3)
    listed = ""
    for name, value in given:
        listed += f", {name}" + (
            f": {'float' if '.' in str(value) or 'e-' in str(value) else 'int'}" if hints else ""
        )
        if defaults:
            listed += (" = " if hints else "=") + str(value)
    init = g.init
    if g.config:
        listed = f", {g.config}"
        for name, _ in given:
            init = [re.sub(rf"(?<![\w.]){name}\b(?!\s*=[^=])", f"{g.config}.{name}", line) for line in init]
    lines = [g.pick("super().__init__()", "super().__init__()", "super(Model, self).__init__()"), *init]
    if g.casts_layers and any("nn." in line or "buffer" in line for line in g.init):
        short = {
            "torch.float16": "self.half()",
            "torch.bfloat16": "self.bfloat16()",
            "torch.float64": "self.double()",
        }
        lines.append(g.pick(f"self.to({g.float_type})", short[str(g.float_type)]))
    if g.evaluated:
        lines.append("self.eval()")
    text = f"    def __init__(self{listed}){' -> None' if hints and g.chance(0.5) else ''}:\n"
    return text + "".join(f"        {line}\n" for line in lines)


def forward_of(g, body, names, arguments, inputs):
    hints = g.chance(0.35)
    listed = ["self"] + [n + (": torch.Tensor" if hints else "") for n in names]
    for each in arguments:
        name, value = each.split("=")
        listed.append(
            f"{name}: {'float' if '.' in value or 'e' in value else 'int'} = {value}" if hints else each
        )
    text = f"    def forward({', '.join(listed)}):\n"
    if g.chance(0.12):
        text += f'        """{g.pick(*DOCSTRINGS)}"""\n'
    for line in body:
        if g.chance(0.08):
            text += f"        # {g.pick(*COMMENTS)}\n"
        text += f"        {line}" + (f"  # {g.pick(*COMMENTS)}" if g.chance(0.04) else "") + "\n"
    return text


def helper_of(g, body, names, arguments):
    """The body but its last statements as a method of its own, where one value flows out of it."""
    cut = g.random.randint(1, len(body) - 1)
    head, tail = body[:cut], body[cut:]
    target = re.match(r"([a-z]\w*) = ", head[-1])
    if not target or any("_(" in line or "+=" in line or "*=" in line or "-=" in line for line in head):
        return ""
    words = lambda lines: set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", "\n".join(lines)))  # noqa: E731
    bound = {
        name for line in head for name in re.findall(r"^([\w, ]+) = ", line) for name in name.split(", ")
    }
    if (bound - {target[1]}) & words(tail):
        return ""
    options = [each.split("=")[0] for each in arguments]
    reads = [name for name in names + options if name in words(head)]
    name = g.word("_head", "_mix", "prepare", "_compute", "body", "_scores")
    if name in g.attributes:
        return ""
    body[:] = [f"{target[1]} = self.{name}({', '.join(reads)})", *tail]
    if re.match(rf"{target[1]} = (?!.*\b{target[1]}\b)", head[-1]):
        head[-1] = "return " + head[-1].split(" = ", 1)[1]
    else:
        head.append(f"return {target[1]}")
    return f"    def {name}({', '.join(['self', *reads])}):\n" + "".join(f"        {line}\n" for line in head)


def inputs_of(g, inputs):
    if len(inputs) == 1 or g.chance(0.5):
        listed = ", ".join(text for _, text in inputs)
        if len(listed) < 100:
            return f"def get_inputs():\n    return [{listed}]\n"
    lines = "".join(f"    {name} = {text}\n" for name, text in inputs)
    return f"def get_inputs():\n{lines}    return [{', '.join(name for name, _ in inputs)}]\n"


def imports(g, before, text):
    lines = []
    if "math." in text:
        lines.append("import math")
    if "namedtuple(" in before:
        lines.append("from collections import namedtuple")
    if "@dataclass" in before:
        lines.append("from dataclasses import dataclass")
    if "SimpleNamespace" in before:
        lines.append("from types import SimpleNamespace")
    if "NamedTuple" in before:
        lines.append("from typing import NamedTuple")
    plain = g.chance(0.7)
    torch_lines = ["import torch", "import torch.nn as nn" if plain else "from torch import nn"]
    if re.search(r"\bF\.", text):
        torch_lines.append(
            "import torch.nn.functional as F" if plain else "from torch.nn import functional as F"
        )
    return "\n".join(lines) + ("\n\n" if lines else "") + "\n".join(torch_lines) + "\n"
