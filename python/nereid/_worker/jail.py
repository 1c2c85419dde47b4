"""The jail (libnereid_jail.so) as Python sees it."""

import ctypes
import json
import os
import random
import sys


class JailError(Exception):
    pass


class Jail:
    """Prepared once by the trusted parent; each forked child enters it before it touches anything hostile."""

    def __init__(self, library, policy):
        """`library`: path of libnereid_jail.so. `policy`: JSON text, see sandbox/jail/policy.h."""
        self._library = ctypes.CDLL(library)
        self._library.nereid_jail_prepare.restype = ctypes.c_void_p
        self._message = ctypes.create_string_buffer(4096)
        jail = self._library.nereid_jail_prepare(policy.encode(), self._message, len(self._message))
        if not jail:
            raise JailError(self._text())
        self._jail = ctypes.c_void_p(jail)

    def _text(self):
        return self._message.value.decode(errors="replace")

    def isolation(self):
        """The isolation layers, as a dict."""
        if (
            self._library.nereid_jail_isolation(
                self._jail, self._message, ctypes.c_size_t(len(self._message))
            )
            < 0
        ):
            raise JailError("the description of the isolation is too long")
        return json.loads(self._message.value)

    def _done(self, outcome):
        if outcome < 0:
            raise JailError(self._text())

    def _room(self):
        return self._jail, self._message, ctypes.c_size_t(len(self._message))

    def fork(self):
        """os.fork(), whose child is number 1 of a pid namespace of its own, where that is possible."""
        self._done(self._library.nereid_jail_before_fork(*self._room()))
        child = -1
        try:
            child = os.fork()
        finally:
            if child != 0:
                self._done(self._library.nereid_jail_after_fork(*self._room()))
        return child

    def begin(self, keep):
        """In a child of one thread, before it touches a device: namespaces, privileges, files; all
        descriptors but `keep` are closed."""
        descriptors = (ctypes.c_int * len(keep))(*keep)
        jail, message, size = self._room()
        self._done(
            self._library.nereid_jail_begin(jail, descriptors, ctypes.c_size_t(len(keep)), message, size)
        )

    def finish(self):
        """... and when the device's driver has made its threads, before anything hostile: limits, system
        calls."""
        self._done(self._library.nereid_jail_finish(*self._room()))

    def serve(self, compaction, control, folder):
        """Forks a child for every order that comes through the socket `control`, see fork_loop.h. Returns
        (request, answer), two descriptors, in each child, which is in the jail by then; None in this process
        once the other end is closed."""
        descriptors = (ctypes.c_int * 2)()
        library = ctypes.PyDLL(self._library._name)  # keeps the interpreter's lock: the child goes on with it
        callbacks = (None, None, None)
        if len(sys._current_frames()) > 1:  # a warm-up left threads behind: see fork_loop.h
            names = ("PyOS_BeforeFork", "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child")
            callbacks = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in names]
        numbers = random.getstate()  # Python draws a new seed in its callbacks
        found = library.nereid_serve(self._jail, compaction.pointer, control, folder.encode(), *callbacks,
                                     descriptors, self._message,
                                     ctypes.c_size_t(len(self._message)))  # fmt: skip
        random.setstate(numbers)
        if found == 1:
            return descriptors[0], descriptors[1]
        if found < 0:
            raise JailError(self._text())
        return None


class Memory:
    """What makes this process cheap to fork; see compaction.h and arenas.h."""

    ARENAS = 1 << 30  # address space, given back where it is not used

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._library.nereid_file_pieces_in_use.restype = ctypes.c_size_t
        ctypes.PyDLL(library).nereid_reserve_arenas(
            ctypes.c_size_t(self.ARENAS), ctypes.pythonapi.PyObject_SetArenaAllocator
        )

    def pieces_used_by(self, work):
        """The pieces of code that a forked child uses for `work`, as bytes that Compaction takes."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                work()
                pieces = (ctypes.c_uint64 * 256)()
                count = self._library.nereid_file_pieces_in_use(pieces, ctypes.c_size_t(len(pieces)))
                os.write(writer, bytes(pieces)[: 8 * count])
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            pieces = pipe.read()
        os.waitpid(child, 0)
        return pieces

    def compaction(self, pieces=b""):
        """To be made when all is imported that children use."""
        self._library.nereid_close_arenas()
        return Compaction(self._library, pieces)


class Compaction:
    """Moves this process's memory into huge pages, a step at a time; see compaction.h."""

    def __init__(self, library, pieces):
        self._library = library
        library.nereid_compaction_start.restype = ctypes.c_void_p
        self.pointer = ctypes.c_void_p(
            library.nereid_compaction_start(pieces, ctypes.c_size_t(len(pieces) // 8))
        )
        self.done = False

    def step(self):
        self.done = self.done or self._library.nereid_compaction_step(self.pointer) == 0
