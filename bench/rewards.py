"""What a reward costs: how many verdicts a second a machine says, how many programs a second it times, and
where the time goes.

    python3 bench/rewards.py [NEREID ...] [--tasks 40] [--operators 1,2,5] [--jobs 16] [--device cuda]

Pairs are made here (`nereid synth --pairs`: so many tasks of each number of operators, half of them small and
half of them large, in four variants each). First come verdicts by a CPU's replays, as `times = "apart"` has
them, with machine code and traces for the clock (`--compile-for`, `--traces`); then, on a GPU, the times of
what was Verified (`--time-only`) with what was left for them, without the traces and without both, and last,
for comparison, verdict and time together. Rates are taken from the first answer to the last, so that starting
the workers does not count. NEREID may be several words: python3 -m nereid.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def synth(nereid, folder, lengths, tasks, jobs):
    found = []
    for length in lengths:
        for size in ((), ("--max-elements", "2^22", "--max-work", "2^28")):
            path = folder / f"pairs{length}{len(size)}.jsonl"
            subprocess.run(
                [
                    *nereid,
                    "synth",
                    "--operators",
                    str(length),
                    "--count",
                    str((tasks + 1) // 2),
                    "--pairs",
                    "--brief",
                    "--variants",
                    "4",
                    "--verify-every",
                    "1000000000",
                    "--seed",
                    "9",
                    *size,
                    "--threads",
                    str(jobs),
                    "-o",
                    path,
                    "--json",
                ],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            found += [json.loads(line) for line in open(path)]
    return [
        {"id": str(i), "reference_source": pair["task"], "candidate_source": pair["code"]}
        for i, pair in enumerate(found)
    ]


def judged(nereid, name, pairs, jobs, *options):
    """The verdicts by id; a row of the table is printed."""
    with tempfile.TemporaryFile("w+") as asked:
        asked.write("".join(json.dumps(pair) + "\n" for pair in pairs))
        asked.seek(0)
        started = time.time()
        process = subprocess.Popen(
            [
                *nereid,
                "verify",
                "--batch",
                "-",
                "--policy",
                "strict",
                "--jobs",
                str(jobs),
                "--seed",
                "7",
                *options,
            ],
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        verdicts, first = {}, None
        for line in process.stdout:
            verdict = json.loads(line)
            first = first or time.time()
            verdicts[verdict["id"]] = verdict
        last = time.time()
        complaint = process.stderr.read()
        process.wait()
    if not verdicts:
        sys.exit(f"{name}: no verdicts: {complaint}")
    words = {}
    for verdict in verdicts.values():
        words[verdict["verdict"]] = words.get(verdict["verdict"], 0) + 1
    print(
        f"\n{name}: {len(verdicts)} programs, {(len(verdicts) - 1) / max(last - first, 1e-9):.1f} a second"
        f" after the first, which came after {first - started:.1f} s; "
        + ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    )
    phases = sorted({phase for verdict in verdicts.values() for phase in verdict["phases"]})
    print(f"  {'stage':16}{'median ms':>10}{'mean ms':>10}{'90 % ms':>10}")
    for phase in ["seconds", *phases]:
        values = sorted(
            (v["seconds"] if phase == "seconds" else v["phases"][phase]) * 1e3
            for v in verdicts.values()
            if phase == "seconds" or phase in v["phases"]
        )
        print(
            f"  {phase:16}{statistics.median(values):10.1f}{statistics.fmean(values):10.1f}"
            f"{values[int(0.9 * (len(values) - 1))]:10.1f}"
        )
    return verdicts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "nereid", nargs="*", default=[str(pathlib.Path(__file__).resolve().parent.parent / "nereid")]
    )
    parser.add_argument("--tasks", type=int, default=40, help="of each number of operators")
    parser.add_argument("--operators", default="1,2,5")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--trials", default="2")
    parser.add_argument("--timing-seconds", default="0.03")
    parser.add_argument("--time-limit", default="5")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: with times")
    parser.add_argument("--arch", default="90", help="the GPU's: 90 for compute capability 9.0")
    arguments = parser.parse_args()
    limits = ["--trials", arguments.trials, "--fast-inputs", "--time-limit", arguments.time_limit]
    with tempfile.TemporaryDirectory() as name:
        pairs = synth(
            arguments.nereid,
            pathlib.Path(name),
            arguments.operators.split(","),
            arguments.tasks,
            arguments.jobs,
        )
    with tempfile.TemporaryDirectory() as traces, tempfile.TemporaryDirectory() as kernels:
        measure(arguments, pairs, limits, traces, kernels)


def measure(arguments, pairs, limits, traces, kernels):
    os.environ["NEREID_CACHE"] = kernels
    verdicts = judged(
        arguments.nereid,
        "verdicts, CPU",
        pairs,
        arguments.jobs,
        "--device",
        "cpu",
        "--compile-for",
        arguments.arch,
        "--traces",
        traces,
        *limits,
    )
    if arguments.device == "cpu":
        return
    verified = [
        {**pair, "trace": verdicts[pair["id"]]["trace"]}
        for pair in pairs
        if verdicts[pair["id"]]["verdict"] == "Verified"
    ]
    timing = [
        "--device",
        "cuda",
        "--timing-seconds",
        arguments.timing_seconds,
        "--time-limit",
        arguments.time_limit,
    ]
    for when in ("traces and kernels are there", "kernels are there", "nothing is there"):
        if when == "nothing is there":
            shutil.rmtree(kernels)
            os.mkdir(kernels)
        times = judged(
            arguments.nereid,
            f"times alone, {when}",
            verified,
            arguments.jobs,
            "--time-only",
            "--traces",
            traces,
            *timing,
        )
    again = judged(
        arguments.nereid, "verdict and time together", pairs, arguments.jobs, "--time", *timing, *limits[:3]
    )
    both = [
        (times[i]["times"]["candidate_ms"], v["times"]["candidate_ms"])
        for i, v in again.items()
        if v["times"] and times.get(i, {}).get("times")
    ]
    if both:
        off = sorted(abs(a / b - 1) for a, b in both)
        print(
            f"\ncandidates' times, alone against together: off by {statistics.median(off):.1%} in the median,"
            f" {off[int(0.9 * (len(off) - 1))]:.1%} at the 90th percentile of {len(off)}"
        )


if __name__ == "__main__":
    main()
