"""A module that is written statement by statement, and run as it is written."""

import random
import re

import names
import torch
import torch.nn as nn
import torch.nn.functional as F

MOST_ELEMENTS = 1 << 18
MOST_MAGNITUDE = 1e4

FLOATS = {torch.float32, torch.float16, torch.bfloat16, torch.float64}
INTEGERS = {torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8}

INPUT_NAMES = {
    "f": "x x x inputs input hidden features tensor z data hidden_states a signal inp query state".split(),
    "i": "idx indices index tokens ids input_ids labels token_ids positions codes n".split(),
    "b": "mask mask keep valid attn_mask flags padding_mask is_pad".split(), }  # fmt: skip
VALUE_NAMES = (
    "x x h out out y z hidden result t res tmp feat scores weights gate attn normed proj u v "
    "a b c r1 r2 val acc x1 x2 o s e output y1 step mid".split()
)
LAYER_NAMES = "layer fc proj block op net mod unit main body stage inner m1 lin".split()
TENSOR_NAMES = "weight bias scale gamma beta w table offset shift alpha kernel p".split()
BUFFER_NAMES = (
    "buf mean_value table_values offsets lookup running steps mask_buffer coeffs grid freqs".split()
)
NUMBER_NAMES = "scale eps alpha factor beta slope temperature limit margin gain tau coef".split()
GLOBAL_NAMES = (
    "N B C H W D DIM HIDDEN BATCH ROWS COLS CHANNELS SEQ FEATURES batch_size seq_len hidden_size "
    "in_features out_features channels dim num_heads width height length K M T S E".split()
)


class Refused(Exception):
    """An operator that does not apply here."""


class Value:
    """A tensor with the text that names it."""

    def __init__(self, text, tensor, statement=-1):
        self.text, self.tensor, self.statement = text, tensor, statement

    rank = property(lambda self: self.tensor.dim())
    shape = property(lambda self: tuple(self.tensor.shape))
    dtype = property(lambda self: self.tensor.dtype)

    @property
    def kind(self):
        return "f" if self.dtype in FLOATS else "b" if self.dtype is torch.bool else "i"


class Statement:
    def __init__(self, text, target, whole):
        self.text = text  # the expression; of a statement without a target all of it
        self.target = target  # the names that it binds, "" where there are none
        self.whole = whole  # may not be written within another expression
        self.note = ""

    def line(self):
        return (f"{self.target} = {self.text}" if self.target else self.text) + self.note


class Block(Statement):
    """Several lines, whose target says what they bind."""

    def __init__(self, text, target):
        super().__init__(text, target, True)

    def line(self):
        return self.text


