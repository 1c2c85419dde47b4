"""What comes home of a folder of units, in few files: all that people look at (`pack`), or what the report
needs of the units that are done, small enough for the repository (`keep`)."""

import collections
import io
import json
import lzma
import pathlib
import sys
import tarfile

from files import FAILED, FINGERPRINT, MACHINE, TRAINED, is_done, lines_of, write

# What the report needs, then what people look at.
PACKED = (
    (
        "run.toml",
        TRAINED,
        FAILED,
        MACHINE,
        FINGERPRINT,
        "run/metrics.jsonl",
        "eval-*/results.jsonl",
        "eval-*/summary.json",
    ),
    ("run/some_rollouts.jsonl",),
    ("eval-*/answers.jsonl",),
)
MOST_REFUSED = 200  # rollouts of a run that are packed because only a rule refused what was rewarded
KEPT = (
    "run.toml",
    TRAINED,
    MACHINE,
    FINGERPRINT,
    "run/metrics.jsonl",
    "eval-*/results.jsonl",
    "eval-*/summary.json",
    "run/some_rollouts.jsonl",
)
KEPT_OF_A_RESULT = (
    "task",
    "level",
    "sample",
    "verdict",
    "rule",
    "verdict_without_rules",
    "ms",
    "reference_ms",
)
KEPT_OF_A_SEARCH = ("id", "verdict", "samples", "verified", "speedup")
KEPT_OF_A_ROLLOUT = ("step", "prompt", "sample", "verdict", "rule", "reason", "reward")
KEPT_OF_A_STEP = (
    "step",
    "reward",
    "speedup",
    "entropy",
    "kl",
    "length",
    "loss",
    "held_out_loss",
    "seconds",
    "step_s",
    "write_s",
    "judge_s",
    "time_s",
    "ranks_s",
    "judged_s",
    "slowest_s",
    "learn_s",
    "held_out_s",
)
KEPT_KINDS = ("verdict/", "rule/", "share/", "pass_at_1/", "clock/")  # of a step's figures, too
EXAMPLES = 5  # rules of which an example is kept


def pick_rollouts(run):
    """What people look at of all that a run wrote: the last step's, and the latest of those that cheated and
    were paid for it."""
    source, picked = run / "rollouts.jsonl", run / "some_rollouts.jsonl"
    if not source.exists() or picked.exists() and picked.stat().st_mtime > source.stat().st_mtime:
        return
    step, last, refused = None, [], collections.deque(maxlen=MOST_REFUSED)
    with source.open() as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            rollout = json.loads(line)
            if rollout["step"] != step:
                step = rollout["step"]
                last.clear()
            last.append(line)
            if rollout["verdict"] == "Disallowed" and rollout["reward"] > 0:
                refused.append(line)
    write(picked, "".join([*(line for line in refused if line not in last), *last]))


def pick_answers(evaluated):
    """The greedy answers of an evaluation, each with what became of it."""
    rows = [row for row in lines_of(evaluated / "results.jsonl") if row.get("sample") == "greedy"]
    answers = sorted(lines_of(evaluated / "greedy.jsonl"), key=lambda answer: answer["index"])
    if rows and len(rows) == len(answers):
        write(
            evaluated / "answers.jsonl",
            "".join(
                json.dumps({**row, "answer": answer["text"]}) + "\n" for row, answer in zip(rows, answers)
            ),
        )


