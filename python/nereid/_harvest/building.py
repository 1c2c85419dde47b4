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
from torch import nn

from . import cutting, packages, recording, sources
from .spelling import NoText

_MOST_PARAMETERS = 80_000_000
_CALL_TRIES = 40

# What an argument of this name is, where it is a number; the first pattern that matches.
SIZES = [
    (r"^(in_|input_)?(image|img)_?size$|^size$|^resolution$|input_resolution|^input_size$", 32),
    (r"vocab|num_tokens|num_embeddings|codebook_size|n_tokens", 64),
    (r"num_classes|n_classes|num_labels|n_outputs|out_classes|classes_num", 10),
    (r"patch_size", 8),
    (r"kernel", 3),
    (r"^(depth|depths|num_layers|n_layers|num_hidden_layers|layers|num_blocks|n_blocks|n_layer|num_stages)$|(encoder|decoder)_layers$", 1),
    (r"head_dim|dim_head|d_kv|attention_head_size", 8),
    (r"(num|n)_(key_value|kv)_(heads|groups)|kv_heads", 2),
    (r"heads?$|n_head$|nhead$", 4),
    (r"(num_)?groups?$", 2),
    (r"experts?$", 2),
    (r"stride|dilation", 1),
    (r"padding", 0),
    (r"seq_?len|max_(position|len|seq)|window|context_length|n_positions|num_frames|frames$|chunk", 16),
    (r"ratio|expansion|mult$|factor|scale", 2),
    (r"intermediate_size|ffn|d_ff|mlp_dim|hidden_features|n_inner|dim_feedforward", 48),
    (r"channels?$|chans$|planes$|^(c|ch|inp|oup|in_ch|out_ch|c1|c2|inplanes)$|num_filters|filters$|n_feat", 16),
    (r"dim|hidden|width|embed|features?|size$|d_model|n_embd|rank|length|in_f|out_f|dims$|units", 32),
    (r"drop|prob|eps|momentum|alpha|beta|gamma|threshold|temperature|rate$|std$|weight|^p$", 0.1),
    (r"^(num|n)_|steps|iters|order|levels|bins|bits|count|^k$", 4),
]  # fmt: skip
_SIZES = [(re.compile(pattern), value) for pattern, value in SIZES]
_DROPS = re.compile(r"drop(out|path)?|attn_drop|proj_drop|layerdrop|_pdrop")


def size_of(name):
    for pattern, value in _SIZES:
        if pattern.search(name):
            return value
    return None


def inputs_of_arity(count):
    """Forms of `count` tensor arguments, the likely ones first."""

    def one(form):
        kind, *shape = form
        if kind == "tokens":
            return torch.randint(0, 16, shape)
        return torch.randn(*shape)

    forms = [("f", 2, 3, 32, 32), ("f", 2, 16, 32), ("f", 2, 16, 16, 16), ("f", 2, 9, 32), ("f", 2, 32, 16, 16), ("f", 2, 32), ("tokens", 2, 9),
             ("f", 2, 16), ("f", 2, 16, 9), ("f", 2, 3, 64, 64), ("f", 2, 1, 32, 32), ("f", 2, 16, 16, 32), ("f", 2, 4, 9, 8), ("f", 2, 3, 8, 32, 32),
             ("f", 2, 16, 8, 8, 8), ("f", 2, 1, 64), ("f", 2, 64), ("f", 2, 16, 64), ("f", 2, 1, 4000), ("f", 9, 9), ("f", 2, 10), ("f", 2, 32, 32),
             ("f", 2, 8, 16, 16), ("f", 2, 16, 16), ("f", 2, 4, 4, 32)]  # fmt: skip
    for form in forms:
        yield [one(form) for _ in range(count)]
    if count == 2:
        for a, b in ((("f", 2, 32, 16, 16), ("f", 2, 32)), (("f", 2, 9, 32), ("f", 2, 32)), (("f", 2, 16, 16, 16), ("f", 2, 16)),
                     (("f", 2, 10), ("tokens", 2)), (("f", 2, 9, 32), ("f", 2, 7, 32)), (("f", 2, 3, 32, 32), ("tokens", 2, 9)),
                     (("f", 9, 32), ("tokens", 2, 16)), (("f", 2, 16, 16, 16), ("f", 2, 16, 8, 8))):  # fmt: skip
            yield [one(a), one(b)]


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
    """The graph of the first call that works. Raises what the first one raised."""
    if sum(p.numel() for p in module.parameters()) > _MOST_PARAMETERS:
        raise ValueError(f"more than {_MOST_PARAMETERS} parameters")
    module = module.eval()
    _named(module)
    first = None
    for number, given in enumerate(tries):
        if number >= _CALL_TRIES:
            break
        args, kwargs = ((), given) if isinstance(given, dict) else (tuple(given), {})
        try:
            graph, output = recording.record(module, args, kwargs)
        except (KeyboardInterrupt, MemoryError, recording.TooLarge):
            raise
        except BaseException as error:
            first = first or error
            continue
        if graph.nodes:
            return graph
        first = first or ValueError("no call of PyTorch was recorded")
    raise first or ValueError("no form of inputs was tried")