class Numbers:
    """Choices of one program, all from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *options):
        return self.random.choice(options)

    def weighted(self, options):
        return self.random.choices(list(options), list(options.values()))[0]

    def dimension(self, most=512):
        size = self.pick(2, 3, 4, 5, 6, 7, 8, 8, 10, 12, 16, 16, 20, 24, 31, 32, 32, 48, 50, 64, 64, 65, 77)
        if self.chance(0.3):
            size = self.pick(96, 100, 128, 128, 129, 192, 200, 256, 256, 300, 384, 512, 640, 777, 1000, 1024)
        if self.chance(0.15):
            size = self.random.randint(1, 600)
        return min(size, most)

    def constant(self):
        return self.pick(
            "0.1", "0.5", "2.0", "0.25", "1.5", "3.0", "0.7", "0.01", "1e-3", "2", "0.9", "1.702", "3"
        )


class Writer(Numbers):
    """The parts of one class Model: what operators call to name inputs, tensors and layers."""

    def __init__(self, seed):
        super().__init__(seed)
        self.torch_seed = seed % (1 << 31)
        torch.manual_seed(self.torch_seed)
        self.base = self.weighted(
            {torch.float32: 48, torch.bfloat16: 16, torch.float16: 16, torch.float64: 8, torch.int64: 8,
             torch.int32: 4}
        )  # fmt: skip
        self.float_type = self.base if self.base in FLOATS else torch.float32
        self.whole_module_cast = self.float_type is not torch.float32 and self.chance(0.5)
        self.size_style = self.weighted({"literal": 5, "global": 4, "argument": 3})
        self.reuse = self.chance(0.4)  # x = f(x)
        self.wide = self.weighted({0.0: 4, 0.6: 3, 1.0: 3})  # share of names from all of torch's
        self.names, self.attributes = (
            set("torch nn F self math".split()),
            set("training forward dtype".split()),
        )
        self.inputs, self.arguments, self.init = [], [], []  # inputs: (name, expression); arguments: text
        self.globals, self.init_arguments, self.statements = {}, {}, []
        self.values, self.given, self.current = [], [], None
        self.self_ = type("Self", (), {})()
        self.scope = {"torch": torch, "nn": nn, "F": F, "self": self.self_, "math": __import__("math")}
        self.operators, self.casts_layers, self.evaluated = [], False, False

    # ---- names
    def word(self, *pool):
        return names.drawn(self.pick) if self.chance(self.wide) else self.pick(*pool)

    def fresh(self, pool, taken, upper=False):
        name = self.word(*pool)
        if upper and self.chance(0.8):
            name = name.upper()
        if name in taken:
            number = 1
            while f"{name}{number}" in taken:
                number += 1
            name = f"{name}{number}"
        taken.add(name)
        return name

    # ---- numbers
    def size(self, number, constructor=False):
        """How a size is written: as a number, a global, or an argument of the constructor."""
        if self.size_style == "literal" or number < 2:
            return str(number)
        if number not in self.globals:
            if self.chance(0.15):
                return str(number)
            self.globals[number] = self.fresh(GLOBAL_NAMES, self.names, self.chance(self.wide))
            self.scope[self.globals[number]] = number
        if self.size_style == "argument" and constructor:
            name = self.globals[number].lower()
            if name in ("n", "b", "c", "h", "w", "d", "k", "m", "t", "s", "e"):
                name += "_size"
            self.init_arguments.setdefault(name, self.globals[number])
            return name
        return self.globals[number]

    def sizes(self, shape, constructor=False):
        return ", ".join(self.size_or_product(n, constructor) for n in shape)

    def size_or_product(self, number, constructor):
        """A size, at times as an expression of another: `2 * WIDTH`, `WIDTH // 2`, `LENGTH + 1`."""
        if self.size_style != "literal" and number > 4 and self.chance(0.25):
            for other in self.random.sample(list(self.globals), len(self.globals)):
                forms = {2 * other: "2 * {}", 3 * other: "3 * {}", 4 * other: "4 * {}", other + 1: "{} + 1"}
                forms |= {other - 1: "{} - 1"} | ({other // 2: "{} // 2"} if other % 2 == 0 else {})
                if other > 4 and number in forms:
                    return forms[number].format(self.size(other, constructor))
            if number % 2 == 0 and number not in self.globals and self.chance(0.4):
                return f"2 * {self.size(number // 2, constructor)}"
        return self.size(number, constructor)

    def number(self, text=None):
        """A constant: written out, an attribute, or an argument of forward() with a default."""
        text = text or self.constant()
        roll = self.random.random()
        if roll < 0.45:
            return text
        name = self.fresh(NUMBER_NAMES, self.names)
        if roll < 0.7:
            self.attributes.add(name)
            if self.chance(0.5):
                self.init_arguments[name] = text
                self.init.append(f"self.{name} = {name}")
            else:
                self.init.append(f"self.{name} = {text}")
            setattr(self.self_, name, eval(text))
            return f"self.{name}"
        self.arguments.append(f"{name}={text}")
        self.scope[name] = eval(text)
        return name

    # ---- tensors from outside
    def typed(self, dtype):
        return "" if dtype is torch.float32 else f", dtype={dtype}"

    def input(self, shape, dtype=None, below=None, kind=None):
        """A further argument of forward()."""
        dtype = dtype or self.float_type
        kind = kind or ("f" if dtype in FLOATS else "b" if dtype is torch.bool else "i")
        sizes = self.sizes(shape)
        if kind == "f":
            maker = self.weighted({"randn": 6, "rand": 1})
            text = f"torch.{maker}({sizes})"
            if dtype is torch.float32 and self.chance(0.15):
                text = self.other_floats(shape, sizes)
            elif dtype is not torch.float32:
                short = {torch.float16: ".half()", torch.bfloat16: ".bfloat16()", torch.float64: ".double()"}[
                    dtype
                ]
                text = self.pick(f"torch.{maker}({sizes}, dtype={dtype})", text + short,
                    f"{text}.to({dtype})", f"torch.{maker}({sizes}, dtype={dtype})")  # fmt: skip
        elif kind == "b":
            listed = f"({sizes}{',' if len(shape) == 1 else ''})"
            text = self.pick(f"torch.rand({sizes}) > 0.3", f"torch.rand({sizes}) < 0.5",
                f"torch.randint(0, 2, {listed}).bool()", f"torch.randn({sizes}) > 0")  # fmt: skip
        else:
            listed = f"({sizes}{',' if len(shape) == 1 else ''})"
            low, high = (0, below) if below else self.pick((-8, 9), (0, 10), (0, 100), (-20, 20), (1, 50))
            given = "" if dtype is torch.int64 else f", dtype={dtype}"
            if dtype in (torch.uint8,):
                low = 0
            text = f"torch.randint({low}, {high}, {listed}{given})"
            if not given and low == 0 and self.chance(0.2):
                text = f"torch.randint({high}, {listed})"
        name = self.fresh(INPUT_NAMES[kind], self.names)
        value = Value(name, eval(text, self.scope))
        self.inputs.append((name, text))
        self.given.append(value.tensor)
        self.scope[name] = value.tensor
        return value

    def other_floats(self, shape, sizes):
        listed = f"({sizes}{',' if len(shape) == 1 else ''})"
        texts = [f"torch.randint(-8, 9, {listed}).float()", f"torch.rand({sizes}) * 2 - 1",
            f"torch.randn({sizes}).abs()", f"torch.randn({sizes}) * 3.0", f"torch.normal(0.0, 1.0, {listed})",
            f"torch.randint(0, 4, {listed}).to(torch.float32)", f"torch.randn({listed})",
            f"torch.empty({sizes}).uniform_(-1.0, 1.0)"]  # fmt: skip
        if len(shape) == 1:
            texts += [f"torch.linspace(-2.0, 2.0, {sizes})", f"torch.arange({sizes}, dtype=torch.float32)"]
        return self.pick(*texts)

    def parameter(self, shape, dtype=None):
        dtype = dtype or self.float_type
        name = self.fresh(TENSOR_NAMES, self.attributes)
        sizes = self.sizes(shape, True)
        maker = self.weighted({"randn": 4, "rand": 1})
        typed = "" if self.whole_module_cast else self.typed(dtype)
        text = f"torch.{maker}({sizes}{typed})" + self.pick("", "", " * 0.1", " * 0.02")
        self.casts_layers |= self.whole_module_cast
        self.init.append(f"self.{name} = nn.Parameter({text})")
        made = eval(f"nn.Parameter({self.literal(text)})", self.scope).detach().to(dtype)
        setattr(self.self_, name, made)
        return Value(f"self.{name}", made)

    def buffer(self, text):
        """A registered buffer of what `text` computes."""
        name = self.fresh(BUFFER_NAMES, self.attributes)
        made = eval(self.literal(text), self.scope)
        if made.dtype in FLOATS and self.whole_module_cast:
            made, self.casts_layers = made.to(self.float_type), True
        quote = self.pick('"', "'")
        last = ", persistent=False" if self.chance(0.2) else ""
        self.init.append(f"self.register_buffer({quote}{name}{quote}, {text}{last})")
        setattr(self.self_, name, made)
        return Value(f"self.{name}", made)

    def literal(self, text):
        """`text` of a constructor with arguments' names as the globals that they hold."""
        return re.sub(r"\b[a-z_]\w*\b(?!\s*=[^=])", lambda m: str(self.init_arguments.get(m[0], m[0])), text)

    def layer(self, constructor, evaluated=False):
        """An attribute that holds a layer."""
        made = eval(self.literal(constructor), self.scope)
        has_tensors = any(True for _ in made.parameters()) or any(True for _ in made.buffers())
        if has_tensors and self.float_type is not torch.float32:
            if self.whole_module_cast:
                self.casts_layers = True
            else:
                constructor = constructor[:-1] + f", dtype={self.float_type})"
            made = made.to(self.float_type)
        if evaluated:
            made.eval()
        name = self.fresh(LAYER_NAMES, self.attributes)
        if evaluated and self.chance(0.4):
            self.evaluated, evaluated = True, False
        self.init.append(f"self.{name} = {constructor}{'.eval()' if evaluated else ''}")
        setattr(self.self_, name, made)
        return f"self.{name}"

    # ---- statements
    def let(self, text, name=None):
        """A statement that names the value of an expression."""
        with torch.no_grad():
            made = eval(text, self.scope)
        if isinstance(made, torch.Tensor):
            self.check(made)
            name = name or self.name_for(made)
            self.scope[name] = made
            self.statements.append(Statement(text, name, False))
            value = Value(name, made, len(self.statements) - 1)
            self.values.append(value)
            return value
        raise Refused("no tensor")

    def keep(self, text):
        """`let`, under a name of its own: what is read is read again."""
        return self.let(text, self.fresh(VALUE_NAMES, self.names))

    def unpack(self, text, count):
        """A statement that names several results of an expression."""
        with torch.no_grad():
            made = list(eval(text, self.scope))
        if len(made) != count:
            raise Refused("another number of results")
        for each in made:
            self.check(each)
        names = [self.fresh(VALUE_NAMES, self.names) for _ in made]
        self.statements.append(Statement(text, ", ".join(names), True))
        for name, each in zip(names, made):
            self.scope[name] = each
            self.values.append(Value(name, each, len(self.statements) - 1))
        return self.values[-count:]

    def fresh_values(self, count):
        return [self.fresh(VALUE_NAMES, self.names) for _ in range(count)]

    def unpack_as(self, text, target, names):
        """A statement whose target is nested: `out, (h, c) = ...`; its values, in the order of `names`."""
        with torch.no_grad():
            exec(f"{target} = {text}", self.scope)
        self.statements.append(Statement(text, target, True))
        for name in names:
            self.check(self.scope[name])
            self.values.append(Value(name, self.scope[name], len(self.statements) - 1))
        return self.values[-len(names) :]

    def statement(self, text, names):
        """A block of lines that binds `names`."""
        with torch.no_grad():
            exec(text.replace("\n        ", "\n"), self.scope)
        self.statements.append(Block(text, ", ".join(names)))

    def in_place(self, value, text):
        """A statement that changes `value`, which no other name shares."""
        storage = value.tensor.untyped_storage().data_ptr()
        others = [each.tensor for each in self.values if each.text != value.text]
        others += self.given
        others += [each for each in vars(self.self_).values() if isinstance(each, torch.Tensor)]
        if value.text not in self.scope or any(
            each.untyped_storage().data_ptr() == storage for each in others
        ):
            raise Refused("shared")
        before = value.tensor.clone()
        with torch.no_grad():
            exec(text, self.scope)
        if not torch.isfinite(value.tensor.double()).all():
            value.tensor.copy_(before)
            raise Refused("not finite")
        self.statements[value.statement].whole = True
        self.statements.append(Statement(text, "", True))
        return value

    def name_for(self, made):
        """The name of a new value: its operand's again where the author reuses names and nothing reads it."""
        current = self.current
        if self.reuse and current in self.values and current.text.isidentifier() and self.chance(0.8):
            self.values.remove(current)
            return current.text
        return self.fresh(VALUE_NAMES, self.names)

    def check(self, tensor):
        if tensor.numel() > MOST_ELEMENTS or tensor.numel() < 1:
            raise Refused("size")
        if tensor.is_floating_point():
            high = tensor.abs().max().item()
            if not high <= MOST_MAGNITUDE:
                raise Refused("magnitude")
        elif tensor.dtype not in INTEGERS and tensor.dtype is not torch.bool:
            raise Refused("type")
