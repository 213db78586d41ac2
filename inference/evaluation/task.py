"""A task: the text before and after a cursor, and the text that was removed between them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from caret.contracts.policy import Mode


class TaskKind(StrEnum):
    SINGLE_LINE = "single_line"
    MULTI_LINE = "multi_line"
    RANDOM_SPAN = "random_span"


@dataclass(frozen=True, slots=True)
class UnitTest:
    """Code that fails unless the completed program is correct."""

    program: str
    entry_point: str  # the function that the program's `check` gets as its argument


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    kind: TaskKind
    path: str
    language: str
    prefix: str
    suffix: str
    answer: str
    unit_test: UnitTest | None = None

    @property
    def mode(self) -> Mode:
        return Mode.INLINE if self.kind is TaskKind.SINGLE_LINE else Mode.FIM

    @property
    def pattern(self) -> str:
        """The kind of code at the cursor, guessed from its line in any language."""
        if _TEST_PATH.search(self.path):
            return "tests"
        before = self.prefix.rpartition("\n")[2]
        line = (before + self.answer.partition("\n")[0]).strip()
        for pattern, expression in _LINES.items():
            if expression.match(line):
                return pattern
        return "call_arguments" if before.count("(") > before.count(")") else "other"


_TEST_PATH: Final = re.compile(r"(^|[/_.-])(tests?|specs?)([/_.-]|$)", re.IGNORECASE)
_LINES: Final = {
    "comments": re.compile(r"#(?!include|define|if|endif)|//|/\*|\*|--|\"\"\"|'''|<!--"),
    "imports": re.compile(r"(import|from|use|using|require|#include|package)\b"),
    "conditions": re.compile(r"(\}?\s*else\s+)?(if|elif|elsif|unless|while|switch|case|match)\b"),
}
