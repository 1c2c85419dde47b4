"""What a unit was done with: so that results of several calls, on several machines, are of one model, one
sampler and one table of arms, or the report says that they are not.

A unit's fingerprint.json:
    {"base": SHA-256 of the weights that all begin with, or null without a model,
     "tokenizer": of tokenizer.json, "data": {FILE or FOLDER: of what was drawn for it},
     "arm": of its run file and its evaluations,
     "commit": of the programs, which is reported and not compared}
"""

import hashlib
import json
import os
import pathlib
import subprocess
import tomllib

from arms import Wrong

FILE = "fingerprint.json"
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHOWN = 6  # digits, and differing keys of run files


def digest(*parts):
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
        found.update(b"\0")
    return found.hexdigest()[:16]


class Prints:
    """Of what is in this folder. Each file is read once."""

    def __init__(self, table):
        self.table, self.known = table, {}

    def of(self, unit):
        lines = {
            f"{path}, {count} tasks": self.once(self.lines, path, count) for path, count in self.asked(unit)
        }
        rl, folders = (
            unit.run.get("rl", {}),
            [*unit.run.get("sft_mix", {}).get("train", []), *unit.run.get("data", {}).get("train", [])],
        )
        if unit.program == "none":
            rl, folders = {}, []
        data = {
            **lines,
            **{
                path: self.once(self.lines, path, None)
                for path in [*rl.get("tasks", []), *rl.get("held_out", [])]
            },
            **{path: self.once(self.shards, path) for path in folders},
        }
        model = unit.run.get("model", {}).get("start_from") if unit.asks_model else None
        return {
            "base": self.once(self.weights, model) if model else None,
            "tokenizer": (
                self.once(self.bytes_of, f"{self.table.assets}/tokenizer.json") if unit.asks_model else None
            ),
            "data": data,
            "arm": settings(unit),
            "commit": commit(),
        }

    def once(self, reads, *asked):
        """None where it is not there."""
        if asked not in self.known:
            try:
                self.known[asked] = reads(*asked)
            except FileNotFoundError:
                self.known[asked] = None
        return self.known[asked]

    @staticmethod
    def asked(unit):
        for e in unit.evaluations:
            yield from (
                (f"{e.tasks}/level{level}{end}.jsonl", count)
                for level in e.levels
                for end, count in (("", e.count), ("-large", e.large))
                if count
            )

    @staticmethod
    def bytes_of(path):
        return digest(pathlib.Path(path).read_bytes())

    @staticmethod
    def lines(path, count):
        return digest(*pathlib.Path(path).read_bytes().split(b"\n")[:count])

    @staticmethod
    def weights(folder):
        """Of a model without weights, of its shape."""
        files = sorted(pathlib.Path(folder).glob("*.safetensors")) or [pathlib.Path(folder) / "config.json"]
        return digest(*(file.read_bytes() for file in files))

    @staticmethod
    def shards(folder):
        """Of how many documents and tokens they have: the tokens themselves are many."""
        tokens = json.loads((pathlib.Path(folder) / "tokens.json").read_text())
        return digest(
            json.dumps(
                [tokens.get(key) for key in ("tokenizer", "left_out", "shards")], sort_keys=True
            ).encode()
        )


def settings(unit):
    evaluations = [{key: value for key, value in vars(e).items() if key != "says"} for e in unit.evaluations]
    return digest(unit.run_file().encode(), json.dumps([unit.program, evaluations], sort_keys=True).encode())


def commit():
    """$NEREID_COMMIT, what bench/remote/pack wrote down, or the checkout's."""
    if commit := os.environ.get("NEREID_COMMIT"):
        return commit
    try:
        return (ROOT / "carry/commit").read_text().strip()
    except OSError:
        done = subprocess.run(
            ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
        )
        return done.stdout.strip() or "unknown"


def short(value):
    return value[:SHOWN] if value else "none"


def keys_that_differ(there, here):
    """Differences of two run files, in words."""
    flat = [
        {
            f"{table}.{key}": value
            for table, keys in run.items()
            for key, value in (keys.items() if isinstance(keys, dict) else [("", keys)])
        }
        for run in (there, here)
    ]
    return [
        f"{key.rstrip('.')} is {json.dumps(flat[0].get(key))} there and {json.dumps(flat[1].get(key))} here"
        for key in sorted(flat[0].keys() | flat[1].keys())
        if flat[0].get(key) != flat[1].get(key)
    ]


def arm_in_words(unit, folder):
    try:
        differ = keys_that_differ(
            tomllib.loads((folder / "run.toml").read_text()), tomllib.loads(unit.run_file())
        )
    except (OSError, tomllib.TOMLDecodeError):
        differ = []
    return "; ".join(differ[:SHOWN]) or "its compute or its evaluations differ"


def read(folder):
    """None where nothing is begun there."""
    if not (folder / "run.toml").exists():
        return None
    try:
        return json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        raise Wrong(
            f"{folder}: expected {FILE}, which says what the unit was done with: it is of an older table, and"
            " cannot be mixed with others"
        ) from None


def differences(unit, folder, there, here):
    """Sentences; none where both are of one kind. What is missing on a side is not compared."""

    def differ(one, other):
        return None not in (one, other) and one != other

    said, where = [], f"{folder}: done"
    if differ(there["base"], here["base"]):
        said.append(
            f"{where} with another base model: its weights are {short(there['base'])}, those here"
            f" {short(here['base'])}"
        )
    if differ(there["tokenizer"], here["tokenizer"]):
        said.append(
            f"{where} with another tokenizer: {short(there['tokenizer'])} there, {short(here['tokenizer'])}"
            " here"
        )
    other = [
        path
        for path in sorted(there["data"].keys() & here["data"].keys())
        if differ(there["data"][path], here["data"][path])
    ]
    if other:
        said.append(
            f"{where} with tasks or data of another sampler, or of another number of programs:"
            f" {', '.join(other)} (commit {there['commit']} there, {here['commit']} here)"
        )
    if there["arm"] != here["arm"]:
        said.append(f"{where} with other settings of the arm: {arm_in_words(unit, folder)}")
    return said


def strangers(folder, table):
    """What in `folder` was done with other data than this, in words."""
    prints = Prints(table)
    return [
        line
        for unit in table.units
        if (there := read(folder / unit.name)) is not None
        for line in differences(unit, folder / unit.name, there, prints.of(unit))
    ]


def mixed(folder, table):
    """Likewise, of units against each other and against the table: where there is no model and no data, as
    where the report is written."""
    said, first = [], {}
    for unit in table.units:
        there = read(folder / unit.name)
        if there is None:
            continue
        if there["arm"] != settings(unit):
            said.append(
                f"{folder / unit.name}: done with other settings of the arm:"
                f" {arm_in_words(unit, folder / unit.name)}"
            )
        for what, value in [
            ("base model", there["base"]),
            ("tokenizer", there["tokenizer"]),
            *there["data"].items(),
        ]:
            if value is not None and value != first.setdefault(what, (value, unit.name))[0]:
                said.append(
                    f"{folder / unit.name}: done with another {what} ({short(value)}) than {first[what][1]}"
                    f" ({short(first[what][0])})"
                )
    return said


def commits(folder, table):
    return sorted(
        {there["commit"] for unit in table.units if (there := read(folder / unit.name)) is not None}
    )
