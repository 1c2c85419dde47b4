"""Judges every candidate of a folder with `nereid verify --batch` and compares with what its docstring says
it must get.

    tests/corpus_runner.py tests/hostile tests/honest [--device cuda] [--only cache] [--jobs 4]

A candidate's docstring holds lines `key: value`: `reference` (a path relative to the file), `verdict` (a
verdict kind, or several with `or`), and if need be `rule` (likewise; not asked of `Verified`), `policy`,
`forbid`, `trials`, `seconds` (the most that its verdict may take) and `absent` (paths that must not exist
afterwards). Afterwards nothing may remain: no process, no temporary file, no change in the folders
judged.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from sample import sampled

ROOT = pathlib.Path(__file__).resolve().parent.parent
PER_PAIR = ("policy", "trials", "form", "forbid")


def header(path):
    """The `key: value` lines of a candidate's docstring (of a raw answer: of its first paragraphs)."""
    text = path.read_text(errors="replace")
    if path.suffix == ".py":
        found = re.search(r'\A(?:#.*\n|\s)*[rR]?("""|\'\'\')(.*?)\1', text, re.S)
        text = found.group(2) if found else ""
    keys = {}
    for line in text.splitlines():
        match = re.match(
            r"\s*(reference|verdict|rule|policy|trials|seconds|device|form|forbid|absent):\s*(\S.*)$", line
        )
        if match:
            keys.setdefault(match.group(1), match.group(2).strip())
    return keys


def choices(text):
    return [word.strip("`. ") for word in re.split(r"\s+or\s+|,", text) if word.strip()]


class Case:
    def __init__(self, path):
        self.path, self.keys = path, header(path)
        self.id = f"{path.parent.name}/{path.name}"
        self.trouble = None
        if "reference" not in self.keys or "verdict" not in self.keys:
            self.trouble = "its docstring names no `reference:` and `verdict:`"
        else:
            self.reference = (path.parent / self.keys["reference"]).resolve()
            if not self.reference.exists():
                self.trouble = f"its reference {self.keys['reference']} does not exist"

    def line(self):
        line = {"id": self.id, "reference": str(self.reference), "candidate": str(self.path)}
        for key in PER_PAIR:
            if key in self.keys:
                line[key] = int(self.keys[key]) if key == "trials" else self.keys[key]
        return line

    def judge(self, verdict):
        """What is wrong with the verdict, or None."""
        if verdict is None:
            return "no verdict came"
        word, rule = verdict["verdict"], verdict.get("rule")
        rules = {evidence["rule"] for evidence in verdict["evidence"]}
        if word not in choices(self.keys["verdict"]):
            return f"expected {self.keys['verdict']}, got {word} ({rule}): {verdict['reason']}"
        if word != "Verified" and "rule" in self.keys and not rules & set(choices(self.keys["rule"])):
            return f"expected {word} by {self.keys['rule']}, got it by {rule}: {verdict['reason']}"
        left = [
            path for path in self.keys.get("absent", "").split() if os.path.lexists(self.path.parent / path)
        ]
        if left:
            return f"left {', '.join(left)}"
        if "seconds" in self.keys and verdict["seconds"] > float(self.keys["seconds"]):
            return (
                f"expected a verdict within {self.keys['seconds']} s, got it after {verdict['seconds']:.1f} s"
            )
        return None


def snapshot(folders):
    return {
        str(p): (p.stat().st_size, p.stat().st_mtime_ns)
        for f in folders
        for p in sorted(f.rglob("*"))
        if "__pycache__" not in p.parts and p.is_file()
    }


def my_descendants():
    """Processes whose ancestor we are: orphans come to us, since we are a subreaper."""
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)
                parents[int(entry.name)] = (
                    int(fields[1].split()[1]),
                    fields[1].split()[0],
                    fields[0].split("(", 1)[1],
                )
            except OSError:
                pass
    mine = []
    for pid in parents:
        up = pid
        while up in parents and up != os.getpid():
            up = parents[up][0]
        if up == os.getpid() and pid != os.getpid() and parents[pid][1] != "Z":
            mine.append(f"{pid} ({parents[pid][2]})")
    return mine


