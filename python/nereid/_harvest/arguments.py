"""Arguments of constructors: small values, guessed from names and annotations, and small configurations."""

import importlib
import inspect
import re
import zlib

from torch import nn

# What an argument of this name is, where it is a number; the first pattern that matches.
SIZES = [
    (r"^(in_|input_)?(image|img)_?size$|^size$|^resolution$|input_resolution|^input_size$", 32),
    (r"spatial_dim|^(n_?dims?|num_dims|dimensions?|dims)$", 2),
    (r"^n_times$|sfreq|sampl(e|ing)_rate|n_samples", 128),
    (r"vocab|num_tokens|num_embeddings|codebook_size|n_tokens", 64),
    (r"num_classes|n_classes|num_labels|n_outputs|out_classes|classes_num", 10),
    (r"patch_size", 8),
    (r"kernel", 3),
    (r"^(depth|depths|num_layers|n_layers|num_hidden_layers|layers|n_layer|num_stages)$", 1),
    (r"^(num_blocks|n_blocks)$", 1),
    (r"(encoder|decoder)_layers$", 1),
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
    (r"channels?$|chans$|planes$|^(c|ch|inp|oup|in_ch|out_ch|c1|c2|inplanes)$|num_filters|filters$|n_feat",
        16),
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


def parameters(function):
    try:
        found = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return []
    return [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def configurations(cls):
    """Arguments to make the class with, a few ways."""
    wanted = parameters(cls.__init__)
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


def repaired(cls, values, error):
    """Arguments like `values` with what a failed constructor asks for."""
    text = str(error)
    absent = {p.name for p in parameters(cls.__init__) if p.default is None and values.get(p.name) is None}
    if named := [
        word for word in dict.fromkeys(re.findall(r"[a-z_]\w*", text)) if word in absent and size_of(word)
    ]:
        yield {**values, named[0]: size_of(named[0])}
    if match := re.search(r"missing \d+ required (?:positional|keyword-only) arguments?: (.*)", text):
        missing = re.findall(r"'(\w+)'", match[1])
        yield {**values, **{name: 16 if size_of(name) is None else size_of(name) for name in missing}}
        return
    if match := re.search(r"unexpected keyword argument '(\w+)'", text):
        yield {k: v for k, v in values.items() if k != match[1]}
        return
    numbers = [k for k, v in values.items() if isinstance(v, int) and not isinstance(v, bool)]
    if re.search(r"not iterable|not subscriptable|has no len|not unpack non-iterable|zip argument", text):
        new = [{k: [values[k]] * 2} for k in numbers]
    elif re.search(r"not callable|not a callable|has no attribute", text):
        kinds = (nn.ReLU, nn.BatchNorm2d) if "callable" in text else (nn.Identity(),)
        new = [{k: kind} for kind in kinds for k in numbers]
    elif re.search(r"divisible|multiple of", text):
        new = [{k: size} for size in (16, 32) for k in numbers if values[k] != size]
    else:
        return
    for each in new:
        yield {**values, **each}


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
    alone = re.search(
        r"(^|[\[ |])int([,| \]]|$)", re.sub(r"(List|Sequence|Tuple|list|tuple)\[[^\]]*\]", "", annotation)
    )
    if re.search(r"List|Sequence|Tuple|list|tuple", annotation) and size is not None and not alone:
        return [size, size]
    if size is None:
        if "int" in annotation or parameter.annotation is parameter.empty:
            return 16
        if "float" in annotation:
            return 0.1
        if literal := re.search(r"Literal\[(['\"])([^'\"]*)\1", annotation):
            return literal[2]
        if re.search(r"Optional|None", annotation):
            return None
        if re.search(r"[Tt]ype\[.*Module", annotation):
            return nn.Identity
        if re.search(r"Module|Callable", annotation):
            return nn.Identity()
        raise ValueError(f"no small value for the argument {parameter.name}: {annotation[:80]}")
    return size


def _config_for(cls):
    """A small configuration for a class of transformers: the one of its file's models."""
    module = importlib.import_module(cls.__module__)
    for value in [cls, *vars(module).values()]:
        config = getattr(value, "config_class", None)
        if inspect.isclass(config):
            return small_config(config, cls.__name__)
    raise ValueError("no configuration class")


def small_config(config_class, name):
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
                options[key] = small_config(sub, name).to_dict()
        except BaseException:
            continue
    try:
        config = config_class(**options)
    except BaseException:
        options = {k: v for k, v in options.items() if k in ("use_cache",) or re.search("layers", k)}
        config = config_class(**options)
    config._attn_implementation = "sdpa" if zlib.crc32(name.encode()) % 2 else "eager"
    return config
