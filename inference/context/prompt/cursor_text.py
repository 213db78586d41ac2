"""The text around the cursor, as a layout shows it to the model. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Closing brackets and quotes, then a separator or an opening brace. The quantifiers are possessive:
# with backtracking over blanks, a long line would take quadratic time.
_CLOSERS: Final = re.compile(r"""[)\]}>"'`]*+[ \t]*+[;:,{]?+[ \t\r]*+""")


@dataclass(frozen=True, slots=True)
class CursorText:
    prefix: str
    suffix: str
    # Follows `prefix`, but is withheld from the prompt. The completion must begin with this text.
    healed_prefix: str = ""

    def strip_closers(self) -> "CursorText":
        """Return the text without the rest of the cursor's line if that consists of closers.

        Closers are closing brackets and quotes, and a separator or an opening brace after them.
        Editors insert closing brackets and quotes automatically.
        """
        rest_of_line = line_after(self.suffix)
        if not rest_of_line or not _CLOSERS.fullmatch(rest_of_line.strip()):
            return self
        return CursorText(self.prefix, self.suffix[len(rest_of_line) :], self.healed_prefix)

    def heal(self, split_word: Callable[[str], tuple[str, str]]) -> "CursorText":
        """Return the text with the word that is being typed withheld (token healing).

        `split_word` is `Tokenizer.split_word`.
        """
        line = line_before(self.prefix)
        line_start, healed = split_word(line)
        if not healed:
            return self
        prefix = self.prefix[: len(self.prefix) - len(line)] + line_start
        return CursorText(prefix, self.suffix, healed)


def line_before(prefix: str) -> str:
    """Return the part of the cursor's line before the cursor."""
    return prefix[prefix.rfind("\n") + 1 :]


def line_after(suffix: str) -> str:
    """Return the part of the cursor's line after the cursor."""
    end = suffix.find("\n")
    return suffix if end < 0 else suffix[:end]
