"""Judges every honest candidate under many seeds and lists the verdicts that are not the expected one.

    bench/seeds.py --nereid build/release/bin/nereid --seeds 1000 tests/honest
    bench/seeds.py --seeds 100 --only bf16 --jobs 4 --output refusals.md tests/honest

One `nereid verify --batch` judges all of them; a line of the batch carries its own seed. The table has one
row for each candidate that a seed refused: how many seeds, the verdict and rule, the trial's inputs, and the
sentence of the first one. Exit status: 0 where every candidate gets its verdict for at least --least of its
seeds, 1 where one does not or verdicts did not come, 128 and the number of the signal where one ended it.
Whatever ends it, the table of what was judged is printed, and a last line on stderr says what happened.
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from corpus_runner import Case, choices  # noqa: E402


def lines(cases, first, seeds):
    """One line for each candidate and seed; seeds in the outer loop, so that a run cut short has judged all
    candidates."""
    for seed in range(first, first + seeds):
        for case in cases:
            yield {**case.line(), "id": f"{case.id}#{seed}", "seed": seed}


class Ended(Exception):
    """The run ends before all verdicts came: why, and the exit status."""

    def __init__(self, why, status=1):
        super().__init__(why)
        self.status = status


class EndBySignal:
    """Raises Ended for a signal. Not while `held`: a program that is just being started would be left
    behind."""

    held, came = False, None

    def __call__(self, number, _frame):
        self.came = self.came or number
        if not self.held:
            self.release()

    def release(self):
        self.held = False
        if self.came is not None:
            raise Ended(f"ended by {signal.Signals(self.came).name}", 128 + self.came)


end_by_signal = EndBySignal()


def judge(nereid, batch, jobs, time_limit):
    command = [nereid, "verify", "--batch", batch, "--device", "cpu", "--time-limit", str(time_limit)]
    if jobs:
        command += ["--jobs", str(jobs)]
    end_by_signal.held = True
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        end_by_signal.release()
        raise Ended(f"{nereid} does not start: {error}") from None
    with process:
        try:
            end_by_signal.release()
            for line in process.stdout:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    raise Ended(f"{nereid} wrote a line that is no verdict: {line[:200]!r}") from None
        except BaseException:
            process.terminate()
            raise
    # 1 and 2 say what verdicts were; a signal is negative.
    if process.returncode not in (0, 1, 2, 3):
        raise Ended(f"{nereid} ended with status {process.returncode}")


def cause(verdict):
    """What was refused, in words that are the same for the same cause."""
    errors = verdict.get("errors") or {}
    return f"{verdict['verdict']} ({verdict.get('rule')}) on '{errors.get('inputs', '?')}'"


def table(refused, judged):
    rows = ["| candidate | refused | of | first seed | cause | sentence |", "|---|---|---|---|---|---|"]
    for name, verdicts in sorted(refused.items()):
        causes = collections.Counter(cause(verdict) for verdict in verdicts)
        first = verdicts[0]
        text = "; ".join(f"{count} {what}" for what, count in causes.most_common())
        sentence = first["reason"].replace("|", "/")
        rows.append(
            f"| {name} | {len(verdicts)} | {judged[name]} | {first['id'].rsplit('#')[-1]} | {text} |"
            f" {sentence} |"
        )
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=pathlib.Path, help="folders of candidates with headers")
    parser.add_argument("--nereid", default=str(ROOT / "build/release/bin/nereid"), help="the program to run")
    parser.add_argument("--seeds", type=int, default=30, help="seeds for each candidate (30)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument(
        "--only", default="", help="candidates whose id contains this text, or one of several with |"
    )
    parser.add_argument("--jobs", type=int, default=0, help="verdicts at a time (one a core)")
    parser.add_argument(
        "--time-limit", type=float, default=60, help="seconds for each phase of a candidate (60)"
    )
    parser.add_argument(
        "--least", type=float, default=0.999, help="share of seeds that must give the verdict (0.999)"
    )
    parser.add_argument("--output", type=pathlib.Path, help="a Markdown file for the table")
    options = parser.parse_args()

    paths = sorted(path.resolve() for folder in options.folders for path in folder.glob("*.py"))
    cases = [case for case in map(Case, paths) if any(part in case.id for part in options.only.split("|"))]
    broken = [f"{case.id}: {case.trouble}" for case in cases if case.trouble]
    if broken or not cases:
        sys.exit("\n".join(broken) or "no candidates")
    expected = {case.id: choices(case.keys["verdict"]) for case in cases}
    judged, refused = collections.Counter(), collections.defaultdict(list)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_by_signal)
    ended = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            batch = pathlib.Path(folder) / "batch.jsonl"
            batch.write_text(
                "".join(json.dumps(line) + "\n" for line in lines(cases, options.first, options.seeds))
            )
            for verdict in judge(options.nereid, str(batch), options.jobs, options.time_limit):
                name = verdict["id"].rsplit("#", 1)[0]
                judged[name] += 1
                if verdict["verdict"] not in expected[name]:
                    refused[name].append(verdict)
                    print(f"{verdict['id']}: {verdict['verdict']}: {verdict['reason']}", file=sys.stderr)
    except Ended as why:
        ended = why
    except OSError as error:
        ended = Ended(str(error))

    total, wrong = sum(judged.values()), sum(map(len, refused.values()))
    text = f"{total} verdicts of {len(cases)} candidates, {wrong} not as expected.\n\n"
    text += table(refused, judged) + "\n" if refused else ""
    write(text, options.output)
    missing = len(cases) * options.seeds - total
    if missing or ended:
        print(f"{missing} verdicts did not come: {ended or 'nereid ended before'}", file=sys.stderr)
        sys.exit(ended.status if ended else 1)
    bad = [name for name, verdicts in refused.items() if len(verdicts) > (1 - options.least) * judged[name]]
    if bad:
        print(f"less than {options.least:.1%} of the seeds: {', '.join(sorted(bad))}", file=sys.stderr)
    sys.exit(1 if bad else 0)


def write(text, output):
    """To standard output and to a file. What fails is said on stderr, and the other is written."""
    try:
        print(text, end="", flush=True)
    except OSError as error:
        print(f"standard output: {error}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # it is flushed again at exit
    if output:
        try:
            output.write_text(text)
        except OSError as error:
            print(f"{output}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
