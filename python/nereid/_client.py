"""A judge elsewhere: `nereid serve`, asked over HTTP."""

import http.client
import itertools
import json
import os
import queue
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _program
from ._exceptions import InputError, NereidError
from ._chat import SourceText
from ._judge import PAIR_OPTIONS, BaseJudge
from ._judge_process import Pair
from ._verdict import Verdict

_MOST_ITEMS, _MOST_BYTES = 64, 4 << 20  # of one request
_MOST_IDS = 2000
_OBJECTIVES = (None, "binary", "hierarchical", "uniform", "decoupled")
_REQUEST_SECONDS = 90


class Client(BaseJudge):
    """A judge that is a server, `nereid serve`; its methods are those of `nereid.Judge`.

        with nereid.Client("http://judge:8000", token="...") as judge:
            rewards = judge.rewards(prompts, completions, ["softmax"] * len(prompts))
            verdict = await judge.averify("softmax", completion)

    url             of the server; None: $NEREID_SERVER
    token           of this client; None: $NEREID_TOKEN, or none
    reward          objective of `rewards`: binary, hierarchical, uniform or decoupled; None: the server's
    speedup_limit   a speed-up counts no more than this; None: the server's limit
    retries         how often a pair is asked again after a fault of the judge
    patience        seconds of a server that is away, or full, until pairs that wait get NereidError
    tasks           where named references come from, as of `nereid.Judge`; None: the server's own tasks
    name            of this program, for fair turns among programs with the same token
    options         of every pair, as of `verify`; each call may replace them

    A reference is a name in the server's tasks, source text, or a `pathlib.Path` of a file here. Pairs are
    accepted by the server first and then waited for, so a connection that breaks, or a server that is started
    again, loses nothing. All methods may be called from any thread and from asyncio; a forked child makes
    connections of its own.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        reward: str | None = None,
        speedup_limit: float | None = None,
        retries: int = 2,
        patience: float = 600,
        tasks: str | Path | Mapping[str, str | Path] | Callable[[str], str | Path] | None = None,
        name: str | None = None,
        **options: Any,
    ):
        _program.check(options, PAIR_OPTIONS - {"reference_name"}, "Client")
        url = url or os.environ.get("NEREID_SERVER")
        if not url:
            raise InputError("Client: expected the server's url, or $NEREID_SERVER")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"Client({url!r}): expected http://HOST:PORT or https://HOST")
        if reward not in _OBJECTIVES:
            raise InputError(f"Client(reward={reward!r}): expected one of {_OBJECTIVES[1:]}, or None")
        super().__init__(options, retries, tasks)
        self._arguments = {
            "url": url, "token": token or os.environ.get("NEREID_TOKEN"), "reward": reward,
            "speedup_limit": speedup_limit,
            "retries": retries, "patience": patience, "tasks": tasks, "name": name, **options,
        }  # fmt: skip
        self._prepare()

    def __reduce__(self):
        return _client_of, (self._arguments,)

    def __repr__(self):
        return f"nereid.Client({self._arguments['url']!r})"

    def _prepare(self):
        self._lock, self._owner, self._closed = threading.Lock(), os.getpid(), False
        self._asked: queue.SimpleQueue[Pair | None] = queue.SimpleQueue()
        self._accepted: dict[str, list[Pair]] = {}  # by the server's id; guarded by the lock
        self._wake = threading.Event()
        self._threads: list[threading.Thread] = []

    def _places(self, reference, candidate):
        if isinstance(reference, str) and not isinstance(reference, SourceText) and "\n" not in reference:
            given = {"reference": self._resolve(reference)}
            if isinstance(given["reference"], os.PathLike):
                given["reference"] = _text_of("reference", given["reference"])
        else:
            given = {"reference": _text_of("reference", reference)}
        return {**given, "completion": _text_of("candidate", candidate)}

    def _send(self, pair):
        if os.getpid() != self._owner:  # a forked child: threads and connections are the parent's
            self._prepare()
        with self._lock:
            if self._closed:
                raise NereidError("the Client is closed")
            if not self._threads:
                self._threads = [
                    threading.Thread(target=work, daemon=True, name="nereid-client")
                    for work in (self._ask, self._wait)
                ]
                for thread in self._threads:
                    thread.start()
        pair.until = time.monotonic() + self._arguments["patience"]
        self._asked.put(pair)

    def close(self) -> None:
        """Ends the connections. Pairs that are under way get NereidError; the server judges them
        nevertheless."""
        with self._lock:
            self._closed = True
        if self._owner == os.getpid():
            self._asked.put(None)
            self._wake.set()
            for thread in self._threads:
                thread.join(2)
        self._fail(
            [pair for pairs in self._accepted.values() for pair in pairs], NereidError("the Client is closed")
        )

    # -- asking: many pairs in one request ------------------------------------------------------------------

    def _ask(self):
        connection = _Connection(self._arguments)
        while (pair := self._asked.get()) is not None:
            pairs, size = [pair], len(pair.line["completion"]) + len(pair.line["reference"] or "")
            while len(pairs) < _MOST_ITEMS and size < _MOST_BYTES:
                try:
                    pair = self._asked.get_nowait()
                except queue.Empty:
                    break
                if pair is None:
                    self._asked.put(None)
                    break
                pairs.append(pair)
                size += len(pair.line["completion"]) + len(pair.line["reference"] or "")
            self._submit_to(connection, pairs)
        connection.close()
        self._closed = True

    def _submit_to(self, connection, pairs):
        for attempt in itertools.count():
            pairs = [pair for pair in pairs if not pair.future.done()]
            if not pairs or self._closed:
                return self._fail(pairs, NereidError("the Client is closed"))
            items = [question(pair.line) for pair in pairs]
            try:
                status, answer, retry_after = connection.ask("POST", "/v1/tasks", {"items": items})
            except OSError as error:
                status, answer, retry_after = 0, {"error": f"{self._arguments['url']}: {error}"}, None
            tasks = answer.get("tasks") if status == 202 else None
            if isinstance(tasks, list) and len(tasks) == len(pairs) and all(map(_is_task, tasks)):
                return self._accept(pairs, tasks)
            if status == 202:
                status, answer = 0, {"error": f"{self._arguments['url']}: {_STRANGE}"}
            if status in (413, 429) and len(pairs) > 1:  # fewer may have room
                half = len(pairs) // 2
                self._submit_to(connection, pairs[:half])
                return self._submit_to(connection, pairs[half:])
            error = answer.get("error") or f"HTTP status {status}"
            if status and status != 429 and status < 500:
                return self._fail(pairs, InputError(error))
            late = [pair for pair in pairs if time.monotonic() > pair.until]
            self._fail(late, NereidError(error))
            time.sleep(min(retry_after or 0.2 * 2 ** min(attempt, 6), 10))
        return None

    def _accept(self, pairs, tasks):
        for pair, task in zip(pairs, tasks):
            if "id" in task:
                with self._lock:
                    self._accepted.setdefault(task["id"], []).append(pair)
            else:
                self._fail([pair], InputError(task.get("error", "the server did not accept the pair")))
        self._wake.set()

    @staticmethod
    def _fail(pairs, error):
        for pair in pairs:
            pair.finish(error=error)

    # -- waiting --------------------------------------------------------------------------------------------

    def _wait(self):
        connection, failures = _Connection(self._arguments), 0
        objective = {
            key: self._arguments[key]
            for key in ("reward", "speedup_limit")
            if self._arguments[key] is not None
        }
        while not self._closed:
            with self._lock:
                ids = list(itertools.islice(self._accepted, _MOST_IDS))
            if not ids:
                self._wake.wait(1)
                self._wake.clear()
                continue
            try:
                # Short, for pairs that are accepted meanwhile.
                status, answer, _ = connection.ask(
                    "POST", "/v1/tasks/wait", {"ids": ids, "timeout_s": 0.3, **objective}
                )
            except OSError as error:
                status, answer = 0, {"error": f"{self._arguments['url']}: {error}"}
            if status == 200 and not _is_wait(answer):
                answer = {"error": f"{self._arguments['url']}: {_STRANGE}"}
            elif status == 200:
                failures = 0
                self._take(answer)
                continue
            failures += 1
            now = time.monotonic()
            with self._lock:
                late = [pair for id in ids for pair in self._accepted[id] if now > pair.until]
                for id in ids:
                    self._accepted[id] = [pair for pair in self._accepted[id] if pair not in late]
                self._accepted = {id: pairs for id, pairs in self._accepted.items() if pairs}
            self._fail(late, NereidError(answer.get("error") or f"HTTP status {status}"))
            time.sleep(min(0.2 * 2 ** min(failures, 6), 10))
        connection.close()

    def _take(self, answer):
        with self._lock:
            answered = [(self._accepted.pop(id, []), one) for id, one in answer["answers"].items()]
            lost = [pair for id in answer["unknown"] for pair in self._accepted.pop(id, [])]
            now = time.monotonic()
            for id in answer["waiting"]:  # the server is there
                for pair in self._accepted.get(id, ()):
                    pair.until = now + self._arguments["patience"]
        for pair in lost:  # another store: it is asked again
            self._asked.put(pair)
        for pairs, one in answered:
            for pair in pairs:
                self._settle(pair, one)

    def _settle(self, pair, answer):
        if answer.get("status") != "error":
            try:
                verdict = Verdict.from_json({**answer["verdict"], "receipt": answer["receipt"]})
            except (KeyError, TypeError, ValueError, AttributeError):
                return pair.finish(error=NereidError(f"{self._arguments['url']}: {_STRANGE}"))
            pair.finish(verdict)
        elif answer.get("blame") == "input":
            pair.finish(error=InputError(answer.get("error")))
        elif pair.retries > 0:
            pair.retries -= 1
            self._asked.put(pair)
        else:
            pair.finish(error=NereidError(answer.get("error")))
        return None


_STRANGE = "an answer that is not one of `nereid serve`"  # of a proxy, or of another program


def _is_task(task):
    return (
        isinstance(task, dict) and isinstance(task.get("id", ""), str) and ("id" in task or "error" in task)
    )


def _is_wait(answer):
    answers, lists = answer.get("answers"), [answer.get("waiting"), answer.get("unknown")]
    return (
        isinstance(answers, dict)
        and all(isinstance(one, dict) for one in answers.values())
        and all(isinstance(ids, list) and all(isinstance(one, str) for one in ids) for ids in lists)
    )


def _client_of(made_of):
    return Client(**made_of)


def question(line):
    """A pair as the server's routes take it."""
    options = {key: value for key, value in line.items() if key not in ("reference", "completion", "form")}
    asked = {key: line[key] for key in ("reference", "completion", "form") if line.get(key) is not None}
    return {**asked, "options": options} if options else asked


