"""What writes the prompts of one model: its tokenizer, its markers, and the lines it has seen."""

from typing import Final

from caret.foundation.clock import Clock
from inference.context.chat_template import ChatTemplate
from inference.context.fim import Order, recognise
from inference.context.layout import markers_of, stop_token_ids
from inference.context.line_cache import LineCache
from inference.context.tokens import Tokens
from inference.context.window import head, tail

# Ordinary code, to learn how many characters a token of this tokenizer holds.
_SAMPLE: Final = "def read(self, path):\n    with open(path) as file:\n        return file.read()\n"


class PromptWriter:
    """All that is known of one model's prompts; made once, at start."""

    def __init__(
        self,
        tokens: Tokens,
        *,
        model: str,
        max_context_tokens: int,
        clock: Clock,
        order: Order | None = None,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        """`order`: in place of the family's own. `chat_template`: the model's, if it has one."""
        self.tokens = tokens
        self.lines = LineCache(tokens, clock)
        self.family = recognise(tokens.token_id, model=model)
        self.order = order or self.family.order
        self.markers = markers_of(self.family, tokens)
        self.stop_token_ids = stop_token_ids(self.family, tokens)
        self.chat_template = chat_template
        self.max_context_tokens = max_context_tokens
        self.chars_per_token = len(_SAMPLE) / len(tokens.encode(_SAMPLE))


class Encoder:
    """Texts of one holder to tokens, each within its own share."""

    def __init__(self, writer: PromptWriter, *, holder: bytes) -> None:
        self._lines = writer.lines
        self._holder = holder
        self.tokens = writer.tokens
        self.family = writer.family
        self._chars_per_token = writer.chars_per_token

    def tail(self, text: str, *, max_tokens: int) -> list[int]:
        """The end of `text` in at most `max_tokens`; where it is cut, from an anchor line on."""
        max_chars = int(max_tokens * self._chars_per_token)
        token_ids = self._encode(tail(text, max_chars=max_chars))
        if len(token_ids) > max_tokens:
            # Denser than the sample: half the text, so that the window still begins at an anchor.
            token_ids = self._encode(tail(text, max_chars=max_chars // 2))
        return token_ids[-max_tokens:] if max_tokens > 0 else []

    def head(self, text: str, *, max_tokens: int) -> list[int]:
        """The beginning of `text` in at most `max_tokens`."""
        max_chars = int(max_tokens * self._chars_per_token)
        return self._encode(head(text, max_chars=max_chars))[:max_tokens]

    def _encode(self, text: str) -> list[int]:
        return self._lines.encode(text, self._holder)
