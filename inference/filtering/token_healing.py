"""Token healing: the model regenerates the partial word at the cursor; only the new part is shown.

If a layout withholds the partial word (`Prompt.healed_prefix`), the engine generates the whole
word. The part before the cursor is removed. A completion that begins differently is another word.

    self.re|          the prompt ends with "self.", `healed_prefix` is "re"
    read(path)        the engine's text
      ad(path)        the text that is shown
"""

from inference.filtering.filter_reason import FilterReason


class TokenHealer:
    def __init__(self, healed: str) -> None:
        self._awaited = healed  # the part of the withheld text that was not generated yet
        self.reason: FilterReason | None = None  # set when nothing can be shown

    def feed(self, text: str) -> str:
        """Return the text after the withheld part, or "" while that is incomplete."""
        if not self._awaited or self.reason is not None:
            return "" if self.reason is not None else text
        num_common = min(len(self._awaited), len(text))
        if self._awaited[:num_common] != text[:num_common]:
            self.reason = FilterReason.HEALING_MISMATCH
            return ""
        self._awaited = self._awaited[num_common:]
        return text[num_common:]

    def finish(self) -> None:
        """Handle the end of the engine's text."""
        if self._awaited:
            self.reason = FilterReason.HEALING_MISMATCH
