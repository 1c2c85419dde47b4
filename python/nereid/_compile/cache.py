"""Kernels that were verified before, in memory and in a folder next to the store, by content."""

import contextlib
import hashlib
import json
import os
import threading
import warnings
from pathlib import Path

import torch

from .. import _program
from .._verdict import Verdict

_cached: dict[str, tuple] = {}
_cache_lock = threading.Lock()


def content_key(task, options):
    """What the verdict depends on: the task, the question, the programs and the device."""
    program, environment = _program.command()
    with contextlib.suppress(OSError):
        stat = os.stat(program)
        program = f"{program} {stat.st_size} {stat.st_mtime_ns}"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    question = {key: str(value) for key, value in options.items() if key not in ("budget", "report")}
    import triton

    parts = [task, question, program, torch.__version__, triton.__version__, device]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def cache_folder() -> Path:
    """Where verified kernels are kept: `compiled` next to the store (`nereid store`), or where that is by
    default."""
    store = os.environ.get("NEREID_STORE", "")
    if store and not store.startswith(("postgresql://", "postgres://")):
        return Path(store).absolute().parent / "compiled"
    data = os.environ.get("XDG_DATA_HOME", "")
    home = Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share"
    return home / "nereid" / "compiled"


def read(key):
    with _cache_lock:
        if key in _cached:
            return _cached[key]
    try:
        kept = json.loads((cache_folder() / f"{key}.json").read_text())
        found = (kept["source"], Verdict.from_json(kept["verdict"]), None)
        if hashlib.sha256(kept["source"].encode()).hexdigest() != kept["sha256"]:
            return None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError):
        return None
    with _cache_lock:
        _cached[key] = found
    return found


def write(key, plan):
    with _cache_lock:
        _cached[key] = (plan.source, plan.verdict, None)
    kept = {
        "source": plan.source,
        "sha256": hashlib.sha256(plan.source.encode()).hexdigest(),
        "verdict": {
            "verdict": plan.verdict.verdict,
            "reason": plan.verdict.reason,
            "times": plan.verdict.times,
            "coverage": dict(plan.verdict.coverage),
            "seconds": plan.verdict.seconds,
        },
    }
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{key}.json"
        part = folder / f".{key}.{os.getpid()}.{threading.get_ident()}"
        part.write_text(json.dumps(kept))
        os.replace(part, path)
    except (OSError, RuntimeError) as error:
        warnings.warn(f"nereid: verified kernels are not kept: {error}")
