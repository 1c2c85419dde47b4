"""Which parameters of a kernel's TTIR function it may write through: a conservative reading of the text.

Names that hold one pointer or pointers derived from it form a group; a store, an atomic or anything unknown
that is done to a pointer writes its group. Loops and branches join what they carry with what they are given
and what is yielded to them, position by position.
"""

import functools
import re

_NAME = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULTS = re.compile(r"^(%[\w$.-]+)(?::(\d+))? = (.*)$")
_CARRIED = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_READS = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")
_DERIVES = ("tt.addptr", "tt.splat", "tt.broadcast", "tt.bitcast", "tt.expand_dims", "tt.reshape",
            "tt.trans", "tt.make_tensor_descriptor",
            "tt.make_tensor_ptr", "tt.advance", "tt.unsplat", "tt.reinterpret_tensor_descriptor")  # fmt: skip
_EVERYTHING = frozenset(range(4096))


@functools.lru_cache(maxsize=1024)
def written_parameters(ttir):
    """Indices of the parameters of the public function that may be written through."""
    lines = ttir.split("\n")
    start = next((i for i, line in enumerate(lines) if "tt.func public" in line), None)
    if start is None:
        return _EVERYTHING
    reader = _Reader()
    for line in lines[start + 1 :]:
        if line.startswith("  }"):
            break
        if not reader.line(line.split(" loc(")[0].strip()):
            return _EVERYTHING
    parameters = _NAME.findall(lines[start].split("attributes", 1)[0])
    roots = {reader.groups.root(name) for name in reader.written}
    return frozenset(index for index, name in enumerate(parameters) if reader.groups.root(name) in roots)


class _Reader:
    def __init__(self):
        self.groups, self.written = _Groups(), []
        self._regions = []  # for each open region: the names, by position, that its yield gives to

    def line(self, text):
        """False where a line is beyond this reading."""
        if not text or text.startswith("//"):
            return True
        if text.startswith("}"):
            if self._regions:
                closed = self._regions.pop()
                if text.endswith("{"):
                    self._regions.append(closed)
            return True
        match = _RESULTS.match(text)
        results, operation = [], text
        if match:
            name, count, operation = match.groups()
            results = [name] if count is None else [f"{name}#{i}" for i in range(int(count))]
        return self._operation(operation, results, text)

    def _operation(self, operation, results, text):
        names = _NAME.findall(operation)
        if operation.startswith("scf.yield"):
            if self._regions:
                for name, targets in zip(names, self._regions[-1]):
                    self.groups.join([name, *targets])
            return True
        if text.endswith("{"):
            return self._open(operation, results)
        if not ("!tt.ptr" in text or "!tt.tensordesc" in text) or operation.startswith(_READS):
            return True
        if operation.startswith(_DERIVES):
            self.groups.join([*results, *names[:1]])
        elif operation.startswith("arith.select"):
            self.groups.join([*results, *names[1:3]])
        else:  # stores, atomics, calls, and what is not known to be harmless
            self.written.extend(names if operation.startswith("tt.call") else names[:1])
            return not operation.startswith(("tt.int_to_ptr", "cf."))
        return True

    def _open(self, operation, results):
        if operation.startswith("scf.while"):
            return "!tt.ptr" not in operation and "!tt.tensordesc" not in operation and self._push([])
        carried = _CARRIED.findall(operation.split("iter_args", 1)[1]) if "iter_args" in operation else []
        for argument, given in carried:
            self.groups.join([argument, given])
        targets = [[result] for result in results]
        for position, (argument, _) in enumerate(carried[: len(targets)]):
            targets[position].append(argument)
        return self._push(targets)

    def _push(self, targets):
        self._regions.append(targets)
        return True


class _Groups:
    """Union-find over SSA names."""

    def __init__(self):
        self._parent = {}

    def root(self, name):
        while name in self._parent:
            name = self._parent[name]
        return name

    def join(self, names):
        roots = list(dict.fromkeys(self.root(name) for name in names))
        for other in roots[1:]:
            self._parent[other] = roots[0]


def launch_writes(step, kernels, values, storage_id):
    """Whether a recorded launch may write a storage."""
    for alternative in step["launch"]:
        written = written_parameters(kernels[alternative["kernel"]]["ttir"])
        parameter = 0
        for argument in alternative["args"]:
            value = argument.get("p", argument.get("desc", -1))
            if value >= 0 and values[value]["s"] == storage_id and parameter in written:
                return True
            parameter += 1 + 2 * len(argument["shape"]) if "desc" in argument else 1
    return False
