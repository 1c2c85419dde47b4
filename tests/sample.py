"""The part of a sweep that a test runs by default: always the same one, so that a commit which passes keeps
passing.

NEREID_TEST_PART=N takes part N (modulo the number of parts), NEREID_TEST_PART=today another one each day, and
NEREID_TEST_PART=all the whole sweep, as `make slow` does.
"""

import datetime
import os
import zlib

DEFAULT_PART = "739948"


def sampled(cases, parts, name=str):
    """Those of `cases` whose name falls into the part. A case stays in its part when others are added."""
    wanted = os.environ.get("NEREID_TEST_PART") or DEFAULT_PART
    if wanted == "today":
        wanted = str(datetime.date.today().toordinal())
    if wanted == "all" or parts == 1:
        return list(cases)
    if not wanted.isdigit():
        raise SystemExit(f"NEREID_TEST_PART: expected a number, today or all, got {wanted!r}")
    part = int(wanted) % parts
    chosen = [case for case in cases if zlib.crc32(name(case).encode()) % parts == part]
    print(
        f"part {part} of {parts}: {len(chosen)} of {len(cases)} cases (NEREID_TEST_PART={part} runs them"
        " again, all runs all)",
        flush=True,
    )
    return chosen
