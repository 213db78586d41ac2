"""The text around the cursor, as a layout wants it shown to the model. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Closing brackets and quotes, then what may end a statement's head. Nothing is given back: where
# two runs of blanks may share one, a long line would take time that grows with its square.
_CLOSERS: Final = re.compile(r"""[)\]}>"'`]*+[ \t]*+[;:,{]?+[ \t\r]*+""")


@dataclass(frozen=True, slots=True)
class CursorText:
    prefix: str
    suffix: str
    healed_prefix: str = (
        ""  # what was withheld of the prefix's end: the completion has to begin with it
    )

    def strip_closers(self) -> "CursorText":
        """With the suffix from the next line on, where the cursor's own line says no more than what
        an editor has closed; else as it is."""
        rest = line_after(self.suffix)
        if not rest or not _CLOSERS.fullmatch(rest.strip()):
            return self
        return CursorText(self.prefix, self.suffix[len(rest) :], self.healed_prefix)

    def heal(self, split_word: Callable[[str], tuple[str, str]]) -> "CursorText":
        """Without the word that is being typed."""
        line = line_before(self.prefix)
        kept, healed = split_word(line)
        if not healed:
            return self
        prefix = self.prefix[: len(self.prefix) - len(line)] + kept
        return CursorText(prefix, self.suffix, healed)


def line_before(prefix: str) -> str:
    """What stands before the cursor on its line. A text is never divided for it: it may be long."""
    return prefix[prefix.rfind("\n") + 1 :]


def line_after(suffix: str) -> str:
    """What stands behind the cursor on its line."""
    end = suffix.find("\n")
    return suffix if end < 0 else suffix[:end]
