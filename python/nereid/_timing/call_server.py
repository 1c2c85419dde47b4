"""Times many programs as their users call them: one warmed process that forks for each of them.

    python -m nereid._timing.call_server WARM [JAILS]

The control socket is descriptor 3 (SOCK_SEQPACKET). WARM: "torch", or "compile" too

Once warm it sends {"ready": seconds}. An order is a request, {"program": path, "modes": [...], "device":
"cuda", "seconds": 0.1, "folder": of its words and its kernels, "caches": a folder that all share, "threads":
that compile, 0: PyTorch's own choice, "kernels": {hash: constants}}, with two descriptors: the child's own
socket, and the end of a pipe. When the pipe's other end closes, the child and whatever it started are killed;
when the control socket closes, all are.

A child sends {"begin": mode} and {"mode": mode, "answer": {...}} for each mode, {"done": true} at the end,
and before it uses the GPU {"ask": "share"} or {"ask": "alone"}, to be answered by any packet, then {"leave":
true}.

CUDA is not touched here, since a process that was forked after that cannot use it. A child that cannot all
the same starts over as a program of its own.

JAILS is for programs with untrusted kernels: {"library": libnereid_jail.so, "device": "cuda", "fits":
[{"name", "policy"}...]}. The first of these jails in which the GPU computes is taken, and each child enters
it before any machine code is there. Where there is none, {"ready": seconds, "declined": why} and no child.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import signal
import socket
import sys
import time

CONTROL = 3
PR_SET_PDEATHSIG = 1
MOST = 1 << 16  # bytes of a packet
TRIAL = 60  # seconds for a jail to be tried

# torch.cuda then asks NVML, which leaves the driver alone.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of workers: forks would share it


@contextlib.contextmanager
def without_cuda(torch):
    """Dynamo saves and restores the state of a GPU's generators where there is a GPU."""
    import torch.utils._triton
    from torch._dynamo import device_interface

    before = torch.cuda.is_available, torch.cuda.device_count
    torch.cuda.is_available, torch.cuda.device_count = lambda: False, lambda: 0
    try:
        yield
    finally:
        torch.cuda.is_available, torch.cuda.device_count = before
        device_interface.device_interfaces.clear()  # it noted how many there are
        device_interface._device_initialized = False
        for answered in [torch.get_device_module, *vars(torch.utils._triton).values()]:
            if hasattr(answered, "cache_clear"):  # what was said while there was no GPU
                answered.cache_clear()


def warm(what):
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    if what == "compile":
        import torch._dynamo
        import torch._inductor.async_compile
        import torch._inductor.compile_fx
        import torch._inductor.kernel.bmm
        import torch._inductor.kernel.conv
        import torch._inductor.kernel.mm
        import torch._inductor.runtime.triton_heuristics
        import torch._inductor.select_algorithm  # noqa: F401

        with without_cuda(torch), torch.no_grad():  # all but the writing of code
            model = torch.nn.Sequential(
                torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Softmax(-1)
            )
            torch.compile(model, backend="aot_eager_decomp_partition")(torch.ones(4, 8))
            torch._dynamo.reset()
    return threads


class Asked:
    """Turns on the GPU that the parent process grants. They nest."""

    def __init__(self, channel):
        self.channel, self.depth, self.waited = channel, 0, 0.0

    def say(self, packet):
        self.channel.sendmsg([json.dumps(packet).encode()])  # all that a jail allows

    @contextlib.contextmanager
    def turn(self, kind):
        if self.depth == 0:
            begin = time.perf_counter()
            self.say({"ask": kind})
            if not self.channel.recvmsg(MOST)[0]:
                os._exit(1)  # the parent is gone
            self.waited += time.perf_counter() - begin
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.say({"leave": True})

    def share(self):
        return self.turn("share")

    def alone(self):
        return self.turn("alone")


def run_child(channel, request, threads):
    """All modes of one program, one after the other."""
    from nereid._timing import baselines

    turns = Asked(channel)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(request["caches"], "inductor")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(request["caches"], "triton")
    import torch

    torch.set_num_threads(threads)
    program, text = None, request.get("text") or pathlib.Path(request["program"]).read_text()
    for mode in request["modes"]:
        turns.say({"begin": mode})
        try:
            if mode.removesuffix(baselines.TF32) in ("compile", "max-autotune") and not hasattr(
                baselines, "compiling"
            ):
                from torch._inductor import config

                if request["threads"] == 0:
                    del os.environ["TORCHINDUCTOR_COMPILE_THREADS"]
                    config.compile_threads = config.decide_compile_threads()
                baselines.gated(turns)
                baselines.compiling = True
            program = program or baselines.Program(
                text, request["device"], turns, written=request["direct"], launches=bool(request["kernels"])
            )
            answer = program.measure(mode, request["seconds"])
        except Exception as error:
            answer = baselines.rejection_reason(error)
        turns.say({"mode": mode, "answer": answer})
    turns.say({"done": True})


def compute(device):
    """Makes a context, and uses it."""
    import torch

    if device == "cuda":
        torch.cuda.init()
    ones = torch.ones(8, 8, device=device)
    if float((ones @ ones).sum()) != 512:
        raise RuntimeError("it does not compute")


def enter(jail, kept, device):
    """Nothing hostile is read before this returns. Of the descriptors those `kept` stay."""
    jail.begin(kept)
    compute(device)
    jail.finish()


