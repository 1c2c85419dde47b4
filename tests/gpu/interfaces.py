"""What users of `import nereid`, `nereid package` and `nereid serve` meet on a GPU, and on no CPU.

    python3 tests/gpu/interfaces.py PACKAGE [--device cpu] [--only GROUP ...] [--seconds 270]

PACKAGE: a wheel, carry/site.tar.xz of bench/remote/pack, or a folder that has the package `nereid` (python/
of a checkout with NEREID_PROGRAM set). Groups of checks run at the same time, each in a process of its own.
A line a check: ok, FAILED, skipped (with why) or figure; exit code 1 where one failed. `--device cpu` tries
the script itself, in Triton's interpreter.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
GROUPS = {  # its file in interfaces/, and its functions there, each a check
    "optimize": "optimize",
    "graph": "optimize",
    "devices": "optimize",
    "compile": "compiled",
    "package": "packages",
    "serve": "service",
    "ray": "service",
}


def unpacked(package, folder):
    """The folder that has the package `nereid`."""
    package = pathlib.Path(package).resolve()
    if package.is_dir():
        return package
    site = folder / "site"
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            archive.extractall(site)
        for program in (site / "nereid/bin").iterdir():
            program.chmod(0o755)
    else:
        with tarfile.open(package) as archive:
            archive.extractall(site, filter="fully_trusted")
    return site


def environment(site, folder, device):
    import importlib.util

    torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    libraries = [torch / "lib", site / "nereid/lib", *torch.parent.glob("nvidia/*/lib")]
    given = {
        "PYTHONPATH": f"{site}:{FOLDER.parent}:{FOLDER.parent / 'python'}",
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "NEREID_CACHE": str(folder / "cache"),
        "NEREID_STORE": str(folder / "store.db"),
        "NEREID_KEEP_WARM": "60",
        "PYTHONUNBUFFERED": "1",
        "NEREID_GPU_TEST_DEVICE": device,
        "NEREID_GPU_TEST_FOLDER": str(folder),
    }
    program = folder / "nereid"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nereid "$@"\n')
    program.chmod(0o755)
    given["NEREID_GPU_TEST_PROGRAM"] = str(program)
    if device == "cpu":
        given["TRITON_INTERPRET"] = "1"
    return {**os.environ, **given}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", nargs="+", choices=tuple(GROUPS), default=list(GROUPS))
    parser.add_argument("--seconds", type=float, default=270)
    options = parser.parse_args()
    begun = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="nereid-interfaces-"))
    environ = environment(unpacked(options.package, folder), folder, options.device)
    running = {}
    for group in options.only:
        log = (folder / f"{group}.txt").open("wb")
        words = [sys.executable, "-W", "ignore", FOLDER / "interfaces" / f"{GROUPS[group]}.py", group]
        running[group] = subprocess.Popen(words, env=environ, stdout=log, stderr=log, start_new_session=True)
    lines, failed = [], 0
    for group, process in running.items():
        try:
            process.wait(max(1, options.seconds - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        text = (folder / f"{group}.txt").read_text(errors="replace")
        found = [
            line for line in text.splitlines() if line.startswith(("ok ", "FAILED ", "skipped ", "figure "))
        ]
        if process.returncode != 0 and not any(line.startswith("FAILED ") for line in found):
            found.append(
                f"FAILED {group}: exit code {process.returncode} after {options.seconds:g} s at most:"
                f" {text[-1500:]}"
            )
        lines += found
        print("\n".join(found), flush=True)
    count = {word: sum(line.startswith(word) for line in lines) for word in ("ok", "FAILED", "skipped")}
    failed = count["FAILED"]
    out = os.environ.get("OUT")
    if out:
        for group in running:
            shutil.copy(folder / f"{group}.txt", pathlib.Path(out) / f"interfaces_{group}.txt")
    shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{count['ok']} ok, {failed} failed, {count['skipped']} skipped in {time.monotonic() - begun:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
