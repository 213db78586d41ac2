"""Measures how much of a growing text's end is the beginning of another text. Pure.

This is the algorithm of Knuth, Morris and Pratt: each character is read once.
"""


class SuffixOverlap:
    def __init__(self, text: str) -> None:
        self._text = text
        # For each beginning of the text, the length of its longest end that is also a beginning.
        # Computed on demand: the text may be half a megabyte, while the growing text is a line.
        self._shorter: list[int] = [0]
        self._length = 0  # of the longest beginning that ends the growing text
        self.before_blank = 0  # the same, without trailing white space of the growing text

    def feed(self, part: str) -> None:
        for letter in part if self._text else "":
            self._length = self._after(self._length, letter)
            if not letter.isspace():
                self.before_blank = self._length

    def restart(self) -> None:
        """Start with a new growing text."""
        self._length = self.before_blank = 0

    def _after(self, length: int, letter: str) -> int:
        while length == len(self._text) or self._text[length] != letter:
            if not length:
                return 0
            length = self._shorter_than(length)
        return length + 1

    def _shorter_than(self, length: int) -> int:
        while len(self._shorter) < length:
            place = len(self._shorter)
            self._shorter.append(self._after(self._shorter[-1], self._text[place]))
        return self._shorter[length - 1]
