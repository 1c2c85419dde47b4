"""One program from its seed: operators in a row, results in a structure, the file in one of many styles."""

import copy
import dataclasses
import re

import indexing  # noqa: F401  (enters its operators)
import layers  # noqa: F401
import names
import pointwise  # noqa: F401
import sequences
import states  # noqa: F401
import torch
from operators import TABLE
from writer import Refused, Writer

STATE = (
    "inputs arguments init globals init_arguments statements values names attributes given casts_layers"
).split()
LENGTHS = {1: 30, 2: 30, 3: 22, 4: 12, 5: 6}
TRIES = 40  # operators that do not apply, of one program


def program(seed):
    """`code` and its labels; None where nothing came of this seed."""
    g = Writer(seed)
    try:
        first(g)
        length, tries = g.weighted(LENGTHS), 0
        while len(g.operators) < length:
            tries += 1
            if tries > TRIES:
                return None
            step(g)
        return finish(g)
    except Exception:  # whatever a random program raises: it is left out, and counted
        return None


def first(g):
    rank = g.weighted({1: 8, 2: 36, 3: 28, 4: 24, 5: 4})
    if g.base not in (g.float_type,):
        rank = min(rank, 3)
    most = {1: 4096, 2: 1024, 3: 128, 4: 40, 5: 12}[rank]
    shape = tuple(g.dimension(most if d else min(most, 64)) for d in range(rank))
    if g.chance(0.15) and rank > 1:
        shape = shape[:-1] + (shape[-2],)
    if g.chance(0.06):
        g.values.append(g.input(shape, torch.bool))
    else:
        g.values.append(g.input(shape, g.base))


def step(g):
    x = g.values[-1] if g.chance(0.75) else g.pick(*g.values)
    fitting = [row for row in TABLE if x.kind in row[1] and row[3] <= x.rank <= row[4]]
    function = g.random.choices([row[0] for row in fitting], [row[2] for row in fitting])[0]
    before = {name: copy.copy(getattr(g, name)) for name in STATE}
    scope, self_ = dict(g.scope), dict(vars(g.self_))
    g.current = x
    try:
        g.values.append(function(g, x))
        if g.values[-1] in g.values[:-1]:
            last = g.values.pop()
            g.values.remove(last)
            g.values.append(last)
        g.operators.append(function.__name__)
    except Exception:  # the operator does not apply here
        for name, value in before.items():
            setattr(g, name, value)
        g.scope.clear(), g.scope.update(scope)
        vars(g.self_).clear(), vars(g.self_).update(self_)


def names_in(text):
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def finish(g):
    whole = ""
    if g.chance(0.12) and g.values[-1].rank and g.values[-1].kind != "b":
        whole = sequences.whole_result(g, g.values[-1])
    results = [g.values[-1]] if whole else choose_results(g)
    lines, read = live_statements(g, results)
    lines = nested(g, lines, results)
    if whole:
        text = returned_whole(g, whole)
    else:
        text = returned(g, results)
        fold_return(g, lines, results, text)
    body = [each.line() for each in lines] + text.get("lines", [])
    if not body or not body[-1].startswith("return "):
        body.append(f"return {text['value']}")
    used = names_in("\n".join(body))
    inputs = [pair for pair in g.inputs if pair[0] in used]
    if not inputs:
        return None
    code = file(g, body, inputs, text["before"], used)
    dtypes, shapes = check(code)
    return {"split": "train", "operators": g.operators, "dtypes": dtypes, "shapes": shapes, "code": code}


def choose_results(g):
    """The last value, with some of the others that no statement reads."""
    last = g.values[-1]
    text = "\n".join(each.text for each in g.statements)
    made = [v for v in g.values[:-1] if v.statement >= 0]
    unread = [v for v in made if v.text not in names_in(text)]
    results = [last]
    for value in unread:
        if g.chance(0.7):
            results.append(value)
    if made and g.chance(0.15):
        results.append(g.pick(*made))
    some = []
    for value in results[:4]:
        if value.text not in [each.text for each in some]:
            some.append(value)
    if g.chance(0.3):
        g.random.shuffle(some)
    return some


