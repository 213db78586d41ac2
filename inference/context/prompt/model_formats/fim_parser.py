"""Parses fill-in-the-middle prompts that a client rendered for some model.

The parts are then rendered again for our model. Rules:
1. Pure; the markers of families are data (`model_families.FAMILIES`).
2. A prompt is parsed only if all of it has one format. Each fill-in-the-middle marker must occur
   exactly once: a file that contains markers makes the prompt ambiguous, and nothing is guessed.
3. If there are more than MAX_FILES other files, the last ones are kept: they are nearest to the
   cursor.
4. The known orders are prefix-suffix-middle (PSM), suffix-prefix-middle (SPM), and SPM's variant 2.
   P is the prefix (the text before the cursor), S the suffix (the text after it):

    [begin] [repository name\\n] [separator path\\n text]... <pre> P <suf> S <mid>    PSM
                                                            <suf> S <pre> P [<mid>]  SPM
                                                            <pre> <suf> S <mid> P    variant 2
"""

import re
from dataclasses import dataclass
from typing import Final

from inference.context.prompt.model_formats.model_families import FAMILIES, ModelFamily
from inference.gateway.receive import MAX_FILES

_SPACE: Final = "▁"  # stands for the space at the beginning of a marker in some tokenizers
# Paths have up to 512 characters, as MAX_NAME_CHARS of the receive stage.
_PATH: Final = re.compile(r"""[^\s:;=(){}\[\]<>"'`,]{1,512}""")
_CODESTRAL_FILE: Final = "+++++ "  # begins a line with a file's path
_CODESTRAL_HEADER: Final = re.compile(r"(?:\A|\n\n)\+{5} ([^\n]{1,512})\n")


@dataclass(frozen=True, slots=True)
class ParsedFile:
    path: str  # "" if unknown
    text: str


@dataclass(frozen=True, slots=True)
class ParsedFimPrompt:
    prefix: str
    suffix: str
    path: str = ""
    repository: str = ""
    files: tuple[ParsedFile, ...] = ()  # nearest to the cursor last


def parse_fim_prompt(prompt: str) -> ParsedFimPrompt | None:
    """Return the parts; None: the prompt has no known format, or is ambiguous."""
    candidates = (_parse_with_family(family, prompt) for family in FAMILIES)
    return next((candidate for candidate in candidates if candidate is not None), None)


def _parse_with_family(family: ModelFamily, prompt: str) -> ParsedFimPrompt | None:
    if _format_marker(family.suffix) not in prompt:
        return None
    text = prompt.removeprefix(family.begin or "")
    parts = _split_at_markers(family, text)
    if parts is None:
        return None
    prefix_and_suffix = _read_prefix_and_suffix(family, parts)
    if prefix_and_suffix is None:
        return None
    head = _parse_head(family, parts["head"])
    if head is None:
        return None
    prefix, suffix = prefix_and_suffix
    if family.name == "codestral" and prefix.startswith(_CODESTRAL_FILE):
        return _parse_codestral_files(prefix, suffix)
    return ParsedFimPrompt(
        prefix, suffix, path=head.path, repository=head.repository, files=head.files
    )


def _split_at_markers(family: ModelFamily, text: str) -> dict[str, str] | None:
    """Return the text before the first FIM marker, and the text after each FIM marker.

    The texts are named `head`, and then `prefix`, `suffix` and `middle` in the order of their
    markers in the prompt. None: a FIM marker does not occur exactly once, or a file or repository
    marker follows the first FIM marker.
    """
    names = {"prefix": family.prefix, "suffix": family.suffix, "middle": family.middle}
    markers = {name: _format_marker(marker) for name, marker in names.items() if marker is not None}
    if any(text.count(marker) != 1 for marker in markers.values()):
        return None
    order = sorted(markers, key=lambda name: text.index(markers[name]))
    parts: dict[str, str] = {}
    remaining_text = text
    for part, next_part in zip(["head", *order], order, strict=False):
        parts[part], _, remaining_text = remaining_text.partition(markers[next_part])
    parts[order[-1]] = remaining_text
    is_clean = not any(
        marker in parts[name] for name in order for marker in _file_and_repository_markers(family)
    )
    return parts if is_clean else None


