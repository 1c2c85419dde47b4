"""Rewards for trainers of language models that write kernels: adapters, each a few lines over `nereid.Judge`,
or over `nereid.Client` where the judge is a server.

    stack        adapter                                      the reference of a sample is its
    TRL          trl(judge)            -> reward function     column `reference`
    verl         compute_score         (a function)           `ground_truth`
    slime        custom_rm             (an async function)    `label`
    OpenRLHF     reward_func, openrlhf_response               `labels`
    verifiers    verifiers_taskset(..) -> Taskset class       its data's `reference`
                 verifiers(judge)      -> Rubric function     `answer` (before version 1)
    SkyRL        skyrl_env(judge)      -> BaseTextEnv class   `extras["reward_spec"]["ground_truth"]`
    Atropos      atropos_group         -> scored data         argument
    NeMo-Gym     nemo_gym_verify       (an async function)    `verifier_metadata["reference"]`

A reference is a path, source text, or a name in `Judge(tasks=...)`. Without one, the last code block with
`class Model` in the prompt is it. Every adapter ends at the same object, `nereid.Reward`, with
`{"reward", "scores", "reward_components", "spans", "status", "verdict", "receipt"}`.

A fault of the judge is never a low reward. TRL and OpenRLHF's HTTP shape have a place for a missing reward
(None); elsewhere it is `nereid.NereidError`, after the judge's own retries.

Functions that a trainer finds by name (`compute_score`, `custom_rm`, `reward_func`, `nemo_gym_verify`) use
one judge of their process. `configure(...)` makes it; else the environment does: $NEREID_SERVER (a URL of
`nereid serve`) with $NEREID_TOKEN, or in process $NEREID_JOBS (one a core), $NEREID_DEVICE, $NEREID_TIME=1
(time on a GPU); and $NEREID_REWARD (hierarchical), $NEREID_TASKS (a folder), $NEREID_POLICY, $NEREID_TIMEOUT
(seconds a sample may wait).
"""

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nereid._client import Client
from nereid._exceptions import InputError, NereidError
from nereid._chat import completion_text, prompt_text
from nereid._judge import BaseJudge, Judge
from nereid._reward import Reward, Span

__all__ = [
    "configure", "default_judge", "trl", "compute_score", "custom_rm", "openrlhf_response", "reward_func",
    "verifiers",
    "verifiers_taskset", "skyrl_env",
    "atropos_group", "nemo_gym_verify", "Reward", "Span",
]  # fmt: skip

_lock = threading.Lock()
_judge: BaseJudge | None = None


def configure(server: str | None = None, **options: Any) -> BaseJudge:
    """Makes the judge of this process and returns it: a `nereid.Client` of `server`, or a `nereid.Judge`,
    with their options. One that was there is closed."""
    global _judge
    with _lock:
        before, _judge = _judge, Client(server, **options) if server else Judge(**options)
        if before is not None:
            before.close()
        return _judge


def default_judge() -> BaseJudge:
    """The judge of this process; made from the environment where `configure` was not called."""
    global _judge
    with _lock:
        environment = os.environ.get
        if _judge is None and environment("NEREID_SERVER"):
            _judge = Client(
                reward=environment("NEREID_REWARD"),
                tasks=environment("NEREID_TASKS"),
                policy=environment("NEREID_POLICY"),
            )
        elif _judge is None:
            jobs = environment("NEREID_JOBS")
            _judge = Judge(
                int(jobs) if jobs else None,
                reward=environment("NEREID_REWARD", "hierarchical"),
                tasks=environment("NEREID_TASKS"),
                time=environment("NEREID_TIME") == "1",
                policy=environment("NEREID_POLICY"),
                device=environment("NEREID_DEVICE"),
            )
        return _judge


def _timeout():
    seconds = os.environ.get("NEREID_TIMEOUT")
    return float(seconds) if seconds else None


def _given(reward):
    """The reward itself. Raises NereidError of a fault."""
    if reward.reward is None:
        raise NereidError(reward.error)
    return reward


# -- TRL ---------------------------------------------------------------------------------------------------


