"""The text around the cursor, as a layout wants it shown to the model. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

# Closing brackets and quotes, then what may end a statement's head.
_CLOSERS: Final = re.compile(r"""[)\]}>"'`]*[ \t]*[;:,{]?[ \t\r]*""")


@dataclass(frozen=True, slots=True)
class Surrounding:
    prefix: str
    suffix: str
    healed: str = ""  # what was withheld of the prefix's end: the completion has to begin with it

    def without_closers(self) -> "Surrounding":
        """With the suffix from the next line on, where the cursor's own line says no more than what
        an editor has closed; else as it is."""
        rest, newline, following = self.suffix.partition("\n")
        if not _CLOSERS.fullmatch(rest.strip()):
            return self
        return Surrounding(self.prefix, newline + following, self.healed)

    def healing(self, split_word: Callable[[str], tuple[str, str]]) -> "Surrounding":
        """Without the word that is being typed."""
        line = self.prefix.rpartition("\n")[2]
        kept, healed = split_word(line)
        prefix = self.prefix[: len(self.prefix) - len(line)] + kept
        return Surrounding(prefix, self.suffix, healed)
