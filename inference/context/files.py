"""Other files as context: each under its path, in the family's own format."""

from collections.abc import Sequence

from inference.completion.arrival import DraftFile
from inference.context.writer import Encoder


def encode_files(
    encode: Encoder, files: Sequence[DraftFile], *, current_path: str, max_tokens: int
) -> list[int]:
    """The first files of `files` (most recent first) that fit, the most recent nearest the cursor.

    The last that fits only in part is cut at its end. Ends with the header of the current file.
    """
    current = _header(encode, current_path) if files else []
    remaining = max_tokens - len(current)
    blocks: list[list[int]] = []
    for file in files:
        header = _header(encode, file.path)
        if remaining <= len(header):
            break
        text = encode.head(_ended(file.text), max_tokens=remaining - len(header))
        blocks.append(header + text)
        remaining -= len(blocks[-1])
    if not blocks:
        return []
    return [*(token for block in reversed(blocks) for token in block), *current]


def _header(encode: Encoder, path: str) -> list[int]:
    separator = encode.family.file_separator
    if separator is None:
        return encode.tokens.encode(f"# {_one_line(path)}\n")
    marker = encode.tokens.token_id(separator)
    assert marker is not None, "recognise() has seen it"
    return [marker, *encode.tokens.encode(f"{_one_line(path)}\n")]


def _one_line(path: str) -> str:
    return " ".join(path.split())


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
