"""Tables of addresses: kernels that load an address, make a pointer of it, and access a tensor there.

Grouped products and fused optimisers use them: the host writes `data_ptr()` of many tensors into an int64
tensor. A replay has other addresses, and a rule may know no more of an address than that it is a number. So
the recorded kernel gets the tensors themselves, as further pointer parameters, and where it makes a pointer
of a number it chooses the tensor whose addresses hold the number. It makes no pointer from a number then,
and is judged like any other kernel. What a table holds is known when the kernel is launched.

A kernel stays as it is, and is refused by the judge, where an address is anything but a number of such a
table plus an offset: addresses that are compared, multiplied, rounded or stored, or come from elsewhere.
"""

import functools
import re
from dataclasses import dataclass

import torch

from .._task.errors import Untraceable
from .pointers import MARGIN

MAX_TENSORS = 256  # that one pointer of a kernel may lead to: CUDA takes 4 KiB of arguments
MAX_TABLE_BYTES = 1 << 20

_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULTS = re.compile(r"^(%[\w$.-]+)(?::(\d+))? = (.*)$")
_CARRIED = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_CAST = re.compile(r"^tt\.int_to_ptr (%[\w$.-]+(?:#\d+)?)( \{.*\})? : (.*) -> (.*)$")
_PARAMETER = re.compile(r"(%[\w$.-]+): (!tt\.ptr<[^,){]*>|[^,){ ]+)")
_ZERO = re.compile(r"^arith\.constant (?:dense<0>|0) : ")
_SAME = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat", "tt.bitcast")


@dataclass(frozen=True)
class Site:
    """An operation that makes a pointer of a number."""

    line: int
    attributes: str
    number: str
    number_type: str
    pointer_type: str
    tables: frozenset  # parameters that the number comes from


class AddressTables:
    def __init__(self, recorder, pointers):
        self._recorder, self._pointers = recorder, pointers

    def resolve(self, ttir, args, tensors):
        """(ttir, args) of a launch with its tables' tensors as parameters; None where that cannot be said.
        `tensors` gets what the launch has further pointers to."""
        values = self._recorder.values
        self._of_integers = {value["s"] for value in values if value["t"] in ("i64", "u64")}
        held = {}  # parameter -> storages whose addresses its table holds
        nested = set()  # parameters whose tables hold addresses of tables
        for index, arg in _by_parameter(args):
            if arg.get("p", -1) < 0:
                continue
            storage = self._recorder.storages[values[arg["p"]]["s"]]
            found, deep = self._reached(storage)
            if found:
                held[index] = found
            if deep:
                nested.add(index)
        sites = pointer_sites(ttir, frozenset(held), frozenset(nested))
        if not sites:
            return None
        groups = {}
        for tables in sorted({site.tables for site in sites}, key=sorted):
            storages = {s.id: s for index in tables for s in held[index]}
            groups[tables] = sorted(storages.values(), key=lambda s: s.address)
            if len(storages) > MAX_TENSORS:
                raise Untraceable(f"a table holds the addresses of more than {MAX_TENSORS} tensors")
        args = list(args)
        for storages in groups.values():
            for storage in storages:
                args += self._arguments(storage, tensors)
        return with_tensors(ttir, sites, tuple((t, len(s)) for t, s in groups.items())), args

    def _arguments(self, storage, tensors):
        if torch._C._storage_Use_Count(storage.fake._cdata) < 2:
            raise Untraceable("a kernel was given a table with the address of a tensor that no longer exists")
        tensor, _ = self._pointers.resolve(storage.address)
        tensors.append(tensor)
        size = max(storage.bytes, storage.fake.nbytes())
        return [
            {"p": self._recorder.value_of(tensor), "o": 0},
            {"i": storage.address},
            {"i": size + 2 * MARGIN},
        ]

    def _reached(self, storage):
        """Storages whose addresses a storage holds, itself or through others that it leads to; and whether
        there are such others."""
        found, stack, deep = {}, [storage], False
        while stack:
            at = stack.pop()
            for number in self._numbers(at):
                reached = self._pointers.storage_at(number)
                if reached is None or reached.device == "cpu":
                    continue
                deep |= at is not storage
                if reached.id not in found:
                    found[reached.id] = reached
                    stack.append(reached)
        return list(found.values()), deep

    def _numbers(self, storage):
        """The 64-bit integers of a storage, where they are the same whatever the inputs are."""
        if not self._pointers.taken or storage.id not in self._of_integers or storage.integral_input:
            return ()
        if not 0 < storage.bytes <= MAX_TABLE_BYTES:
            return ()
        known = self._recorder.known.constant_bytes(storage)
        if known is None:
            return ()
        whole = len(known) // 8 * 8
        return [number for number in memoryview(known)[:whole].cast("q") if number > 0]


