"""A word that was being typed, written anew by the model: what of it is new.

Where a layout withholds the half of a word (`Prompt.healed_prefix`), the engine begins with the
whole word. What the cursor has already goes; a completion that begins otherwise is of another
word.

    self.re|          the prompt ends with "self.", `healed_prefix` is "re"
    read(path)        the engine's text
      ad(path)        what is shown
"""

from inference.filtering.filter_reason import FilterReason


class TokenHealer:
    def __init__(self, healed: str) -> None:
        self._awaited = healed  # of what was withheld, the part that was not written yet
        self.reason: FilterReason | None = None  # once it is clear that nothing may be shown

    def feed(self, text: str) -> str:
        """What comes after the withheld part; nothing while that is not complete."""
        if not self._awaited or self.reason is not None:
            return "" if self.reason is not None else text
        num_common = min(len(self._awaited), len(text))
        if self._awaited[:num_common] != text[:num_common]:
            self.reason = FilterReason.HEALING_MISMATCH
            return ""
        self._awaited = self._awaited[num_common:]
        return text[num_common:]

    def finish(self) -> None:
        """The engine has ended."""
        if self._awaited:
            self.reason = FilterReason.HEALING_MISMATCH