def live_statements(g, results):
    """Statements that results depend on; what changes a value in place is one of them."""
    needed = set().union(*(names_in(v.text) for v in results))
    live = []
    for each in reversed(g.statements):
        targets = (
            names_in(each.target)
            if each.target
            else names_in(each.text) & set(g.scope) - {"torch", "F", "self"}
        )
        if targets & needed:
            live.append(each)
            needed |= names_in(each.text)
    return live[::-1], needed


def nested(g, lines, results):
    """Some values are written where they are read, once and next."""
    kept, shown = [], {v.text for v in results}
    probability = g.pick(0.0, 0.0, 0.4, 0.8)
    for each in lines:
        last = kept[-1] if kept else None
        if (
            last
            and not last.whole
            and last.target
            and last.target.isidentifier()
            and not each.whole | (not each.target)
        ):
            reads = len(re.findall(rf"(?<![\w.]){last.target}\b", each.text))
            again = last.target == each.target or not any(
                last.target in names_in(other.text) for other in lines[lines.index(each) + 1 :]
            )
            if (
                reads == 1
                and again
                and (last.target not in shown or last.target == each.target)
                and g.chance(probability)
            ):
                if len(last.text) + len(each.text) < 90:
                    kept.pop()
                    each = copy.copy(each)
                    each.text = put(each.text, last.target, last.text)
        kept.append(each)
    return kept


def put(text, name, inner):
    """`inner` in the place of `name`, in parentheses where its operators would bind otherwise."""
    at = re.search(rf"(?<![\w.]){name}\b", text)
    before, after = text[: at.start()].rstrip(), text[at.end() :].lstrip()
    flat = re.sub(r"[(\[].*[)\]]", "", inner)
    infix = re.search(r"[-+*/%@&|^<>=~ ]", flat) is not None or inner[0] in "(["
    alone = (not before or before[-1] in "(,") and (not after or after[0] in "),")
    if infix and not (alone and "=" not in flat):
        inner = f"({inner})"
    return text[: at.start()] + inner + text[at.end() :]


def returned(g, results):
    """How results are returned, and what stands before the class for it."""
    texts = [v.text for v in results]
    if len(texts) == 1:
        way = g.weighted({"plain": 18, "tuple": 1, "list": 1, "dict": 2})
        value = {
            "plain": texts[0],
            "tuple": f"({texts[0]},)",
            "list": f"[{texts[0]}]",
            "dict": f'{{"out": {texts[0]}}}',
        }[way]
        return {"value": value, "before": "", "way": way}
    way = g.weighted(
        {
            "plain": 8,
            "paren": 2,
            "list": 3,
            "dict": 5,
            "named": 3,
            "typed": 3,
            "data": 3,
            "keyed": 2,
            "nested": 2,
        }
    )
    pool = g.pick(["values", "indices", "mask", "scores"], ["out", "aux", "extra", "rest"], ["output",
        "hidden", "state", "attn"], ["logits", "features", "probs", "loss"], ["first", "second", "third",
        "fourth"], ["a", "b", "c", "d"], ["low", "high", "mean", "spread"], ["y", "h", "w", "n"])  # fmt: skip
    if g.chance(g.wide):
        pool = list(dict.fromkeys(g.word() for _ in range(4)))
    keys = (
        pool[: len(texts)]
        if len(pool) >= len(texts)
        else ["first", "second", "third", "fourth"][: len(texts)]
    )
    name = g.pick("Output", "Result", "ModelOutput", "Outputs", "Pair", "Stats")
    if g.chance(g.wide):
        name = "".join(part.capitalize() for part in names.drawn(g.pick).split("_"))
    if way == "dict":
        q = g.pick('"', "'")
        listed = ", ".join(f"{q}{k}{q}: {t}" for k, t in zip(keys, texts))
        spelled = ", ".join(f"{k}={t}" for k, t in zip(keys, texts))
        return {
            "value": g.pick(f"{{{listed}}}", f"{{{listed}}}", f"dict({spelled})"),
            "before": "",
            "way": way,
        }
    if way == "keyed":
        listed = ", ".join(repr(k) for k in keys)
        values = ", ".join(texts)
        return {
            "value": g.pick(f"dict(zip(({listed}), ({values})))", f"dict(zip([{listed}], [{values}]))"),
            "before": "",
            "way": way,
        }
    if way == "data":
        call = g.pick(", ".join(texts), ", ".join(f"{k}={t}" for k, t in zip(keys, texts)))
        before = f"@dataclass\nclass {name}:\n" + "".join(f"    {k}: torch.Tensor\n" for k in keys)
        return {"value": f"{name}({call})", "before": before, "way": way}
    if way in ("named", "typed"):
        call = g.pick(", ".join(texts), ", ".join(f"{k}={t}" for k, t in zip(keys, texts)))
        listed = g.pick(f'"{" ".join(keys)}"', "[" + ", ".join(f'"{k}"' for k in keys) + "]")
        before = f'{name} = namedtuple("{name}", {listed})\n' if way == "named" else (
            f"class {name}(NamedTuple):\n" + "".join(f"    {k}: torch.Tensor\n" for k in keys))  # fmt: skip
        return {"value": f"{name}({call})", "before": before, "way": way}
    if way == "nested" and len(texts) > 2:
        return {"value": f"{texts[0]}, ({', '.join(texts[1:])})", "before": "", "way": way}
    listed = ", ".join(texts)
    return {
        "value": {"paren": f"({listed})", "list": f"[{listed}]"}.get(way, listed),
        "before": "",
        "way": way,
    }


