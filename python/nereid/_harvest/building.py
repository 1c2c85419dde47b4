"""Modules of packages in small configurations, called once: what tasks are made of.

Nothing is known of a class but its signature. Arguments without a default, and sizes with a large one, get
small values by their names; inputs are tried in the forms that modules take: pictures, sequences, vectors,
tokens, waves, volumes. The first call that works is recorded.
"""

import importlib
import inspect
import random
import re
import warnings
import zlib

import torch
from . import arguments, cutting, inputs, packages, recording, sources
from .spelling import NoText

_MOST_PARAMETERS = 80_000_000
_CALL_TRIES = 120
_CALLS_OF_A_FORM = 12  # of a form of inputs and what it is repaired to
_CONSTRUCTIONS = 16
_REPAIRS = 4  # in a row, of one form of inputs
_REPAIRS_OF_ONE = 3  # ways to read one error


def tasks_of(distribution, entry, options):
    """Tasks of one entry of `packages.entries`."""
    seed = zlib.crc32(f"{options['seed']} {distribution} {entry}".encode())
    torch.manual_seed(seed & 0x7FFFFFFF)
    random.seed(seed)
    with warnings.catch_warnings(), packages.quiet(), recording.Constructions():
        warnings.simplefilter("ignore")
        graph = _recorded(entry)
    found = []
    with packages.quiet():
        found += _author_tasks(graph, options)
        found += _subgraph_tasks(graph, options, seed)
    return found


def _recorded(entry):
    kind, _, name = entry.partition(" ")
    if kind == "class":
        return _of_class(packages.class_of(name))
    module, tries = {"timm": _timm, "torchvision": _torchvision, "transformers": _transformers}[kind](name)
    return _called(module, tries)


def _named(module):
    """Remembers the name that each module has in its parent."""
    for name, child in module.named_modules():
        last = name.rpartition(".")[2]
        if last and not last.isdigit():
            object.__setattr__(child, "_nereid_name", last)


def _called(module, tries):
    """The graph of the first call that works; forms that fail are tried again with what their errors ask for.
    Raises what the first one raised."""
    if sum(p.numel() for p in module.parameters()) > _MOST_PARAMETERS:
        raise ValueError(f"more than {_MOST_PARAMETERS} parameters")
    module = module.eval()
    _named(module)
    first, seen = None, set()
    optional = [(p.name, p.default) for p in arguments.parameters(type(module).forward)]
    for form in tries:
        waiting, enough = [(0, form)], min(_CALL_TRIES, len(seen) + _CALLS_OF_A_FORM)
        while waiting and len(seen) < enough:
            depth, given = waiting.pop(0)
            if (signature := inputs.signature(given)) in seen:
                continue
            seen.add(signature)
            args, kwargs = ((), given) if isinstance(given, dict) else (tuple(given), {})
            try:
                graph, output = recording.record(module, args, kwargs)
            except (KeyboardInterrupt, MemoryError, recording.TooLarge):
                raise
            except BaseException as error:
                first = first or error
                if depth < _REPAIRS:
                    more = list(inputs.repaired(given, error, optional))[:_REPAIRS_OF_ONE]
                    waiting = [(depth + 1, each) for each in more] + waiting
                continue
            if graph.nodes:
                return graph
            first = first or ValueError("no call of PyTorch was recorded")
    raise first or ValueError("no form of inputs was tried")


def _of_class(cls):
    """The graph of a class's first module that can be made and called; a constructor that fails is tried
    again with what its error asks for."""
    last, made = None, 0
    waiting = list(arguments.configurations(cls))
    while waiting and made < _CONSTRUCTIONS:
        small = waiting.pop(0)
        made += 1
        try:
            module = cls(**small)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            last = last or error
            waiting = list(arguments.repaired(cls, small, error))[:_CONSTRUCTIONS] + waiting
            continue
        try:
            return _called(module, _forward_inputs(cls, small))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            last = error
    raise last or ValueError("its arguments have no small values")


def _forward_inputs(cls, given):
    parameters = arguments.parameters(cls.forward)
    needed = [p for p in parameters if p.default is p.empty]
    config = given.get("config")
    if config is not None:
        yield from _config_inputs(needed, config)
    if all(_wants_tokens(p) for p in needed) and needed:
        yield [torch.randint(0, 16, (2, 9)) for _ in needed]
    if any(p.name.startswith("edge_index") for p in needed):
        yield [inputs.of_name(p.name, 9) for p in needed]
    yield from inputs.of_arity(max(1, len(needed)) if parameters else 0)


