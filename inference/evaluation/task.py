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

    program: str  # defines the function `check`
    entry_point: str  # name of the completed function, which is the argument of `check`


@dataclass(frozen=True, slots=True)
class Task:
    name: str  # the exam's task ID, or path:line:kind
    kind: TaskKind
    path: str  # in its repository
    language: str  # identifier of the language, as in requests
    prefix: str
    suffix: str
    answer: str  # the removed text
    unit_test: UnitTest | None = None

    @property
    def mode(self) -> Mode:
        return Mode.INLINE if self.kind is TaskKind.SINGLE_LINE else Mode.FIM

    @property
    def pattern(self) -> str:
        """The group of the task in reports, guessed from the path and the line at the cursor."""
        if _TEST_PATH.search(self.path):
            return "tests"
        before = self.prefix.rpartition("\n")[2]
        line = (before + self.answer.partition("\n")[0]).strip()
        for pattern, expression in _LINE_PATTERNS.items():
            if expression.match(line):
                return pattern
        return "call_arguments" if before.count("(") > before.count(")") else "other"


_TEST_PATH: Final = re.compile(r"(^|[/_.-])(tests?|specs?)([/_.-]|$)", re.IGNORECASE)
_LINE_PATTERNS: Final = {
    "comments": re.compile(r"#(?!include|define|if|endif)|//|/\*|\*|--|\"\"\"|'''|<!--"),
    "imports": re.compile(r"(import|from|use|using|require|#include|package)\b"),
    "conditions": re.compile(r"(\}?\s*else\s+)?(if|elif|elsif|unless|while|switch|case|match)\b"),
}
