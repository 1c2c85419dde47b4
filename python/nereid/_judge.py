"""The judge in this process: `verify` for one pair, `Judge` for many."""

import abc
import asyncio
import concurrent.futures
import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _program
from ._chat import SourceText, completion_text, reference_in
from ._exceptions import InputError, NereidError
from ._judge_process import JudgeProcess, Pair
from ._reward import Reward
from ._verdict import Verdict

# A pair's own options, as docs/batch_protocol.md names them; the program checks their values.
PAIR_OPTIONS = {
    "policy", "device", "protocol", "trials", "seed", "time_limit", "verdict_limit", "rtol", "atol",
    "allow_tf32",
    "fast_inputs", "shrink", "ignore_rules", "forbid", "trace", "form", "reference_name", "candidate_name",
}  # fmt: skip


def verify(
    reference: str | Path,
    candidate: str | Path,
    *,
    timeout: float | None = None,
    time: bool = False,
    **options: Any,
) -> Verdict:
    """Judges one candidate against its reference.

    reference    a task: the path of a file, or its source text (text that holds a line break)
    candidate    a path or source text with `class ModelNew`, or a model's answer with a code block
    timeout      seconds that this call waits; then NereidError
    time         on a GPU, time the two: `verdict.times`, `verdict.speedup`
    options      policy="strict"|"mostly"|"hybrid", device="cpu"|"cuda", protocol="nereid"|"kernelbench",
                 trials=3, seed=None, time_limit=30 (seconds of a candidate's work in each phase),
                 verdict_limit (seconds of all of its replays), rtol, atol, allow_tf32, shrink, forbid, trace,
                 form="source"|"answer": as `nereid verify --help` says

    Returns a Verdict, of whatever kind. Raises InputError where the reference or an option is at fault,
    NereidError where Nereid is. For many pairs a `Judge` is several times faster: its processes stay warm.
    """
    with Judge(jobs=1, time=time) as judge:
        return judge.verify(reference, candidate, timeout=timeout, **options)


