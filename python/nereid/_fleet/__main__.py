"""`python -m nereid._fleet`: lines of the batch protocol on stdin, answers on stdout, judges on a Ray
cluster.

It ends when stdin does: then the server is gone. Lines `{"fleet": ..., "errors": [...]}` say how the fleet
is. With `--probe` it writes what the cluster has as one JSON object, or {"error": ...}, and ends.
"""

import argparse
import asyncio
import json
import os
import sys
import threading

SECONDS_TO_END = 4.0
SECONDS_TO_CONNECT = 60.0


def connect(address):
    """The package `ray`, connected to the cluster. Raises RuntimeError with what is wrong."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise RuntimeError(
            f"{sys.executable} has no package `ray` ({error}): install it there and on the cluster's nodes"
        ) from error
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", namespace="nereid")
    except Exception as error:  # what Ray raises is of many classes
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RuntimeError(
            f"no Ray cluster at {address} (`ray start` on this machine makes it a node): "
            f"{lines[0] if lines else type(error).__name__}"
        ) from error
    return ray


def probe(ray):
    resources = ray.cluster_resources()
    return {
        "ray": ray.__version__,
        "nodes": sum(node["Alive"] for node in ray.nodes()),
        "cpus": resources.get("CPU", 0),
        "gpus": resources.get("GPU", 0),
    }


def read_lines(loop, submit, end):
    """A thread's: stdin, until it ends. Then the process ends, whatever it hangs in."""
    for line in sys.stdin.buffer:
        loop.call_soon_threadsafe(submit, line.rstrip(b"\n"))
    timer = threading.Timer(SECONDS_TO_END, os._exit, [0])
    timer.daemon = True
    timer.start()
    loop.call_soon_threadsafe(end)


async def serve(ray, options, write):
    from .fleet import Fleet

    loop = asyncio.get_running_loop()
    failed = loop.create_future()

    def fail(loop, context):
        if not failed.done():
            failed.set_exception(context.get("exception") or RuntimeError(context["message"]))

    loop.set_exception_handler(fail)
    fleet = Fleet(ray, options, write)
    ended = asyncio.Event()
    threading.Thread(target=read_lines, args=(loop, fleet.submit, ended.set), daemon=True).start()
    works = [asyncio.ensure_future(work) for work in (fleet.run(), ended.wait())]
    try:
        done, _ = await asyncio.wait([*works, failed], return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
    finally:
        fleet.end()


def main():
    parser = argparse.ArgumentParser(prog="python -m nereid._fleet", description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--actors", nargs=2, type=int, default=[1, 64], metavar=("MIN", "MAX"))
    parser.add_argument("--jobs", type=int, default=1, help="pairs that a judge judges at a time")
    parser.add_argument("--cuda", action="store_true", help="a GPU for each judge")
    parser.add_argument(
        "--clock",
        type=json.loads,
        metavar="WORDS",
        help="a clock's command line, as JSON: judges verify, it times",
    )
    parser.add_argument("--clocks", nargs=2, type=int, default=[0, 64], metavar=("MIN", "MAX"))
    parser.add_argument("--patience", type=float, default=420, help="seconds that a judge may be silent")
    parser.add_argument("--idle", type=float, default=60, help="seconds until a judge too many ends")
    parser.add_argument("words", nargs="*", help="a judge's command line, after the program")
    given = parser.parse_args()
    out = os.dup(1)
    os.dup2(2, 1)  # whatever Ray prints is no answer

    def write(line):
        left = memoryview(line + b"\n")
        while left:
            left = left[os.write(out, left) :]

    def hung():
        fail(f"no answer from a Ray cluster at {given.address} in {SECONDS_TO_CONNECT:g} s")

    def fail(message):
        if given.probe:
            write(json.dumps({"error": message}).encode())
        else:
            print(message, file=sys.stderr, flush=True)
        os._exit(0 if given.probe else 3)

    hangs = threading.Timer(SECONDS_TO_CONNECT, hung)
    hangs.daemon = True
    hangs.start()
    try:
        ray = connect(given.address)
    except RuntimeError as error:
        fail(str(error))
    hangs.cancel()
    if given.probe:
        return write(json.dumps(probe(ray)).encode())
    from .fleet import Kind, Options

    judge = Kind("judge", given.words, *given.actors, given.jobs, given.jobs, int(given.cuda))
    clock = given.clock and Kind("clock", given.clock, *given.clocks, 1, 1, 1)
    options = Options(judge, clock, given.patience, given.idle)
    asyncio.run(serve(ray, options, write))
    ray.shutdown()


if __name__ == "__main__":
    main()
