"""A file's outline: the signatures of its definitions, in a few hundred tokens. Pure.

An example:

    class Reader(Base):
        def read(self, path: str) -> bytes:
    LIMIT = 3

Each grammar has one tree-sitter query, which finds the definitions. It captures `def` (the
definition) and optionally `body` (the part that is left out). A definition without a body is
included whole if it is short. Otherwise only its first line is. Other captures serve conditions
such as `#match?`. `!body` selects nodes without a body.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tree_sitter import Node, Query, QueryCursor

from caret.foundation.parsing.grammars import Grammar, grammar_of, load
from caret.foundation.parsing.parse import ParseAbandoned, ParseBudget, parse

MAX_OUTLINE_TOKENS: Final = 300
# The part of a file that is parsed. It has more signatures than fit into MAX_OUTLINE_TOKENS.
MAX_PARSED_CHARS: Final = 8_000
# A longer signature is truncated. It is probably data.
_MAX_SIGNATURE_CHARS: Final = 240
_MAX_WHOLE_LINES: Final = 6  # a definition without a body is included whole up to this length
# Words in the types of nodes whose bodies contain locals, but no definitions for other files.
_FUNCTION_WORDS: Final = ("function", "method", "constructor", "lexical_declaration")
# For files with errors: inside one error, a query takes quadratic time and cannot be stopped. This
# many nodes take 13 ms (8,000 brackets would take 50 ms). Ordinary files have 2,500 nodes.
_MAX_BROKEN_NODES: Final = 4_000
_MIN_SIGNATURES: Final = 2  # with fewer, the text itself is more useful

_JAVASCRIPT: Final = """
    (function_declaration body: (_) @body) @def
    (generator_function_declaration body: (_) @body) @def
    (class_declaration body: (_) @body) @def
    (method_definition body: (_) @body) @def
    (lexical_declaration (variable_declarator value: (arrow_function body: (_) @body))) @def
    (lexical_declaration (variable_declarator value: (_) @value)
        (#not-match? @value "=>")) @def
"""
_TYPESCRIPT: Final = (
    _JAVASCRIPT
    + """
    (abstract_class_declaration body: (_) @body) @def
    (function_signature) @def
    (interface_declaration) @def
    (type_alias_declaration) @def
    (enum_declaration) @def
    (public_field_definition) @def
"""
)
_C: Final = """
    (function_definition body: (_) @body) @def
    (declaration declarator: (function_declarator)) @def
    (type_definition) @def
    (struct_specifier body: (_)) @def
    (enum_specifier body: (_)) @def
    (preproc_def) @def
    (preproc_function_def) @def
"""
QUERIES: Final = {
    Grammar.PYTHON: """
        (class_definition body: (_) @body) @def
        (function_definition body: (_) @body) @def
        (module (expression_statement (assignment)) @def)
        (class_definition body: (block (expression_statement (assignment)) @def))
    """,
    Grammar.JAVASCRIPT: _JAVASCRIPT,
    Grammar.TYPESCRIPT: _TYPESCRIPT,
    Grammar.TSX: _TYPESCRIPT,
    Grammar.GO: """
        (function_declaration body: (_) @body) @def
        (method_declaration body: (_) @body) @def
        (type_declaration) @def
        (const_declaration) @def
        (source_file (var_declaration) @def)
    """,
    Grammar.RUST: """
        (function_item body: (_) @body) @def
        (function_signature_item) @def
        (impl_item body: (_) @body) @def
        (trait_item body: (_) @body) @def
        (mod_item body: (_) @body) @def
        (struct_item) @def
        (enum_item) @def
        (type_item) @def
        (const_item) @def
        (static_item) @def
        (macro_definition) @def
    """,
    Grammar.JAVA: """
        (class_declaration body: (_) @body) @def
        (interface_declaration body: (_) @body) @def
        (enum_declaration) @def
        (record_declaration body: (_) @body) @def
        (method_declaration body: (_) @body) @def
        (method_declaration !body) @def
        (constructor_declaration body: (_) @body) @def
        (field_declaration) @def
    """,
    Grammar.C: _C,
    Grammar.CPP: _C
    + """
        (class_specifier body: (_) @body) @def
        (namespace_definition body: (_) @body) @def
        (field_declaration) @def
        (alias_declaration) @def
    """,
    Grammar.CSHARP: """
        (namespace_declaration body: (_) @body) @def
        (class_declaration body: (_) @body) @def
        (interface_declaration body: (_) @body) @def
        (struct_declaration body: (_) @body) @def
        (record_declaration) @def
        (enum_declaration) @def
        (method_declaration body: (_) @body) @def
        (method_declaration !body) @def
        (constructor_declaration body: (_) @body) @def
        (property_declaration) @def
        (field_declaration) @def
    """,
    Grammar.RUBY: """
        (module body: (_) @body) @def
        (class body: (_) @body) @def
        (method body: (_) @body) @def
        (singleton_method body: (_) @body) @def
        (assignment left: (constant)) @def
    """,
    Grammar.PHP: """
        (namespace_definition) @def
        (class_declaration body: (_) @body) @def
        (interface_declaration body: (_) @body) @def
        (trait_declaration body: (_) @body) @def
        (enum_declaration body: (_) @body) @def
        (method_declaration body: (_) @body) @def
        (method_declaration !body) @def
        (function_definition body: (_) @body) @def
        (property_declaration) @def
        (const_declaration) @def
    """,
    Grammar.SQL: """
        (create_table) @def
        (create_view) @def
        (create_index) @def
        (create_function) @def
        (create_type) @def
    """,
    Grammar.BASH: """
        (function_definition body: (_) @body) @def
        (program (variable_assignment) @def)
        (program (declaration_command) @def)
    """,
    Grammar.CSS: """
        (rule_set (block) @body) @def
        (media_statement (block) @body) @def
        (keyframes_statement) @def
    """,
    Grammar.HTML: """
        (start_tag (attribute (attribute_name) @name) (#eq? @name "id")) @def
        (start_tag (tag_name) @tag (#match? @tag "^(form|h[1-3]|section|template)$")) @def
    """,
    Grammar.JSON: """
        (document (object (pair value: (object) @body) @def))
        (document (object (pair value: (array) @body) @def))
        (document (object (pair value: [(string) (number) (true) (false) (null)]) @def))
        (document (object (pair value: (object (pair) @def))))
    """,
    Grammar.YAML: """
        (document (block_node (block_mapping (block_mapping_pair) @def)))
        (document (block_node (block_mapping (block_mapping_pair
            value: (block_node (block_mapping (block_mapping_pair) @def))))))
    """,
}


@dataclass(frozen=True, slots=True)
class _CodeDefinition:
    text: str
    start: int  # byte offset of the beginning of its line
    # Byte offset of the end of its text, or of a function's body. A definition that begins between
    # `start` and `end` is nested in this one.
    end: int


def outline(path: str, text: str, parse_budget: ParseBudget) -> str:
    """Return the signatures in the file's order.

    "" if the language has no grammar, there are fewer than _MIN_SIGNATURES, or parsing was
    abandoned.
    """
    grammar = grammar_of("", path)
    if grammar is None:
        return ""
    try:
        definitions = _find_definitions(
            grammar, head_of(text).encode("utf-8", "replace"), parse_budget
        )
    except ParseAbandoned:
        return ""
    signatures = [definition.text for definition in _drop_nested(definitions)]
    return "\n".join([*signatures, ""]) if len(signatures) >= _MIN_SIGNATURES else ""


def head_of(text: str) -> str:
    """Return the part of a file that is used: its beginning, in whole lines."""
    if len(text) <= MAX_PARSED_CHARS:
        return text
    end = text.rfind("\n", 0, MAX_PARSED_CHARS) + 1  # 0: the first line is longer
    return text[: end or MAX_PARSED_CHARS]


def _find_definitions(
    grammar: Grammar, source: bytes, parse_budget: ParseBudget
) -> list[_CodeDefinition]:
    """Return all definitions. Raises ParseAbandoned."""
    root = parse(grammar, source, parse_budget).root_node
    if root.has_error and root.descendant_count > _MAX_BROKEN_NODES:
        raise ParseAbandoned
    with parse_budget.parse_slot():
        return [
            _to_definition(node, captures.get("body"), source)
            for _, captures in QueryCursor(_compile_query(grammar)).matches(root)
            for node in captures["def"]
        ]


def _to_definition(node: Node, bodies: list[Node] | None, source: bytes) -> _CodeDefinition:
    """Return the definition with its indentation and modifiers such as `export` or `async`."""
    start = source.rfind(b"\n", 0, node.start_byte) + 1
    end = _end_before(bodies[0]) if bodies else node.end_byte
    if not bodies and source.count(b"\n", start, end) >= _MAX_WHOLE_LINES:
        end = source.find(b"\n", node.start_byte)
    is_function = any(word in node.type for word in _FUNCTION_WORDS)
    text = source[start:end].decode("utf-8", "replace").rstrip()
    return _CodeDefinition(
        text=text[:_MAX_SIGNATURE_CHARS],
        start=start,
        end=bodies[0].end_byte if bodies and is_function else end,
    )


def _end_before(body: Node) -> int:
    """Return the end of the signature. Comments before the body belong to the body."""
    before = body.prev_sibling
    while before is not None and "comment" in before.type:
        before = before.prev_sibling
    return before.end_byte if before is not None else body.start_byte


def _drop_nested(definitions: Iterable[_CodeDefinition]) -> Iterator[_CodeDefinition]:
    """Yield the definitions in order, without those inside another one."""
    last_end = -1
    for definition in sorted(
        definitions, key=lambda definition: (definition.start, -definition.end)
    ):
        if definition.start >= last_end:
            last_end = definition.end
            yield definition


@cache
def _compile_query(grammar: Grammar) -> Query:
    """Compile the query on first use, which takes some milliseconds."""
    return Query(load(grammar), QUERIES[grammar])
