"""Cuts a tokenised file at a cursor.

Only the lines around the cursor are decoded and encoded again. The tokenizer never joins a line
break with the text before it, so the result equals that of encoding the parts of the text
separately.
"""

import random
import re
from dataclasses import dataclass
from enum import Enum, auto

from tokenizers import Tokenizer

from inference.demo_model.token_corpus import TokenCorpus, TokenFile

MAX_SPAN_CHARS = 400  # of the middle of a CutKind.SPAN
LINE_COUNT_WEIGHTS = (65, 15, 10, 10)  # of cuts of one to four lines
# Share of the cursors directly after the indentation, where an editor puts the cursor on Enter.
AT_INDENT_SHARE = 0.3
MAX_BLOCK_LINES = 12
MAX_DOCSTRING_CHARS = 600
REGION_LINES = 16  # the cut is in a region of this many lines
NUM_TOKENS_ABOVE = 300  # above the region; searched for names that occur in the region again
NUM_DRAWS = 6  # regions that are tried for a kind of cut
MAX_LINE_TOKENS = 300  # the search for a line break ends after this many tokens
NAME = re.compile(r"\b[A-Za-z_]\w{3,}")
DOCSTRING = re.compile(r'"""(.+?""")', re.DOTALL)


class CutKind(Enum):
    LINES = auto()  # from a cursor, mostly inside a line, to the end of one to four lines
    NAME = auto()  # from a cursor in a name that also occurs above, to the end of the line
    SPAN = auto()  # any characters
    BLOCK = auto()  # the body under a line that ends with a colon
    DOCSTRING = auto()  # a docstring after its opening quotes


@dataclass(frozen=True, slots=True)
class TokenSpans:
    """The cut of a file into five parts.

    These are the file's tokens before `start`, then `prefix_end`, `middle` and `suffix_start`, and
    the file's tokens from `end` on.
    """

    start: int  # index in the corpus's tokens
    prefix_end: list[int]
    middle: list[int]
    suffix_start: list[int]
    end: int  # index in the corpus's tokens


@dataclass(frozen=True, slots=True)
class _Region:
    """Some lines of a file. The text begins with the line break before them, if there is one."""

    start: int  # index in the corpus's tokens
    end: int  # index in the corpus's tokens
    text: str
    above: str  # the file's text before the region, up to NUM_TOKENS_ABOVE
    lead: int  # characters before the first word: the line break and the indentation