def tarred(files, mode="w"):
    """`files`: (name, bytes)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def archive(files):
    return tarred(files, "w:gz")


def contents(folder, patterns):
    """(name, bytes) of what is there at the moment: runs go on meanwhile."""
    for file in sorted({file for pattern in patterns for file in folder.glob(f"*/*/{pattern}")}):
        try:
            yield str(file.relative_to(folder)), file.read_bytes()
        except FileNotFoundError:
            pass


def replace(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


def pack(folder, home, most, max_files):
    """Files by what they are needed for, as many in a part as fit."""
    home.mkdir(parents=True, exist_ok=True)
    for run in folder.glob("*/*/run"):
        pick_rollouts(run)
    for summary in folder.glob("*/*/eval-*/summary.json"):
        pick_answers(summary.parent)
    files = [file for patterns in PACKED for file in contents(folder, patterns)]
    parts, room, left_out = [], most, 0
    for file in files:
        size = len(archive([file]))  # of each alone: together they are no larger
        if size <= most and room + size > most and len(parts) < max_files:
            parts.append([])
            room = 0
        if room + size > most:
            left_out += 1
            print(f"left out: {file[0]}, {size} bytes", file=sys.stderr)
            continue
        parts[-1].append(file)
        room += size
    packed = [archive(part) for part in parts]
    for i, part in enumerate(packed):
        replace(home / f"ablation-{i:03}.tar.gz", part)
    for old in sorted(home.glob("ablation-*.tar.gz"))[len(packed) :]:
        old.unlink()
    print(
        f"{len(files) - left_out} of {len(files)} files in {len(parts)} parts of at most"
        f" {max(map(len, packed), default=0)} bytes"
    )


def rounded(value):
    """Six digits are more than a clock or a mean of some hundred answers has."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def with_keys(row, keys):
    return {key: rounded(row[key]) for key in keys if row.get(key) is not None}


def of_lines(content, change):
    return b"".join(
        json.dumps(change(row), separators=(",", ":")).encode() + b"\n"
        for row in map(json.loads, content.splitlines())
    )


def small(name, content):
    """A file as `keep` has it: what the report reads of it."""
    end = name.split("/", 2)[2]
    if end.endswith("results.jsonl"):
        return of_lines(content, lambda row: with_keys(row, KEPT_OF_A_RESULT))
    if end == "run/metrics.jsonl":
        return of_lines(
            content,
            lambda step: with_keys(
                step, [key for key in step if key in KEPT_OF_A_STEP or key.startswith(KEPT_KINDS)]
            ),
        )
    if end.endswith("summary.json"):
        content_of = json.loads(content)
        return json.dumps(
            {"results": [with_keys(row, KEPT_OF_A_SEARCH) for row in content_of["results"]]}
            if "results" in content_of
            else {}
        ).encode()
    if end.endswith("some_rollouts.jsonl"):
        found = {}
        for rollout in map(json.loads, content.splitlines()):
            if rollout["verdict"] == "Disallowed" and rollout["reward"] > 0:
                found.setdefault(rollout["rule"], with_keys(rollout, KEPT_OF_A_ROLLOUT))
        return b"".join(
            json.dumps(rollout).encode() + b"\n" for _, rollout in sorted(found.items())[:EXAMPLES]
        )
    return content


def keep(folder, table, file, known):
    """The units that are done and stand in none of the archives in `known`, as one file; none where there are
    no such units. The same units are the same bytes."""
    names = names_in(known)
    kept = [unit.name for unit in table.units if is_done(unit, folder / unit.name) and unit.name not in names]
    for name in kept:
        pick_rollouts(folder / name / "run")
    files = [
        (name, small(name, content))
        for name, content in contents(folder, KEPT)
        if "/".join(name.split("/")[:2]) in kept
    ]
    if files:
        replace(file, lzma.compress(tarred(files), preset=9 | lzma.PRESET_EXTREME))
    print(
        f"{len(kept)} units kept, {file.stat().st_size if files else 0} bytes; {len(names)} were kept before"
    )


def archives(home):
    return sorted([*home.glob("*.tar.gz"), *home.glob("*.tar.xz")])


def names_in(home):
    found = set()
    for file in archives(home) if home else []:
        with tarfile.open(file) as tar:
            found |= {"/".join(name.split("/")[:2]) for name in tar.getnames()}
    return found


def unpack(home, folder):
    """Of `pack` or `keep`: `home` is a folder with archives, or one archive."""
    for file in [home] if home.is_file() else archives(pathlib.Path(home)):
        with tarfile.open(file) as tar:
            tar.extractall(folder, filter="data")
