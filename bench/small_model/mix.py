#!/usr/bin/env python3
"""Weights part of the way from one model to another of its shape: mix.py FIRST LAST OUT SHARE. OUT is LAST's
folder with first + SHARE * (last - first), in LAST's type."""

import pathlib
import shutil
import sys

from safetensors.torch import load_file, save_file

if len(sys.argv) != 5:
    sys.exit(__doc__)
first, last, out, share = *map(pathlib.Path, sys.argv[1:4]), float(sys.argv[4])
shutil.copytree(last, out, dirs_exist_ok=True)
begin, end = (load_file(folder / "model.safetensors") for folder in (first, last))
save_file(
    {name: begin[name].float().lerp(end[name].float(), share).to(end[name].dtype) for name in end},
    out / "model.safetensors",
    {"format": "pt"},
)
