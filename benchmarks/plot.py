"""The plot of the benchmark: milliseconds per turn over a run, as an SVG of its own.

The axis of time is logarithmic; nothing is loaded from elsewhere.
"""

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 40, 40
COLOURS = ("#b30059", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#999999", "#444444")
_TEXT = '<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="{}">{}</text>'


def svg(curves: Mapping[str, Sequence[float]], turns: int) -> str:
    """One line per contender; each curve's points stand for equal parts of the turns."""
    values = [value for curve in curves.values() for value in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(share: float) -> float:
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        share = (math.log10(value) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_label(LEFT, 20, f"Milliseconds per tool turn over a run of {turns:,} turns")]
    for tick in (base * 10**power for power in range(low, high + 1) for base in (1, 2, 5)):
        if tick <= 10**high:
            parts.append(_line([(x(0), y(tick)), (x(1), y(tick))], "#dddddd", 1))
            parts.append(_label(LEFT - 8, y(tick) + 4, f"{tick:g}", anchor="end"))
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_label(x(share), HEIGHT - 15, f"{share * turns:,.0f}", anchor="middle"))
    places = _apart({name: y(curve[-1]) for name, curve in curves.items()})
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        points = [(x((at + 0.5) / len(curve)), y(value)) for at, value in enumerate(curve)]
        parts.append(_line(points, colour, 3 if name.startswith("ours") else 1.5))
        parts.append(_label(WIDTH - RIGHT + 10, places[name] + 4, name, colour))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' font-family="sans-serif" font-size="13">\n<rect width="100%" height="100%"'
        f' fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _label(x: float, y: float, text: str, colour: str = "black", anchor: str = "start") -> str:
    return _TEXT.format(x, y, anchor, colour, text)


def _line(points: Sequence[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _apart(places: Mapping[str, float], gap: float = 16) -> dict[str, float]:
    """Heights of the names, moved down where they would cover each other."""
    moved: dict[str, float] = {}
    lowest = -math.inf
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        lowest = moved[name] = max(place, lowest + gap)
    return moved
