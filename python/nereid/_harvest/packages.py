"""What a distribution offers: its metadata, its classes, its built models."""

import contextlib
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import sys

_MOST_MODULES = 4000
# Names of models that differ from smaller ones in their sizes alone.
_LARGE = re.compile(
    r"(^|_)(x*large|x+l|huge|h|giant|g|gigantic|enormous|so\d+m|\d+b|intern\d+b)\d*(_|$)|large|huge|giant"
)
_SKIPPED = re.compile(
    r"(^|\.)(tests?|testing|conftest|__main__|setup|cli|commands|scripts|examples?"
    r"|deprecated|benchmarks?|train|onnx)(\.|$)"
)


def about(distribution):
    """Version, licence and author from the distribution's metadata, and its importable packages; `missing`
    where it is not installed."""
    try:
        metadata = importlib.metadata.metadata(distribution)
    except importlib.metadata.PackageNotFoundError:
        return {"missing": True}
    classifiers = [c for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    licence = metadata.get("License-Expression") or (metadata.get("License") or "").strip().split("\n")[0]
    licence = licence or (classifiers[0].split(" :: ")[-1] if classifiers else "")
    return {
        "version": metadata["Version"],
        "licence": licence[:80] or "unknown",
        "author": (metadata.get("Author") or metadata.get("Author-email") or "unknown").strip()[:200],
        "modules": _top_level(distribution),
    }


def _top_level(distribution):
    """The importable names of a distribution."""
    found = importlib.metadata.distribution(distribution)
    names = (found.read_text("top_level.txt") or "").split()
    if not names:
        for file in found.files or ():
            parts = file.parts
            if len(parts) > 1 and parts[-1] == "__init__.py" and len(parts) == 2:
                names.append(parts[0])
            elif len(parts) == 1 and parts[0].endswith(".py"):
                names.append(parts[0][:-3])
    return [
        n for n in dict.fromkeys(names) if n.isidentifier() and n not in ("tests", "test", "docs", "examples")
    ]


@contextlib.contextmanager
def quiet():
    """Without what a package prints: a child's output goes nowhere in any case."""
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def entries(distribution):
    """Names of all that can be built: "timm:resnet18", "transformers:bert.BertModel", and "MODULE:CLASS" of
    every class. In the order of their names."""
    special = {"timm": _timm, "transformers": _transformers, "torchvision": _torchvision}.get(distribution)
    found = list(special()) if special else []
    seen = set()
    for name in _top_level(distribution):
        for module in _modules(name):
            for cls in _classes(module):
                where = f"{cls.__module__}:{cls.__qualname__}"
                if cls.__module__.split(".")[0] == name and where not in seen:
                    seen.add(where)
                    found.append(f"class {where}")
    return found


def load(distribution):
    """Imports a distribution's packages, as far as they can be."""
    for name in _top_level(distribution):
        with contextlib.suppress(BaseException), quiet():
            importlib.import_module(name)


def _modules(name):
    """The imported modules of a package, without those that cannot be imported."""
    try:
        with quiet():
            top = importlib.import_module(name)
    except BaseException:
        return
    yield top
    count = 0
    for info in pkgutil.walk_packages(getattr(top, "__path__", ()), name + ".", onerror=lambda _: None):
        if _SKIPPED.search(info.name):
            continue
        count += 1
        if count > _MOST_MODULES:
            return
        if name in ("transformers", "diffusers") and not re.search(
            r"\.modeling_|\.models\.|attention|transformer", info.name
        ):
            continue
        if name == "transformers" and ".modeling_" not in info.name:
            continue
        try:
            with quiet():
                yield importlib.import_module(info.name)
        except BaseException:
            continue


def _classes(module):
    """The nn.Module classes that a module defines."""
    import torch

    for value in list(vars(module).values()):
        if (
            inspect.isclass(value)
            and issubclass(value, torch.nn.Module)
            and value.__module__ == module.__name__
            and not inspect.isabstract(value)
            and "forward" in _methods(value)
        ):
            yield value


def _methods(cls):
    import torch

    found = set()
    for base in cls.__mro__:
        if base is torch.nn.Module:
            break
        found.update(vars(base))
    return found


def _timm():
    import timm

    return [f"timm {name}" for name in timm.list_models() if not _LARGE.search(name)]


def _torchvision():
    import torchvision

    return [f"torchvision {name}" for name in torchvision.models.list_models()]


def _transformers():
    """Every model class with a configuration class of its own."""
    import transformers

    found = []
    for info in pkgutil.iter_modules(transformers.models.__path__):
        if not info.ispkg:
            continue
        try:
            with quiet():
                module = importlib.import_module(f"transformers.models.{info.name}.modeling_{info.name}")
        except BaseException:
            continue
        for name, cls in sorted(vars(module).items()):
            if (
                inspect.isclass(cls)
                and cls.__module__ == module.__name__
                and getattr(cls, "config_class", None) is not None
                and not name.endswith("PreTrainedModel")
            ):
                found.append(f"transformers {info.name}.{name}")
    return found


def class_of(where):
    """The class of "MODULE:QUALNAME"."""
    module, _, name = where.partition(":")
    with quiet():
        value = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def root_of(module_name):
    return sys.modules.get(module_name.split(".")[0])
