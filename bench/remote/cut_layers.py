"""Keeps the first layers of a checkpoint, for dry runs.

python3 bench/remote/cut_layers.py FOLDER LAYERS
"""

import json
import pathlib
import re
import sys

folder, layers = pathlib.Path(sys.argv[1]), int(sys.argv[2])
path = folder / "model.safetensors"
data = path.read_bytes()
begin = 8 + int.from_bytes(data[:8], "little")
header, kept, blocks, at = json.loads(data[8:begin]), {}, [], 0
for name, tensor in header.items():
    layer = re.match(r"model\.layers\.(\d+)\.", name)
    if name == "__metadata__" or (layer and int(layer[1]) >= layers):
        continue
    first, last = tensor["data_offsets"]
    blocks.append(data[begin + first : begin + last])
    kept[name] = {**tensor, "data_offsets": [at, at + last - first]}
    at += last - first
text = json.dumps(kept).encode()
text += b" " * (-len(text) % 8)
path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))
config = json.loads((folder / "config.json").read_text())
(folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}, indent=1) + "\n")
