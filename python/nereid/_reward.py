"""The reward of an answer, the same object for every trainer."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ._verdict import Verdict


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of the completion and what it earned."""

    start: int
    end: int
    """`completion[start:end]`, in characters (Unicode code points)."""
    name: str
    """`plan` or `code`."""
    reward: float


@dataclasses.dataclass(frozen=True)
class Reward:
    """What a completion earned. A fault of the judge has `status == "error"` and no reward: leave the sample
    out, or ask again."""

    reward: float | None
    """One number for the whole completion: the plan's component, which contains correctness and speed; of
    the objective `decoupled`
    the sum of plan and code. None of an error."""
    scores: Mapping[str, float]
    """`valid`, `correct` (0 or 1), and `speedup` (1 where nothing was timed). Empty of an error."""
    reward_components: Mapping[str, float]
    """`plan` and `code`, as the objective weighs them. Empty of an error."""
    spans: tuple[Span, ...]
    """Where plan and code stand in the completion; empty where no code was found."""
    status: str
    """`verified`, `refused` (the candidate's fault), or `error` (the judge's, or the task's)."""
    verdict: Verdict | None
    """None where the judge has no answer at all."""
    error: str | None = None
    """Of `status == "error"`: what failed."""
    receipt: Mapping[str, Any] | None = None
    """What was judged: SHA-256 of `reference` and `completion`, `seed`, `trace`, `seconds`; a server adds
    fields (docs/serve.md)."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON: reward, scores, reward_components, spans, status, verdict, receipt, and error where there
        is one."""
        answer = {
            "reward": self.reward,
            "scores": dict(self.scores),
            "reward_components": dict(self.reward_components),
            "spans": [dataclasses.asdict(span) for span in self.spans],
            "status": self.status,
            "verdict": (
                {k: v for k, v in self.verdict.json.items() if k != "receipt"}
                if self.verdict is not None
                else None
            ),
            "receipt": dict(self.receipt) if self.receipt is not None else None,
        }
        if self.error is not None:
            answer["error"] = self.error
        return answer

    def token_rewards(self, offsets: Sequence[tuple[int, int]], rest: float = 0.0) -> list[float]:
        """A reward for each token. `offsets[i]` is token i's (begin, end) in characters of the completion, as
        a tokenizer's `return_offsets_mapping` gives them. A token earns what the span that holds its first
        character earns, others `rest`.

        Raises ValueError of an error: a fault of the judge has no reward."""
        if self.reward is None:
            raise ValueError(f"no reward: {self.error}")
        found = []
        for begin, _ in offsets:
            inside = (span.reward for span in self.spans if span.start <= begin < span.end)
            found.append(next(inside, rest))
        return found

    @classmethod
    def from_verdict(cls, verdict: Verdict) -> "Reward":
        """Of a verdict that was judged with a reward objective."""
        given = verdict.json.get("reward")
        if verdict.verdict == "Error":
            return cls.of_error(verdict.reason, verdict)
        if given is None:
            raise ValueError(
                "the verdict has no reward: expected a Judge with reward='binary', 'hierarchical' or"
                " 'uniform'"
            )
        components = {"plan": float(given["plan"]), "code": float(given["code"])}
        speedup = given.get("speedup")
        scores = {
            "valid": float(given["valid"]),
            "correct": float(given["correct"]),
            "speedup": 1.0 if speedup is None else float(speedup),
        }
        places = verdict.spans or {}
        spans = tuple(
            Span(*places[name], name, components[name]) for name in ("plan", "code") if places.get(name)
        )
        decoupled = given.get("objective") == "decoupled"
        return cls(
            components["plan"] + components["code"] if decoupled else components["plan"],
            scores,
            components,
            spans,
            "verified" if verdict.verified else "refused",
            verdict,
            receipt=verdict.json.get("receipt"),
        )

    @classmethod
    def of_error(cls, error: str, verdict: Verdict | None = None) -> "Reward":
        """No reward, because the judge failed or the task cannot be judged."""
        return cls(None, {}, {}, (), "error", verdict, error)