def _of_class(cls):
    last = None
    for small in _configurations(cls):
        try:
            module = cls(**small)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            last = last or error
            continue
        try:
            return _called(module, _forward_inputs(cls, small))
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            last = error
    raise last or ValueError("its arguments have no small values")


def _parameters(function):
    try:
        found = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _configurations(cls):
    """Arguments to make the class with, a few ways."""
    wanted = _parameters(cls.__init__)
    if any(p.name in ("config", "cfg") and p.default is p.empty for p in wanted):
        config = _config_for(cls)
        rest = {p.name: 0 if p.name in ("layer_idx", "layer_number", "layer_id") else _value_of(p)
                for p in wanted if p.default is p.empty and p.name not in ("config", "cfg")}  # fmt: skip
        yield {next(p.name for p in wanted if p.name in ("config", "cfg")): config, **rest}
        return
    needed = {p.name: _value_of(p) for p in wanted if p.default is p.empty}
    small = {}
    for p in wanted:
        if p.default is p.empty:
            continue
        if _DROPS.search(p.name) and isinstance(p.default, float):
            small[p.name] = 0.0
        elif (
            isinstance(p.default, int)
            and not isinstance(p.default, bool)
            and p.default >= 128
            and (size := size_of(p.name))
        ):
            small[p.name] = size
    yield {**needed, **small}
    equal = {k: 32 if isinstance(v, int) and v in (16, 48) else v for k, v in needed.items()}
    if equal != needed:
        yield {**equal, **small}
    sixteen = {k: 16 if isinstance(v, int) and v in (32, 48) else v for k, v in needed.items()}
    if sixteen != needed:
        yield {**sixteen, **small}
    if small:
        yield needed


def _value_of(parameter):
    """A small value for a parameter without a default, by its annotation and name."""
    annotation, name = str(parameter.annotation), parameter.name.lower()
    if "bool" in annotation:
        return False
    if re.search(r"norm_layer|^norm$", name):
        return nn.LayerNorm if "Layer" in annotation else nn.BatchNorm2d
    if re.search(r"act(ivation)?(_layer|_fn|_func)?$|nonlinearity", name):
        return "relu" if "str" in annotation else nn.ReLU
    if re.search(r"^(fn|module|block|layer|net|model|encoder|backbone)$", name):
        return nn.Identity()
    size = size_of(name)
    if re.search(r"List|Sequence|Tuple|list|tuple", annotation) and size is not None:
        return [size, size]
    if size is None:
        if "int" in annotation or parameter.annotation is parameter.empty:
            return 16
        if "float" in annotation:
            return 0.1
        raise ValueError(f"no small value for the argument {parameter.name}: {annotation[:80]}")
    return size


def _forward_inputs(cls, given):
    parameters = _parameters(cls.forward)
    needed = [p for p in parameters if p.default is p.empty]
    config = given.get("config")
    if config is not None:
        yield from _config_inputs(needed, config)
    if all(_wants_tokens(p) for p in needed) and needed:
        yield [torch.randint(0, 16, (2, 9)) for _ in needed]
    yield from inputs_of_arity(max(1, len(needed)) if parameters else 0)


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


def _config_for(cls):
    """A small configuration for a class of transformers: the one of its file's models."""
    module = importlib.import_module(cls.__module__)
    for value in [cls, *vars(module).values()]:
        config = getattr(value, "config_class", None)
        if inspect.isclass(config):
            return _small_config(config, cls.__name__)
    raise ValueError("no configuration class")


def _small_config(config_class, name):
    """An instance with small sizes."""
    subs = getattr(config_class, "sub_configs", None) or {}
    options = {}
    default = config_class()
    for key, value in list(default.to_dict().items()):
        if isinstance(value, bool) or key in subs:
            continue
        if _DROPS.search(key) and isinstance(value, float):
            options[key] = 0.0
        elif (
            isinstance(value, int)
            and value > 4
            and (size := size_of(key)) is not None
            and isinstance(size, int)
        ):
            if not re.search(r"token_id|_id$|version", key):
                options[key] = min(value, size)
        elif isinstance(value, int) and re.search(r"layers|depth|num_blocks", key) and value > 1:
            options[key] = 1
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if isinstance(getattr(default, key, None), int):
            options[key] = 0
    options["use_cache"] = False
    for key, sub in subs.items():
        try:
            if inspect.isclass(sub):
                options[key] = _small_config(sub, name).to_dict()
        except BaseException:
            continue
    try:
        config = config_class(**options)
    except BaseException:
        options = {k: v for k, v in options.items() if k in ("use_cache",) or re.search("layers", k)}
        config = config_class(**options)
    config._attn_implementation = "sdpa" if zlib.crc32(name.encode()) % 2 else "eager"
    return config


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
    config = _small_config(cls.config_class, cls_name)
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
        {"input_ids": tokens}, {"pixel_values": picture}, {"input_ids": tokens, "decoder_input_ids": tokens}, {"input_ids": tokens, "pixel_values": picture},
        {"input_values": torch.randn(2, 4000)}, {"input_features": torch.randn(2, 16, 32)}, {"inputs_embeds": torch.randn(2, 9, 32)},
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
