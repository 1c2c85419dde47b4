"""Runs a script in a process that has imported large packages already: torch's import takes 1.6 s of a
processor, and some fifty tests begin with it.

    python tests/preloaded.py PACKAGE[,PACKAGE...] SCRIPT [ARGUMENT...]
    python tests/preloaded.py PACKAGE[,PACKAGE...] -c TEXT [ARGUMENT...]

The first call starts a server, which imports the packages and forks a process for each script. Arguments,
environment, folder and the three standard descriptors are the caller's, and so is the exit code; a caller
that is killed ends its script. The server ends after a minute without one. NEREID_TEST_PRELOADED=0, or a
server that cannot be reached: the script runs in this process.

A script ends as Python's do, but takes no modules down, which is a second of a processor with torch; and its
garbage collections leave out what the server has imported.

What packages read from the environment when they are imported is part of the server's name; what they read
before that, the script cannot change any more. Triton is not imported: it reads TRITON_INTERPRET then.
"""

import fcntl
import gc
import hashlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys

IDLE_SECONDS = 60
READ_AT_IMPORT = ("CUDA", "GLIBC", "GOMP", "KMP", "LD_", "MALLOC", "MKL", "OMP", "PYTHON", "PYTORCH", "TORCH")
MOST_BYTES = 1 << 17  # of a request


def command(packages, *words):
    """The command line, for tests that start scripts."""
    return [sys.executable, os.path.abspath(__file__), packages, *map(str, words)]


def address_of(packages):
    """Where the server for `packages` listens, in a folder that this user alone may enter; None without."""
    folder = f"/tmp/nereid-tests-{os.geteuid()}"
    os.makedirs(folder, 0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return None
    read = sorted(item for item in os.environ.items() if item[0].startswith(READ_AT_IMPORT))
    files = [(path, os.stat(path).st_mtime_ns) for path in (__file__, *sys.path) if os.path.exists(path)]
    limits = (os.nice(0), sorted(os.sched_getaffinity(0)))
    key = repr((packages, sys.executable, read, files, limits))
    return f"{folder}/{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def connected(address):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection


def started(address, packages):
    """Starts a server where there is none. Connections wait until it has imported everything."""
    with open(address + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = connected(address)  # another call was faster
        if connection is None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
                if os.path.exists(address):
                    os.unlink(address)
                listening.bind(address)
                listening.listen(64)
                subprocess.Popen(
                    [sys.executable, __file__, "--serve", str(listening.fileno()), packages],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[listening.fileno()],
                    start_new_session=True,
                )
                connection = connected(address)
    return connection


def exit_code_by(packages, words):
    """The script's exit code; None where no server took it."""
    address = address_of(packages)
    connection = address and (connected(address) or started(address, packages))
    request = json.dumps({"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    if not connection or len(request) > MOST_BYTES:
        return None
    try:
        socket.send_fds(connection, [request], [0, 1, 2])
        if not connection.recv(16):
            return None
    except OSError:  # it was about to end
        return None
    code = connection.recv(16)
    return int(code) if code else 1


def next_connection(listening):
    """In a child of the server, a connection; None in the server when it was idle for a while."""
    children = set()
    while True:
        children = {child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0}
        if not select.select([listening], [], [], IDLE_SECONDS)[0]:
            if children:
                continue
            return None
        connection, _ = listening.accept()
        child = os.fork()
        if child == 0:
            return connection
        children.add(child)
        connection.close()


def report(connection, word):
    try:
        connection.send(word)
    except OSError:  # the caller is gone
        pass


def request_in_child(connection):
    """In a child of this process, the request and its descriptors. This process waits, says how the child
    ended, and ends."""
    message, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
    if not message:
        os._exit(0)
    child = os.fork()
    if child == 0:
        connection.close()
        return json.loads(message), descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    try:
        ended = os.pidfd_open(child)
        report(connection, b"started")
        if connection in select.select([connection, ended], [], [])[0]:  # the caller is gone
            os.kill(child, signal.SIGINT)
            if not select.select([ended], [], [], 5)[0]:
                os.kill(child, signal.SIGKILL)
        report(connection, str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    finally:
        os._exit(0)


def become(words, folder, environment, descriptors):
    """This process as Python starts it for a script; (the compiled script, its globals)."""
    os.setpgid(0, 0)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if words[0] == "-c":
        sys.argv, sys.path[0] = ["-c", *words[2:]], ""
        code, more = compile(words[1], "<string>", "exec"), {}
        del sys.modules["__main__"].__dict__["__file__"]
    else:
        sys.argv = words
        sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
        with open(words[0], "rb") as file:
            code, more = compile(file.read(), words[0], "exec"), {"__file__": words[0]}
    names = sys.modules["__main__"].__dict__
    for name in [name for name in names if not name.startswith("__")]:
        del names[name]
    names.update(more, __doc__=None)
    return code, names


def run_and_end(code, names):
    """Runs it and ends this process. `names` were this file's: nothing of them is left by then."""
    import atexit
    import os
    import signal
    import sys
    import threading
    import traceback

    status, interrupted = 0, False
    try:
        exec(code, names)
    except SystemExit as end:
        status = 0 if end.code is None else end.code
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException as problem:
        status, interrupted = 1, isinstance(problem, KeyboardInterrupt)
        sys.excepthook(type(problem), problem, problem.__traceback__)
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            traceback.print_exc()
            status = status or 120
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status & 0xFF)


def serve(descriptor, packages):
    listening = socket.socket(fileno=descriptor)
    gc.disable()
    for package in packages.split(","):
        __import__(package)
    gc.freeze()
    gc.enable()
    connection = next_connection(listening)
    if connection is None:
        return
    listening.close()
    request, descriptors = request_in_child(connection)
    run = run_and_end
    run(*become(*request.values(), descriptors))


def main():
    packages, *words = sys.argv[1:]
    if packages == "--serve":
        return serve(int(words[0]), words[1])
    code = None if os.environ.get("NEREID_TEST_PRELOADED") == "0" else exit_code_by(packages, words)
    if code is None:
        os.execv(sys.executable, [sys.executable, *words])
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
