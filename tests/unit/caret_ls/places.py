"""Places in files, for the tests of what decides about them."""

from typing import Any

from caret_ls.completion_context import Place


def place_in(text: str, *, uri: str = "file:///shop/a.py", **more: Any) -> Place:
    """The cursor stands where `|` is."""
    prefix, _, suffix = text.partition("|")
    fields: dict[str, Any] = {
        "path": "a.py",
        "language": "python",
        "prefix": prefix,
        "suffix": suffix,
    } | more
    return Place(uri=uri, **fields)
