"""A judge's process: `nereid verify --batch -`, and the pairs that are under way in it."""

import atexit
import concurrent.futures
import hashlib
import json
import os
import queue
import subprocess
import threading
import weakref
from pathlib import Path

from . import _program
from ._exceptions import InputError, NereidError
from ._verdict import Verdict

_LONGEST_STDERR = 1 << 16


class Pair:
    """A line that is asked, and who waits for it."""

    def __init__(self, line, future, retries):
        self.line, self.future, self.retries, self.id = line, future, retries, None
        self.judge = None  # while its process has the pair
        self.until = 0.0  # of a server's: when patience ends, by time.monotonic()

    def finish(self, verdict=None, error=None):
        if self.future.cancelled() or self.future.done():
            return
        try:
            self.future.set_exception(error) if error is not None else self.future.set_result(verdict)
        except concurrent.futures.InvalidStateError:  # cancelled just now
            pass


_running: "weakref.WeakSet[JudgeProcess]" = weakref.WeakSet()


class JudgeProcess:
    """One `nereid verify --batch -`, with a thread that writes to it and two that read from it. It refers to
    its judge by the pairs that are under way alone, so that a judge without any can be collected."""

    def __init__(self, arguments):
        program, environment = _program.command()
        try:
            self._process = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # Ctrl-C in a terminal ends the trainer, which ends this
            )
        except OSError as error:
            raise NereidError(f"{program}: {error.strerror}") from error
        # A judge may be collected, and so close this, wherever Python allocates: also under the lock.
        self._pairs, self._lock = {}, threading.RLock()
        self._lines: queue.SimpleQueue = queue.SimpleQueue()
        self._stderr = b""
        self.ended, self._owner = False, os.getpid()
        self._threads = [
            threading.Thread(target=work, daemon=True, name="nereid")
            for work in (self._read_errors, self._read, self._write)
        ]
        for thread in self._threads:
            thread.start()
        _running.add(self)

    def ask(self, pair):
        with self._lock:
            if self.ended:
                raise NereidError(self._why())
            self._pairs[pair.id] = pair
        self._lines.put(json.dumps({"id": pair.id, **pair.line}).encode() + b"\n")

    def _write(self):
        while (line := self._lines.get()) is not None:
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (OSError, ValueError):
                return
        try:
            self._process.stdin.close()
        except OSError:
            pass

    def _read_errors(self):
        with self._process.stderr as stream:
            for line in stream:
                self._stderr = (self._stderr + line)[-_LONGEST_STDERR:]

    def _read(self):
        for line in self._process.stdout:
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                self._stderr += f"an answer that is none: {error}: {line[:200]!r}\n".encode()
        self._process.wait()
        self._threads[0].join(5)
        self._lines.put(None)
        with self._lock:
            self.ended = True
            left, self._pairs = list(self._pairs.values()), {}
        self._process.stdout.close()
        error = NereidError(self._why())
        while left:
            _again(left.pop(0), error)

    def _take(self, answer):
        with self._lock:
            pair = self._pairs.pop(answer["id"])
        verdict = Verdict.from_json({**answer, "receipt": _receipt(pair.line, answer)})
        if verdict.verdict != "Error":
            pair.finish(verdict)
        elif verdict.blame == "input":
            pair.finish(error=InputError(verdict.reason))
        else:
            _again(pair, NereidError(verdict.reason))

    def _why(self):
        said = self._stderr.decode(errors="replace").strip()[-2000:]
        return f"nereid verify --batch ended with exit code {self._process.poll()}" + (
            f": {said}" if said else ""
        )

    def close(self):
        """Ends the process, at once where pairs are under way."""
        with self._lock:
            busy = bool(self._pairs)
        if busy and self._process.poll() is None:
            self._process.terminate()
        self._lines.put(None)
        if threading.current_thread() in self._threads:
            return  # the process ends with its input
        self._threads[1].join(10)
        if self._process.poll() is None:
            self._process.kill()


def _again(pair, error):
    pair.judge._again(pair, error)


@atexit.register
def _close_all():
    for process in list(_running):
        if process._owner == os.getpid():
            process.close()


def _receipt(line, answer):
    """What was judged: hashes of both texts, as a server's receipt has them, and what repeats the verdict."""
    receipt = {key: answer.get(key) for key in ("seed", "trace", "seconds")}
    for name, key in (("reference", "reference"), ("completion", "candidate")):
        try:
            text = (
                line[f"{key}_source"].encode(errors="surrogatepass")
                if key not in line
                else Path(line[key]).read_bytes()
            )
            receipt[name] = hashlib.sha256(text).hexdigest()
        except OSError:  # the file is gone since
            receipt[name] = None
    return receipt