def trl(
    judge: BaseJudge | None = None, column: str = "reference", *, asynchronous: bool = False
) -> Callable[..., Any]:
    """A reward function for TRL's `GRPOTrainer(reward_funcs=[...])`:
    `f(prompts, completions, **columns) -> list[float | None]`.

    column        the data set's column with references; without it they come from the prompts
    asynchronous  a coroutine function instead, which TRL awaits with others

    None leaves a sample out of the update: the judge, or its task, is at fault."""

    def arguments(prompts, completions, columns):
        return prompts, completions, columns.get(column)

    def nereid_reward(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        chosen = judge or default_judge()
        return [
            reward.reward
            for reward in chosen.rewards(*arguments(prompts, completions, columns), timeout=_timeout())
        ]

    async def nereid_reward_async(
        prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        chosen = judge or default_judge()
        return [
            reward.reward
            for reward in await chosen.arewards(*arguments(prompts, completions, columns), timeout=_timeout())
        ]

    return nereid_reward_async if asynchronous else nereid_reward


# -- verl --------------------------------------------------------------------------------------------------


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    **_: Any,
) -> dict[str, Any]:
    """verl: `reward.custom_reward_function.path=pkg://nereid.rewards` (or this file's path),
    `name=compute_score`.

    ground_truth    the reference: a path, source text, or a name in the judge's tasks
    Returns `score` (the reward), `acc` (1 where verified), `valid`, `speedup`, `plan`, `code`: numbers, the
    same keys always. Raises NereidError of a judge's fault: verl has no missing score."""
    reference = _ground_truth(ground_truth) or (extra_info or {}).get("reference")
    prompt = (extra_info or {}).get("prompt", "")
    (reward,) = await default_judge().arewards(
        [prompt], [solution_str], [reference] if reference else None, timeout=_timeout()
    )
    _given(reward)
    return {
        "score": reward.reward,
        "acc": reward.scores["correct"],
        "valid": reward.scores["valid"],
        "speedup": reward.scores["speedup"],
        **reward.reward_components,
    }


def _ground_truth(given):
    return given.get("reference") or given.get("ground_truth") if isinstance(given, Mapping) else given


# -- slime -------------------------------------------------------------------------------------------------


async def custom_rm(args: Any, sample: Any, **_: Any) -> Any:
    """slime: `--custom-rm-path nereid.rewards.custom_rm`. A sample's `label` is its reference.

    Returns the reward, or with `--reward-key KEY` the whole answer as a dictionary. Of a list of samples
    (`--group-rm`) it returns a list. Raises NereidError of a judge's fault."""
    samples = sample if isinstance(sample, list) else [sample]
    labels = [getattr(one, "label", None) for one in samples]
    prompts, responses = [one.prompt for one in samples], [one.response for one in samples]
    rewards = await default_judge().arewards(
        prompts, responses, labels if all(labels) else None, timeout=_timeout()
    )
    as_dictionary = bool(getattr(args, "reward_key", None))
    answers = [_given(reward).to_dict() if as_dictionary else _given(reward).reward for reward in rewards]
    return answers if isinstance(sample, list) else answers[0]


# -- OpenRLHF ----------------------------------------------------------------------------------------------


def openrlhf_response(
    query: Sequence[str],
    prompts: Sequence[str],
    labels: Sequence[str] | None = None,
    judge: BaseJudge | None = None,
) -> dict[str, Any]:
    """What OpenRLHF's `--reward.remote_url` expects of a POST with `query` (prompt and answer in one text),
    `prompts`, `labels`.

    Returns `rewards` and `scores` (a number or None each) and `extra_logs` (lists of numbers; NaN where there
    is no reward)."""
    completions = [
        text[len(prompt) :] if text.startswith(prompt) else text for text, prompt in zip(query, prompts)
    ]
    rewards = (judge or default_judge()).rewards(prompts, completions, labels, timeout=_timeout())
    names = ("valid", "correct", "speedup")
    return {
        "rewards": [reward.reward for reward in rewards],
        "scores": [reward.scores.get("correct") for reward in rewards],
        "extra_logs": {name: [reward.scores.get(name, math.nan) for reward in rewards] for name in names},
    }


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str] | None = None, **_: Any
) -> dict[str, Any]:
    """OpenRLHF: a file named by `--reward.remote_url FILE.py` with `from nereid.rewards import reward_func`.
    Tensors of float32, shape [number of queries]. Raises NereidError of a judge's fault."""
    import torch

    answer = openrlhf_response(queries, prompts, labels)
    if None in answer["rewards"]:
        raise NereidError(
            f"no reward for query {answer['rewards'].index(None)}: the judge or the task is at fault"
        )
    return {
        "rewards": torch.tensor(answer["rewards"], dtype=torch.float32),
        "scores": torch.tensor(answer["scores"], dtype=torch.float32),
        "extra_logs": {
            name: torch.tensor(values, dtype=torch.float32) for name, values in answer["extra_logs"].items()
        },
    }