def _text_of(key, given):
    if isinstance(given, os.PathLike):
        try:
            return Path(given).read_text(errors="surrogateescape")
        except OSError as error:
            raise InputError(f"{key}: {given}: {error.strerror}") from error
    if not isinstance(given, str):
        raise InputError(f"{key}: expected a path or source text, got a {type(given).__name__}")
    return str(given)


class _Connection:
    """One HTTP connection that is made again where it broke. For one thread."""

    def __init__(self, made_of):
        parts = urllib.parse.urlsplit(made_of["url"])
        self._prefix, self._host, self._port = parts.path.rstrip("/"), parts.hostname, parts.port
        self._secure, self._connection = parts.scheme == "https", None
        self._headers = {"Content-Type": "application/json"}
        token = made_of["token"] or (urllib.parse.unquote(parts.password) if parts.password else None)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        if made_of["name"]:
            self._headers["X-Nereid-Client"] = made_of["name"]

    def ask(self, method, path, body):
        """(status, the answer's JSON, seconds of Retry-After or None). Raises OSError where there is no
        answer."""
        text = json.dumps(body)
        for fresh in (False, True):
            if self._connection is None:
                fresh = True
                if self._secure:
                    self._connection = http.client.HTTPSConnection(
                        self._host, self._port, timeout=_REQUEST_SECONDS, context=ssl.create_default_context()
                    )
                else:
                    self._connection = http.client.HTTPConnection(
                        self._host, self._port, timeout=_REQUEST_SECONDS
                    )
            try:
                self._connection.request(method, self._prefix + path, text, self._headers)
                response = self._connection.getresponse()
                found = response.read()
                break
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if fresh:  # one that was kept may have been closed meanwhile
                    raise OSError(str(error) or type(error).__name__) from error
        try:
            answer = json.loads(found)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            answer = {"error": f"HTTP status {response.status}: {found[:200]!r}"}
            if response.status < 300:
                raise OSError(answer["error"])
        seconds = response.headers.get("Retry-After", "")
        return response.status, answer, float(seconds) if seconds.isdigit() else None

    def close(self):
        if self._connection is not None:
            self._connection.close()
        self._connection = None
