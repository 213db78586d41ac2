"""Completion contexts, made of a text with a mark at the cursor."""

from typing import Any

from caret_ls.completion_context import CompletionContext


def context_at(
    text: str, *, uri: str = "file:///shop/a.py", **extra_fields: Any
) -> CompletionContext:
    """Return the context with the cursor at `|`."""
    prefix, _, suffix = text.partition("|")
    fields: dict[str, Any] = {
        "path": "a.py",
        "language": "python",
        "prefix": prefix,
        "suffix": suffix,
    } | extra_fields
    return CompletionContext(uri=uri, **fields)
