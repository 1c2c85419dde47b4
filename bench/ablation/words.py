"""A question's answer in words, made from the intervals of its differences and from nothing else."""

import math

from measures import RATIOS, formatted, shown

# What an arm is that has more of it.
MORE = {
    "Verified": "right more often",
    "Verified as drawn": "right more often as it draws",
    "refused by a rule": "refused by a rule more often",
    "speed, eager's where not Verified": "faster",
    "speed of large tasks, eager's where not Verified": "faster with large tasks",
    "speed relative to the compiler's": "faster relative to the compiler",
}
LESS = {
    "Verified": "right less often",
    "Verified as drawn": "right less often as it draws",
    "refused by a rule": "refused by a rule less often",
    "speed, eager's where not Verified": "slower",
    "speed of large tasks, eager's where not Verified": "slower with large tasks",
    "speed relative to the compiler's": "slower relative to the compiler",
}


def listed(words):
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def size(measure, found):
    """How large a shown difference is, without its sign where the words have it."""
    if measure in RATIOS:
        return f"{formatted(measure, found)} times"
    mean, ends = abs(100 * found.mean), sorted((abs(100 * found.low), abs(100 * found.high)))
    return f"{mean:.1f} points [{ends[0]:.1f}, {ends[1]:.1f}]"


def of_pair(one, other, found):
    """One sentence. `found`: {measure: Interval or None}."""
    known = {measure: difference for measure, difference in found.items() if difference is not None}
    if not known:
        return f"Of `{one}` and `{other}` there is nothing to compare yet."
    clear = {measure: difference for measure, difference in known.items() if shown(difference)}
    if not clear:
        alike = [AREA[m] for m, d in known.items() if d.low == d.high == 0]
        rest = [f"{bound(m, d)} in {AREA[m]}" for m, d in known.items() if not d.low == d.high == 0]
        return (
            f"Between `{one}` and `{other}` no difference is shown"
            + (f"; on these tasks they are the same in {listed(alike)}" if alike else "")
            + (f"; one of up to {listed(rest)} may be there all the same." if rest else ".")
        )
    said = listed(f"{(MORE if d.low > 0 else LESS)[m]} ({size(m, d)})" for m, d in clear.items())
    rest = [AREA[m] for m in known if m not in clear]
    return f"`{one}` is {said} than `{other}`" + (
        f"; in {listed(rest)} no difference is shown." if rest else "."
    )


AREA = {
    "Verified": "right answers",
    "Verified as drawn": "right answers as drawn",
    "refused by a rule": "what rules refuse",
    "speed, eager's where not Verified": "speed",
    "speed of large tasks, eager's where not Verified": "speed of large tasks",
    "speed relative to the compiler's": "speed relative to the compiler",
}


def bound(measure, found):
    """How large a difference may be that the interval still allows."""
    if measure in RATIOS:
        return f"{100 * max(math.expm1(found.high), -math.expm1(found.low)):.1f} %"
    return f"{100 * max(found.high, -found.low):.1f} points"


def in_short(pairs):
    """The answer's first sentence, of [(one, other, {measure: Interval or None})]."""
    said, open_ = [], 0
    for one, other, found in pairs:
        clear = {measure: d for measure, d in found.items() if shown(d)}
        refused = clear.pop("refused by a rule", None)
        ups, downs = (
            [AREA[m] for m, d in clear.items() if d.low > 0],
            [AREA[m] for m, d in clear.items() if d.high < 0],
        )
        if ups and downs:
            said.append(f"`{one}` gains on `{other}` in {listed(ups)} and loses in {listed(downs)}")
        elif ups or downs:
            said.append(
                f"`{one}` beats `{other}` in {listed(ups)}"
                if ups
                else f"`{other}` beats `{one}` in {listed(downs)}"
            )
        if refused:
            more, less = (one, other) if refused.low > 0 else (other, one)
            said.append(f"`{more}` breaks rules more often than `{less}`")
        open_ += not clear and not refused and any(d is not None for d in found.values())
    if not said:
        return "In short: nothing is shown." if open_ else "In short: not measured yet."
    return f"In short: {'; '.join(said)}" + (
        f"; of the other{' pair' if open_ == 1 else f' {open_} pairs'} nothing is shown." if open_ else "."
    )
