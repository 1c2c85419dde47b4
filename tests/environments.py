"""Environments with packages that only one test needs: below the build folder, made on first use."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
BASE = pathlib.Path(os.environ.get("NEREID_PYTHON", ROOT / ".venv/bin/python"))


def run(words, **options):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(
            f"{words}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
    return done.stdout


def environment(folder, packages, base_packages=(), dependencies=True, overrides=()):
    """The folder with the programs of an environment that holds these packages. `base_packages` (torch, ...)
    are not installed: they and all others that are missing come from this checkout's environment. `overrides`
    replace what packages ask for."""
    stamp = folder / "installed"
    wanted = "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return folder / "bin"
    run([BASE, "-m", "venv", "--without-pip", folder])
    python = folder / "bin/python"
    if base_packages:
        own = run([BASE, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        theirs = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
        pathlib.Path(theirs, "zz_base.pth").write_text(own + "\n")
    uv = BASE.parent / "uv"
    more = [] if dependencies else ["--no-deps"]
    if uv.exists():
        listed = folder / "overrides.txt"
        without = [f"{package}; python_version < '3'" for package in base_packages]
        listed.write_text("".join(f"{line}\n" for line in (*without, *overrides)))
        more = more or ["--override", listed]
        environ = dict(os.environ)
        for ours, theirs in (("PIP_CERT", "SSL_CERT_FILE"), ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")):
            if ours in environ:
                environ.setdefault(theirs, environ[ours])
        run([uv, "pip", "install", "--python", python, *more, *packages], env=environ)
    else:
        run([BASE, "-m", "pip", "--python", python, "install", *more, *packages])
    stamp.write_text(wanted)
    return folder / "bin"
