"""Compiles a CUDA source with the NVRTC of torch's own wheels, as 64-bit words for a C++ array. Needs no GPU.

compile_kernels.py SOURCE ARCH OUTPUT --include FOLDER: ARCH is sm_90 for machine code, compute_80 for PTX. A
warning is an error. --fmad=false: what is computed is what the host's loops compute, bit by bit.
"""

import argparse
import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path


def open_nvrtc() -> ctypes.CDLL:
    for folder in find_spec("nvidia").submodule_search_locations:
        for library in sorted(Path(folder).glob("*/lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(library))
    sys.exit("no libnvrtc in the nvidia wheels: run 'make setup' first")


def read(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


def compile_source(source: Path, include: str, arch: str) -> bytes:
    nvrtc, program = open_nvrtc(), ctypes.c_void_p()
    name = source.name.encode()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), name, 0, None, None)
    flags = ["--std=c++20", "--fmad=false", "-default-device", f"-I{include}", f"--gpu-architecture={arch}"]
    options = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    status = nvrtc.nvrtcCompileProgram(program, len(flags), options)
    log = read(nvrtc, program, "ProgramLog").rstrip(b"\0").decode().strip()
    if status != 0 or log:
        sys.exit(f"{source} for {arch}: {log or f'NVRTC error {status}'}")
    return read(nvrtc, program, "CUBIN" if arch.startswith("sm_") else "PTX")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("arch")
    parser.add_argument("output", type=Path)
    parser.add_argument("--include", required=True)
    options = parser.parse_args()
    image = compile_source(options.source, options.include, options.arch)
    image += bytes(-len(image) % 8)
    words = (int.from_bytes(image[i : i + 8], "little") for i in range(0, len(image), 8))
    options.output.write_text("".join(f"{word:#x},\n" for word in words))


if __name__ == "__main__":
    main()
