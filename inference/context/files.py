"""Other files as context: each under its path, in the family's own format."""

from collections.abc import Sequence

from inference.completion.arrival import DraftFile
from inference.context.fim import Family
from inference.context.tokens import Tokens
from inference.context.window import head


def encode_files(
    tokens: Tokens,
    family: Family,
    files: Sequence[DraftFile],
    *,
    current_path: str,
    max_tokens: int,
    chars_per_token: float,
) -> list[int]:
    """The first files of `files` (most recent first) that fit, the most recent nearest the cursor.

    The last that fits only in part is cut at its end. Ends with the header of the current file.
    """
    current = _header(tokens, family, current_path)
    remaining = max_tokens - len(current)
    blocks: list[list[int]] = []
    for file in files:
        header = _header(tokens, family, file.path)
        if remaining <= len(header):
            break
        text = head(file.text, max_chars=int(remaining * chars_per_token))
        blocks.append((header + tokens.encode(_ended(text)))[:remaining])
        remaining -= len(blocks[-1])
    if not blocks:
        return []
    return [*(token for block in reversed(blocks) for token in block), *current]


def _header(tokens: Tokens, family: Family, path: str) -> list[int]:
    if family.file_separator is None:
        return tokens.encode(f"# {_one_line(path)}\n")
    separator = tokens.token_id(family.file_separator)
    assert separator is not None, "recognise() has seen it"
    return [separator, *tokens.encode(f"{_one_line(path)}\n")]


def _one_line(path: str) -> str:
    return " ".join(path.split())


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
