"""A unit's folder: what its files are called, and how they are read and written."""

import json

from fingerprint import FILE as FINGERPRINT  # noqa: F401

TRAINED, FAILED, MACHINE = "trained.json", "failed.txt", "machine.json"


def lines_of(path):
    """Whole lines alone: the last may be half written."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def write(path, text):
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def is_done(unit, folder):
    return (unit.program == "none" or (folder / TRAINED).exists()) and all(
        (folder / f"eval-{e.name}" / "summary.json").exists() for e in unit.evaluations
    )


def seconds_of(figures):
    """Of one step, as the run itself measured them: of reinforcement learning, or of fine-tuning."""
    return figures.get("step_s") or figures.get("seconds") or 0
