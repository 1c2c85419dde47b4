"""A verdict as Python sees it: the fields of `nereid verify`'s JSON, typed."""

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Evidence:
    """One sentence of evidence, and the place it speaks of."""

    rule: str
    """Name of the rule, as docs/verdicts.md lists them."""
    sentence: str
    kernel: str | None = None
    file: str | None = None
    line: int | None = None
    """Line of `file`, from 1."""
    source: str | None = None
    """That line's text."""
    numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self):
        place = f" ({self.file}:{self.line})" if self.file and self.line else ""
        return self.sentence + place


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a candidate is. `nereid.verify` and `nereid.Judge` return it; docs/verdicts.md explains every
    kind.

    A verdict says something about the candidate. `Error` is no verdict: it is an exception, or
    `Reward.status == "error"`.
    """

    verdict: str
    """`Verified`, or the first that applies: `Malformed`, `Untraceable`, `CompileFailed`, `Disallowed`,
    `Unsafe`, `Mismatch`, `TimedOut`."""
    reason: str
    """One sentence for a person."""
    rule: str | None
    """The rule that the candidate broke; None of `Verified`."""
    evidence: tuple[Evidence, ...]
    remarks: tuple[Evidence, ...]
    """What is true of the candidate and breaks no rule, such as an output buffer that is used again."""
    coverage: Mapping[str, Any]
    """What was looked at: device, trials, input distributions, kernels, launches, triton_share (0 to 1)."""
    errors: Mapping[str, Any] | None
    """The largest error that was found and its limit; None where nothing was compared."""
    times: Mapping[str, Any] | None
    """Measured on a GPU with `time=True`: milliseconds, and `speedup` = reference / candidate. Else None."""
    trace: str | None
    """Hash of what the candidate does. Given as `trace=` later, another one is `Disallowed`."""
    spans: Mapping[str, Any] | None
    """`code` and `plan` as (begin, end) in characters of the candidate's text; `plan` is None of Python
    source."""
    policy: str
    protocol: str
    seed: int
    """Repeats the same trials: `verify(..., seed=verdict.seed)`."""
    seconds: float
    """From the request to the answer, in seconds."""
    reference: str
    candidate: str
    machine: Mapping[str, Any]
    phases: Mapping[str, float]
    """Seconds of each phase."""
    blame: str | None = None
    """Of `Error` alone: `input` or `ours`."""
    verdict_without_rules: Mapping[str, Any] | None = None
    """With `ignore_rules=True`: what a `Disallowed` candidate would be if rules did not count."""
    feedback: str = ""
    """What a model repairs by, in at most 480 bytes: the verdict, its first evidence, the line. "" of
    `Verified`."""
    schema: int = 3
    json: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    """The whole answer as it came; fields that are newer than this class are here alone."""

    @property
    def verified(self) -> bool:
        """Whether the candidate is right, safe and within the policy."""
        return self.verdict == "Verified"

    @property
    def speedup(self) -> float | None:
        """Reference's time over the candidate's; None where nothing was timed."""
        return (self.times or {}).get("speedup")

    def __str__(self):
        return f"{self.verdict}: {self.reason}"

    @classmethod
    def from_json(cls, answer: Mapping[str, Any]) -> "Verdict":
        """From one line of `nereid verify --batch` or the object of `nereid verify --json`."""
        known = {field.name for field in dataclasses.fields(cls)} - {"json", "evidence", "remarks"}
        given = {key: answer[key] for key in known if key in answer}
        absent = {"verdict", "reason"} - set(given)
        if absent:
            raise ValueError(f"a verdict's JSON: expected the field {min(absent)!r}, got {sorted(answer)}")
        for key, default in _DEFAULTS.items():
            given.setdefault(key, default)
        return cls(
            **given, evidence=_evidence(answer, "evidence"), remarks=_evidence(answer, "remarks"), json=answer
        )


_DEFAULTS = {
    "rule": None, "coverage": {}, "errors": None, "times": None, "trace": None, "spans": None, "policy": "",
    "protocol": "nereid",
    "seed": 0, "seconds": 0.0, "reference": "", "candidate": "", "machine": {}, "phases": {},
}  # fmt: skip


def _evidence(answer, key):
    fields = {field.name for field in dataclasses.fields(Evidence)}
    return tuple(
        Evidence(**{name: item for name, item in one.items() if name in fields})
        for one in answer.get(key) or ()
    )
