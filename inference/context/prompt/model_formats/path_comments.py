"""Parses the comments that Continue writes at the beginning of a prompt, to name its files.

    # Path: shop/price.py         another file, in comments; none or several
    # def price(item): ...
    # shop/cart.py                the current file
    import price                  its text

Without other files, an empty line stands before the path. The comments are those of the current
file's language. Rules:
1. Pure. A prompt that begins in another way is returned unchanged.
2. Comments of the other files, and comments at the beginning of the current file, can look like
   the line with the path. All such lines are returned as possible paths, however many they are. So
   the admit stage can refuse the request if the policy excludes one of them.
3. If the text after `Path: ` does not look like a path, the comment is a part of the file before
   it, or it names a new file. So it is unknown which of the two files the next comments belong to.
   They are left out, because the policy may exclude that file.
"""

import re
from dataclasses import dataclass
from typing import Final

from caret.contracts.language_ids import language_of_path
from inference.context.prompt.model_formats.fim_parser import ParsedFile
from inference.gateway.receive import MAX_FILES, MAX_NAME_CHARS

# The comment marks of Continue's languages. Markdown has none: Continue writes only the space.
_MARKS: Final = ("#", "//", "--", ";", "%", "")
_HEADER: Final = "Path: "
_EXTENSION: Final = re.compile(r"\.[a-zA-Z]\w{0,15}")
# A path of ordinary characters, even without an extension.
_PLAIN: Final = re.compile(r"[\w.@+-]+(?:/[\w.@+-]+)*")


@dataclass(frozen=True, slots=True)
class CommentedPrompt:
    text: str  # of the current file, before the cursor
    paths: tuple[str, ...] = ()  # one of them is the current file's; the most likely one first
    files: tuple[ParsedFile, ...] = ()  # nearest to the cursor last


def parse_path_comments(prompt: str) -> CommentedPrompt:
    """Return the parts. A prompt without such comments has no paths."""
    for mark in _MARKS:
        start = f"{mark} "
        if prompt.startswith(f"\n{start}"):
            return _parse_only_path(prompt, start)
        if prompt.startswith(start + _HEADER):
            return _parse_files(prompt, start)
    return CommentedPrompt(prompt)


def _parse_only_path(prompt: str, start: str) -> CommentedPrompt:
    line, newline, text = prompt[1:].partition("\n")
    path = line.removeprefix(start)
    if not newline or not _can_be_path(path):
        return CommentedPrompt(prompt)
    return CommentedPrompt(text, (path,))


def _parse_files(prompt: str, start: str) -> CommentedPrompt:
    lines = _read_comments(prompt, start)
    candidates = [index for index, line in enumerate(lines) if _can_be_path(line)]
    if not candidates:  # the current file's path does not look like a path
        return CommentedPrompt(prompt.split("\n", len(lines))[-1], files=_split_files(lines))
    # The path comes after the other files, so the last candidate is chosen. File names without
    # spaces are preferred: a sentence can end like a file's name, and a line of code can be one
    # word.
    named = [index for index in candidates if _has_file_name(lines[index])]
    without_spaces = [index for index in named if " " not in lines[index]]
    last = (without_spaces or named or candidates)[-1]
    others = (lines[index] for index in reversed(candidates))
    return CommentedPrompt(
        text=prompt.split("\n", last + 1)[-1],
        paths=tuple(dict.fromkeys((lines[last], *others))),
        files=_split_files(lines[:last]),
    )


def _read_comments(prompt: str, start: str) -> list[str]:
    """Return the texts of the comments at the prompt's beginning, without the cursor's line."""
    comments: list[str] = []
    position = 0
    while prompt.startswith(start, position):
        end = prompt.find("\n", position)
        if end < 0:
            break
        comments.append(prompt[position + len(start) : end])
        position = end + 1
    return comments


def _split_files(lines: list[str]) -> tuple[ParsedFile, ...]:
    """Split comments into files. Comments that belong to no file for certain are left out."""
    sections: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith(_HEADER):
            sections.append((line.removeprefix(_HEADER).rstrip(), []))
        elif sections:
            sections[-1][1].append(line)
    files = [ParsedFile(path, "\n".join(text)) for path, text in sections if _can_be_path(path)]
    return tuple(files[-MAX_FILES:])


def _can_be_path(text: str) -> bool:
    if len(text) > MAX_NAME_CHARS or text != text.strip() or text.startswith(_HEADER):
        return False
    if "//" in text:  # a URL
        return False
    return _has_file_name(text) or _PLAIN.fullmatch(text) is not None


def _has_file_name(path: str) -> bool:
    name = path.rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    return _EXTENSION.fullmatch(dot + extension) is not None or bool(language_of_path(path))
