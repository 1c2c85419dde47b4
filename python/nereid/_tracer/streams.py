"""CUDA streams and events without a GPU: work is traced in the order in which it is issued, and each step
says which stream it is on and what is surely done when it begins.

A stream numbers its steps in a phase from 1. What it waited for is a vector clock: of other streams, the
number of the first step that may still run. Zero is the work before the phase, on the caller's stream.
"""

import itertools
import threading
import weakref

import torch

from . import tracing
from .._task.errors import Untraceable

_numbers = itertools.count(1)
_streams = weakref.WeakSet()
_thread = threading.local()
_made = False  # a stream but the caller's


def _phase():
    recorder = tracing.recorder()
    return recorder.phase if recorder is not None else None


class _Clock:
    """What is done before whatever comes next: stream -> its first step that may still run."""

    def __init__(self):
        self._of, self._done = None, {}

    def done(self):
        if self._of is not _phase():
            self._of, self._done = _phase(), {}
        return self._done

    def merge(self, other):
        done = self.done()
        for stream, first in other.items():
            done[stream] = max(done.get(stream, 0), first)


class Stream:
    device_index, device_type, priority = 0, 1, 0
    device = torch.device("cuda", 0)

    def __init__(self, *args, **kwargs):
        global _made
        _made = True
        tracing.note("a CUDA stream was made")
        self._begin(next(_numbers))

    def _begin(self, number):
        self.stream_id = self.cuda_stream = number
        self._clock, self._outer = _Clock(), []
        _streams.add(self)

    def snapshot(self):
        return {self.stream_id: 1, **self._clock.done()}

    def take(self):
        """The number of the next step, and what is done before it."""
        self._clock.merge(_host.done())
        done = self._clock.done()
        number = done.get(self.stream_id, 1)
        before = [[stream, first] for stream, first in sorted(done.items()) if stream != self.stream_id]
        done[self.stream_id] = number + 1
        return number, before

    def __enter__(self):
        self._outer.append(current())
        set_current(self)
        return self

    def __exit__(self, *exception):
        set_current(self._outer.pop())
        return False

    def wait_stream(self, stream):
        self._clock.merge(stream.snapshot())

    def wait_event(self, event):
        event.wait(self)

    def record_event(self, event=None):
        event = event if event is not None else Event()
        event.record(self)
        return event

    def synchronize(self):
        _host.merge(self.snapshot())

    def query(self):
        return True

    def __eq__(self, other):
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self):
        return self.stream_id

    @property
    def _as_parameter_(self):
        return self.stream_id

    @staticmethod
    def priority_range():
        return (0, -5)


class CallersStream(Stream):
    def __init__(self):
        self._begin(0)


_host = _Clock()  # what the host waited for
_callers = CallersStream()


class Event:
    device = torch.device("cuda", 0)
    cuda_event = 0

    def __init__(self, *args, **kwargs):
        self._clock = _Clock()

    def record(self, stream=None):
        self._clock = _Clock()
        self._clock.merge((stream if stream is not None else current()).snapshot())

    def wait(self, stream=None):
        (stream if stream is not None else current())._clock.merge(self._clock.done())

    def synchronize(self):
        _host.merge(self._clock.done())

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0

    def ipc_handle(self):
        raise Untraceable("CUDA events between processes")


class StreamContext:
    """torch.cuda.stream"""

    def __init__(self, stream=None):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exception):
        if self.stream is not None:
            self.stream.__exit__(*exception)
        return False


def current(*args):
    return getattr(_thread, "stream", _callers)


def default(*args):
    return _callers


def external(handle=0, *args, **kwargs):
    return next((stream for stream in _streams if stream.cuda_stream == handle), _callers)


def set_current(stream):
    if stream is not None:
        _thread.stream = stream


def set_by_id(stream_id, *args, **kwargs):
    set_current(external(stream_id))


def synchronize(*args):
    for stream in list(_streams):
        stream.synchronize()


def begin_trace():
    """Streams are numbered from 1 in each trace."""
    global _made, _numbers
    _made, _numbers = False, itertools.count(1)
    _streams.clear()
    _streams.add(_callers)


def begin_phase():
    _thread.stream = _callers


def order():
    """Of the step that is issued now: [stream, number, [[stream, first that may still run]...]]; None while
    no other stream was ever made."""
    if not _made:
        return None
    stream = current()
    return [stream.stream_id, *stream.take()]


def end_of_phase():
    """What is done when the caller's stream goes on."""
    _callers._clock.merge(_host.done())
    return [[stream, first] for stream, first in sorted(_callers._clock.done().items()) if stream != 0]
