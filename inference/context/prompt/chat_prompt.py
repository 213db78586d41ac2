"""Makes a prompt from a chat: the model's chat template around the turns that fit.

Whole turns are dropped, the oldest first. The leading system messages and the newest turn are kept.
Each system message gets at most half of the tokens that are left. The newest turn then gets at most
the remaining tokens. Longer texts are truncated. Files that the client sent as context precede the
text of the newest turn. Without a template, the texts are concatenated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Final

from detect_secrets.util.filetype import FileType

from inference.completion.incoming_request import ChatMessage, ContextFile
from inference.completion.segment import Segment, SegmentKind
from inference.context.prompt.model_formats.chat_template import ChatTemplateError
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.redaction.redact import (
    MAX_KEY_CHARS,
    file_type,
    redact_private_keys,
    redact_text,
)
from inference.context.tokenization.text_window import head, last_lines
from inference.context.tokenization.tokenizer import Tokenizer
from inference.errors import BadRequest

# Code and prose have fewer characters per token on average. A text with more than this for each
# token that is left is assumed not to fit, so it is not encoded at all.
_MAX_CHARS_PER_TOKEN: Final = 8
# Longer than the longest secret within a line that a rule finds, such as a signed token.
_MAX_SECRET_CHARS: Final = 4_096
_FILES_SHARE: Final = 0.6  # of the tokens that the newest turn leaves; the rest is for older turns
_MIN_FILE_TOKENS: Final = 32  # a shorter part of a file is useless


@dataclass(frozen=True, slots=True)
class _Turn:
    message: ChatMessage
    token_ids: list[int]  # of the files before its text, and of the included part of its text
    num_files: int = 0


@dataclass(frozen=True, slots=True)
class _SafeEncoder:
    """Encodes texts after removing their secrets."""

    tokenizer: Tokenizer
    kind: FileType  # of the file that the chat is about

    def encode_full(self, text: str) -> list[int]:
        return self._encode(redact_private_keys(text))

    def encode_head(self, text: str, max_tokens: int) -> list[int]:
        """Encode the beginning of the text."""
        excerpt = self._safe_head(text, max_tokens * _MAX_CHARS_PER_TOKEN)
        excerpt = redact_private_keys(excerpt)
        excerpt = self._safe_head(excerpt, self._estimate_chars(excerpt, max_tokens))
        return self._encode(excerpt)[:max_tokens]

    def encode_tail(self, text: str, max_tokens: int) -> list[int]:
        """Encode the end of the text."""
        if max_tokens <= 0:
            return []
        max_chars = max_tokens * _MAX_CHARS_PER_TOKEN
        # A private key may begin before the window.
        excerpt = redact_private_keys(text[-(max_chars + MAX_KEY_CHARS) :])
        excerpt = self._safe_tail(excerpt, max_chars)
        excerpt = self._safe_tail(excerpt, self._estimate_chars(excerpt, max_tokens))
        return self._encode(excerpt)[-max_tokens:]

    # A part of a secret does not look like a secret. So texts are cut between lines. If a line is
    # too long for that, its secrets are removed before it is cut.

    def _safe_head(self, text: str, max_chars: int) -> str:
        excerpt = head(text, max_chars=max_chars)
        if len(excerpt) == len(text) or excerpt.endswith("\n"):
            return excerpt
        return redact_text(text[: max_chars + _MAX_SECRET_CHARS], self.kind)[:max_chars]

    def _safe_tail(self, text: str, max_chars: int) -> str:
        excerpt = last_lines(text, max_chars=max_chars)
        if len(excerpt) == len(text) or text[-len(excerpt) - 1] == "\n":
            return excerpt  # it begins at the beginning of a line
        return redact_text(text[-(max_chars + _MAX_SECRET_CHARS) :], self.kind)[-max_chars:]

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(redact_text(text, self.kind))

    def _estimate_chars(self, sample: str, max_tokens: int) -> int:
        """Estimate the length of a text like `sample` with `max_tokens`, and add a quarter.

        The caller cuts the text to this length first, because searching for secrets takes longer
        than encoding.
        """
        num_tokens = max(len(self.tokenizer.encode(sample)), 1)
        return max(len(sample) * max_tokens * 5 // (num_tokens * 4), 1)


def build_chat_prompt(
    writer: PromptWriter,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    path: str = "",
    files: Sequence[ContextFile] = (),
) -> Prompt:
    """Build a prompt from at least one message, without secrets.

    `path` is that of the file that the chat is about, or "". The most important of the `files` is
    the first. The codes of BadRequest are `invalid_messages` (the template rejects these turns)
    and `prompt_too_long` (the system messages leave no room). Raises BadRequest.
    """
    empty = _lay_out(writer, [_Turn(message, []) for message in messages])
    # Tokens that the template adds to each turn, on average, rounded up.
    overhead_per_turn = -(-len(empty) // len(messages))
    encoder = _SafeEncoder(writer.tokenizer, file_type(path))
    turns = _fit_turns(
        encoder, messages, files, overhead_per_turn=overhead_per_turn, max_tokens=max_tokens
    )
    num_files = turns[-1].num_files
    token_ids = _lay_out(writer, turns)
    while (excess := len(token_ids) - max_tokens) > 0:
        turns = _shorten_turns(turns, excess)
        token_ids = _lay_out(writer, turns)
    return Prompt(
        token_ids=token_ids,
        stop_token_ids=_stop_token_ids(writer),
        is_single_line=False,
        num_files=num_files,
        segments=(Segment(SegmentKind.MESSAGES, len(token_ids)),),
    )


def _fit_turns(
    encoder: _SafeEncoder,
    messages: Sequence[ChatMessage],
    files: Sequence[ContextFile],
    *,
    overhead_per_turn: int,
    max_tokens: int,
) -> list[_Turn]:
    """Return the leading system messages and the newest of the other turns that fit."""
    num_system = _count_system_messages([message.role for message in messages])
    # 1: the newest turn.
    room = max(max_tokens - overhead_per_turn * (num_system + 1), 0)
    system: list[_Turn] = []
    for message in messages[:num_system]:
        system.append(_Turn(message, encoder.encode_head(message.text, room // 2)))
        room -= len(system[-1].token_ids)
    newest = encoder.encode_tail(messages[-1].text, room)
    context = _encode_files(encoder.tokenizer, files, int((room - len(newest)) * _FILES_SHARE))
    turns = [_Turn(messages[-1], [*chain.from_iterable(context), *newest], len(context))]
    room -= len(turns[0].token_ids)
    for message in reversed(messages[num_system:-1]):
        if len(message.text) > room * _MAX_CHARS_PER_TOKEN:
            break
        turn = _Turn(message, encoder.encode_full(message.text))
        room -= len(turn.token_ids) + overhead_per_turn
        if room < 0:
            break
        turns.append(turn)
    return system + _drop_until_user_turn(turns[::-1])


def _encode_files(
    tokenizer: Tokenizer, files: Sequence[ContextFile], max_tokens: int
) -> list[list[int]]:
    """Return the tokens of the files that fit, each with its path. Long files are truncated."""
    encoded: list[list[int]] = []
    for file in files:
        before = tokenizer.encode(f"File `{file.path}`:\n```\n")
        after = tokenizer.encode("\n```\n\n")
        room = max_tokens - len(before) - len(after)
        if room < _MIN_FILE_TOKENS:
            break
        text = _SafeEncoder(tokenizer, file_type(file.path)).encode_head(file.text, room)
        encoded.append([*before, *text, *after])
        max_tokens -= len(encoded[-1])
    return encoded


def _count_system_messages(roles: Sequence[str]) -> int:
    """Return the number of leading system messages. The last message never counts."""
    return len(list(takewhile(lambda role: role == "system", roles[:-1])))


def _drop_until_user_turn(turns: list[_Turn]) -> list[_Turn]:
    """Drop the turns before the user's first turn: templates require that the user begins.

    If the user has no turn, all turns are kept.
    """
    first = next((i for i, turn in enumerate(turns) if turn.message.role == "user"), 0)
    return turns[first:]


def _shorten_turns(turns: list[_Turn], excess: int) -> list[_Turn]:
    """Drop the oldest turn after the system messages.

    If only the newest turn is left, remove the first `excess` tokens of it. Raises BadRequest.
    """
    num_system = _count_system_messages([turn.message.role for turn in turns])
    if len(turns) > num_system + 1:
        return turns[:num_system] + _drop_until_user_turn(turns[num_system + 1 :])
    newest = turns[-1]
    if not newest.token_ids:
        raise BadRequest("prompt_too_long", "The system messages fill the whole token budget.")
    return [*turns[:-1], _Turn(newest.message, newest.token_ids[excess:])]


def _lay_out(writer: PromptWriter, turns: Sequence[_Turn]) -> list[int]:
    """Return the tokens of the whole prompt. Raises BadRequest."""
    if writer.chat_template is None:
        separator_ids = writer.tokenizer.encode("\n\n")
        texts = [token for turn in turns for token in (*turn.token_ids, *separator_ids)]
        return [*writer.markers.begin, *texts]
    try:
        pieces = writer.chat_template.render([turn.message for turn in turns])
    except ChatTemplateError:
        raise BadRequest(
            "invalid_messages",
            "The model's chat template does not allow these roles in this order.",
        ) from None
    token_ids: list[int] = []
    for piece in pieces:
        if isinstance(piece, int):
            token_ids += turns[piece].token_ids
        else:
            token_ids += writer.tokenizer.encode_raw(piece)
    return token_ids


def _stop_token_ids(writer: PromptWriter) -> list[int]:
    template = writer.chat_template
    if template is None or template.end_token is None:
        return writer.stop_token_ids
    end = writer.tokenizer.get_token_id(template.end_token)
    return sorted({*writer.stop_token_ids, *([] if end is None else [end])})
