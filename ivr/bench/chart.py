"""A line chart as SVG, by hand: what a bench's plot needs and no more."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = ("#0b6e4f", "#c8553d", "#33658a", "#8d6a9f", "#b58900", "#444444", "#7f9c3b", "#d1495b", "#6c757d")
TICKS = 5

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis. A logarithmic one needs values above zero."""

    label: str
    log: bool = False


def line_chart(title: str, across: Axis, up: Axis, series: Mapping[str, Points]) -> str:
    """An SVG document with one line a series, marks at its points, and a legend."""
    points = [point for line in series.values() for point in line]
    x = _Scale.of(across, [one for one, _ in points], LEFT, WIDTH - RIGHT)
    y = _Scale.of(up, [one for _, one in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, title, "middle"),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across.label, "middle"),
        _text(LEFT - 55, TOP - 12, up.label, "start"),
    ]
    for tick in x.ticks():
        at = x.at(tick)
        parts += [
            _line(at, TOP, at, HEIGHT - BOTTOM),
            _text(at, HEIGHT - BOTTOM + 18, f"{tick:.3g}", "middle"),
        ]
    for tick in y.ticks():
        at = y.at(tick)
        parts += [_line(LEFT, at, WIDTH - RIGHT, at), _text(LEFT - 6, at + 4, f"{tick:.3g}", "end")]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x.at(one), y.at(other)) for one, other in line]
        path = " ".join(f"{across_px:.1f},{up_px:.1f}" for across_px, up_px in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        level = TOP + 18 * number
        parts.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{level}" width="12" height="4" fill="{colour}"/>')
        parts.append(_text(WIDTH - RIGHT + 32, level + 7, name, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start_px: float
    end_px: float
    log: bool

    @classmethod
    def of(cls, axis: Axis, values: Sequence[float], start_px: float, end_px: float) -> "_Scale":
        low, high = min(values, default=0.0), max(values, default=1.0)
        low = low if axis.log else min(low, 0.0)
        return cls(low, high if high > low else low + 1.0, start_px, end_px, axis.log)

    def at(self, value: float) -> float:
        low, high, here = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start_px + (self.end_px - self.start_px) * (here - low) / (high - low)

    def ticks(self) -> list[float]:
        if not self.log:
            return [self.low + (self.high - self.low) * step / TICKS for step in range(TICKS + 1)]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        return [tick for power in range(first, last + 1) if self.low <= (tick := 10.0**power) <= self.high]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'