def run_batch(cases, arguments, folder, time_limit):
    folder.mkdir()
    pairs, answers, log = folder / "pairs.jsonl", folder / "verdicts.jsonl", folder / "log"
    pairs.write_text("".join(json.dumps(case.line()) + "\n" for case in cases))
    scratch = folder / "tmp"
    scratch.mkdir()
    command = [
        str(arguments.nereid),
        "verify",
        "--batch",
        str(pairs),
        "-o",
        str(answers),
        "--device",
        arguments.device,
        "--seed",
        str(arguments.seed),
        "--time-limit",
        str(time_limit),
    ]
    if arguments.jobs:
        command += ["--jobs", str(arguments.jobs)]
    environment = dict(os.environ, TMPDIR=str(scratch))
    with open(log, "w") as out:
        status = subprocess.run(
            command, env=environment, stdout=out, stderr=out, timeout=arguments.timeout
        ).returncode
    verdicts = {}
    if answers.exists():
        for line in answers.read_text().splitlines():
            verdict = json.loads(line)
            verdicts[verdict["id"]] = verdict
    return verdicts, status, log.read_text()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--nereid", type=pathlib.Path, default=ROOT / "build/release/bin/nereid")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--time-limit", type=float, default=30)
    parser.add_argument(
        "--hang-limit",
        type=float,
        help="the time limit of candidates that are expected to hang (TimedOut is their first verdict)",
    )
    parser.add_argument("--only", default="", help="only candidates whose name holds this")
    parser.add_argument("--parts", type=int, default=1, help="run one of so many parts (tests/sample.py)")
    parser.add_argument("--timeout", type=float, default=1500)
    parser.add_argument("--keep", type=pathlib.Path, help="keep the verdicts in this file")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER

    cases = [
        Case(path.resolve())
        for folder in arguments.folders
        for path in sorted(folder.iterdir())
        if path.suffix in (".py", ".txt", ".md")
        and path.name.lower() != "readme.md"
        and arguments.only in path.name
        and not path.name.startswith("_")
    ]
    cases = [case for case in cases if case.keys.get("device", arguments.device) == arguments.device]
    if not cases:
        sys.exit(f"no candidates in {', '.join(map(str, arguments.folders))}")
    cases = sampled(cases, arguments.parts, lambda case: case.id)
    watched = [folder.resolve() for folder in arguments.folders] + [ROOT / "tests" / "tasks", ROOT / "python"]
    before, started = snapshot(watched), time.time()
    failures = []
    with tempfile.TemporaryDirectory(prefix="nereid-corpus-") as name:
        folder = pathlib.Path(name)
        sound = [case for case in cases if not case.trouble]
        hang = [
            case for case in sound if arguments.hang_limit and choices(case.keys["verdict"])[0] == "TimedOut"
        ]
        batches = [
            ("others", [case for case in sound if case not in hang], arguments.time_limit),
            ("hang", hang, arguments.hang_limit),
        ]
        verdicts = {}
        for what, batch, limit in batches:
            if not batch:
                continue
            judged, status, log = run_batch(batch, arguments, folder / what, limit)
            verdicts.update(judged)
            if status != 0:
                failures.append(f"nereid verify --batch exited {status}:\n{log[-2000:]}")
        for _ in range(20):
            left = my_descendants()
            if not left:
                break
            time.sleep(0.1)
        if left:
            failures.append(f"processes remain: {', '.join(left)}")
        files = [
            str(path.relative_to(folder)) for scratch in folder.glob("*/tmp") for path in scratch.rglob("*")
        ]
        if files:
            failures.append(f"temporary files remain: {', '.join(files[:10])}")
        if arguments.keep:
            arguments.keep.write_text("".join(json.dumps(v) + "\n" for v in verdicts.values()))
    after = snapshot(watched)
    if before != after:
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        failures.append(f"files changed: {', '.join(sorted(changed))}")
    for case in cases:
        trouble = case.trouble or case.judge(verdicts.get(case.id))
        if trouble:
            failures.append(
                f"{case.path.relative_to(ROOT) if case.path.is_relative_to(ROOT) else case.path}: {trouble}"
            )

    for failure in failures:
        print(f"FAILED {failure}")
    words = {}
    for verdict in verdicts.values():
        words[verdict["verdict"]] = words.get(verdict["verdict"], 0) + 1
    counts = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    print(f"{len(cases)} candidates in {time.time() - started:.1f} s: {counts}; {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
