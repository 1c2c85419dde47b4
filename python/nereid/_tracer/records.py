"""What the recorder keeps of allocations and of steps."""


class Storage:
    """What the trace says of an allocation, and what the tracer knows of its content (see
    known_values.py)."""

    __slots__ = (
        "id",
        "fake",
        "bytes",
        "role",
        "device",
        "name",
        "data",
        "pinned",
        "writes",
        "address",
        "real",
        "base",
        "integral_input",
        "held",
    )

    def __init__(self, id, fake, device):
        self.id, self.fake, self.device = (
            id,
            fake,
            device,
        )  # fake: keeps the meta storage, and so its address, alive
        self.bytes = self.held = fake.nbytes()  # that its views need, and that it had when it was used last
        self.role, self.name, self.data, self.pinned = "temporary", "", None, False
        self.writes = []  # indices into Recorder.history of what wrote here
        self.address = 0  # what data_ptr() returned; 0 before the first call
        self.real = None  # (real CPU storage, number of writes it reflects)
        self.base = None  # the same, of a constant or an integer input as it came
        self.integral_input = False

    def encode(self):
        out = {"bytes": max(self.bytes, self.fake.nbytes()), "role": self.role, "device": self.device}
        if self.name:
            out["name"] = self.name
        if self.data is not None:
            out["data"] = self.data
        if self.pinned:
            out["pinned"] = True
        return out


class Done:
    """A recorded step as known_values.py needs it to do it again on real data: storage ids read and
    written."""

    __slots__ = ("func", "step", "reads", "writes", "phase", "random")

    def __init__(self, func, step, reads, writes, phase, random):
        self.func, self.step, self.reads, self.writes, self.phase, self.random = (
            func,
            step,
            reads,
            writes,
            phase,
            random,
        )
