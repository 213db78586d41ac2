"""The documents of platform/docs for customers, as HTML.

platform/docs/README.md lists all documents. Its first two parts list the documents for customers,
which the console shows. The other parts are for operators and contributors. HTML in a document is
shown as text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from console.assets.console_files import asset_url, name_of_document_file
from console.assets.static_file import version_of

_NUM_PARTS: Final = 2  # parts of README.md that are for customers
_NOT_IN_SLUG: Final = re.compile(r"[^\w\- ]")  # characters that GitHub removes for a heading's ID


@dataclass(frozen=True, slots=True)
class Document:
    name: str  # of its file, without .md
    title: str
    description: str
    headings: tuple[str, ...]
    html: SafeString


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """The documents of one part of README.md."""

    title: str
    documents: tuple[Document, ...]


def document_groups() -> Sequence[DocumentGroup]:
    """Return the groups; () in an installation without the documents."""
    folder: Path = settings.REPOSITORY / "platform" / "docs"
    return _read_groups(folder, version_of(folder)) if folder.is_dir() else ()


def documents_by_name() -> Mapping[str, Document]:
    return {document.name: document for group in document_groups() for document in group.documents}


@lru_cache(maxsize=1)
def _read_groups(folder: Path, _version: int) -> Sequence[DocumentGroup]:
    """Read and render the documents.

    `_version` changes with the files. It is a parameter only so that lru_cache then reads again.
    """
    groups = list(_list_documents((folder / "README.md").read_text()))
    names = {name for _, rows in groups for name, _ in rows}
    return tuple(
        DocumentGroup(
            title,
            tuple(
                _render(name, description, (folder / f"{name}.md").read_text(), names)
                for name, description in rows
            ),
        )
        for title, rows in groups
    )


def _list_documents(text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the title of each part for customers, and its documents: names and descriptions.

    `text` is the README.md. A row of its tables is `| [name.md](name.md) | description |`.
    """
    # Index 0 is the text before the first part.
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1 : _NUM_PARTS + 1]
    for part in parts:
        title = part.partition("\n")[0]
        rows = re.findall(r"^\| \[[\w-]+\.md\]\(([\w-]+)\.md\) \| (.*) \|$", part, re.MULTILINE)
        yield title, rows


def _render(name: str, description: str, text: str, names: set[str]) -> Document:
    """Render a document. `names` are those of all documents for customers."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("code_block", _render_code)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    tokens = parser.parse(text)
    # The first heading is the title. Its tokens are the opening, the text and the closing.
    title, tokens = tokens[1].content.replace("`", ""), tokens[3:]
    _add_ids(tokens)
    for token in tokens:
        _set_alignment(token)
        for child in token.children or ():
            _set_target(child, names)
        _unlink(token.children or [])
    # Safe: the parser escapes text and HTML, and rejects links with schemes such as javascript:.
    html = mark_safe(parser.renderer.render(tokens, parser.options, {}))  # noqa: S308
    headings = tuple(
        inline.content for opening, inline in pairwise(tokens) if opening.type == "heading_open"
    )
    return Document(name, title, description, headings, html)


def _add_ids(tokens: Sequence[Token]) -> None:
    """Give each heading the same ID as GitHub, so that links to it work here and on GitHub."""
    num_by_slug: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            slug = _NOT_IN_SLUG.sub("", inline.content.lower()).replace(" ", "-")
            opening.attrSet("id", f"{slug}-{num_by_slug[slug]}" if num_by_slug[slug] else slug)
            num_by_slug[slug] += 1


def _set_alignment(token: Token) -> None:
    """Replace the style of a right-aligned table cell by a class, and remove other styles.

    The content security policy forbids style attributes.
    """
    style = token.attrs.pop("style", None)
    if style == "text-align:right":
        token.attrSet("class", "number")


def _set_target(token: Token, names: set[str]) -> None:
    """Replace the target of an image or a link by the URL of that page or file in the console."""
    if token.type == "image":
        source = str(token.attrs["src"])
        token.attrSet("src", asset_url(name_of_document_file(source)))
    if token.type == "link_open":
        token.attrs["href"] = _target_of(str(token.attrs["href"]), names)


def _target_of(link: str, names: set[str]) -> str:
    """Return the URL of a link in a document; "" for a file that the console does not show."""
    path, hash_sign, anchor = link.partition("#")
    if not path or "://" in link:
        return link
    name = path.removesuffix(".md")
    if name != path and name in names:
        return reverse("console:help-document", args=[name]) + hash_sign + anchor
    # Apart from the documents, openapi.json is the only link target that the console serves.
    return asset_url(name_of_document_file(path)) if path == "openapi.json" else ""


def _unlink(children: Sequence[Token]) -> None:
    """Turn links without a URL into text. Links are never nested."""
    is_dead = False
    for token in children:
        if token.type == "link_open":
            is_dead = token.attrs["href"] == ""
        if token.type in ("link_open", "link_close") and is_dead:
            token.tag, token.attrs = "span", {}


def _render_code(_renderer: Any, tokens: Sequence[Token], index: int, *_options: Any) -> str:
    return f'<pre class="code" tabindex="0"><code>{escape(tokens[index].content)}</code></pre>\n'


def _open_table(*_arguments: Any) -> str:
    return '<div class="document-table" tabindex="0" role="region" aria-label="Table"><table>\n'


def _close_table(*_arguments: Any) -> str:
    return "</table></div>\n"
