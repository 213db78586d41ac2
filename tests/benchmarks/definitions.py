"""Definitions in prompts: their cost in the prefix cache, and how often they contain the identifier
that the user types next.

Editing sessions of this repository (see `edit_sessions`) are replayed without an engine. After each
keystroke, three prompts are assembled: without definitions (`none`), with those that the language
server sends (`sticky`), and with those of the current line alone (`line`). The benchmark imitates
the editor's language tools: it finds only imported names and their members, without types of
variables. A definition that is found after a keystroke is used from the next keystroke on.

    cached      share of the prompt's tokens that an engine would have cached: the first blocks of
                32 tokens that an earlier prompt of the session began with, too
    present     share of the prompts that contain the identifier that the user types next. Only
                identifiers that the cursor's file does not contain yet count
    uses        share of the prompts that contain the identifier after an imported name, `with` and
                `without` the definition of that name, at places in this repository's files

    python -m tests.benchmarks.definitions [--sessions 12] [--uses 400]
"""

import argparse
import ast
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from typing import Final

from caret.contracts.policy import Mode
from caret.foundation.clock import SystemClock
from caret.local.engines.engine import DEMO_MODEL, MAX_CONTEXT_TOKENS
from caret.local.paths import REPOSITORY
from caret_ls.definitions.definition_lookup import StableDefinitions
from caret_ls.definitions.symbols import excerpt_at, find_symbols
from caret_ls.frames import FrameDefinition
from inference.completion.incoming_request import ContextFile, Definition
from inference.completion.request import AdmittedRequest, CompletionRequest, Principal
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt_writer import PromptWriter
from inference.context.tokenization.tokenizer import load_tokenizer
from tests.benchmarks.edit_sessions import Change, Session, iterate_texts, make_sessions
from tests.benchmarks.installation import new_tenant
from tests.benchmarks.results import Report, say

BLOCK_TOKENS: Final = 32  # --block-size of the CPU profiles
MIN_CACHED_PERCENT: Final = 93.0  # as in prefix_reuse
KINDS: Final = ("none", "sticky", "line")
_MAX_CHANGES: Final = 400  # of a session
_NUM_FILES: Final = 6  # other open files
# Folders of this repository from which Python imports modules.
_ROOTS: Final = ("", "platform/", "platform/ide/")
_WORD: Final = re.compile(r"[^\W\d]\w*")
_MIN_WORD_CHARS: Final = 3


