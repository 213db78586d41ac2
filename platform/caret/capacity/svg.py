"""A minimal SVG writer: elements with attributes."""

from xml.sax.saxutils import escape, quoteattr


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """Write an element. Underscores in attribute names become hyphens, except a final one."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}={quoteattr(_format_value(value))}"
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    return element("text", escape(words), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def polyline(points: list[tuple[float, float]], **attributes: object) -> str:
    joined = " ".join(f"{_format_value(x)},{_format_value(y)}" for x, y in points)
    return element("polyline", points=joined, **attributes)


def _format_value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
