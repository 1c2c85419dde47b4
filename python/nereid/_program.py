"""Finds and runs the native program: that of the installed wheel, or of the checkout that holds this package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ._exceptions import InputError, NereidError

PACKAGE = Path(__file__).resolve().parent
_NO_EXIT, _INPUT_EXIT = 1, 2  # exit codes: 0 yes, 1 no, 2 the input's fault, 3 Nereid's own
_INTERRUPTED = 130


def torch_libraries():
    """The folder of torch's shared libraries, found without importing torch; None where torch is missing."""
    import importlib.util

    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations:
        return None
    return str(Path(torch.submodule_search_locations[0]) / "lib")


def command():
    """(path of the program, environment to run it in). Raises NereidError where there is none.

    $NEREID_PROGRAM names another program. A wheel's program runs with this Python's torch; a checkout's with its own `.venv`.
    """
    environment = dict(os.environ)
    if named := environment.get("NEREID_PROGRAM"):
        if not os.access(named, os.X_OK):
            raise NereidError(f"$NEREID_PROGRAM is {named}: expected an executable file")
        return named, environment
    wheel = PACKAGE / "bin" / "nereid"
    if wheel.exists():
        libraries = torch_libraries()
        if libraries is None:
            raise NereidError(f"no torch in {sys.executable}: install torch 2.11 and triton 3.6 beside nereid")
        environment["NEREID_PACKAGE"] = str(PACKAGE)
        environment["NEREID_PYTHON"] = sys.executable
        rest = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = libraries + (":" + rest if rest else "")
        return str(wheel), environment
    built = PACKAGE.parents[1] / "build" / "release" / "bin" / "nereid"
    if built.exists():
        return str(built), environment
    if found := shutil.which("nereid"):
        return found, environment
    raise NereidError(f"no program: neither {wheel} nor {built} exists; install the wheel, run `make`, or set NEREID_PROGRAM")


def check(options, allowed, what):
    """Raises InputError for a key of `options` that is not in `allowed`."""
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise InputError(f"{what}: unknown option {unknown[0]!r}; expected one of {', '.join(sorted(allowed))}")


def run(*arguments, input=None, timeout=None, answers=(0,)):
    """What the program writes to stdout. Exit codes outside of `answers` raise InputError or NereidError with what it says."""
    program, environment = command()
    try:
        done = subprocess.run(
            [program, *map(str, arguments)],
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=environment,
        )
    except subprocess.TimeoutExpired as error:
        raise NereidError(f"nereid {arguments[0]}: not done after {timeout} s") from error
    except OSError as error:
        raise NereidError(f"{program}: {error.strerror}") from error
    if done.returncode in answers:
        return done.stdout
    text = "\n".join(line for line in done.stderr.strip().splitlines()[-20:])
    if done.returncode in (_NO_EXIT, _INPUT_EXIT):  # a module that cannot be traced or lowered, or an option
        raise InputError(text or done.stdout.strip()[-2000:] or f"nereid {arguments[0]}: exit code {done.returncode}")
    if done.returncode == _INTERRUPTED:
        raise KeyboardInterrupt
    raise NereidError(f"nereid {arguments[0]}: exit code {done.returncode}: {text}")


def run_json(*arguments, **more):
    """The program's answer as one JSON object."""
    text = run(*arguments, **more)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise NereidError(f"nereid {arguments[0]}: expected JSON on stdout, got {text[:200]!r}") from error
