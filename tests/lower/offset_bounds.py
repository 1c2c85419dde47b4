"""Whether integers of a kernel that make addresses can leave the range of their type, by intervals.

`overflows` walks a kernel's TTIR once. Every integer has an interval that holds for all programs and lanes:
program_id is below the grid's size, a range is what it says, a loop's variable is within its bounds. Integers
that come from memory may be anything; their products matter only where they address a tensor that has more
elements than their type has numbers, because valid indices stay within it.
"""

import dataclasses
import re

OPERATION = re.compile(r'^(?:(%[\w.$-]+)(?::(\d+))? = )?"?([a-z_]+\.[a-z_.]+)"?(.*)$')
NAME = re.compile(r"%[\w.$-]+(?:#\d+)?")
LOOP = re.compile(r"(%\S+) = (%\S+) to (%\S+) step (%\S+)")
CARRIED = re.compile(r"(%[\w.$-]+) = (%[\w.$#-]+)")
KEPT = set(
    "tt.splat tt.broadcast tt.expand_dims tt.reshape tt.trans tt.unsplat tt.join tt.split tt.cat arith.extsi "
    "arith.extui arith.trunci arith.index_cast tt.gather ttg.convert_layout".split()
)
# What comes from memory, from floating-point numbers or from bits.
DATA = set(
    "tt.load tt.descriptor_load tt.atomic_rmw tt.atomic_cas arith.fptosi arith.fptoui arith.bitcast "
    "tt.bitcast tt.extern_elementwise tt.elementwise_inline_asm tt.histogram tt.mulhiui math.absi "
    "math.ctpop math.ctlz tt.dot arith.ori arith.xori arith.shrui tt.ptr_to_int".split()
)


@dataclasses.dataclass(frozen=True)
class Range:
    low: int
    high: int
    data: bool = False  # made of what comes from memory
    overflow: str = ""  # of data: how it may leave its type

    def joined(self, other):
        data, overflow = self.data or other.data, self.overflow or other.overflow
        return Range(min(self.low, other.low), max(self.high, other.high), data, overflow)


@dataclasses.dataclass(frozen=True)
class Pointer:
    name: str


