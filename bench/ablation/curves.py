"""Curves of several arms as one SVG file that needs nothing else, and is read on light and on dark."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, ROW = 720, 320, 62, 12, 30, 44, 18
COLOURS = ["#0b7a75", "#d1641f", "#5b61c9", "#b0317f", "#7d8a1c", "#2b8fd6", "#8a5a2b", "#777777"]
DASHES = ["", "6 3", "2 3"]


def ticks(low, high, count):
    """1, 2 or 5 times a power of ten apart, about so many of them between both ends."""
    power = 10 ** math.floor(math.log10((high - low) / count))
    step = next(s * power for s in (1, 2, 5, 10) if (high - low) / count <= s * power)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def svg(title, across, up, lines):
    """`lines`: (name, [(x, mean, low, high)]) with finite numbers; `across` and `up` name the axes."""
    points = [point for _, line in lines for point in line]
    assert points, "expected a point to draw"
    low_x, high_x = min(p[0] for p in points), max(p[0] for p in points)
    low_y, high_y = min(p[2] for p in points), max(p[3] for p in points)
    high_x = high_x if high_x > low_x else low_x + 1
    if high_y - low_y < 1e-9 * max(abs(low_y), 1e-9):
        low_y, high_y = low_y - max(abs(low_y), 1) / 10, high_y + max(abs(high_y), 1) / 10
    columns = 4
    height = HEIGHT + ROW * math.ceil(len(lines) / columns)

    def x(value):
        return f"{LEFT + (value - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT):.1f}"

    def y(value):
        return f"{TOP + (high_y - value) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM):.1f}"

    text = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
            ' font-size="12" role="img">'
        ),
        f"<title>{html.escape(title)}</title>",
        (
            "<style>text{fill:#444} .grid{stroke:#8884}"
            " @media(prefers-color-scheme:dark){text{fill:#bbb}}</style>"
        ),
        f'<text x="{LEFT}" y="18" font-size="14">{html.escape(title)}</text>',
    ]
    for value in ticks(low_y, high_y, 5):
        text += [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value)}" y2="{y(value)}"/>',
            f'<text x="{LEFT - 6}" y="{y(value)}" dy="4" text-anchor="end">{value:g}</text>',
        ]
    for value in ticks(low_x, high_x, 6):
        text.append(f'<text x="{x(value)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    text += [
        (
            f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - BOTTOM + 32}"'
            f' text-anchor="middle">{html.escape(across)}</text>'
        ),
        (
            f'<text transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)"'
            f' text-anchor="middle">{html.escape(up)}</text>'
        ),
    ]
    for i, (name, line) in enumerate(lines):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        if any(low < high for _, _, low, high in line):
            edge = [f"{x(p[0])},{y(p[3])}" for p in line] + [f"{x(p[0])},{y(p[2])}" for p in reversed(line)]
            text.append(f'<polygon points="{" ".join(edge)}" fill="{colour}" fill-opacity="0.12"/>')
        if len(line) == 1:
            text.append(f'<circle cx="{x(line[0][0])}" cy="{y(line[0][1])}" r="3" fill="{colour}"/>')
        else:
            text.append(
                f'<polyline points="{" ".join(f"{x(p[0])},{y(p[1])}" for p in line)}" fill="none"'
                f' stroke="{colour}" stroke-width="1.6"{dashed}/>'
            )
        at_x, at_y = LEFT + (WIDTH - LEFT) / columns * (i % columns), HEIGHT + ROW * (i // columns)
        text += [
            (
                f'<line x1="{at_x:g}" x2="{at_x + 20:g}" y1="{at_y}" y2="{at_y}" stroke="{colour}"'
                f' stroke-width="3"{dashed}/>'
            ),
            f'<text x="{at_x + 26:g}" y="{at_y + 4}">{html.escape(name)}</text>',
        ]
    return "\n".join(text) + "\n</svg>\n"