# -- verifiers ---------------------------------------------------------------------------------------------


def verifiers(judge: BaseJudge | None = None) -> Callable[..., Any]:
    """A reward function for `verifiers.Rubric(funcs=[...])`; a row's `answer` is its reference, else its
    `info["reference"]`.

    The whole answer is left in `state["nereid"]`: spans for per-token advantages are there. Raises
    NereidError of a judge's fault.
    """

    async def nereid_reward(
        prompt: Any, completion: Any, answer: Any = "", state: Any = None, info: Any = None, **_: Any
    ) -> float:
        reference = answer or (info or {}).get("reference")
        (reward,) = await (judge or default_judge()).arewards(
            [prompt], [completion_text(completion)], [reference] if reference else None, timeout=_timeout()
        )
        if state is not None:
            state["nereid"] = reward.to_dict()
        return _given(reward).reward

    return nereid_reward


def verifiers_taskset(
    tasks: str | os.PathLike[str] | Mapping[str, str],
    prompt: (
        str | Callable[[str], str]
    ) = "Write this PyTorch module as Triton kernels, in a class `ModelNew`:\n",
    judge: BaseJudge | None = None,
) -> type:
    """A `Taskset` class of verifiers' version 1 (prime-rl's environments). A module of yours exports it:

        NereidTaskset = nereid.rewards.verifiers_taskset("tasks/")
        __all__ = ["NereidTaskset"]

    tasks     a folder of references (NAME.py), or a mapping from names to sources
    prompt    what comes before the reference's code block, or a function from the source to the whole prompt

    Each trace gets the reward `nereid`, scores and components as metrics, and the whole answer in
    `trace.info["nereid"]`: spans for per-token advantages are there. A judge's fault raises NereidError,
    which makes the trace an error; a task whose reference does not run fails `validate`. Needs the package
    `verifiers`."""
    import verifiers.v1 as vf

    def chosen():
        return judge or default_judge()

    class NereidData(vf.TaskData):
        reference: str

    class NereidTask(vf.Task[NereidData]):
        """A PyTorch module to write as kernels."""

        @vf.reward
        async def nereid(self, trace: vf.Trace) -> float:
            answer = trace.assistant_messages[-1].content if trace.assistant_messages else ""
            (reward,) = await chosen().arewards(
                [""],
                [completion_text({"content": answer})],
                [_source(self.data.reference)],
                timeout=_timeout(),
            )
            trace.info["nereid"] = _given(reward).to_dict()
            trace.record_metrics({**reward.scores, **reward.reward_components})
            return reward.reward

        async def validate(self, runtime: Any) -> bool:
            # Whatever its verdict: a reference at fault is no verdict but an error.
            own = _source(self.data.reference + "\n\nModelNew = Model\n")
            try:
                await chosen().averify(_source(self.data.reference), own, timeout=_timeout())
            except InputError:
                return False
            return True

    class NereidTaskset(vf.Taskset[NereidTask, vf.TasksetConfig]):
        """References, each with its prompt."""

        def load(self):
            for name, reference in _references(tasks):
                text = prompt(reference) if callable(prompt) else f"{prompt}```python\n{reference}```\n"
                yield NereidTask(
                    NereidData(id=name, name=name, prompt=text, reference=reference), self.config.task
                )

    return NereidTaskset


def _source(text):
    """Text that no judge takes for a name."""
    return text if "\n" in text else text + "\n"


def _references(tasks):
    """(name, source) of each task, by name."""
    if isinstance(tasks, Mapping):
        return sorted(tasks.items())
    folder = Path(tasks)
    found = [
        (str(path.relative_to(folder).with_suffix("")), path.read_text()) for path in folder.rglob("*.py")
    ]
    if not found:
        raise InputError(f"{folder}: expected a folder with references, NAME.py")
    return sorted(found)


# -- SkyRL -------------------------------------------------------------------------------------------------