def _by_parameter(args):
    parameter = 0
    for arg in args:
        yield parameter, arg
        parameter += 1 + 2 * len(arg["shape"]) if "desc" in arg else 1


@functools.lru_cache(maxsize=1024)
def pointer_sites(ttir, tables, nested):
    """Where the kernel makes pointers of numbers; () where one of them is no address of a table plus an
    offset, or an address is used for anything else."""
    lines = ttir.split("\n")
    start = next((i for i, line in enumerate(lines) if "tt.func public" in line), None)
    if start is None or sum("tt.func" in line for line in lines) != 1:
        return ()
    try:
        return _Reader(lines, start, tables, nested).sites()
    except _Refused:
        return ()


class _Refused(Exception):
    """An address is used in a way that is not followed."""


class _Reader:
    """Follows tables (pointers to addresses) and addresses through the text, to a fixed point."""

    def __init__(self, lines, start, tables, nested):
        self._lines, self._start, self._nested = lines, start, nested
        self._tables, self._addresses = {}, {}  # name -> parameters that it stems from
        self._zeros = set()
        head = lines[start].split(") attributes", 1)[0]
        for index, (name, kind) in enumerate(_PARAMETER.findall(head[head.index("(") :])):
            if index in tables and kind == "!tt.ptr<i64>":
                self._tables[name] = frozenset([index])

    def sites(self):
        size = -1
        while size != (size := sum(map(len, (*self._tables.values(), *self._addresses.values())))):
            found = self._pass()
        if any(site.tables is None for site in found):
            return ()
        return tuple(found)

    def _pass(self):
        found, self._regions = [], []
        for number, line in enumerate(self._lines[self._start + 1 :], self._start + 1):
            text = line.rsplit(" loc(", 1)[0].strip()
            if line.startswith("  }"):
                break
            match = _RESULTS.match(text)
            results, operation = [], text
            if match:
                name, count, operation = match.groups()
                results = [name] if count is None else [f"{name}#{i}" for i in range(int(count))]
            cast = _CAST.match(operation)
            if cast:
                found.append(self._cast(number, results[0], cast))
            elif operation.startswith("tt.int_to_ptr"):
                raise _Refused
            else:
                self._operation(operation, results)
        return found

    def _cast(self, line, result, match):
        number, attributes, number_type, pointer_type = match.groups()
        tables = self._addresses.get(number)
        if tables is not None and "ptr<i64>" in pointer_type and tables & self._nested:
            self._join(self._tables, result, tables)
        return Site(line, attributes or "", number, number_type, pointer_type, tables)

    def _join(self, kind, name, tables):
        kind[name] = kind.get(name, frozenset()) | tables

    def _flow(self, source, target):
        for kind in (self._tables, self._addresses):
            if source in kind:
                self._join(kind, target, kind[source])

    def _operation(self, operation, results):
        if operation.startswith("}"):
            if not self._regions:
                raise _Refused
            closed = self._regions.pop()
            if operation.endswith("{"):  # else
                self._regions.append(closed)
            return
        names = _NAME.findall(operation)
        if operation.startswith("scf.for"):
            return self._loop(operation, results, names)
        if operation.startswith("scf.if"):
            self._expect_clean(names)
            return self._regions.append([[result] for result in results])
        if operation.startswith("scf.yield"):
            for name, targets in zip(names, self._regions[-1] if self._regions else []):
                for target in targets:
                    self._flow(name, target)
            return
        if operation.endswith("{"):  # a region of another kind
            self._expect_clean(names)
            return self._regions.append([])
        self._plain(operation, results, names)

    def _loop(self, operation, results, names):
        carried = _CARRIED.findall(operation.split("iter_args", 1)[1]) if "iter_args" in operation else []
        kept = {name for pair in carried for name in pair}
        self._expect_clean([name for name in names if name not in kept])
        targets = [[result] for result in results]
        for (argument, given), target in zip(carried, targets):
            target.append(argument)
            for name in target:
                self._flow(given, name)
        self._regions.append(targets)

    def _plain(self, operation, results, names):
        if _ZERO.match(operation):
            self._zeros.update(results)
        addresses = [name in self._addresses for name in names]
        tables = [name in self._tables for name in names]
        if not any(addresses) and not any(tables):
            return
        kind = operation.split(" ", 1)[0]
        if kind in _SAME:
            self._flow(names[0], results[0])
        elif kind == "arith.select" and not (addresses[0] or tables[0]):
            for name in names[1:3]:
                self._flow(name, results[0])
        elif any(tables):
            self._through_table(kind, operation, results[:1], names, addresses, tables)
        elif kind == "arith.addi" and sum(addresses) == 1:
            self._flow(names[addresses.index(True)], results[0])
        elif kind == "arith.subi" and addresses == [True, False]:
            self._flow(names[0], results[0])
        elif kind == "arith.cmpi" and re.match(r"arith\.cmpi (eq|ne),", operation):
            if not (sum(addresses) == 1 and any(name in self._zeros for name in names)):
                raise _Refused
        else:
            raise _Refused

    def _through_table(self, kind, operation, results, names, addresses, tables):
        if any(addresses) or any(tables[1:]):
            raise _Refused
        if kind == "tt.addptr":
            self._flow(names[0], results[0])
        elif kind == "tt.load" and "isVolatile = true" not in operation:
            self._join(self._addresses, results[0], self._tables[names[0]])
        else:
            raise _Refused

    def _expect_clean(self, names):
        if any(name in self._tables or name in self._addresses for name in names):
            raise _Refused


