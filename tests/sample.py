"""The part of a sweep that a test runs by default: another one each day, so that as many days as parts run it
all.

NEREID_TEST_PART=N takes part N (modulo the number of parts), NEREID_TEST_PART=all the whole sweep, as
`make slow` does.
"""

import datetime
import os
import zlib


def sampled(cases, parts, name=str):
    """Those of `cases` whose name falls into today's part. A case stays in its part when others are added."""
    wanted = os.environ.get("NEREID_TEST_PART") or str(datetime.date.today().toordinal())
    if wanted == "all" or parts == 1:
        return list(cases)
    if not wanted.isdigit():
        raise SystemExit(f"NEREID_TEST_PART: expected a number or all, got {wanted!r}")
    part = int(wanted) % parts
    chosen = [case for case in cases if zlib.crc32(name(case).encode()) % parts == part]
    print(
        f"part {part} of {parts}: {len(chosen)} of {len(cases)} cases (NEREID_TEST_PART={part} runs them"
        " again, all runs all)",
        flush=True,
    )
    return chosen