def skyrl_env(judge: BaseJudge | None = None, *, turns: int = 1) -> type:
    """A `skyrl_gym` environment class: `skyrl_gym.register(id="nereid", entry_point=...)`, or used directly.

    turns    with more than one, what is not verified is answered with its evidence as the next observation

    Each step's metadata is the whole answer. Raises NereidError of a judge's fault. Needs the package
    `skyrl-gym`."""
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    class NereidEnv(BaseTextEnv):
        """Kernels, judged by Nereid."""

        def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None):
            super().__init__()
            extras = extras or {}
            self.reference = extras.get("reference") or _ground_truth(
                (extras.get("reward_spec") or {}).get("ground_truth")
            )
            self.max_turns = extras.get("max_turns", turns)
            self.prompt: Any = ""

        def init(self, prompt):
            self.prompt = prompt
            return prompt, {}

        def step(self, action: str):
            self.turns += 1
            references = [self.reference] if self.reference else None
            (reward,) = (judge or default_judge()).rewards(
                [self.prompt], [action], references, timeout=_timeout()
            )
            _given(reward)
            done = reward.status == "verified" or self.turns >= self.max_turns
            observations = [] if done else [{"role": "user", "content": _feedback(reward)}]
            return BaseTextEnvStepOutput(
                observations=observations, reward=reward.reward, done=done, metadata=reward.to_dict()
            )

    return NereidEnv


def _feedback(reward):
    verdict = reward.verdict
    return verdict.feedback or f"{verdict.verdict}: {verdict.reason}"


# -- Atropos -----------------------------------------------------------------------------------------------


def atropos_group(
    prompt: str,
    completions: Sequence[str],
    encode: Callable[[str], tuple[Sequence[int], Sequence[tuple[int, int]]]],
    reference: Any = None,
    judge: BaseJudge | None = None,
) -> dict[str, Any]:
    """A group for Atropos' POST `/scored_data`: `tokens`, `masks`, `scores`, `advantages`, each a list with
    an item a completion.

    encode      of a text its token ids and, of each, (begin, end) in characters: an "offset mapping"
    masks       -100 on the prompt's tokens, the token's id on the completion's
    advantages  per token: what its span (plan or code) earned, less the mean of that component over the
                group; 0 on the prompt

    Completions that the judge could not judge are left out."""
    references = [reference] * len(completions) if reference is not None else None
    rewards = (judge or default_judge()).rewards(
        [prompt] * len(completions), completions, references, timeout=_timeout()
    )
    judged = [(text, reward) for text, reward in zip(completions, rewards) if reward.reward is not None]
    means = {
        name: sum(reward.reward_components[name] for _, reward in judged) / max(len(judged), 1)
        for name in ("plan", "code")
    }
    group: dict[str, Any] = {"tokens": [], "masks": [], "scores": [], "advantages": []}
    before, _ = encode(prompt)
    for text, reward in judged:
        ids, offsets = encode(text)
        centred = Reward(
            reward.reward, reward.scores, reward.reward_components,
            tuple(Span(span.start, span.end, span.name,
                span.reward - means[span.name]) for span in reward.spans),
            reward.status, reward.verdict,
        )  # fmt: skip
        group["tokens"].append([*before, *ids])
        group["masks"].append([*[-100] * len(before), *ids])
        group["scores"].append(reward.reward)
        group["advantages"].append([*[0.0] * len(before), *centred.token_rewards(offsets)])
    return group


# -- NeMo-Gym ----------------------------------------------------------------------------------------------


async def nemo_gym_verify(body: Mapping[str, Any], judge: BaseJudge | None = None) -> dict[str, Any]:
    """The body of NeMo-Gym's `SimpleResourcesServer.verify`: what came, and `reward`, `reward_components`,
    `scores`, `spans`, ...

    body    `responses_create_params.input` (the prompt), `response.output` (OpenAI Responses), and the
            reference in `verifier_metadata["reference"]`, `reference` or `label`

    Raises NereidError of a judge's fault; a server makes it NeMo-Gym's `JudgeError`."""
    metadata = body.get("verifier_metadata") or {}
    reference = metadata.get("reference") or body.get("reference") or body.get("label")
    prompt = (body.get("responses_create_params") or {}).get("input", "")
    parts = [
        item
        for item in (body.get("response") or {}).get("output", ())
        if item.get("type", "message") == "message"
    ]
    (reward,) = await (judge or default_judge()).arewards(
        [prompt_text(prompt)],
        [completion_text(parts)],
        [reference] if reference else None,
        timeout=_timeout(),
    )
    answer = _given(reward).to_dict()
    return {**body, **answer}