def returned_whole(g, whole):
    """`return torch.max(x, dim=1)`, at times by way of names."""
    fields = re.search(r"(max|min|topk|sort|kthvalue|median|cummax|cummin)\(", whole)
    first, second = g.fresh_values(2)
    names = ["values", "indices"] if fields and "aminmax" not in whole else []
    way = g.weighted({"plain": 6, "name": 3, "fields": 4, "pair": 4, "dict": 2})
    if way == "name":
        return {"value": first, "before": "", "lines": [f"{first} = {whole}"]}
    if names and way == "fields":
        each = f"{first}.values, {first}.indices"
        value = g.pick(each, f"({each})", f'{{"values": {first}.values, "indices": {first}.indices}}')
        return {"value": value, "before": "", "lines": [f"{first} = {whole}"]}
    if names and way in ("pair", "dict"):
        value = f"{first}, {second}" if way == "pair" else f'{{"{first}": {first}, "{second}": {second}}}'
        return {"value": value, "before": "", "lines": [f"{first}, {second} = {whole}"]}
    return {"value": whole, "before": ""}


def fold_return(g, lines, results, text):
    """`y = f(x)` and `return y` as `return f(x)`."""
    last = lines[-1] if lines else None
    if (
        len(results) > 1
        or not last
        or last.whole
        or last.target != results[0].text
        or text["way"] != "plain"
        or g.chance(0.4)
    ):
        return
    lines[-1] = copy.copy(last)
    lines[-1].text, lines[-1].target = f"return {last.text}", ""


def file(g, body, inputs, before, used):
    from style import module_text

    return module_text(g, body, inputs, before, used)


def check(code):
    """Runs the file; the dtypes and shapes of its results."""
    scope = {"__name__": "task"}
    exec(compile(code, "task", "exec"), scope)
    torch.manual_seed(1)
    model = scope["Model"](*scope["get_init_inputs"]())
    with torch.no_grad():
        tensors = list(flat(model(*scope["get_inputs"]())))
    for each in tensors:
        if each.is_floating_point() and not torch.isfinite(each).all():
            raise Refused("not finite")
        if each.numel() > 1 and each.is_floating_point() and (each == each.flatten()[0]).all():
            raise Refused("one value")
    return [str(t.dtype).removeprefix("torch.") for t in tensors], [list(t.shape) for t in tensors]


def flat(result):
    if isinstance(result, torch.Tensor):
        yield result
    else:
        if dataclasses.is_dataclass(result):
            result = vars(result)
        for each in result.values() if isinstance(result, dict) else result:
            yield from flat(each)
