"""The extension nereid_native.abi3.so: the check before a call in native code (src/nereid/python)."""

import functools
import importlib.machinery
import importlib.util
import types

from . import _launch


@functools.cache
def extension() -> types.ModuleType | None:
    """The extension; None where it is missing or does not load, as in a Python without the limited API."""
    for place in _launch.PLACES:
        path = place / "nereid_native.abi3.so"
        if not path.exists():
            continue
        loader = importlib.machinery.ExtensionFileLoader("nereid._native", str(path))
        spec = importlib.util.spec_from_file_location("nereid._native", path, loader=loader)
        try:
            found = importlib.util.module_from_spec(spec)
            loader.exec_module(found)
        except ImportError:
            continue
        return found
    return None
