"""Display names of languages and editors, for pages. Requests, files and URLs use identifiers.

display_name("language", "csharp")  ->  C#
display_name("language", "c#")      ->  C# (c#)
display_name("editor", "vscode")    ->  VS Code
"""

from typing import Final

from django.utils.translation import gettext, gettext_noop

# Languages whose display name is their identifier in upper case.
_UPPER_CASE: Final = (
    *("abap", "apl", "awk", "css", "csv", "glsl", "haml", "hcl", "hlsl", "html", "ini", "json"),
    *("json5", "jsonl", "mdx", "php", "qml", "sas", "scss", "sparql", "sql", "svg", "toml"),
    *("wgsl", "xhtml", "xml", "xsl", "yaml"),
)
# Languages whose display name is not simply the identifier with a capital first letter.
_LANGUAGES: Final = {
    **{name: name.upper() for name in _UPPER_CASE},
    "asciidoc": "AsciiDoc",
    "asm": "Assembler",
    "bat": "Batch",
    "bibtex": "BibTeX",
    "cmake": "CMake",
    "cobol": "COBOL",
    "coffeescript": "CoffeeScript",
    "cpp": "C++",
    "csharp": "C#",
    "csh": "csh",
    "cuda": "CUDA",
    "cuda-cpp": "CUDA C++",
    "cue": "CUE",
    "dockerfile": "Dockerfile",
    "dockercompose": "Docker Compose",
    "dotenv": ".env",
    "ejs": "EJS",
    "elisp": "Emacs Lisp",
    "erb": "ERB",
    "fish": "fish",
    "fsharp": "F#",
    "gdscript": "GDScript",
    "git-rebase": gettext_noop("Git rebase"),
    "gitcommit": gettext_noop("Git commit"),
    "gomod": "go.mod",
    "graphql": "GraphQL",
    "htmldjango": "HTML (Django)",
    "javascript": "JavaScript",
    "javascriptreact": "JSX",
    "jinja-html": "HTML (Jinja)",
    "jq": "jq",
    "jsonc": gettext_noop("JSON with comments"),
    "justfile": "just",
    "latex": "LaTeX",
    "lean4": "Lean 4",
    "make": "Makefile",
    "matlab": "MATLAB",
    "mysql": "MySQL",
    "nasm": "NASM",
    "nginx": "nginx",
    "objective-c": "Objective-C",
    "objective-cpp": "Objective-C++",
    "ocaml": "OCaml",
    "org": "Org",
    "pgsql": "PostgreSQL",
    "plpgsql": "PL/pgSQL",
    "plsql": "PL/SQL",
    "powershell": "PowerShell",
    "protobuf": "Protocol Buffers",
    "purescript": "PureScript",
    "pyrex": "Cython",
    "rmd": "R Markdown",
    "robotframework": "Robot Framework",
    "restructuredtext": "reStructuredText",
    "search-result": gettext_noop("Search results"),
    "shaderlab": "ShaderLab",
    "shellscript": "Shell",
    "ssh_config": "SSH config",
    "systemverilog": "SystemVerilog",
    "terraform-vars": gettext_noop("Terraform variables"),
    "tex": "TeX",
    "plaintext": gettext_noop("Plain text"),
    "tsql": "T-SQL",
    "typescript": "TypeScript",
    "typescriptreact": "TSX",
    "vbnet": "Visual Basic",
    "vhdl": "VHDL",
    "vim": "Vim script",
    "vue-html": "HTML (Vue)",
    "wasm": "WebAssembly",
    "xquery": "XQuery",
    "zsh": "Zsh",
}
# Other identifiers of the same languages. Usage is counted separately for each identifier, so the
# display name of an alias contains the alias.
_ALIASES: Final = {
    "c#": "csharp",
    "c++": "cpp",
    "docker": "dockerfile",
    "dosbatch": "bat",
    "git-commit": "gitcommit",
    "go.mod": "gomod",
    "jsx": "javascriptreact",
    "just": "justfile",
    "makefile": "make",
    "objc": "objective-c",
    "objectivec": "objective-c",
    "perl6": "raku",
    "proto": "protobuf",
    "proto3": "protobuf",
    "ps1": "powershell",
    "react": "javascriptreact",
    "rst": "restructuredtext",
    "sh": "shellscript",
    "shell": "shellscript",
    "text": "plaintext",
    "tsx": "typescriptreact",
    "vb": "vbnet",
    "viml": "vim",
    "wat": "wasm",
    "yml": "yaml",
}
_EDITORS: Final = {
    "curl": "curl",
    "jetbrains": "JetBrains",
    "openai": gettext_noop("OpenAI library"),
    "qt_creator": "Qt Creator",
    "rstudio": "RStudio",
    "sublime": "Sublime Text",
    "textmate": "TextMate",
    "visual_studio": "Visual Studio",
    "vscode": "VS Code",
    "xcode": "Xcode",
}
_TABLES: Final = {"language": _LANGUAGES, "editor": _EDITORS}


def display_name(kind: str, value: str) -> str:
    """Return the display name of an identifier.

    `kind` is "language", "editor" or another breakdown, such as "model". Values of other breakdowns
    have no display names and are returned unchanged. The name of an unlisted language or editor is
    the identifier with a capital first letter.
    """
    table = _TABLES.get(kind)
    if table is None:
        return value
    if kind == "language" and value in _ALIASES:
        return f"{display_name(kind, _ALIASES[value])} ({value})"
    name = table.get(value)
    return value[:1].upper() + value[1:] if name is None else gettext(name)