class Cutter:
    """Cuts files at random places."""

    def __init__(self, corpus: TokenCorpus, tokenizer: Tokenizer, rng: random.Random) -> None:
        self._tokens = corpus.tokens
        self._tokenizer = tokenizer
        self._rng = rng
        texts = [tokenizer.decode([i]) for i in range(tokenizer.get_vocab_size())]
        self._is_break = [text.startswith("\n") for text in texts]  # by token ID

    def cut(self, file: TokenFile, kind: CutKind) -> TokenSpans:
        """Cut the file as this kind, or as LINES if a few random regions do not allow the kind."""
        for _ in range(NUM_DRAWS):
            region = self._pick_region(file)
            span = self._pick_span(region, kind)
            if span is not None:
                return self._cut_region(region, *span)
        return self._cut_region(region, *self._pick_lines_span(region))

    def _pick_region(self, file: TokenFile) -> _Region:
        start = self.line_start(file, file.start + self._rng.randrange(len(file)))
        end = self._find_lines_end(file, start, REGION_LINES)
        text = self._decode(start, end)
        above = self._decode(max(file.start, start - NUM_TOKENS_ABOVE), start)
        return _Region(start, end, text, above, lead=_indent_of(text))

    def _cut_region(self, region: _Region, start: int, end: int) -> TokenSpans:
        """Cut the region's text at two characters: the middle is between `start` and `end`."""
        return TokenSpans(
            start=region.start,
            prefix_end=self._encode(region.text[:start]),
            middle=self._encode(region.text[start:end]),
            suffix_start=self._encode(region.text[end:]),
            end=region.end,
        )

    def line_start(self, file: TokenFile, position: int) -> int:
        """Return the index of the last line break at or before the position.

        In the first line, return the file's start. In a very long line, return the index of a token
        in that line. All positions are indexes in the corpus's tokens.
        """
        first = max(file.start, position - MAX_LINE_TOKENS)
        while position > first and not self._is_break[self._tokens[position]]:
            position -= 1
        return position

    def _find_lines_end(self, file: TokenFile, start: int, num_lines: int) -> int:
        """Return the index of the line break after this many lines, or fewer if they are long."""
        # Ordinary lines have fewer than MAX_LINE_TOKENS / 8 tokens on average.
        last = min(file.end, start + num_lines * MAX_LINE_TOKENS // 8)
        position = start + 1
        while position < last:
            if self._is_break[self._tokens[position]]:
                num_lines -= 1
                if num_lines == 0:
                    return position
            position += 1
        return self.line_start(file, position) if position < file.end else file.end

    def _pick_span(self, region: _Region, kind: CutKind) -> tuple[int, int] | None:
        """Return the start and end of the middle in the region's text.

        None: the text has no part of that kind.
        """
        match kind:
            case CutKind.LINES:
                return self._pick_lines_span(region)
            case CutKind.SPAN:
                return self._pick_any_span(region)
            case CutKind.NAME:
                return self._pick_name_span(region)
            case CutKind.BLOCK:
                return _find_block_span(region)
            case CutKind.DOCSTRING:
                return _find_docstring_span(region)

    def _pick_lines_span(self, region: _Region) -> tuple[int, int]:
        text, lead = region.text, region.lead
        line_end = _line_end(text, lead)
        cursor = lead if self._rng.random() < AT_INDENT_SHARE else self._rng.randint(lead, line_end)
        num_lines = self._rng.choices((1, 2, 3, 4), LINE_COUNT_WEIGHTS)[0]
        end = line_end
        for _ in range(num_lines - 1):
            end = _line_end(text, min(len(text), end + 1))
        return cursor, end

    def _pick_any_span(self, region: _Region) -> tuple[int, int]:
        """Pick a span of fewer than MAX_SPAN_CHARS characters. Short spans are more likely."""
        start = self._rng.randint(region.lead, _line_end(region.text, region.lead))
        return start, min(len(region.text), start + int(MAX_SPAN_CHARS ** self._rng.random()))

    def _pick_name_span(self, region: _Region) -> tuple[int, int] | None:
        line_end = _line_end(region.text, region.lead)
        names_above = set(NAME.findall(region.above))
        names_in_line = NAME.finditer(region.text, region.lead, line_end)
        matches = [match for match in names_in_line if match.group() in names_above]
        if not matches:
            return None
        match = self._rng.choice(matches)
        return self._rng.randint(match.start(), match.end() - 1), line_end

    def _decode(self, start: int, end: int) -> str:
        text: str = self._tokenizer.decode(self._tokens[start:end].tolist())
        return text

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def _find_block_span(region: _Region) -> tuple[int, int] | None:
    """Return the span of the body under the first line that ends with a colon.

    The span begins after the body's first indentation. None: there is no such body, or it is too
    long or does not end in the region.
    """
    text, lead = region.text, region.lead
    lines = text[lead:].split("\n")
    opening = next((n for n, line in enumerate(lines) if line.rstrip().endswith(":")), None)
    if opening is None or opening + 2 >= len(lines):
        return None  # the line after the body must be in the region, to show where the body ends
    indent = _indent_of(lines[opening + 1])
    last = opening + 1
    while last + 1 < len(lines) and (
        not lines[last + 1].strip() or _indent_of(lines[last + 1]) >= indent
    ):
        last += 1
    is_cut_off = last == len(lines) - 1  # the body may continue after the region
    while last > opening and not lines[last].strip():
        last -= 1
    if is_cut_off or indent == 0 or not 0 < last - opening <= MAX_BLOCK_LINES:
        return None
    start = lead + sum(len(line) + 1 for line in lines[: opening + 1])
    end = start + sum(len(line) + 1 for line in lines[opening + 1 : last + 1]) - 1
    return start + indent, end


def _find_docstring_span(region: _Region) -> tuple[int, int] | None:
    match = DOCSTRING.search(region.text)
    if match is None or len(match.group(1)) > MAX_DOCSTRING_CHARS:
        return None
    return match.start(1), match.end(1)


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())
