"""How much of the end of a growing text is the beginning of another one. Pure.

After Knuth, Morris and Pratt: each letter is looked at once, however long both are.
"""


class SuffixOverlap:
    def __init__(self, text: str) -> None:
        self._text = text
        # Of each of its beginnings, how much of its end is a beginning, too. Made as far as it is
        # needed: the text may be half a megabyte, what grows is a line.
        self._shorter: list[int] = [0]
        self._length = 0  # of the longest beginning that what has come ends with
        self.before_blank = 0  # the same, without white space at the end of what has come

    def feed(self, part: str) -> None:
        for letter in part if self._text else "":
            self._length = self._after(self._length, letter)
            if not letter.isspace():
                self.before_blank = self._length

    def restart(self) -> None:
        """What grows begins again."""
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
