"""Questions with known answers: the model must restore a line or a block that was cut from a file.

The demonstration model was not trained on these files.
"""

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


def choose_questions(*, num_lines: int, num_blocks: int, seed: int) -> list[Question]:
    """Return random questions: the same ones for the same arguments and Python version."""
    files = read_corpus(standard_library()).held_out
    rng = random.Random(seed)
    lines = [
        Question(
            "line", Mode.INLINE, probe.path, probe.cut.prefix, probe.cut.suffix, probe.cut.middle
        )
        for probe in choose_probes(files, seed)
    ]
    blocks = [question for file in files for question in _make_block_questions(file, rng)]
    return [*_sample(lines, num_lines, rng), *_sample(blocks, num_blocks, rng)]


def _sample(questions: Sequence[Question], number: int, rng: random.Random) -> list[Question]:
    return rng.sample(questions, min(number, len(questions)))


def _make_block_questions(file: SourceFile, rng: random.Random) -> Iterator[Question]:
    """Yield questions for some of the bodies that begin below their heads (`if ...:`)."""
    bodies = [
        node.body
        for node in ast.walk(ast.parse(file.text))
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With)
    ]
    for body in rng.sample(bodies, len(bodies))[:_MAX_BLOCKS_PER_FILE]:
        question = _make_block_question(file, first=body[0].lineno, last=body[-1].end_lineno or 0)
        if question is not None:
            yield question


def _make_block_question(file: SourceFile, *, first: int, last: int) -> Question | None:
    """Return the question for these lines, counted from 1.

    Returns None if the line above the body is not its head, or if the body is too long.
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
