"""Collects tasks from the `nn.Module` classes of installed packages: the worker of `nereid harvest`.

It runs in a sandbox (docs/security.md): a child imports a package, builds its modules with small
configurations and calls them once. What it answers is text; `nereid` traces it like any other task.

* `packages`   what a distribution offers: metadata, classes, built models
* `building`   modules of an entry, made and called
* `arguments`  small arguments and configurations, guessed from names and annotations, repaired after errors
* `inputs`     forms of inputs, repaired after errors
* `recording`  one forward call as a graph of PyTorch calls in the author's spelling
* `cutting`    connected convex subgraphs of it, each as a task
* `sources`    a module's own source as a task, where it is self-contained

`warm()` and `handle(request)` are the interface of `nereid._worker.zygote`.
"""

import contextlib
import os
import signal
import time
import warnings


def warm():
    """Imports what every child needs, and no package that is collected."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    # Fills what torch.empty gives. Here, because it imports Inductor's settings and with them sympy: a second
    # that every child would take.
    torch.use_deterministic_algorithms(True, warn_only=True)
    from . import building, cutting, packages, recording, sources  # noqa: F401

    return {"torch": torch.__version__}


def handle(request):
    """{"about": DISTRIBUTION}: its metadata. {"list": DISTRIBUTION}: what can be built of it. {"collect":
    DISTRIBUTION, "entries": [...], ...}: tasks of these, as many as fit into `seconds`."""
    from . import packages

    if "about" in request:
        return packages.about(request["about"])
    if "list" in request:
        return {"entries": packages.entries(request["list"])}
    return _collect(request)


class EntryTimeout(KeyboardInterrupt):
    """Of one entry; what catches every Exception lets it pass."""


@contextlib.contextmanager
def _limited(seconds):
    """Ends what takes longer, in processor time. Code that resists is ended from outside."""

    def stop(*_):
        raise EntryTimeout(f"took longer than {seconds:g} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)  # again, where a package catches it
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _collect(request):
    import torch

    from . import building, packages

    torch.set_grad_enabled(False)
    packages.load(request["collect"])
    started = time.monotonic()
    found = []
    for entry in request["entries"]:
        if found and time.monotonic() - started > request["seconds"]:
            break
        before = time.monotonic()
        answer = {"entry": entry}
        try:
            with _limited(request["entry_seconds"]):
                answer["tasks"] = building.tasks_of(request["collect"], entry, request)
        except BaseException as error:  # SystemExit of a package's own is a failure like others
            answer["error"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
        answer["seconds"] = round(time.monotonic() - before, 3)
        found.append(answer)
    return {"results": found}
