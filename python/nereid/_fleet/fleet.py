"""Hands out pairs to the judges of a Ray cluster.

    submit -> waiting -> an actor (at most `jobs` + 1 pairs each) -> write

With a clock there are two kinds of actors: judges on processors trace, compile and verify; what is Verified
goes on to a clock, which has a GPU and times exactly the trace that was judged:

    submit -> waiting of the judges -> Verified -> waiting of the clocks -> write

Every line is answered once. A pair whose actor or node is lost is sent again elsewhere. One under which a
judge died, or that got an Error of Nereid's own, is sent again alone, to another judge where there is one: so
the pair that kills judges is found out, and the others are judged. After DEATHS, LOSSES or ERRORS its answer
is an Error with blame "ours".

Actors are asked for by the length of the queue. Those that have no place yet are what Ray's autoscaler acts
on: they end with this process, however it ends, which a call of `request_resources` would not.
"""

import asyncio
import collections
import dataclasses
import json
import math
import sys
import time

from . import judge as judge_module

DEATHS, LOSSES, ERRORS = 3, 6, 2  # of one pair
MOST_TROUBLES = 3  # of an actor in a row, without a verdict: another takes its place
SECONDS_UNFIT = 60.0  # in which a node that cannot judge is not tried again
SECONDS_BETWEEN_TICKS = 0.25
SECONDS_BETWEEN_REPORTS = 5.0  # at most; a change is reported at once
MOST_STARTING = 64
MOST_BETWEEN_STARTS = 10.0  # seconds, after starts that failed


@dataclasses.dataclass
class Kind:
    """A kind of actors, and the pairs that wait for one."""

    name: str
    words: list  # of a judge's command line, after the program
    least: int
    most: int  # actors
    jobs: int  # pairs that one has at a time
    cpus: int  # what an actor takes of its node
    gpus: int
    waiting: collections.deque = dataclasses.field(default_factory=collections.deque)
    suspects: collections.deque = dataclasses.field(default_factory=collections.deque)


@dataclasses.dataclass
class Options:
    judge: Kind
    clock: Kind | None  # where verdicts and times are had apart
    patience: float  # seconds that a judge may be silent
    idle: float  # seconds after which an actor that is not needed ends


@dataclasses.dataclass
class Pair:
    id: str
    line: bytes
    kind: Kind  # of the actor that it waits for, or that has it
    verdict: dict | None = None  # for a clock: the judge's
    trace: tuple | None = None  # (file name, bytes) of what was judged
    deaths: int = 0
    losses: int = 0
    errors: int = 0
    avoids: set = dataclasses.field(default_factory=set)  # numbers of actors

    @property
    def alone(self):
        return self.deaths > 0 or self.errors > 0 or self.losses > 1


@dataclasses.dataclass
class Actor:
    number: int
    kind: Kind
    handle: object
    place: dict = None  # None: it has no place on a node yet, or proves itself
    under_way: dict = dataclasses.field(default_factory=dict)
    alone: bool = False
    dropped: bool = False  # by us: its pairs are not to blame
    verdicts: int = 0
    troubles: int = 0  # in a row
    children: set = dataclasses.field(default_factory=set)  # judges of it that died
    busy: float = 0.0  # when it last had something to do


