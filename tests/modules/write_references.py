"""Writes references in KernelBench's format, one file for each of torch.nn's layers and torchvision's models.

    write_references.py FOLDER [--layers] [--torchvision] [--only SUBSTRING...]

Prints the files' names. Without options both kinds are written.
"""

import argparse
import pathlib

import layers
import torchvision_models

MATERIALIZED = """

def materialized(layer, x):
    layer(x)
    return layer
"""

LAYER = """import torch
import torch.nn as nn
{helper}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}{evaluation}

    def forward(self, {arguments}):
        return {call}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

MODEL = """import torch
import torch.nn as nn
import torchvision

NAME = "{builder}"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torchvision.models.get_model(NAME, weights=None{arguments}){evaluation}

    def forward(self, *inputs):
        return self.model(*inputs)


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

# VGG's three great linear layers hold 120 million weights; they are made narrow.
NARROW = """
        self.model.avgpool = nn.AdaptiveAvgPool2d(1)
        self.model.classifier = nn.Sequential(
            nn.Linear(512, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 10))"""


def layer_text(entry):
    names = [f"x{i}" for i in range(len(entry.inputs))]
    return LAYER.format(
        helper=MATERIALIZED if "materialized(" in entry.layer else "",
        layer=entry.layer,
        evaluation="\n        self.eval()" if entry.eval else "",
        arguments=", ".join(names),
        call=entry.forward or f"self.layer({', '.join(names)})",
        inputs=", ".join(entry.inputs),
    )


def model_text(builder, arguments, inputs, training):
    narrow = arguments == "classes_only=True"
    return MODEL.format(
        builder=builder,
        arguments="" if narrow or not arguments else ", " + arguments,
        evaluation=(NARROW if narrow else "") + ("" if training else "\n        self.eval()"),
        inputs=inputs,
    )


def texts(arguments):
    everything = not arguments.layers and not arguments.torchvision
    if arguments.layers or everything:
        for entry in layers.entries():
            yield f"nn_{entry.name}.py", layer_text(entry)
    if arguments.torchvision or everything:
        for name, *rest in torchvision_models.entries():
            yield f"tv_{name}.py", model_text(*rest)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--torchvision", action="store_true")
    parser.add_argument("--only", nargs="+", default=[""])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    seen = set()
    for name, text in texts(arguments):
        assert name not in seen, f"two references are called {name}"
        seen.add(name)
        if any(part in name for part in arguments.only):
            (arguments.folder / name).write_text(text)
            print(arguments.folder / name)


if __name__ == "__main__":
    main()