def trial(jail, device):
    """Why a child cannot work in this jail, or None."""
    reader, writer = os.pipe()
    child = jail.fork()
    if child == 0:
        words = ""
        try:
            enter(jail, [writer], device)
            compute(device)
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"[:500]
        os.write(writer, (words or "fits").encode())
        os._exit(0)
    os.close(writer)
    words = b""
    if select.select([reader], [], [], TRIAL)[0]:
        words = os.read(reader, 4096)
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None if words == b"fits" else words.decode(errors="replace") or "it was killed"


def find_jail(jails):
    """The first that fits; raises what is wrong with each."""
    from nereid._worker.jail import Jail, JailError

    wrong = []
    for fit in jails["fits"]:
        try:
            jail = Jail(jails["library"], json.dumps(fit["policy"]))
            why = trial(jail, jails["device"])
        except JailError as error:
            why = str(error)
        if why is None:
            return jail
        wrong.append(f"{fit['name']}: {why}")
    raise RuntimeError("no jail in which the device computes: " + "; ".join(wrong))


def load_kernels(request):
    """Has their launchers built, in folders that all share, before there is a jail."""
    from nereid import _launch
    from nereid._timing import called_kernels  # noqa: F401  the last two are read in the jail
    from nereid._written import direct, guard  # noqa: F401  the last two are read in the jail
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime import driver

    os.environ["TRITON_CACHE_DIR"] = os.path.join(request["caches"], "triton")
    driver.set_active(CudaDriver())
    _launch.available()  # it opens libraries
    called_kernels.load(request["folder"], request["kernels"], driver.active)


def begin_child(channel, request, threads, fresh=False, jail=None):
    """In a process of its own. Does not return."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    words = os.open(os.path.join(request["folder"], "words.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(words, 1)
    os.dup2(words, 2)
    if jail is not None:
        request["text"] = pathlib.Path(request["program"]).read_text()
        if request["kernels"]:
            load_kernels(request)
        enter(jail, [1, 2, channel.fileno()], request["device"])
    else:
        try:  # before a turn on the GPU is requested: a context takes longer than what is done in one
            compute(request["device"])
        except Exception as error:
            if fresh:
                raise
            print(f"starts over, CUDA is not available after a fork: {error}", flush=True)
            channel.set_inheritable(True)
            os.execv(
                sys.executable,
                [
                    sys.executable,
                    "-m",
                    "nereid._timing.call_server",
                    "--child",
                    str(channel.fileno()),
                    json.dumps(request),
                ],
            )
    run_child(channel, request, threads)
    sys.stdout.flush()
    os._exit(0)


class Server:
    def __init__(self, control, threads, jail=None):
        self.control, self.threads, self.jail = control, threads, jail
        self.children = {}  # lifeline descriptor -> process id

    def serve(self):
        wake, waked = os.pipe()
        os.set_blocking(waked, False)
        signal.set_wakeup_fd(waked)
        signal.signal(signal.SIGCHLD, lambda *ignored: None)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.control.fileno():
                    packet, fds, _, _ = socket.recv_fds(self.control, MOST, 2)
                    if not packet:
                        return self.kill_all()
                    self.fork(json.loads(packet), socket.socket(fileno=fds[0]), fds[1])
                    poll.register(fds[1], select.POLLHUP)
                elif fd == wake:
                    os.read(wake, 4096)
                elif fd in self.children:
                    self.kill(self.children[fd])
                    poll.unregister(fd)  # until it is buried
            for fd in self.reap():
                with contextlib.suppress(KeyError):
                    poll.unregister(fd)
                os.close(fd)

    def fork(self, request, channel, lifeline):
        child = self.jail.fork() if self.jail else os.fork()
        if child == 0:
            try:
                if self.jail is None:  # which sees to that
                    os.setsid()
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                self.control.close()
                for fd in [lifeline, *self.children]:
                    os.close(fd)
                begin_child(channel, request, self.threads, jail=self.jail)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(1)
        channel.close()
        self.children[lifeline] = child

    @staticmethod
    def kill(child):
        for kill in (os.killpg, os.kill):  # it may not have a group yet
            with contextlib.suppress(OSError):
                kill(child, signal.SIGKILL)

    def reap(self):
        """The lifelines of those that ended."""
        ended = []
        for fd, child in list(self.children.items()):
            if os.waitpid(child, os.WNOHANG)[0] == child:
                del self.children[fd]
                with contextlib.suppress(OSError):
                    os.killpg(child, signal.SIGKILL)  # what it started
                ended.append(fd)
        return ended

    def kill_all(self):
        for child in self.children.values():
            self.kill(child)


def main():
    if sys.argv[1] == "--child":
        request = json.loads(sys.argv[3])
        threads = warm("torch")
        return begin_child(socket.socket(fileno=int(sys.argv[2])), request, threads, fresh=True)
    started = time.monotonic()
    control = socket.socket(fileno=CONTROL)
    control.set_inheritable(False)
    threads = warm(sys.argv[1])
    ready, jail = {}, None
    if len(sys.argv) > 2:
        import triton.backends.nvidia.driver  # noqa: F401  children use it

        try:
            jail = find_jail(json.loads(sys.argv[2]))
        except Exception as error:
            ready["declined"] = str(error)
    import gc

    gc.collect()
    gc.freeze()  # what lives now lives for ever: children do not copy its pages
    control.send(json.dumps({"ready": time.monotonic() - started, **ready}).encode())
    if not ready:
        Server(control, threads, jail).serve()


if __name__ == "__main__":
    main()
