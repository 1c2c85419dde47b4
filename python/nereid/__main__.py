"""The `nereid` command of an installed wheel: finds torch's libraries and hands over to the native
program."""

import os
import sys

from nereid import _exceptions, _program


def main() -> None:
    try:
        program, environment = _program.command(without_torch=sys.argv[1:2] == ["doctor"])
    except _exceptions.NereidError as error:
        sys.exit(f"nereid: {error}")
    os.execve(program, [program, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
