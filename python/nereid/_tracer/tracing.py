"""Which trace is being made in this process: patched functions find the recorder here."""

_current = None
_seedings = 0
_fresh = 0
generators = {}  # C++ address -> the fake_cuda.Generator; keeps them alive
default_generators = {}  # likewise, of those that outlive a trace


def start(recorder):
    global _current, _seedings, _fresh
    _current, _seedings, _fresh = recorder, 0, 0
    generators.clear()
    generators.update(default_generators)


def recorder():
    return _current


def note(text):
    if _current is not None:
        _current.note(text)


def next_seeding():
    """The number of a generator's seeding; see arguments.generator_name."""
    global _seedings
    _seedings += 1
    return _seedings - 1


def fresh_seed():
    """Stands for a seed taken from the clock."""
    global _fresh
    _fresh += 1
    return 0x5EED_0000 + _fresh
