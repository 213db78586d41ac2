"""Detects a file's language from its name, for the command line."""

from pathlib import PurePath
from typing import Final

_BY_SUFFIX: Final = {
    ".py": "python",
    ".js": "javascript",
    ".ts": "typescript",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
    ".sql": "sql",
    ".html": "html",
    ".css": "css",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".sh": "shellscript",
    ".md": "markdown",
}


def language_of(path: str) -> str:
    """Return the language ID that editors use; "" if the name does not tell."""
    return _BY_SUFFIX.get(PurePath(path).suffix.lower(), "")
