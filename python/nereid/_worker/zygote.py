"""Warms one module, then forks a jailed child for each request.

    zygote.py MODULE SETTINGS     control socket: descriptor 3 (SOCK_SEQPACKET)

SETTINGS is JSON: {"library": path of libnereid_jail.so, "policy": {...}, "folder": for scratch folders on
disk}. Once warm it says so to the judge, as JSON ({"isolation": {...}, "seconds": s, "about": {...}}), and
leaves the rest to sandbox/zygote/fork_loop.h: the judge's order to run something comes with two descriptors,
a memory file that holds the request and the pipe for the answer. The child writes to its pipe 8 bytes (the
answer's length, little-endian) and the answer, JSON. Nothing else that a child does reaches anybody. When the
control socket closes, so does this process, and its children die with it.
"""

import gc
import importlib
import json
import os
import socket
import struct
import sys
import tempfile
import time
import traceback

CONTROL = 3


def answer(module, request_fd, answer_fd):
    """In the jail: everything from here on may be the work of the request's author."""
    tempfile.tempdir = os.environ["TMPDIR"] = os.getcwd()  # the scratch folder, if there is one
    os.lseek(request_fd, 0, os.SEEK_SET)  # an earlier try at this request may have read it
    with os.fdopen(request_fd, "rb") as file:
        request = json.loads(file.read())
    try:
        text = json.dumps(module.handle(request), allow_nan=False).encode()
    except BaseException as problem:
        lines = traceback.format_exception(type(problem), problem, problem.__traceback__)
        text = json.dumps({"failed": "".join(lines)[-4000:]}).encode()
    with os.fdopen(answer_fd, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)


def main():
    started = time.monotonic()
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    os.set_inheritable(CONTROL, False)
    gc.disable()  # imports leave next to no garbage, and collecting takes a tenth of the time
    from nereid._worker.jail import Jail, Memory

    memory = Memory(settings["library"])
    module = importlib.import_module(name)
    gc.freeze()  # of the imports: the collection below looks at what warm() leaves alone
    about = module.warm() or {}
    # What lives now lives for ever: children neither scan it nor copy its pages.
    gc.collect()
    gc.freeze()
    pieces = memory.pieces_used_by(module.warm_up) if hasattr(module, "warm_up") else b""
    compaction = memory.compaction(pieces)
    jail = Jail(settings["library"], json.dumps(settings["policy"]))
    folder = "" if jail.isolation()["scratch"] else settings["folder"]
    ready = {"isolation": jail.isolation(), "seconds": time.monotonic() - started, "about": about}
    socket.socket(fileno=os.dup(CONTROL)).send(json.dumps(ready).encode())
    child = jail.serve(compaction, CONTROL, folder)
    if child is None:
        return
    try:
        answer(module, *child)
        os._exit(0)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