@functools.lru_cache(maxsize=1024)
def with_tensors(ttir, sites, groups):
    """The text with three further parameters for each tensor of each group: a pointer to it, its first
    address, and the number of addresses at which it is meant."""
    lines = ttir.split("\n")
    start = next(i for i, line in enumerate(lines) if "tt.func public" in line)
    head, tail = lines[start].rsplit(") attributes", 1)
    names, added = {}, []
    for number, (tables, count) in enumerate(groups):
        names[tables] = [f"%table{number}_{j}" for j in range(count)]
        for name in names[tables]:
            kinds = ((name, "!tt.ptr<i8>"), (name + "_first", "i64"), (name + "_count", "i64"))
            added += [f'{parameter}: {kind} loc("{parameter[1:]}")' for parameter, kind in kinds]
    lines[start] = f"{head}, {', '.join(added)}) attributes{tail}"
    for index, site in enumerate(sites):
        lines[site.line] = "\n".join(_chosen(lines[site.line], site, names[site.tables], f"%at{index}_"))
    return "\n".join(lines)


def _chosen(line, site, tensors, prefix):
    """The operations in place of one that makes a pointer: of the tensors, the one whose addresses hold the
    number; beyond all of them the first tensor's own, out of its bounds."""
    location = line[line.rindex(" loc(") :] if " loc(" in line else ""
    indent = line[: len(line) - len(line.lstrip())]
    wide = site.number_type.removesuffix("i64")  # "tensor<128x" and ">", or nothing
    if site.number_type.endswith("i64>"):
        wide = site.number_type[: -len("i64>")]
    tensor_of = (lambda kind: f"{wide}{kind}>") if wide else (lambda kind: kind)
    numbers, bits, pointers = (tensor_of(kind) for kind in ("i64", "i1", "!tt.ptr<i8>"))
    out = []

    def emit(name, text):
        out.append(f"{indent}{prefix}{name} = {text}{location}")
        return prefix + name

    def spread(name, value, kind):
        return emit(name, f"tt.splat {value} : {kind} -> {tensor_of(kind)}") if wide else value

    margin = emit("margin", f"arith.constant {f'dense<{MARGIN}>' if wide else MARGIN} : {numbers}")
    chosen = None
    for j, name in enumerate(tensors):
        pointer = spread(f"p{j}", name, "!tt.ptr<i8>")
        first = spread(f"f{j}", name + "_first", "i64")
        offset = emit(f"o{j}", f"arith.subi {site.number}, {first} : {numbers}")
        there = emit(f"a{j}", f"tt.addptr {pointer}, {offset} : {pointers}, {numbers}")
        if chosen is None:
            chosen = there
            continue
        count = spread(f"c{j}", name + "_count", "i64")
        moved = emit(f"m{j}", f"arith.addi {offset}, {margin} : {numbers}")
        inside = emit(f"i{j}", f"arith.cmpi ult, {moved}, {count} : {numbers}")
        of = f"{bits}, {pointers}" if wide else pointers
        chosen = emit(f"s{j}", f"arith.select {inside}, {there}, {chosen} : {of}")
    result = line.strip().split(" = ", 1)[0]
    out.append(f"{indent}{result} = tt.bitcast {chosen}{site.attributes} : {pointers} -> {site.pointer_type}"
               f"{location}")  # fmt: skip
    return out
