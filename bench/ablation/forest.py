"""Means with their intervals, one below the other, as one SVG file that needs nothing else, and is read on
light and on dark."""

import html
import math

from curves import ticks

WIDTH, LEFT, RIGHT, TOP, BOTTOM, ROW = 760, 210, 150, 34, 44, 22


def svg(title, across, rows, naught=None, form="{:.3g}"):
    """`rows`: (name, mean, low, high), finite; `naught`: where there is no difference, drawn as a line. A
    mean whose interval does not hold it is filled."""
    assert rows, "expected a row to draw"
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    if naught is not None:
        low, high = min(low, naught), max(high, naught)
    margin = 0.04 * (high - low) or max(abs(low), 1) / 10
    low, high = low - margin, high + margin
    bottom = TOP + ROW * len(rows)

    def x(value):
        return f"{LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT):.1f}"

    text = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM}"'
            ' font-family="sans-serif" font-size="12" role="img">'
        ),
        f"<title>{html.escape(title)}</title>",
        (
            "<style>text{fill:#444} .grid{stroke:#8884} .naught{stroke:#888}"
            " @media(prefers-color-scheme:dark){text{fill:#bbb}}</style>"
        ),
        f'<text x="12" y="18" font-size="14">{html.escape(title)}</text>',
    ]
    for value in ticks(low, high, 6):
        text += [
            f'<line class="grid" x1="{x(value)}" x2="{x(value)}" y1="{TOP}" y2="{bottom}"/>',
            f'<text x="{x(value)}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>',
        ]
    if naught is not None:
        text.append(
            f'<line class="naught" x1="{x(naught)}" x2="{x(naught)}" y1="{TOP}" y2="{bottom}"'
            ' stroke-width="1.5"/>'
        )
    for i, (name, mean, least, most) in enumerate(rows):
        y, shown = TOP + ROW * i + ROW / 2, naught is None or least > naught or most < naught
        text += [
            f'<text x="{LEFT - 10}" y="{y:g}" dy="4" text-anchor="end">{html.escape(name)}</text>',
            f'<line x1="{x(least)}" x2="{x(most)}" y1="{y:g}" y2="{y:g}" stroke="#0b7a75" stroke-width="2"/>',
            (
                f'<circle cx="{x(mean)}" cy="{y:g}" r="4" stroke="#0b7a75" stroke-width="1.5"'
                f' fill="{"#0b7a75" if shown else "none"}"/>'
            ),
            (
                f'<text x="{WIDTH - RIGHT + 8}" y="{y:g}" dy="4"'
                f' font-size="11">'
                f"{html.escape(f'{form.format(mean)} [{form.format(least)}, {form.format(most)}]')}</text>"
            ),
        ]
    text.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{bottom + 34}"'
        f' text-anchor="middle">{html.escape(across)}</text>'
    )
    return "\n".join(text) + "\n</svg>\n"


def scaled(found, ratio):
    return [
        (math.exp if ratio else lambda value: 100 * value)(value)
        for value in (found.mean, found.low, found.high)
    ]
