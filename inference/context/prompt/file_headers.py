"""How a family names repositories and files in its prompts."""

from typing import Final

from inference.context.prompt.model_families import ModelFamily
from inference.context.tokenization.tokenizer import Tokenizer

_MAX_HEADER_TOKENS: Final = 64  # a longer path is no name


class FileHeaders:
    def __init__(self, family: ModelFamily, tokens: Tokenizer) -> None:
        self._tokens = tokens
        self._repository = _marker(tokens, family.repository)
        self._separator = _marker(tokens, family.file_separator)

    def encode_repository(self, name: str) -> list[int]:
        """Empty where the family has no word for it, or it has no name."""
        return [*self._repository, *self._encode_line(name)] if name and self._repository else []

    def encode_file(self, path: str) -> list[int]:
        return (
            [*self._separator, *self._encode_line(path)]
            if self._separator
            else self._encode_line(f"# {path}")
        )

    def _encode_line(self, name: str) -> list[int]:
        return self._tokens.encode(" ".join(name.split()) + "\n")[:_MAX_HEADER_TOKENS]


def _marker(tokens: Tokenizer, name: str | None) -> list[int]:
    identifier = tokens.get_token_id(name) if name else None
    return [] if identifier is None else [identifier]
