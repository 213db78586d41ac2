"""Fill-in-the-middle prompts that a client has rendered for some model, parsed back into their
parts, so that they can be rendered anew for ours.

Rules:
1. Pure; the families' markers are data (`fim.FAMILIES`).
2. Only a prompt that is of one form from its first to its last character is parsed. Each marker
   stands in it once: a file that mentions markers makes it ambiguous, and nothing is guessed.
3. Of the other files the last are taken, as many as a request may have: they are the nearest.

    [begin] [repository name\\n] [separator path\\n text]... <pre> P <suf> S <mid>      PSM
                                                            <pre> <suf> S <mid> P      variant 2
                                                            <suf> S <pre> P [<mid>]    SPM
"""

import re
from dataclasses import dataclass
from typing import Final

from inference.context.prompt.model_families import FAMILIES, ModelFamily
from inference.gateway.receive import MAX_FILES

_SPACE: Final = "▁"  # as tokenizers write the space that belongs to a marker
_PATH: Final = re.compile(r"""[^\s:;=(){}\[\]<>"'`,]{1,512}""")
_CODESTRAL_FILE: Final = "+++++ "
_CODESTRAL_HEADER: Final = re.compile(r"(?:\A|\n\n)\+{5} ([^\n]{1,512})\n")


@dataclass(frozen=True, slots=True)
class ParsedFile:
    path: str  # "" when the prompt does not tell
    text: str


@dataclass(frozen=True, slots=True)
class ParsedFimPrompt:
    prefix: str
    suffix: str
    path: str = ""
    repository: str = ""
    files: tuple[ParsedFile, ...] = ()  # the nearest to the cursor last


def parse_fim_prompt(prompt: str) -> ParsedFimPrompt | None:
    """None: it is no such prompt, or not without doubt."""
    parsed = (_parse(family, prompt) for family in FAMILIES)
    return next((each for each in parsed if each is not None), None)


def _parse(family: ModelFamily, prompt: str) -> ParsedFimPrompt | None:
    if _written(family.suffix) not in prompt:
        return None
    text = prompt.removeprefix(family.begin or "")
    parts = _split(family, text)
    ends = None if parts is None else _ends(family, parts)
    if parts is None or ends is None:
        return None
    head = _parse_head(family, parts["head"])
    if head is None:
        return None
    prefix, suffix = ends
    if family.name == "codestral" and prefix.startswith(_CODESTRAL_FILE):
        return _with_codestral_files(prefix, suffix)
    return ParsedFimPrompt(
        prefix, suffix, path=head.path, repository=head.repository, files=head.files
    )


def _split(family: ModelFamily, text: str) -> dict[str, str] | None:
    """The text after each marker, in the markers' order, with what precedes them as `head`."""
    names = {"prefix": family.prefix, "suffix": family.suffix, "middle": family.middle}
    written = {name: _written(marker) for name, marker in names.items() if marker is not None}
    if any(text.count(marker) != 1 for marker in written.values()):
        return None
    order = sorted(written, key=lambda name: text.index(written[name]))
    parts: dict[str, str] = {}
    rest = text
    for before, name in zip(["head", *order], order, strict=False):
        parts[before], _, rest = rest.partition(written[name])
    parts[order[-1]] = rest
    is_clean = not any(marker in parts[name] for name in order for marker in _kin(family))
    return parts if is_clean else None


def _ends(family: ModelFamily, parts: dict[str, str]) -> tuple[str, str] | None:
    """Prefix and suffix, by the order in which the markers stand."""
    order = [name for name in parts if name != "head"]
    after = _unpadded(parts) if family.prefix.startswith(_SPACE) else parts
    if order == ["suffix", "prefix", "middle"]:
        return None if after["middle"] else (after["prefix"], after["suffix"])
    if order == ["suffix", "prefix"]:
        return after["prefix"], after["suffix"]
    if order != ["prefix", "suffix", "middle"]:
        return None
    if not after["middle"]:
        return after["prefix"], after["suffix"]
    return None if after["prefix"] else (after["middle"], after["suffix"])


def _unpadded(parts: dict[str, str]) -> dict[str, str]:
    """Code Llama's `<PRE> P <SUF>S <MID>`: the spaces beside the markers are the format's."""
    return {
        "prefix": parts["prefix"].removeprefix(" ").removesuffix(" "),
        "suffix": parts["suffix"].removesuffix(" "),
        "middle": parts["middle"].removeprefix(" "),
    }


def _parse_head(family: ModelFamily, head: str) -> ParsedFimPrompt | None:
    """The repository and the other files; prefix and suffix are left empty."""
    repository = ""
    separator, marker = family.file_separator, family.repository
    if marker is not None and head.startswith(marker):
        name, found, rest = head.removeprefix(marker).partition(separator or "\n")
        repository, head = name.strip(), found + rest
    if "\n" in repository or (marker is not None and marker in repository + head):
        return None
    if not head:
        return ParsedFimPrompt("", "", repository=repository)
    if separator is None or not head.startswith(separator):
        return None
    # The first is empty, or all that is before the last sections.
    _, *sections = head.rsplit(separator, MAX_FILES + 1)
    files = [_file(section) for section in sections]
    # The last is the current file's, of which only the path stands here.
    current = files.pop() if not files[-1].text else ParsedFile("", "")
    return ParsedFimPrompt(
        "", "", path=current.path, repository=repository, files=tuple(files[-MAX_FILES:])
    )


def _file(section: str) -> ParsedFile:
    """Some clients give paths, others only texts."""
    first, found, rest = section.partition("\n")
    if _PATH.fullmatch(first.strip()) and (found or not rest):
        return ParsedFile(first.strip(), rest)
    return ParsedFile("", section)


def _with_codestral_files(prefix: str, suffix: str) -> ParsedFimPrompt:
    """`+++++ path`, and the file; the last is the current one."""
    before, *rest = prefix.rsplit("\n\n" + _CODESTRAL_FILE, MAX_FILES + 1)
    nearest = prefix[len(before) :] if len(rest) > MAX_FILES else prefix
    _, *sections = _CODESTRAL_HEADER.split(nearest)
    pairs = list(zip(sections[::2], sections[1::2], strict=True))
    if not pairs:  # what looked like a header is code
        return ParsedFimPrompt(prefix, suffix)
    path, text = pairs.pop()
    files = tuple(ParsedFile(name.strip(), each) for name, each in pairs)
    return ParsedFimPrompt(text, suffix, path=path.strip(), files=files)


def _kin(family: ModelFamily) -> frozenset[str]:
    """The markers before the parts, of all families that write the parts like this one."""
    alike = [each for each in FAMILIES if each.prefix == family.prefix]
    markers = (marker for each in alike for marker in (each.file_separator, each.repository))
    return frozenset(marker for marker in markers if marker is not None)


def _written(marker: str) -> str:
    return marker.removeprefix(_SPACE)
