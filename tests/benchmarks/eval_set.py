"""Questions with known answers: lines and blocks cut out of files on which the demonstration model
was not trained."""

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Mode
from inference.demo_model.corpus import SourceFile, read_corpus, standard_library
from inference.demo_model.evaluation.probes import choose_probes

_MAX_BLOCKS_PER_FILE: Final = 12
_MAX_BLOCK_LINES: Final = 8


@dataclass(frozen=True, slots=True)
class Question:
    kind: str  # line | block
    mode: Mode
    path: str
    prefix: str
    suffix: str
    answer: str


def questions(*, num_lines: int, num_blocks: int, seed: int) -> list[Question]:
    """Return the questions.

    The same arguments and the same Python version give the same questions.
    """
    files = read_corpus(standard_library()).held_out
    draw = random.Random(seed)
    lines = [
        Question(
            "line", Mode.INLINE, probe.path, probe.cut.prefix, probe.cut.suffix, probe.cut.middle
        )
        for probe in choose_probes(files, seed)
    ]
    blocks = [question for file in files for question in _blocks(file, draw)]
    return [*_sample(lines, num_lines, draw), *_sample(blocks, num_blocks, draw)]


def _sample(questions: Sequence[Question], number: int, draw: random.Random) -> list[Question]:
    return draw.sample(questions, min(number, len(questions)))


def _blocks(file: SourceFile, draw: random.Random) -> Iterator[Question]:
    """Yield the bodies that begin on a line of their own, below their head."""
    bodies = [
        node.body
        for node in ast.walk(ast.parse(file.text))
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With)
    ]
    for body in draw.sample(bodies, len(bodies))[:_MAX_BLOCKS_PER_FILE]:
        question = _block(file, first=body[0].lineno, last=body[-1].end_lineno or 0)
        if question is not None:
            yield question


def _block(file: SourceFile, *, first: int, last: int) -> Question | None:
    """Return the question for these lines, counted from 1.

    Returns None if the body stands beside its head or is too long.
    """
    lines = file.text.split("\n")
    body = lines[first - 1 : last]
    indent = len(body[0]) - len(body[0].lstrip())
    if lines[first - 2].rstrip()[-1:] != ":" or len(body) > _MAX_BLOCK_LINES:
        return None
    before = "\n".join(lines[: first - 1])
    return Question(
        kind="block",
        mode=Mode.BLOCK,
        path=file.path,
        prefix=f"{before}\n{body[0][:indent]}",
        suffix="\n" + "\n".join(lines[last:]),
        answer="\n".join(body)[indent:],
    )
