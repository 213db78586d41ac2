"""Languages that can be parsed, their aliases and file suffixes, and their tree-sitter grammars.

A grammar is loaded at first use, which takes 1 to 30 ms. A process that must not block for so long
while it serves requests calls `load_all` at start.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import PurePath
from typing import Final

from tree_sitter import Language


class Grammar(StrEnum):
    BASH = "bash"
    C = "c"
    CPP = "cpp"
    CSHARP = "csharp"
    CSS = "css"
    GO = "go"
    HTML = "html"
    JAVA = "java"
    JAVASCRIPT = "javascript"
    JSON = "json"
    PHP = "php"
    PYTHON = "python"
    RUBY = "ruby"
    RUST = "rust"
    SQL = "sql"
    TSX = "tsx"
    TYPESCRIPT = "typescript"
    YAML = "yaml"


# Names of languages in editors that differ from the names of grammars.
_ALIASES: Final = {
    "c#": Grammar.CSHARP,
    "c++": Grammar.CPP,
    "dockercompose": Grammar.YAML,
    "javascriptreact": Grammar.JAVASCRIPT,
    "jsonc": Grammar.JSON,
    "jsx": Grammar.JAVASCRIPT,
    "mysql": Grammar.SQL,
    "pgsql": Grammar.SQL,
    "sh": Grammar.BASH,
    "shell": Grammar.BASH,
    "shellscript": Grammar.BASH,
    "typescriptreact": Grammar.TSX,
    "xhtml": Grammar.HTML,
    "yml": Grammar.YAML,
}
_BY_NAME: Final = {grammar.value: grammar for grammar in Grammar} | _ALIASES
_SUFFIXES: Final = {
    Grammar.BASH: ".sh .bash",
    Grammar.C: ".c",
    # A header (.h) may be C or C++. The grammar of C++ parses nearly all of C.
    Grammar.CPP: ".cpp .cc .cxx .hpp .hh .hxx .h",
    Grammar.CSHARP: ".cs",
    Grammar.CSS: ".css",
    Grammar.GO: ".go",
    Grammar.HTML: ".html .htm .xhtml",
    Grammar.JAVA: ".java",
    Grammar.JAVASCRIPT: ".js .jsx .mjs .cjs",
    Grammar.JSON: ".json .jsonc",
    Grammar.PHP: ".php",
    Grammar.PYTHON: ".py .pyi .pyw",
    Grammar.RUBY: ".rb .rake .gemspec",
    Grammar.RUST: ".rs",
    Grammar.SQL: ".sql",
    Grammar.TSX: ".tsx",
    Grammar.TYPESCRIPT: ".ts .mts .cts",
    Grammar.YAML: ".yaml .yml",
}
_BY_SUFFIX: Final = {
    suffix: grammar for grammar, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
# Package and function of a grammar, where they are not `tree_sitter_<name>` and `language`.
_IRREGULAR_MODULES: Final = {
    Grammar.CSHARP: ("tree_sitter_c_sharp", "language"),
    Grammar.PHP: ("tree_sitter_php", "language_php"),
    Grammar.TSX: ("tree_sitter_typescript", "language_tsx"),
    Grammar.TYPESCRIPT: ("tree_sitter_typescript", "language_typescript"),
}


def grammar_of(language: str, path: str = "") -> Grammar | None:
    """Find a grammar by the language's name, or by the suffix of `path` if `language` is empty.

    Return None if the name or suffix is unknown.
    """
    if language:
        return _BY_NAME.get(language.lower())
    return _BY_SUFFIX.get(PurePath(path).suffix.lower())


@cache
def load(grammar: Grammar) -> Language:
    """Return a grammar for tree-sitter. The first call imports its package."""
    package, name = _IRREGULAR_MODULES.get(grammar, (f"tree_sitter_{grammar}", "language"))
    language: Callable[[], object] = getattr(import_module(package), name)
    return Language(language())


def load_all() -> None:
    for grammar in Grammar:
        load(grammar)
