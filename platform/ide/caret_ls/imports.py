"""The modules that a file imports, and the framework that they indicate. Pure."""

import re
from typing import Final

_MAX_IMPORTS: Final = 40  # the gateway ignores further ones
_HEAD_CHARS: Final = 8_000  # of a file; imports are usually at the start
_QUOTED: Final = r"""["'<]([^"'<>\n]+)["'>]"""
_IMPORT: Final[dict[str, re.Pattern[str]]] = {
    "python": re.compile(r"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE),
    "go": re.compile(r'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([^"\n]+)"', re.MULTILINE),
    "rust": re.compile(r"^\s*(?:pub\s+)?use\s+([\w:]+)", re.MULTILINE),
    "ruby": re.compile(rf"^\s*require(?:_relative)?\s*\(?{_QUOTED}", re.MULTILINE),
    "php": re.compile(r"^\s*use\s+([\w\\]+)", re.MULTILINE),
    **dict.fromkeys(
        ("java", "kotlin", "scala", "groovy"),
        re.compile(r"^\s*import\s+(?:static\s+)?([\w.]+)", re.MULTILINE),
    ),
    "csharp": re.compile(r"^\s*using\s+(?:static\s+)?([\w.]+)\s*;", re.MULTILINE),
    **dict.fromkeys(("c", "cpp"), re.compile(rf"^\s*#\s*include\s*{_QUOTED}", re.MULTILINE)),
    **dict.fromkeys(
        ("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"),
        re.compile(rf"^\s*(?:import|export)\b[^\n;]*?{_QUOTED}|require\({_QUOTED}\)", re.MULTILINE),
    ),
}
# Framework by imported module. The first import of a file that is known here decides.
_FRAMEWORKS: Final = {
    "django": "django",
    "rest_framework": "django",
    "flask": "flask",
    "fastapi": "fastapi",
    "torch": "pytorch",
    "react": "react",
    "next": "next",
    "vue": "vue",
    "svelte": "svelte",
    "@angular": "angular",
    "express": "express",
    "rails": "rails",
    "org.springframework": "spring",
    "Microsoft.AspNetCore": "aspnet",
    "Illuminate": "laravel",
    "Symfony": "symfony",
    "github.com/gin-gonic": "gin",
    "actix_web": "actix",
    "axum": "axum",
}


def imports_of(language: str, text: str) -> tuple[str, ...]:
    """Return the names of the imported modules in the order of the text, each once."""
    pattern = _IMPORT.get(language.lower())
    if pattern is None:
        return ()
    matches = pattern.finditer(text, 0, _HEAD_CHARS)
    # Only one group of a match has text: each alternative of a pattern has its own group.
    names = dict.fromkeys(next(filter(None, match.groups()), "") for match in matches)
    return tuple(name for name in names if name)[:_MAX_IMPORTS]


def framework_of(imports: tuple[str, ...]) -> str:
    """Return the framework that the imported modules indicate; "" if none is known."""
    for name in imports:
        for module, framework in _FRAMEWORKS.items():
            submodules = (f"{module}.", f"{module}/", f"{module}:", f"{module}\\")
            if name == module or name.startswith(submodules):
                return framework
    return ""