def limits(width):
    return (0, 1) if width == 1 else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def widths(types):
    """For each type of a list its width, 0 where it is no integer."""
    found = []
    for kind in re.findall(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|!tt\.\w+<[^<>]*>|\w+", types):
        match = re.search(r"(?:^|x|<)i(\d+)>?$", kind)
        found.append(int(match.group(1)) if match and "!tt" not in kind else 0)
    return found


def join(a, b):
    return a.joined(b) if isinstance(a, Range) and isinstance(b, Range) else a


def grow(start, entered, after, turns):
    """What all turns make of a number whose bounds one turn moves from `entered` to `after`."""
    if not isinstance(entered, Range) or not isinstance(after, Range):
        return entered
    down, up = max(0, entered.low - after.low), max(0, after.high - entered.high)
    if down == up == 0:
        return entered
    return Range(start.low - turns * down, start.high + turns * up, after.data, after.overflow)


def growth(start, entered, grown):
    """By how much a turn moves a number farther at the last than at the first, as a ratio."""
    if not isinstance(grown, Range) or grown == entered:
        return 0
    return max(
        (start.low - grown.low) / max(1, start.low - entered.low),
        (grown.high - start.high) / max(1, entered.high - start.high),
    )


class Walk:
    def __init__(self, programs, sizes, integers):
        self.programs, self.sizes, self.integers = programs, sizes, integers
        self.values, self.troubles = {}, []

    def run(self, lines):
        self.lines = [re.sub(r"\s*loc\(.*$", "", line).strip() for line in lines]
        self.block(0)

    def block(self, at):
        """The operations up to the closing brace; the values of the last yield and the line after it."""
        yielded = []
        while at < len(self.lines):
            line = self.lines[at]
            if line.startswith("}"):
                return yielded, at
            if line.startswith(("scf.yield", "scf.condition")):
                yielded = NAME.findall(line.split(" : ")[0])
                at += 1
                continue
            match = OPERATION.match(line)
            if not match or match.group(3) == "tt.return":
                at += 1
                continue
            at = self.operation(at, *match.groups())
        return yielded, at

    def operation(self, at, name, count, op, rest):
        if op == "tt.func":
            self.parameters(rest)
            return self.block(at + 1)[1] + 1
        if op == "scf.for":
            return self.loop(at, name, count, rest)
        if op == "scf.if":
            return self.branch(at, name, count)
        if op == "scf.while":
            return self.turns(at, name, count, rest)
        if op in ("tt.reduce", "tt.scan"):
            return self.reduction(at, name, count, rest)
        head, _, types = rest.rpartition(" : ")
        if name is None:
            return at + 1
        operands = [self.values.get(each) for each in NAME.findall(head)]
        made = widths(types.split(" -> ")[-1].split(" to ")[-1])
        for place in range(int(count or 1)):
            width = made[place] if place < len(made) else 0
            target = f"{name}#{place}" if count else name
            self.values[target] = self.value(op, head, operands, width, target)
        if op == "tt.addptr":
            self.address(operands)
        return at + 1

    def parameters(self, rest):
        for name, kind in re.findall(r"(%[\w.$-]+): ([^,{]+?)(?= \{|,|\)| loc|$)", rest):
            self.values[name] = Pointer(name[1:])
            if width := widths(kind)[0]:
                low, high = self.integers.get(name[1:], limits(width))
                self.values[name] = Range(low, high)

    def value(self, op, head, operands, width, name):
        pointers = [each for each in operands if isinstance(each, Pointer)]
        if not width:
            return pointers[0] if pointers else None
        if op == "arith.constant":
            number = re.search(r"(?:dense<)?(-?\d+|true|false)", head).group(1)
            number = {"true": 1, "false": 0}.get(number) if number in ("true", "false") else int(number)
            return Range(number, number)
        if op in ("arith.cmpi", "arith.cmpf"):
            return Range(0, 1)
        known = [each if isinstance(each, Range) else Range(*limits(width), True) for each in operands]
        if op in DATA:
            return Range(*limits(width), True)
        return self.fitted(self.interval(op, head, known, width), width, op, name)

    def interval(self, op, head, known, width):
        if op == "tt.get_program_id":
            return Range(0, self.programs - 1 if " x" in head else 0)
        if op == "tt.get_num_programs":
            return Range(1, self.programs)
        if op == "tt.make_range":
            end, start = (int(re.search(rf"{word} = (\d+)", head).group(1)) for word in ("end", "start"))
            return Range(start, end - 1)
        if op in KEPT:
            joined = known[0]
            for each in known[1:]:
                joined = joined.joined(each)
            return joined
        if op == "arith.select":
            return known[-2].joined(known[-1])
        if op == "ub.poison":
            return Range(0, 0)
        a, b = known[0], known[1]
        low, high = self.bounds(op, a, b, width)
        return Range(low, high, a.data or b.data, a.overflow or b.overflow)

    def bounds(self, op, a, b, width):
        corners = lambda of: [of(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]  # noqa: E731
        if op == "arith.addi":
            return a.low + b.low, a.high + b.high
        if op == "arith.subi":
            return a.low - b.high, a.high - b.low
        if op == "arith.muli":
            products = corners(lambda x, y: x * y)
            return min(products), max(products)
        if op == "arith.shli":
            shifted = corners(lambda x, y: x << max(0, min(y, 64)))
            return min(shifted), max(shifted)
        if op == "arith.shrsi":
            shifted = corners(lambda x, y: x >> max(0, min(y, 64)))
            return min(shifted), max(shifted)
        if op in ("arith.minsi", "arith.minui"):
            return min(a.low, b.low), min(a.high, b.high)
        if op in ("arith.maxsi", "arith.maxui"):
            return max(a.low, b.low), max(a.high, b.high)
        if op in ("arith.divsi", "arith.divui"):
            divisors = {d for d in (b.low, b.high, -1, 1) if d != 0 and b.low <= d <= b.high}
            found = [quotient(x, d) for x in (a.low, a.high) for d in divisors]
            return (min([*found, 0]), max([*found, 0])) if found else limits(width)
        if op in ("arith.remsi", "arith.remui"):
            most = max(abs(b.low), abs(b.high)) - 1
            return (max(a.low, -most) if a.low < 0 else 0), (min(a.high, most) if a.high > 0 else 0)
        if op == "arith.andi":
            masks = [each.high for each in (a, b) if each.low >= 0]
            return (0, min(masks)) if masks else limits(width)
        raise ValueError(f"offset_bounds.py does not know {op}")

    def fitted(self, found, width, op, name):
        """What is beyond the type: a trouble, or of data a remark that an address looks at."""
        low, high = limits(width)
        if low <= found.low and found.high <= high or width == 1:
            return found
        text = f"{name[1:]} = {op} of {width} bits reaches {max(found.high, -found.low):,}"
        if op not in ("arith.trunci",) and not found.data and text not in self.troubles:
            self.troubles.append(text)
        return Range(low, high, True, found.overflow or (text if width == 32 else ""))

    def address(self, operands):
        pointer, offset = operands[0], operands[1]
        if not isinstance(offset, Range) or not offset.overflow or not isinstance(pointer, Pointer):
            return
        text = f"{offset.overflow}, an offset into {pointer.name} of {self.sizes.get(pointer.name, 0):,}"
        if self.sizes.get(pointer.name, 0) >= 1 << 31 and text not in self.troubles:
            self.troubles.append(text)

    def give(self, name, count, values):
        for place, value in enumerate(values):
            self.values[f"{name}#{place}" if count else name] = value

    def loop(self, at, name, count, rest):
        variable, *bounds = LOOP.search(rest).groups()
        first, last, step = (self.values.get(each) for each in bounds)
        self.values[variable] = Range(first.low, max(first.low, last.high - 1), last.data and first.data)
        carried = CARRIED.findall(rest.split("iter_args(")[1].split(")")[0]) if "iter_args(" in rest else []
        turns = max(0, -(-(last.high - first.low) // max(step.low, 1)))
        start = {own: self.values.get(given) for own, given in carried}
        entered, before = start, len(self.troubles)
        for attempt in ("one turn", "two turns", "all turns"):
            del self.troubles[before:]
            self.values.update(entered)
            yielded, end = self.block(at + 1)
            after = dict(zip(entered, (self.values.get(each) for each in yielded), strict=True))
            grown = {own: grow(start[own], each, after[own], turns) for own, each in entered.items()}
            if grown == entered:
                break
            if attempt == "one turn":  # most are in the same bounds from then on
                entered = {own: join(each, after[own]) for own, each in entered.items()}
            elif attempt == "two turns":
                entered = grown
            elif len(self.troubles) == before and any(
                more > 1.5 for more in map(growth, start.values(), entered.values(), grown.values())
            ):
                raise ValueError(f"offset_bounds.py does not know how {name} grows in a loop")
        self.give(name, count, list(entered.values()))
        return end + 1

    def branch(self, at, name, count):
        yielded, end = self.block(at + 1)
        values = [self.values.get(each) for each in yielded]
        if "else" in self.lines[end]:
            yielded, end = self.block(end + 1)
            others = [self.values.get(each) for each in yielded]
            values = [join(a, b) for a, b in zip(values, others, strict=True)]
        if name:
            self.give(name, count, values)
        return end + 1

    def turns(self, at, name, count, rest):
        """A loop of unknown length: what it carries may be anything, as what comes from memory."""
        anything = [Range(*limits(64), True)] * int(count or 1)
        self.values.update({own: Range(*limits(64), True) for own, _ in CARRIED.findall(rest)})
        _, end = self.block(at + 1)
        if "do" in self.lines[end]:
            for own in re.findall(r"(%[\w.$-]+):", self.lines[end + 1]):
                self.values[own] = Range(*limits(64), True)
            _, end = self.block(end + 1)
        if name:
            self.give(name, count, anything)
        return end + 1

    def reduction(self, at, name, count, rest):
        """Extrema stay between their operands; sums of integers may be anything."""
        end = at + 1
        while not self.lines[end].startswith("})"):
            end += 1
        sums = any(re.search(r"arith\.(addi|muli)", line) for line in self.lines[at:end])
        operands = [self.values.get(each) for each in NAME.findall(rest.split(")")[0])]
        made = []
        for operand, width in zip(operands, widths(self.lines[end].split(" -> ")[-1]), strict=False):
            anything = Range(*limits(width), True) if width else None
            made.append(anything if sums or not isinstance(operand, Range) else operand)
        self.give(name, count, made)
        return end + 1


def overflows(ttir, programs, sizes, integers=()):
    """What may overflow, in words. `sizes`: elements of the tensor of each pointer's name; `integers`: bounds
    of each integer parameter."""
    walk = Walk(programs, sizes, dict(integers))
    walk.run(ttir.splitlines())
    return walk.troubles
