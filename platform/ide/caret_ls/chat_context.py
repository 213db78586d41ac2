"""The body of a chat request: conversation, selection, current file and other open files. Pure.

Files are sent in a field of their own, not in the messages. So the gateway can remove the files
that the policy excludes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from caret_ls.frames import MAX_NAME_CHARS, FrameFile

MAX_TOKENS: Final = 4_096  # of an answer
MAX_TURNS: Final = 40  # older turns would hardly fit into the prompt
MAX_SELECTION_CHARS: Final = 24_000  # more would hardly fit into the prompt, either
_INSTRUCTIONS: Final = (
    "You help a programmer in their editor. Answer briefly. Put code into fenced blocks with the "
    "name of the language. To change the selected code, answer with one block that replaces all "
    "of it."
)


class ChatCommand(StrEnum):
    """A prepared question, which the user chooses from a menu or by a command of the editor."""

    EXPLAIN = "explain"
    TESTS = "tests"


_QUESTIONS: Final = {
    ChatCommand.EXPLAIN: "Explain this code: its purpose first, then how it works.",
    ChatCommand.TESTS: (
        "Write tests for this code, with the test framework that the project uses. Answer with one "
        "fenced block that contains the whole test file."
    ),
}


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    role: str  # user or assistant
    text: str
    command: ChatCommand | None = None  # if set, its question replaces `text`


@dataclass(frozen=True, slots=True)
class SelectedCode:
    path: str  # in the repository
    language: str  # language ID of the editor
    text: str
    first_line: int  # number of its first line in the file, from 1
    is_selected: bool = True  # False: nothing is selected, and this is the line of the cursor

    @property
    def last_line(self) -> int:
        """The number of its last line in the file, without blank lines at the end."""
        return self.first_line + self.text.rstrip("\n").count("\n")


@dataclass(frozen=True, slots=True)
class ChatContext:
    path: str = ""  # of the current file; "": it is not sent
    repository: str = ""  # its name
    selection: SelectedCode | None = None  # None: the question is about no particular code
    files: Sequence[FrameFile] = ()  # the current file first, unless it is not sent


def build_body(
    turns: Sequence[ConversationTurn], context: ChatContext, *, has_system_role: bool = True
) -> dict[str, Any]:
    """Return the body of the request as JSON values.

    The instructions are a system message; without a system role, the first message begins with
    them.
    """
    *older, newest = turns[-MAX_TURNS:]
    messages = [{"role": turn.role, "content": _question_of(turn)} for turn in older]
    question = "\n\n".join(part for part in (_quote(context), _question_of(newest)) if part)
    messages.append({"role": newest.role, "content": question})
    if has_system_role:
        messages.insert(0, {"role": "system", "content": _INSTRUCTIONS})
    else:
        messages[0] = messages[0] | {"content": f"{_INSTRUCTIONS}\n\n{messages[0]['content']}"}
    return {
        "messages": messages,
        "stream": True,
        "max_tokens": MAX_TOKENS,
        "caret_path": context.path[:MAX_NAME_CHARS],
        "caret_repository": context.repository[:MAX_NAME_CHARS],
        "caret_files": [
            {"path": file.path[:MAX_NAME_CHARS], "text": file.text} for file in context.files
        ],
    }


def _question_of(turn: ConversationTurn) -> str:
    return turn.text if turn.command is None else _QUESTIONS[turn.command]


def _quote(context: ChatContext) -> str:
    """Return the selected code in Markdown with its file and lines; "" without a selection."""
    code = context.selection
    if code is None:
        return ""
    label = "Selected code" if code.is_selected else "The cursor is at this code"
    longest_run = max(map(len, re.findall("`+", code.text)), default=0)
    fence = "`" * max(3, longest_run + 1)  # longer than each fence in the code itself
    text = code.text.strip("\n")
    return (
        f"{label}, `{code.path}`, lines {code.first_line} to {code.last_line}:\n\n"
        f"{fence}{code.language}\n{text}\n{fence}"
    )
