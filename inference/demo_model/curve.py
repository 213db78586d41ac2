"""Shorten a training log and draw its loss curve, with only the standard library.

    python -m inference.demo_model.curve --run DIR

Reads `DIR/log.jsonl`, which `training.train` writes. Writes `loss.jsonl` and `loss.svg` into the
folder of this module.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
MAX_POINTS = 240  # of the training loss

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 28, 44  # margins
TEXT_ATTRIBUTES = 'font-family="sans-serif" font-size="12" fill="#444"'


@dataclass(frozen=True, slots=True)
class CurvePoint:
    million_tokens: float  # trained so far
    nats: float  # loss per token


@dataclass(frozen=True, slots=True)
class CurveFrame:
    """Maps values to positions in the picture. Axes are linear. The loss axis may begin above 0."""

    max_million_tokens: float
    min_nats: int
    max_nats: int

    def x(self, million_tokens: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * million_tokens / self.max_million_tokens

    def y(self, nats: float) -> float:
        share = (self.max_nats - nats) / (self.max_nats - self.min_nats)
        return TOP + (HEIGHT - TOP - BOTTOM) * share


def sample_log(lines: Sequence[dict[str, float]]) -> list[dict[str, float]]:
    """Average groups of successive training losses, and keep every validation loss.

    A group has the other fields of its last line.
    """
    training = [line for line in lines if "loss" in line]
    size = -(-len(training) // MAX_POINTS)  # rounded up
    groups = [training[i : i + size] for i in range(0, len(training), size)]
    averaged = [
        {**group[-1], "loss": round(sum(line["loss"] for line in group) / len(group), 4)}
        for group in groups
    ]
    validation = [line for line in lines if "validation_loss" in line]
    return sorted(averaged + validation, key=lambda line: line["step"])


def draw_curve(lines: Sequence[dict[str, float]]) -> str:
    training, validation = to_points(lines, "loss"), to_points(lines, "validation_loss")
    points = training + validation
    frame = CurveFrame(
        max_million_tokens=max(p.million_tokens for p in points),
        min_nats=int(min(p.nats for p in points)),
        max_nats=int(max(p.nats for p in points)) + 1,
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_draw_axes(frame),
        _draw_line(frame, training, 'stroke="#8aa4c8" stroke-width="1.2"'),
        _draw_line(frame, validation, 'stroke="#c0392b" stroke-width="2"'),
        *_draw_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def to_points(lines: Sequence[dict[str, float]], field: str) -> list[CurvePoint]:
    return [CurvePoint(line["tokens"] / 1e6, line[field]) for line in lines if field in line]


def _draw_line(frame: CurveFrame, points: Sequence[CurvePoint], stroke: str) -> str:
    path = " ".join(f"{frame.x(p.million_tokens):.1f},{frame.y(p.nats):.1f}" for p in points)
    return f'<polyline fill="none" {stroke} points="{path}"/>'


def _draw_axes(frame: CurveFrame) -> list[str]:
    parts = []
    for nats in range(frame.min_nats, frame.max_nats + 1):
        y = frame.y(nats)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" {TEXT_ATTRIBUTES}>'
            f"{nats}</text>"
        )
    step = max(1, round(frame.max_million_tokens / 6))  # about six labels
    for million in range(0, int(frame.max_million_tokens) + 1, step):
        x, y = frame.x(million), HEIGHT - BOTTOM + 16
        parts.append(
            f'<text x="{x:.1f}" y="{y}" text-anchor="middle" {TEXT_ATTRIBUTES}>{million}</text>'
        )
    middle, bottom = (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8
    parts.append(
        f'<text x="{middle}" y="{bottom}" text-anchor="middle" {TEXT_ATTRIBUTES}>million tokens'
        "</text>"
    )
    return parts


def _draw_legend() -> list[str]:
    x, y = WIDTH - RIGHT - 330, TOP - 12  # the two entries are 330 wide
    return [
        f'<text x="{LEFT}" y="{y + 4}" {TEXT_ATTRIBUTES}>nats per token</text>',
        f'<path d="M{x} {y}h24" stroke="#8aa4c8" stroke-width="2"/>',
        f'<text x="{x + 30}" y="{y + 4}" {TEXT_ATTRIBUTES}>training mixture</text>',
        f'<path d="M{x + 150} {y}h24" stroke="#c0392b" stroke-width="2"/>',
        f'<text x="{x + 180}" y="{y + 4}" {TEXT_ATTRIBUTES}>held-out files</text>',
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="inference.demo_model.curve", description=__doc__)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="folder of the run")
    options = parser.parse_args()
    lines = [json.loads(line) for line in (options.run / "log.jsonl").read_text().splitlines()]
    sampled_lines = sample_log(lines)
    text = "".join(json.dumps(line) + "\n" for line in sampled_lines)
    (FOLDER / "loss.jsonl").write_text(text)
    (FOLDER / "loss.svg").write_text(draw_curve(sampled_lines))


if __name__ == "__main__":
    main()