def _wants_tokens(parameter):
    return re.search(r"(^|_)(ids?|tokens?|indices|idx)$", parameter.name) is not None


def _config_inputs(needed, config):
    """Inputs of a part of a language model or vision model."""
    hidden = (
        getattr(config, "hidden_size", None)
        or getattr(config, "d_model", None)
        or getattr(config, "dim", None)
        or 32
    )
    if not isinstance(hidden, int):
        hidden = 32
    heads = getattr(config, "num_attention_heads", 4)
    head_dim = getattr(config, "head_dim", None) or (
        hidden // heads if isinstance(heads, int) and heads else 8
    )

    def value(name):
        if name == "position_embeddings":
            return torch.randn(2, 9, head_dim), torch.randn(2, 9, head_dim)
        if re.search(r"mask", name):
            return None
        if re.search(r"position_ids", name):
            return torch.arange(9)[None].repeat(2, 1)
        if re.search(r"ids$", name):
            return torch.randint(0, 16, (2, 9))
        if re.search(r"pixel|image", name):
            size = getattr(config, "image_size", 32)
            return torch.randn(2, getattr(config, "num_channels", 3), size, size)
        return torch.randn(2, 9, hidden)

    yield [value(p.name) for p in needed]
    if len(needed) == 1:
        size = getattr(config, "intermediate_size", None)
        if isinstance(size, int):
            yield [torch.randn(2, 9, size)]


def _timm(name):
    import timm

    options = {"num_classes": 10, "pretrained": False}
    sizes = (64, 128, 224)
    try:
        module = timm.create_model(name, img_size=64, **options)
    except TypeError:
        module = timm.create_model(name, **options)
    except (AssertionError, ValueError, RuntimeError):
        module = timm.create_model(name, **options)
    channels = 3
    return module, [[torch.randn(1, channels, size, size)] for size in sizes]


def _torchvision(name):
    import torchvision

    options = {"weights": None}
    if "weights_backbone" in inspect.signature(torchvision.models.get_model_builder(name)).parameters:
        options["weights_backbone"] = None
    module = torchvision.models.get_model(name, **options)
    return module, [
        [torch.randn(1, 3, 64, 64)],
        [torch.randn(1, 3, 224, 224)],
        [torch.randn(1, 3, 8, 64, 64)],
        [[torch.randn(3, 64, 64)]],
    ]


def _transformers(name):
    package, _, cls_name = name.partition(".")
    module = importlib.import_module(f"transformers.models.{package}.modeling_{package}")
    cls = getattr(module, cls_name)
    config = arguments.small_config(cls.config_class, cls_name)
    model = cls(config)
    size = (
        getattr(config, "image_size", None)
        or getattr(getattr(config, "vision_config", None), "image_size", None)
        or 32
    )
    size = size if isinstance(size, int) else size[0] if isinstance(size, (list, tuple)) and size else 32
    tokens = torch.randint(1, 16, (2, 9))
    picture = torch.randn(2, getattr(config, "num_channels", 3), size, size)
    return model, [
        {"input_ids": tokens}, {"pixel_values": picture}, {"input_ids": tokens, "decoder_input_ids": tokens},
        {"input_ids": tokens, "pixel_values": picture},
        {"input_values": torch.randn(2, 4000)}, {"input_features": torch.randn(2, 16, 32)},
        {"inputs_embeds": torch.randn(2, 9, 32)},
    ]  # fmt: skip


def _author_tasks(graph, options):
    """Modules of the graph in their authors' words, each class with some different arguments."""
    found, per_class = [], {}
    for called in graph.modules:
        cls = type(called.module)
        if called.last is None or called.last == called.first or cls.__module__.split(".")[0] == "torch":
            continue
        if called.last - called.first > 8 * options["max_operators"] or per_class.get(cls, 0) >= 3:
            continue
        try:
            code = sources.author_task(called)
        except NoText:
            per_class[cls] = per_class.get(cls, 0) + 1
            continue
        except (KeyboardInterrupt, MemoryError):
            raise
        except Exception:
            continue
        per_class[cls] = per_class.get(cls, 0) + 1
        found.append({"code": code, "form": "author", "class": f"{cls.__module__}:{cls.__qualname__}"})
    return found


def _subgraph_tasks(graph, options, seed):
    return list(cutting.Cutter(graph, options, seed).tasks())