def _read_prefix_and_suffix(family: ModelFamily, parts: dict[str, str]) -> tuple[str, str] | None:
    """Return prefix and suffix.

    None: the markers have an unknown order, or there is text where the order allows none.
    """
    order = [name for name in parts if name != "head"]
    after = _strip_padding(parts) if family.prefix.startswith(_SPACE) else parts
    if order == ["suffix", "prefix", "middle"]:
        return None if after["middle"] else (after["prefix"], after["suffix"])
    if order == ["suffix", "prefix"]:
        return after["prefix"], after["suffix"]
    if order != ["prefix", "suffix", "middle"]:
        return None
    if not after["middle"]:  # PSM
        return after["prefix"], after["suffix"]
    # Variant 2: the prefix follows the middle marker.
    return None if after["prefix"] else (after["middle"], after["suffix"])


def _strip_padding(parts: dict[str, str]) -> dict[str, str]:
    """Remove the spaces of Code Llama's format: `<PRE> P <SUF>S <MID>`."""
    return {
        "prefix": parts["prefix"].removeprefix(" ").removesuffix(" "),
        "suffix": parts["suffix"].removesuffix(" "),
        "middle": parts["middle"].removeprefix(" "),
    }


def _parse_head(family: ModelFamily, head: str) -> ParsedFimPrompt | None:
    """Parse the repository, the current file's path and the other files.

    Prefix and suffix are left empty. None: the head does not have the family's format.
    """
    repository = ""
    separator, marker = family.file_separator, family.repository
    if marker is not None and head.startswith(marker):
        # The name ends where the first file begins, or with its line if the family names no files.
        name, delimiter, after_name = head.removeprefix(marker).partition(separator or "\n")
        repository, head = name.strip(), delimiter + after_name
    # The name has several lines, or the repository's marker occurs again.
    if "\n" in repository or (marker is not None and marker in repository + head):
        return None
    if not head:
        return ParsedFimPrompt("", "", repository=repository)
    if separator is None or not head.startswith(separator):
        return None
    # MAX_FILES and one more section, because the last one may be the current file's. The first part
    # is empty, or contains the sections that exceed the limit.
    _, *sections = head.rsplit(separator, MAX_FILES + 1)
    files = [_parse_file(section) for section in sections]
    # If the last section has no text, it is the current file's: its text is in prefix and suffix.
    current = files.pop() if not files[-1].text else ParsedFile("", "")
    return ParsedFimPrompt(
        "", "", path=current.path, repository=repository, files=tuple(files[-MAX_FILES:])
    )


def _parse_file(section: str) -> ParsedFile:
    """Parse a file. Some clients send a path and the text, others only the text."""
    first_line, _, text = section.partition("\n")
    if _PATH.fullmatch(first_line.strip()):
        return ParsedFile(first_line.strip(), text)
    return ParsedFile("", section)


def _parse_codestral_files(prefix: str, suffix: str) -> ParsedFimPrompt:
    """Parse the files of a prefix, each under a header `+++++ path`. The last one is current."""
    # MAX_FILES other files and the current one are parsed: `nearest` begins with the first of them.
    before, *file_sections = prefix.rsplit("\n\n" + _CODESTRAL_FILE, MAX_FILES + 1)
    nearest = prefix[len(before) :] if len(file_sections) > MAX_FILES else prefix
    # `split` alternates between texts and the paths of their headers. It begins with a text.
    _, *sections = _CODESTRAL_HEADER.split(nearest)
    pairs = list(zip(sections[::2], sections[1::2], strict=True))
    if not pairs:  # the apparent header was code
        return ParsedFimPrompt(prefix, suffix)
    path, text = pairs.pop()
    files = tuple(ParsedFile(name.strip(), text) for name, text in pairs)
    return ParsedFimPrompt(text, suffix, path=path.strip(), files=files)


def _file_and_repository_markers(family: ModelFamily) -> frozenset[str]:
    """Return the markers of files and repositories of all families with the same prefix marker."""
    alike = [candidate for candidate in FAMILIES if candidate.prefix == family.prefix]
    markers = (
        marker for candidate in alike for marker in (candidate.file_separator, candidate.repository)
    )
    return frozenset(marker for marker in markers if marker is not None)


def _format_marker(marker: str) -> str:
    """Return the marker as clients write it."""
    return marker.removeprefix(_SPACE)
