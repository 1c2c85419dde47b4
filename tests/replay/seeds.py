"""The seed that each phase of a replay starts from (src/nereid/replay/report.h)."""

PHASES = ("module", "make_inputs", "init", "forward")
_MASK = (1 << 64) - 1


def phase_seed(seed, phase, call):
    z = (seed * 64 + 8 * PHASES.index(phase) + call + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 1
