"""Places in files, for the tests of what decides about them."""

from typing import Any

from caret_ls.completion_context import CompletionContext


def place_in(text: str, *, uri: str = "file:///shop/a.py", **more: Any) -> CompletionContext:
    """The cursor stands where `|` is."""
    prefix, _, suffix = text.partition("|")
    fields: dict[str, Any] = {
        "path": "a.py",
        "language": "python",
        "prefix": prefix,
        "suffix": suffix,
    } | more
    return CompletionContext(uri=uri, **fields)