class BaseJudge(abc.ABC):
    """What a judge in this process (`Judge`) and one that is a server (`Client`) have in common. `_made_of`,
    `_places`, `_send` and `close` are theirs."""

    _made_of: Mapping[str, Any]

    def __init__(self, options, retries, tasks):
        self._options, self._retries, self._tasks = options, retries, tasks

    # -- one pair -------------------------------------------------------------------------------------------

    def submit(
        self, reference: str | Path, candidate: str | Path, **options: Any
    ) -> "concurrent.futures.Future[Verdict]":
        """Begins to judge a pair. The future's result is its Verdict; its exception InputError or
        NereidError."""
        _program.check(options, PAIR_OPTIONS, "Judge.verify")
        line = {key: value for key, value in {**self._options, **options}.items() if value is not None}
        line.update(self._places(reference, candidate))
        future: concurrent.futures.Future[Verdict] = concurrent.futures.Future()
        self._send(Pair(line, future, self._retries))
        return future

    def verify(
        self, reference: str | Path, candidate: str | Path, *, timeout: float | None = None, **options: Any
    ) -> Verdict:
        """Judges one pair and waits for it; arguments and errors are those of `nereid.verify`."""
        return _wait(self.submit(reference, candidate, **options), timeout)

    async def averify(
        self, reference: str | Path, candidate: str | Path, *, timeout: float | None = None, **options: Any
    ) -> Verdict:
        """`verify` for asyncio. Cancelling it leaves the judge in order."""
        future = asyncio.wrap_future(self.submit(reference, candidate, **options))
        try:
            return await asyncio.wait_for(future, timeout)
        except asyncio.TimeoutError as error:
            raise NereidError(f"no verdict after {timeout} s") from error

    # -- rewards --------------------------------------------------------------------------------------------

    def rewards(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        references: Sequence[str | Path] | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> list[Reward]:
        """A Reward for each completion, in order. A fault of the judge is a Reward with `status == "error"`,
        never a low one.

        prompts       texts, or lists of chat messages
        completions   texts, or lists of chat messages (the last assistant's counts): answers with a code
                      block, or source
        references    of each completion its task: a path, source text, or a name in `tasks`. None: the last
                      code block with `class Model` in the prompt
        timeout       seconds for each; what takes longer is an error
        """
        futures = self._submit_all(prompts, completions, references, options)
        return [_reward_of(future, timeout) for future in futures]

    async def arewards(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        references: Sequence[str | Path] | None = None,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> list[Reward]:
        """`rewards` for asyncio."""
        futures = self._submit_all(prompts, completions, references, options)

        async def wait(future):
            if isinstance(future, Reward):
                return future
            try:
                return Reward.from_verdict(await asyncio.wait_for(asyncio.wrap_future(future), timeout))
            except asyncio.TimeoutError:
                return Reward.of_error(f"no verdict after {timeout} s")
            except (InputError, NereidError) as error:
                return Reward.of_error(str(error))

        return list(await asyncio.gather(*map(wait, futures)))

    def _submit_all(self, prompts, completions, references, options):
        self._check_rewards()
        if len(prompts) != len(completions) or (
            references is not None and len(references) != len(completions)
        ):
            counts = f"{len(prompts)} prompts, {len(completions)} completions"
            raise InputError(
                f"rewards: expected as many of each, got {counts}"
                + (f", {len(references)} references" if references is not None else "")
            )
        futures = []
        for i, (prompt, completion) in enumerate(zip(prompts, completions)):
            try:
                reference = references[i] if references is not None else reference_in(prompt)
                text = completion_text(completion)
                given = {"form": "answer", **options} if "```" in text else options
                futures.append(self.submit(reference, SourceText(text), **given))
            except (InputError, NereidError) as error:
                futures.append(Reward.of_error(str(error)))
        return futures

    def _resolve(self, reference):
        """A name in `tasks`, else the reference as it is."""
        if self._tasks is None or not isinstance(reference, str) or "\n" in reference:
            return reference
        if callable(self._tasks):
            return self._tasks(reference)
        if isinstance(self._tasks, Mapping):
            if reference not in self._tasks:
                raise InputError(f"task {reference!r}: not among the {len(self._tasks)} tasks")
            return self._tasks[reference]
        folder = Path(self._tasks).resolve()
        path = (folder / reference).resolve()
        if not path.is_relative_to(folder):
            raise InputError(f"task {reference!r}: expected a name below {folder}")
        path = path if path.is_file() else path.with_name(path.name + ".py")
        if not path.is_file():
            raise InputError(f"task {reference!r}: {path} does not exist")
        return path

    def _check_rewards(self):
        """Raises InputError where this judge gives no rewards."""

    @abc.abstractmethod
    def _places(self, reference, candidate):
        """The two as keys of a line."""

    @abc.abstractmethod
    def _send(self, pair):
        """Hands a pair over; its future gets the verdict."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the judge. Pairs that are under way get NereidError."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Judge(BaseJudge):
    """A judge that stays: one `nereid verify --batch` process with `jobs` pairs under way. Use it as a
    context manager.

        with nereid.Judge(jobs=8, reward="hierarchical", policy="strict") as judge:
            verdict = judge.verify("task.py", "kernel.py")
            rewards = judge.rewards(prompts, completions, references)
            verdict = await judge.averify("task.py", "kernel.py")

    jobs            pairs at the same time; None: one a core
    reward          objective of `rewards`: binary, hierarchical or uniform (docs/batch_protocol.md)
    speedup_limit   a speed-up counts no more than this in a reward
    time            on a GPU, time what is verified; it sets `verdict.speedup` and the speed-up in rewards
    retries         how often a pair is judged again after a fault of Nereid's own
    tasks           where a reference that is a name comes from: a folder (`tasks/NAME.py`), a mapping, or a
                    function of the name
    options         of every pair, as of `verify`; each call may replace them

    All methods may be called from any thread and from asyncio. A process that died is started anew, and its
    pairs are judged again. A forked child and an unpickled copy start a process of their own, on first use.
    A judge that nothing refers to ends, but not before the pairs that are under way.
    """

    def __init__(
        self,
        jobs: int | None = None,
        *,
        reward: str | None = "hierarchical",
        speedup_limit: float | None = None,
        time: bool = False,
        retries: int = 1,
        tasks: str | Path | Mapping[str, str | Path] | Callable[[str], str | Path] | None = None,
        **options: Any,
    ):
        _program.check(options, PAIR_OPTIONS, "Judge")
        if jobs is not None and (not isinstance(jobs, int) or not 1 <= jobs <= 1024):
            raise InputError(f"Judge(jobs={jobs!r}): expected a number from 1 to 1024")
        if reward not in (None, "binary", "hierarchical", "uniform"):
            raise InputError(
                f"Judge(reward={reward!r}): expected 'binary', 'hierarchical', 'uniform' or None"
            )
        self._made_of = dict(
            jobs=jobs,
            reward=reward,
            speedup_limit=speedup_limit,
            time=time,
            retries=retries,
            tasks=tasks,
            **options,
        )
        super().__init__(options, retries, tasks)
        self._arguments = ["verify", "--batch", "-"]
        for name, value in (("--jobs", jobs), ("--reward", reward), ("--speedup-limit", speedup_limit)):
            self._arguments += [name, str(value)] if value is not None else []
        self._arguments += ["--time"] if time else []
        self._prepare()

    def _prepare(self):
        self._lock = threading.Lock()
        self._process, self._owner, self._closed = None, os.getpid(), False
        self._ids = itertools.count(1)

    def __reduce__(self):
        return _judge_of, (self._made_of,)

    def __repr__(self):
        given = (f"{key}={value!r}" for key, value in self._made_of.items() if value is not None)
        return f"nereid.Judge({', '.join(given)})"

    def _check_rewards(self):
        if self._made_of["reward"] is None:
            raise InputError(
                "Judge(reward=None) gives verdicts alone; expected reward='binary', 'hierarchical' or"
                " 'uniform'"
            )

    def _places(self, reference, candidate):
        return {**_place("reference", self._resolve(reference)), **_place("candidate", candidate)}

    # -- the process ----------------------------------------------------------------------------------------

    def _send(self, pair):
        if os.getpid() != self._owner:  # a forked child: the process and its threads are the parent's
            self._prepare()
        with self._lock:
            if self._closed:
                raise NereidError("the Judge is closed")
            if self._process is None or self._process.ended:
                self._process = JudgeProcess(self._arguments)
            pair.id, pair.judge = next(self._ids), self
            self._process.ask(pair)

    def _again(self, pair, error):
        """After a fault of Nereid's own: judges the pair again, or says what failed."""
        if pair.retries > 0 and not self._closed:
            pair.retries -= 1
            try:
                self._send(pair)
                return
            except NereidError as newer:
                error = newer
        pair.finish(error=error)

    def close(self) -> None:
        """Ends the process. Pairs that are under way get NereidError."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None and os.getpid() == self._owner:
            process.close()

    def __del__(self):
        if getattr(self, "_process", None) is not None:
            self.close()


def _judge_of(made_of):
    return Judge(**made_of)


def _wait(future, timeout):
    try:
        return future.result(timeout)
    except concurrent.futures.TimeoutError as error:
        future.cancel()
        raise NereidError(f"no verdict after {timeout} s") from error


def _reward_of(future, timeout):
    if isinstance(future, Reward):
        return future
    try:
        return Reward.from_verdict(_wait(future, timeout))
    except (InputError, NereidError) as error:
        return Reward.of_error(str(error))


def _place(key, given):
    """A path as `key`, text as `key_source`."""
    if isinstance(given, os.PathLike) or (
        isinstance(given, str) and not isinstance(given, SourceText) and _is_path(given)
    ):
        path = Path(given).expanduser().absolute()
        if not path.is_file():
            raise InputError(f"{key}: {path}: no such file")
        return {key: str(path)}
    if not isinstance(given, str):
        raise InputError(f"{key}: expected a path or source text, got a {type(given).__name__}")
    return {f"{key}_source": str(given)}


def _is_path(text):
    return "\n" not in text and 0 < len(text) < 4096
