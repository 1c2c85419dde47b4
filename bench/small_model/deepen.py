"""A deeper model that computes the same: copies of layers whose output projections are zero.

    python3 bench/small_model/deepen.py MODEL OUT --layers 13

After each of some layers of MODEL, spread evenly over its depth, OUT has a copy of it whose `o_proj` and
`down_proj` are zero. Such a layer adds nothing to the residual stream, so OUT's logits are MODEL's until it
is trained (runs/small-mixed.toml). Other files of the folder are copied; links become files.
"""

import argparse
import json
import math
import pathlib
import re
import shutil
import sys

LAYER = re.compile(r"model\.layers\.(\d+)\.(.*)")
OUTPUTS = re.compile(r"(self_attn\.o_proj|mlp\.down_proj)\.(weight|bias)")


def read_tensors(path):
    """[(name, header, bytes)] of a safetensors file, in their order."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    found = []
    for name, tensor in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = tensor["data_offsets"]
            found.append((name, tensor, data[begin + first : begin + last]))
    return found


def write_tensors(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor, data in tensors:
        header[name] = {**tensor, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data for _, _, data in tensors))


def copies(layers, wanted):
    """How many copies follow each layer."""
    more = wanted - layers
    return [math.floor((i + 1) * more / layers) - math.floor(i * more / layers) for i in range(layers)]


def deepened(tensors, layers, wanted):
    counts, found = copies(layers, wanted), []
    places = [i + sum(counts[:i]) for i in range(layers)]
    for name, tensor, data in tensors:
        layer = LAYER.fullmatch(name)
        if not layer:
            found.append((name, tensor, data))
            continue
        number, part = int(layer[1]), layer[2]
        for copy in range(1 + counts[number]):
            own = bytes(len(data)) if copy and OUTPUTS.fullmatch(part) else data
            found.append((f"model.layers.{places[number] + copy}.{part}", tensor, own))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=pathlib.Path, help="folder of a checkpoint in one safetensors file")
    parser.add_argument("out", type=pathlib.Path, help="folder of the deeper one")
    parser.add_argument("--layers", type=int, required=True, help="number of its layers")
    args = parser.parse_args()
    config = json.loads((args.model / "config.json").read_text())
    layers = config["num_hidden_layers"]
    if args.layers < layers:
        sys.exit(f"--layers: expected at least the {layers} that {args.model} has, got {args.layers}")
    ignored = shutil.ignore_patterns("model.safetensors", "weights.xz", "manifest.json")
    shutil.copytree(args.model, args.out, ignore=ignored, dirs_exist_ok=True)
    tensors = deepened(read_tensors(args.model / "model.safetensors"), layers, args.layers)
    write_tensors(args.out / "model.safetensors", tensors)
    config["num_hidden_layers"] = args.layers
    (args.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    added = [i for i, count in enumerate(copies(layers, args.layers)) for _ in range(count)]
    print(json.dumps({"layers": args.layers, "copies_of": added}))


if __name__ == "__main__":
    main()
