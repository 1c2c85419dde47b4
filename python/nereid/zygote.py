"""Warms one module, then forks a jailed child for each request.

    zygote.py MODULE SETTINGS     control socket: descriptor 3 (SOCK_SEQPACKET, JSON packets)

SETTINGS is JSON: {"library": path of libnereid_jail.so, "policy": {...}}. The judge sends
    {"run": id} with two descriptors: a memory file that holds the request, and the pipe for the answer
    {"kill": id}
and gets
    {"ready": {"walls": {...}, "seconds": s, "about": {...}}}
    {"gone": id, "status": wait status, "entered": bool, "why": text, "cpu": seconds, "rss": KiB}
The child writes to its pipe 8 bytes (the answer's length, little-endian) and the answer, JSON. Nothing else that a child
does reaches anybody. When the control socket closes, so does this process, and its children die with it.
"""

import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

CONTROL = 3
MAX_PACKET = 1 << 16
STEPS_BEFORE_A_FORK = 2  # of compaction, where there is no time left over for it


class Child:
    def __init__(self, number, status, folder):
        self.number = number
        self.folder = folder  # its scratch folder on disk, where there is no private one
        self.status = status  # read end: what the child said before it was jailed


def answer(module, request_fd, answer_fd):
    """In the jail: everything from here on may be the work of whoever wrote the request."""
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


def be_child(module, jail, folder, request_fd, answer_fd, status_fd):
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            jail.enter([request_fd, answer_fd, status_fd], folder)
            tempfile.tempdir = os.environ["TMPDIR"] = os.getcwd()  # the scratch folder, if there is one
            os.write(status_fd, b"+")
        except BaseException as problem:
            os.write(status_fd, str(problem).encode()[:1000])
            os._exit(1)
        os.close(status_fd)
        answer(module, request_fd, answer_fd)
        os._exit(0)
    finally:
        os._exit(1)


class Zygote:
    def __init__(self, module, jail, compaction, control, folder):
        self.folder = folder
        self.module = module
        self.jail = jail
        self.compaction = compaction
        self.control = control
        self.own_pids = jail.walls()["pid"]
        self.children = {}  # pid -> Child
        self.wake, wake_end = socket.socketpair()
        for end in (self.wake, wake_end):
            end.setblocking(False)
        self.wake_end = wake_end
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end.fileno(), warn_on_full_buffer=False)

    def say(self, packet):
        self.control.send(json.dumps(packet).encode())

    def fork(self, number, request_fd, answer_fd):
        for _ in range(STEPS_BEFORE_A_FORK):
            self.compaction.step()
        folder = ""
        if self.folder:
            folder = os.path.join(self.folder, str(number))
            os.mkdir(folder, 0o700)
        said, says = os.pipe()
        self.jail.before_fork()
        pid = os.fork()
        if pid == 0:
            be_child(self.module, self.jail, folder, request_fd, answer_fd, says)
        self.jail.after_fork()
        os.close(says)
        self.children[pid] = Child(number, said, folder)

    def kill(self, number):
        for pid, child in self.children.items():
            if child.number == number:
                # Number 1 of its pid namespace takes everything with it; without one the child leads a process group
                # that the jail does not let anybody leave. It may not have made that group yet.
                os.kill(pid, signal.SIGKILL)
                if not self.own_pids:
                    try:
                        os.killpg(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

    def reap(self):
        while self.children:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is None:
                continue
            if not self.own_pids:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):
                    pass
            said = os.read(child.status, 1024)
            os.close(child.status)
            if child.folder:
                shutil.rmtree(child.folder, ignore_errors=True)
            why = "" if said == b"+" else said.decode(errors="replace") or "it died on the way into the jail"
            self.say({"gone": child.number, "status": status, "entered": said == b"+", "why": why,
                      "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss})

    def receive(self):
        packet, descriptors, _, _ = socket.recv_fds(self.control, MAX_PACKET, 4, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return False
        try:
            order = json.loads(packet)
            if "run" in order:
                self.fork(order["run"], *descriptors)
            elif "kill" in order:
                self.kill(order["kill"])
        finally:
            for fd in descriptors:
                os.close(fd)
        return True

    def serve(self):
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wake, select.POLLIN)
        while True:
            ready = poll.poll(None if self.compaction.done else 0)
            if not ready:
                self.compaction.step()
            for fd, _ in ready:
                if fd == self.wake.fileno():
                    self.wake.recv(4096)
                    self.reap()
                elif not self.receive():
                    return


def main():
    started = time.monotonic()
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    control = socket.socket(fileno=CONTROL)
    os.set_inheritable(CONTROL, False)
    module = importlib.import_module(name)
    about = module.warm() or {}
    from nereid.jail import Compaction, Jail

    jail = Jail(settings["library"], json.dumps(settings["policy"]))
    # What lives now lives for ever: children neither scan it nor copy its pages.
    gc.collect()
    gc.freeze()
    folder = "" if jail.walls()["scratch"] else settings["folder"]
    zygote = Zygote(module, jail, Compaction(settings["library"]), control, folder)
    zygote.say({"ready": {"walls": jail.walls(), "seconds": time.monotonic() - started, "about": about}})
    zygote.serve()


if __name__ == "__main__":
    main()
