"""Finds and runs the native program: that of the installed wheel, or of the checkout that holds this
package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ._exceptions import InputError, NereidError

PACKAGE = Path(__file__).resolve().parent
NO_EXIT, INPUT_EXIT, OWN_EXIT = 1, 2, 3  # exit codes: 0 yes, 1 no, 2 the input's fault, 3 Nereid's own
_INTERRUPTED = 130


def torch_libraries():
    """The folder of torch's shared libraries, found without importing torch; None where torch is missing."""
    import importlib.util

    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations:
        return None
    return str(Path(torch.submodule_search_locations[0]) / "lib")


def command(without_torch=False):
    """(path of the program, environment to run it in). Raises NereidError where there is none, or where torch
    is missing, unless `without_torch`.

    $NEREID_PROGRAM names another program. A wheel's program runs with this Python's torch; a checkout's with
    its own `.venv`.
    """
    environment = dict(os.environ)
    if named := environment.get("NEREID_PROGRAM"):
        if not os.access(named, os.X_OK):
            raise NereidError(f"$NEREID_PROGRAM is {named}: expected an executable file")
        return named, environment
    wheel = PACKAGE / "bin" / "nereid"
    if wheel.exists():
        libraries = torch_libraries()
        if libraries is None and not without_torch:
            raise NereidError(
                f"no torch in {sys.executable}: install torch 2.11 and triton 3.6 in nereid's environment"
            )
        environment["NEREID_PACKAGE"] = str(PACKAGE)
        environment["NEREID_PYTHON"] = sys.executable
        rest = environment.get("LD_LIBRARY_PATH")
        if libraries is not None:
            environment["LD_LIBRARY_PATH"] = libraries + (":" + rest if rest else "")
        return str(wheel), environment
    built = PACKAGE.parents[1] / "build" / "release" / "bin" / "nereid"
    if built.exists():
        return str(built), environment
    if found := shutil.which("nereid"):
        return found, environment
    raise NereidError(
        f"no program: neither {wheel} nor {built} exists; install the wheel, run `make`, or set"
        " NEREID_PROGRAM"
    )


def check(options, allowed, what):
    """Raises InputError for a key of `options` that is not in `allowed`."""
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        raise InputError(
            f"{what}: unknown option {unknown[0]!r}; expected one of {', '.join(sorted(allowed))}"
        )


class Answered(Exception):
    """The program ended with another exit code than 0."""

    def __init__(self, command, code, stdout, stderr):
        self.command, self.code = command, code
        self.text = "\n".join(stderr.strip().splitlines()[-20:]) or stdout.strip()[-2000:]
        try:
            self.json = json.loads(stdout)
        except ValueError:
            self.json = None
        super().__init__(self.text)

    def as_error(self):
        """As the exception of the public interface."""
        text = self.text or f"nereid {self.command}: exit code {self.code}"
        if self.code in (NO_EXIT, INPUT_EXIT):  # a module that cannot be traced or lowered, or an option
            return InputError(text)
        return KeyboardInterrupt() if self.code == _INTERRUPTED else NereidError(text)


def start(*arguments, timeout=None):
    """What the program writes to stdout. Another exit code than 0 raises Answered."""
    program, environment = command()
    given = [program, *map(str, arguments)]
    try:
        done = subprocess.run(
            given, capture_output=True, text=True, errors="replace", timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise NereidError(f"nereid {arguments[0]}: not done after {timeout} s") from error
    except OSError as error:
        raise NereidError(f"{program}: {error.strerror}") from error
    if done.returncode != 0:
        raise Answered(arguments[0], done.returncode, done.stdout, done.stderr)
    return done.stdout


def run(*arguments, timeout=None):
    """`start`, with the exceptions of the public interface."""
    try:
        return start(*arguments, timeout=timeout)
    except Answered as answered:
        raise answered.as_error() from None


def parse(command, text):
    """The program's answer as one JSON object."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise NereidError(f"nereid {command}: expected JSON on stdout, got {text[:200]!r}") from error
