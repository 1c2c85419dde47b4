"""The jail (libnereid_jail.so) as Python sees it."""

import ctypes
import json


class JailError(Exception):
    pass


class Jail:
    """Prepared once by the trusted parent; each forked child enters it before it touches anything hostile."""

    def __init__(self, library, policy):
        """`library`: path of libnereid_jail.so. `policy`: JSON text, see sandbox/policy.h."""
        self._library = ctypes.CDLL(library)
        self._library.nereid_jail_prepare.restype = ctypes.c_void_p
        self._message = ctypes.create_string_buffer(4096)
        jail = self._library.nereid_jail_prepare(policy.encode(), self._message, len(self._message))
        if not jail:
            raise JailError(self._text())
        self._jail = ctypes.c_void_p(jail)

    def _text(self):
        return self._message.value.decode(errors="replace")

    def _call(self, function, *arguments):
        if function(self._jail, *arguments, self._message, ctypes.c_size_t(len(self._message))) != 0:
            raise JailError(self._text())

    def walls(self):
        """Which walls stand, as a dict."""
        if self._library.nereid_jail_walls(self._jail, self._message, ctypes.c_size_t(len(self._message))) < 0:
            raise JailError("the description of the walls is too long")
        return json.loads(self._message.value)

    def before_fork(self):
        self._call(self._library.nereid_jail_before_fork)

    def after_fork(self):
        """In the parent only."""
        self._call(self._library.nereid_jail_after_fork)

    def enter(self, keep, folder):
        """In the child: every wall goes up, all descriptors but `keep` are closed. `folder`: see jail.h."""
        self._call(self._library.nereid_jail_enter, (ctypes.c_int * len(keep))(*keep), len(keep), folder.encode())


class Compaction:
    """Moves this process's memory into huge pages, a step at a time, so that a fork copies less; see compaction.h."""

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.nereid_compaction_start.restype = ctypes.c_void_p
        self._compaction = ctypes.c_void_p(self._library.nereid_compaction_start())
        self.done = False

    def step(self):
        self.done = self.done or self._library.nereid_compaction_step(self._compaction) == 0
