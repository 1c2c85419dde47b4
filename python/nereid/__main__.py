"""The `nereid` command of an installed wheel: finds torch's libraries and hands over to the native program."""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    package = Path(__file__).resolve().parent
    torch = importlib.util.find_spec("torch")
    if torch is None or not torch.submodule_search_locations:
        sys.exit(f"nereid: no torch in {sys.executable}; install torch 2.11 and triton 3.6 beside nereid")
    environment = dict(os.environ)
    environment["NEREID_PACKAGE"] = str(package)
    environment["NEREID_PYTHON"] = sys.executable
    torch_libraries = str(Path(torch.submodule_search_locations[0]) / "lib")
    rest = os.environ.get("LD_LIBRARY_PATH")
    environment["LD_LIBRARY_PATH"] = torch_libraries + (":" + rest if rest else "")
    program = str(package / "bin" / "nereid")
    os.execve(program, [program, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