@dataclass(slots=True)
class PromptCounts:
    """Counts of the prompts of one kind, and the blocks of the session that an engine caches."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    definition_tokens: int = 0
    num_prompts: int = 0
    num_words: int = 0  # prompts where a new identifier follows
    num_present: int = 0  # prompts that contain the new identifier that follows
    blocks: set[int] = field(default_factory=set)  # hashes of a block and all blocks before it

    def add(self, token_ids: Sequence[int]) -> None:
        self.num_prompts += 1
        self.prompt_tokens += len(token_ids)
        chain, is_cached = 0, True
        for end in range(BLOCK_TOKENS, len(token_ids) + 1, BLOCK_TOKENS):
            chain = hash((chain, *token_ids[end - BLOCK_TOKENS : end]))
            is_cached = is_cached and chain in self.blocks
            self.cached_tokens += BLOCK_TOKENS if is_cached else 0
            self.blocks.add(chain)


class ImportedNames:
    """Finds definitions of the names that a Python file imports, in the tree of a commit."""

    def __init__(self, session: Session) -> None:
        self._commit = session.commit
        self._names = dict(_imports(session.text))

    def find(self, symbol: str) -> FrameDefinition | None:
        """Return the definition of a symbol such as `Session.path`; None if none is found."""
        first, *members = symbol.split(".")
        # The name is "" if `first` is an imported module. Then only its members have definitions.
        module, name = self._names.get(first, ("", ""))
        names = [name, *members] if name else members
        for path in _module_paths(module) if names else ():
            if text := _read(self._commit, path):
                line = _line_of(text, tuple(names))
                excerpt = excerpt_at(text, line) if line is not None else ""
                return FrameDefinition(path, excerpt) if excerpt else None
        return None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.definitions")
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument(
        "--uses", type=int, default=400, help="number of places after an imported name"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    report = Report("definitions")
    writer = PromptWriter(
        load_tokenizer(str(DEMO_MODEL)),
        model="demo",
        max_context_tokens=MAX_CONTEXT_TOKENS,
        clock=SystemClock(),
    )
    counts_by_kind = {kind: PromptCounts() for kind in KINDS}
    # Every second session is of a commit. The others are of the standard library.
    for session in make_sessions(2 * options.sessions, seed=options.seed):
        if session.commit:
            say(f"{session.path} at {session.commit[:8]}")
            _replay(session, writer, counts_by_kind)
    for kind, counts in counts_by_kind.items():
        _report_counts(report, kind, counts)
    _measure_uses(writer, random.Random(options.seed), report, num_uses=options.uses)
    return report.exit_status


def _replay(
    session: Session, writer: PromptWriter, counts_by_kind: dict[str, PromptCounts]
) -> None:
    snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
    principal = Principal(credential=snapshot.credentials[0], snapshot=snapshot)
    names, sticky, of_line = ImportedNames(session), StableDefinitions(), list[FrameDefinition]()
    for counts in counts_by_kind.values():
        counts.blocks.clear()
    replayed = list(islice(iterate_texts(session), _MAX_CHANGES))
    for index, (change, prefix, suffix) in enumerate(replayed):
        if change.kind != "typing":
            continue
        rest = _rest_of_line([following for following, _, _ in replayed[index + 1 :]])
        word = _next_word(prefix, rest)
        # The null character keeps a word from reaching across the cursor.
        is_new = word and not re.search(rf"\b{word}\b", prefix + "\0" + suffix)
        definitions = {"none": (), "sticky": tuple(sticky), "line": tuple(of_line)}
        for kind, counts in counts_by_kind.items():
            request = _request(session, prefix, suffix, definitions[kind])
            admitted = AdmittedRequest(principal, request, pool="", variant=NO_VARIANT)
            prompt = assemble(writer, admitted)
            counts.add(prompt.token_ids)
            counts.definition_tokens += sum(
                segment.num_tokens for segment in prompt.segments if segment.kind == "definitions"
            )
            if is_new:
                text = _decode(writer, prompt.token_ids)
                counts.num_words += 1
                counts.num_present += bool(re.search(rf"\b{word}\b", text))
        symbols = find_symbols(prefix[prefix.rfind("\n") + 1 :])
        by_symbol = [(symbol.name, names.find(symbol.name)) for symbol in symbols]
        of_line = [definition for _, definition in by_symbol if definition is not None]
        for name, definition in by_symbol:
            if definition is not None and definition.path != session.path:
                sticky.add(name, definition)


def _measure_uses(
    writer: PromptWriter, rng: random.Random, report: Report, *, num_uses: int
) -> None:
    """Report the share of prompts that contain the identifier that follows an imported name.

    Places in this repository's files are taken where a name that the file imports from another file
    has just been written. Prompts are made without the definition of that name (`without`) and with
    it (`with`). The other open files are of the same folder.
    """
    snapshot, _ = new_tenant("benchmark", root_secret=bytes(32))
    principal = Principal(credential=snapshot.credentials[0], snapshot=snapshot)
    paths = sorted(path for path in _tree("HEAD") if path.endswith(".py"))
    rng.shuffle(paths)
    present: Counter[str] = Counter()
    num_measured = 0
    for path in paths:
        if num_measured >= num_uses:
            break
        use = _find_use(path, rng)
        if use is None:
            continue
        session, prefix, suffix, definition = use
        word = _next_word(prefix, suffix.partition("\n")[0])
        if not word:
            continue
        num_measured += 1
        for kind, definitions in (("without", []), ("with", [definition])):
            # The rest of the line is not written yet.
            request = _request(session, prefix, suffix.partition("\n")[2], definitions)
            admitted = AdmittedRequest(principal, request, pool="", variant=NO_VARIANT)
            prompt = assemble(writer, admitted)
            text = _decode(writer, prompt.token_ids)
            present[kind] += bool(re.search(rf"\b{word}\b", text))
    for kind, number in present.items():
        report.figure(f"uses.{kind}", 100 * number / num_measured, "%", places=num_measured)


def _find_use(path: str, rng: random.Random) -> tuple[Session, str, str, FrameDefinition] | None:
    """Return a random place after the use of a name that another file of the repository defines.

    The result is a session of the file, the texts before and after the place, and the definition;
    None if the file has no such place.
    """
    text = _read("HEAD", path)
    folder = path.rpartition("/")[0]
    others = [name for name in _tree("HEAD") if name.rpartition("/")[0] == folder and name != path]
    open_names = rng.sample(others, min(_NUM_FILES, len(others)))
    files = tuple(ContextFile(name, _read("HEAD", name), edited_at=0.0) for name in open_names)
    session = Session(path, text, files, "caret/caret", changes=(), commit="HEAD")
    names = ImportedNames(session)
    # In each line except imports, the text up to the first name that is followed by "." or "(".
    places = list(re.finditer(r"(?m)^(?!from |import ).*?\w[.(]", text))
    rng.shuffle(places)
    for place in places:
        symbols = find_symbols(place[0])
        definition = names.find(symbols[-1].name) if symbols else None
        if definition is not None and definition.path != path:
            return session, text[: place.end()], text[place.end() :], definition
    return None


def _rest_of_line(changes: Sequence[Change]) -> str:
    """Return the text that the user types until the end of the line."""
    rest = ""
    for change in changes:
        if change.kind != "typing" or "\n" in change.insert:
            break
        rest += change.insert[:1]  # without the closing bracket that the editor adds
    return rest


def _next_word(prefix: str, rest: str) -> str:
    """Return the identifier that is being typed, or the next one; "" if there is none."""
    begun = re.search(r"\w*$", prefix)
    for word in _WORD.finditer((begun[0] if begun else "") + rest):
        if len(word[0]) >= _MIN_WORD_CHARS:
            return word[0]
    return ""


def _request(
    session: Session, prefix: str, suffix: str, definitions: Sequence[FrameDefinition]
) -> CompletionRequest:
    return CompletionRequest(
        mode=Mode.INLINE,
        path=session.path,
        language="",
        prefix=prefix,
        suffix=suffix,
        files=session.files,
        repository=session.repository,
        max_tokens=64,
        stop=(),
        is_raw=False,
        definitions=tuple(Definition(item.path, item.text) for item in definitions),
    )


def _decode(writer: PromptWriter, token_ids: Sequence[int]) -> str:
    text: str = writer.tokenizer._plain.decode(token_ids)  # the only decoder of token IDs
    return text


def _imports(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each imported name with its module and its name there; "" for the module itself."""
    for statement in ast.walk(_parse(text)):
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                yield alias.asname or alias.name, (statement.module, alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.asname or alias.name, (alias.name, "")


def _parse(text: str) -> ast.Module:
    """Return the syntax tree; an empty one for a file with errors, such as a test's example."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _module_paths(module: str) -> list[str]:
    path = module.replace(".", "/")
    return [f"{root}{path}{end}" for root in _ROOTS for end in (".py", "/__init__.py")]


def _line_of(text: str, names: tuple[str, ...]) -> int | None:
    """Return the line that defines a name or its member, counted from 0; None if there is none."""
    body: Sequence[ast.stmt] = _parse(text).body
    line = None
    for name in names:
        node = next((node for node in body if name in _defined_names(node)), None)
        if node is None:
            return None
        line = node.lineno - 1
        body = node.body if isinstance(node, ast.ClassDef) else ()
    return line


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    return [target.id for target in targets if isinstance(target, ast.Name)]


@cache
def _tree(commit: str) -> tuple[str, ...]:
    """Return the paths of all files of the commit."""
    command = ("git", "-C", str(REPOSITORY), "ls-tree", "-r", "--name-only", commit)
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return tuple(listed.stdout.splitlines())


@lru_cache(maxsize=2_000)
def _read(commit: str, path: str) -> str:
    """Return the text of a file of the commit; "" if there is no such file."""
    command = ("git", "-C", str(REPOSITORY), "show", f"{commit}:{path}")
    output = subprocess.run(command, capture_output=True, text=True, check=False)
    return output.stdout if output.returncode == 0 else ""


def _report_counts(report: Report, kind: str, counts: PromptCounts) -> None:
    """Report the results of the prompts of this kind (see KINDS)."""
    cached = 100 * counts.cached_tokens / counts.prompt_tokens
    tokens = {
        "prompt_tokens": round(counts.prompt_tokens / counts.num_prompts),
        "definition_tokens": round(counts.definition_tokens / counts.num_prompts),
    }
    if kind == "line":  # measured for comparison only: the language server does not do this
        report.figure(f"{kind}.cached", cached, "%", prompts=counts.num_prompts, **tokens)
    else:
        target = f"at least {MIN_CACHED_PERCENT:g}"
        passed = cached >= MIN_CACHED_PERCENT
        report.judged(f"{kind}.cached", cached, "%", passed=passed, target=target, **tokens)
    present = 100 * counts.num_present / max(counts.num_words, 1)
    report.figure(f"{kind}.present", present, "%", prompts=counts.num_words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