class Fleet:
    """`ray` is connected. `write(line)` takes an answer or report as bytes without a line end. Not
    thread-safe: `submit` and `run` belong to one event loop."""

    def __init__(self, ray, options, write):
        self.ray, self.options, self.write = ray, options, write
        ray.cloudpickle.register_pickle_by_value(judge_module)
        self.remote = ray.remote(judge_module.Judge)
        self.kinds = [kind for kind in (options.judge, options.clock) if kind is not None]
        self.identity = judge_module.identity()
        self.actors, self.unfit, self.tasks = {}, {}, set()
        self.numbers = 0
        self.failed_starts, self.not_before = 0, 0.0  # in a row; no actor begins before that
        self.lost = 0
        self.errors, self.reported, self.reported_at = [], None, 0.0

    def submit(self, line):
        try:
            id = json.loads(line.decode("utf-8", "surrogateescape"))["id"]
        except (ValueError, KeyError, TypeError) as error:
            return print(f"a line without an id: {error}", file=sys.stderr, flush=True)
        self.options.judge.waiting.append(Pair(id, line, self.options.judge))
        self.fill()

    async def run(self):
        """Until it is cancelled."""
        while True:
            self.scale()
            self.fill()
            self.report()
            await asyncio.sleep(SECONDS_BETWEEN_TICKS)

    def end(self):
        for actor in list(self.actors.values()):
            self.ray.kill(actor.handle)
        self.actors.clear()

    # How many actors there are.

    def actors_of(self, kind):
        return [actor for actor in self.actors.values() if actor.kind is kind]

    def wanted(self, kind):
        under_way = sum(len(actor.under_way) for actor in self.actors_of(kind))
        pairs = len(kind.waiting) + len(kind.suspects) + under_way
        return min(max(math.ceil(pairs / kind.jobs), kind.least), kind.most)

    def scale(self):
        now = time.monotonic()
        self.unfit = {node: until for node, until in self.unfit.items() if until > now}
        for kind in self.kinds:
            wanted, actors = self.wanted(kind), self.actors_of(kind)
            count, starting = len(actors), sum(actor.place is None for actor in actors)
            while count < wanted and starting < MOST_STARTING and now >= self.not_before:
                self.begin(kind)
                count, starting = count + 1, starting + 1
            for actor in sorted(actors, key=lambda actor: actor.place is not None):
                if count <= wanted:
                    break
                if not actor.under_way and now - actor.busy > self.options.idle:
                    self.drop(actor)
                    count -= 1

    def begin(self, kind):
        self.numbers += 1
        resources = {"num_cpus": kind.cpus, "num_gpus": kind.gpus}
        if self.unfit:
            resources["label_selector"] = {"ray.io/node-id": f"!in({','.join(sorted(self.unfit))})"}
        handle = self.remote.options(max_restarts=0, max_concurrency=1000, **resources).remote(
            kind.words, self.options.patience
        )
        actor = Actor(self.numbers, kind, handle, busy=time.monotonic())
        self.actors[actor.number] = actor
        self.keep(self.start(actor))

    async def start(self, actor):
        try:
            place = await actor.handle.start.remote(self.identity)
        except self.ray.exceptions.RayError as error:
            if actor.number in self.actors:
                self.error(f"a judge ended before it had a pair: {first_line(error)}")
                self.lost += 1
                self.failed_starts += 1
                self.not_before = time.monotonic() + min(0.5 * 2**self.failed_starts, MOST_BETWEEN_STARTS)
                self.drop(actor)
            return
        if actor.number not in self.actors:
            return
        if "unfit" in place:
            self.unfit[place["node_id"]] = time.monotonic() + SECONDS_UNFIT
            self.error(f"node {name_of(place)} cannot judge: {place['unfit']}")
            return self.drop(actor)
        actor.place, actor.busy = place, time.monotonic()
        self.failed_starts = 0
        self.fill()

    def drop(self, actor):
        """Ends an actor. What it had is its owner's to ask again: `ask` sees that the call failed."""
        if self.actors.pop(actor.number, None) is not None:
            self.ray.kill(actor.handle)

    # Who gets which pair.

    def fill(self):
        for kind in self.kinds:
            self.fill_kind(kind)

    def fill_kind(self, kind):
        ready = [actor for actor in self.actors_of(kind) if actor.place is not None and not actor.alone]
        # Suspects first: an actor that is to have one gets nothing else until it is empty.
        for _ in range(min(len(kind.suspects), len(ready))):
            pair = kind.suspects[0]
            fit = [actor for actor in ready if actor.number not in pair.avoids] or ready
            actor = min(fit, key=lambda actor: len(actor.under_way))
            ready.remove(actor)
            if actor.under_way:
                kind.suspects.rotate(-1)
                continue
            kind.suspects.popleft()
            actor.alone = True
            self.give(actor, pair)
        while kind.waiting and ready:
            actor = min(ready, key=lambda actor: len(actor.under_way))
            if len(actor.under_way) > kind.jobs:
                break
            self.give(actor, kind.waiting.popleft())

    def give(self, actor, pair):
        actor.under_way[id(pair)] = pair
        self.keep(self.ask(actor, pair))

    async def ask(self, actor, pair):
        try:
            answered = await actor.handle.judge.remote(pair.id, pair.line, pair.trace)
        except self.ray.exceptions.RayError as error:
            answered = {"lost": first_line(error)}
        actor.under_way.pop(id(pair), None)
        actor.alone, actor.busy = False, time.monotonic()
        if "answer" in answered:
            self.take_answer(actor, pair, answered["answer"], answered.get("trace"))
        elif "died" in answered:
            pair.deaths += 1
            if answered["child"] not in actor.children:
                actor.children.add(answered["child"])
                self.trouble(actor, f"a judge on node {name_of(actor.place)} died: {answered['died']}")
            self.again(actor, pair, pair.deaths < DEATHS, f"judges ended under it: {answered['died']}")
        else:
            if actor.number in self.actors:
                self.lost += 1
                self.error(f"a judge on node {name_of(actor.place)} is lost: {answered['lost']}")
                self.drop(actor)
            pair.losses += 0 if actor.dropped else 1
            self.again(actor, pair, pair.losses < LOSSES, f"nodes were lost under it: {answered['lost']}")
        self.scale()
        self.fill()
        self.report()

    def take_answer(self, actor, pair, line, trace):
        verdict = json.loads(line.decode("utf-8", "replace"))
        if verdict.get("verdict") == "Error" and verdict.get("blame") != "input":
            pair.errors += 1
            self.trouble(actor, f"a judge on node {name_of(actor.place)} failed: {verdict.get('reason')}")
            if pair.errors < ERRORS:
                return self.again(actor, pair, True, "")
        else:
            actor.verdicts += 1
            actor.troubles = 0
        if actor.kind is self.options.clock:
            return self.write(timed(pair.verdict, verdict))
        if self.options.clock is not None and verdict.get("verdict") == "Verified":
            return self.to_clock(pair, verdict, trace)
        self.write(line)

    def to_clock(self, pair, verdict, trace):
        asked = json.loads(pair.line.decode("utf-8", "surrogateescape"))
        asked["trace"] = verdict["trace"]
        line = json.dumps(asked, ensure_ascii=False).encode("utf-8", "surrogateescape")
        self.options.clock.waiting.append(Pair(pair.id, line, self.options.clock, verdict, trace))

    def again(self, actor, pair, may, why):
        if may:
            pair.avoids.add(actor.number)
            (pair.kind.suspects if pair.alone else pair.kind.waiting).appendleft(pair)
            return
        answer = {"id": pair.id, "schema": 3, "verdict": "Error", "blame": "ours", "reason": why}
        self.write(json.dumps(answer, ensure_ascii=True).encode())

    def trouble(self, actor, message):
        self.error(message)
        actor.troubles += 1
        if actor.troubles >= MOST_TROUBLES:
            actor.dropped = True
            self.drop(actor)

    # What the server sees.

    def error(self, message):
        self.errors.append(message)

    def report(self):
        actors = [
            {
                "name": name_of(actor.place),
                "under_way": len(actor.under_way),
                "verdicts": actor.verdicts,
                "kind": actor.kind.name,
            }
            for actor in self.actors.values()
            if actor.place is not None
        ]
        report = {
            "wanted": sum(map(self.wanted, self.kinds)),
            "starting": len(self.actors) - len(actors),
            "waiting": sum(len(kind.waiting) + len(kind.suspects) for kind in self.kinds),
            "lost": self.lost,
            "actors": actors,
        }
        now = time.monotonic()
        changed = report != self.reported and now - self.reported_at > SECONDS_BETWEEN_TICKS
        if not self.errors and not changed and now - self.reported_at < SECONDS_BETWEEN_REPORTS:
            return
        self.write(json.dumps({"fleet": report, "errors": self.errors}).encode())
        self.errors, self.reported, self.reported_at = [], report, now

    def keep(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.done)

    def done(self, task):
        self.tasks.discard(task)
        if (
            not task.cancelled() and task.exception() is not None
        ):  # ours: the server starts this process again
            asyncio.get_event_loop().call_exception_handler(
                {"message": "fleet", "exception": task.exception()}
            )


def timed(verdict, clock):
    """The answer to a pair that a judge verified and a clock timed: a clock that refuses it has the last
    word."""
    if clock.get("verdict") == "Verified":
        phases = {**verdict.get("phases", {}), **clock.get("phases", {})}
        clock = {**verdict, "times": clock.get("times"), "phases": phases}
    return json.dumps(clock, ensure_ascii=False).encode("utf-8", "surrogateescape")


def name_of(place):
    """'10.0.0.2 (5f3a1c) GPU 3'."""
    gpus = f" GPU {','.join(place['gpus'])}" if place.get("gpus") else ""
    return f"{place['node']} ({place['node_id'][:6]}){gpus}"


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
