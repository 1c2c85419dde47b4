"""How many training pairs a second one thread makes: bench/synth_pairs.py OPERATORS,OPERATORS,... [--counts
FEW,MANY] [options of nereid synth]

Of 16 and of 116 programs of each number of operators (or as many as are said), the difference, so that
starting the workers does not count. By the wall clock, and by the processor time of all processes.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

NEREID = pathlib.Path(__file__).resolve().parent.parent / "build/release/bin/nereid"


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(length, count, options):
    with tempfile.TemporaryDirectory() as folder:
        before, started = spent(), time.time()
        command = [
            NEREID,
            "synth",
            "--operators",
            length,
            "--count",
            str(count),
            "--pairs",
            "--threads",
            "1",
            "-o",
            f"{folder}/pairs.jsonl",
            "--json",
            *options,
        ]
        report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        return (
            time.time() - started,
            spent() - before,
            report["pairs"],
            sum(report["verdicts"].values()),
            report["verdicts"],
        )


def main():
    lengths, *options = sys.argv[1:]
    few, many = 16, 116
    if options[:1] == ["--counts"]:
        few, many = map(int, options[1].split(","))
        options = options[2:]
    for length in lengths.split(","):
        wall, cpu, pairs, variants, _ = run(length, few, options)
        wall2, cpu2, pairs2, variants2, verdicts = run(length, many, options)
        made, judged = pairs2 - pairs, variants2 - variants
        print(json.dumps({"operators": int(length), "pairs_per_second": round(made / (wall2 - wall), 1),
                          "pairs_per_cpu_second": round(made / (cpu2 - cpu), 1),
                          "cpu_ms_a_variant": round(1000 * (cpu2 - cpu) / judged, 2),
                          "programs_per_cpu_second": round((many - few) / (cpu2 - cpu), 1),
                          "pairs_a_program": made / (many - few), "verdicts": verdicts}),
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
