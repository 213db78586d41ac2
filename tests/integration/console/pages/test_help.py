"""The help: customers' documents as pages, and the REST API reference."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from caret.local.paths import REPOSITORY
from console.assets.console_files import read_console_files
from console.views.help.documents import documents_by_name
from tests.fixtures.companies import Cast
from tests.integration.console.conftest import SignIn

INDEX = """\
# Documentation

## For developers

| page | content |
| --- | --- |
| [guide.md](guide.md) | a guide |
| [openapi.json](openapi.json) | endpoints |

## For administrators

| page | content |
| --- | --- |
| [rules.md](rules.md) | the rules |

## For operators

| page | content |
| --- | --- |
| [secrets.md](secrets.md) | internals |
"""
GUIDE = """\
# The guide

Read [the rules](rules.md#one-rule), not [the secrets](secrets.md) or [the code](../code.md).

## One rule

<script>alert(1)</script> [x](javascript:alert(1))

| name | number |
| --- | ---: |
| a | 1 |

## One rule

    code <b>
"""


@pytest.fixture
def client(cast: Cast, sign_in: SignIn) -> Client:
    return sign_in(cast.acme.developer)


@pytest.fixture
def guide(settings: Any, tmp_path: Path, client: Client) -> str:
    """Replace the documents with four short ones; return the HTML of the one called guide."""
    read_console_files()  # caches the real files, so that later tests do not get the short ones
    settings.REPOSITORY = tmp_path
    folder = tmp_path / "platform" / "docs"
    folder.mkdir(parents=True)
    for name, text in [("README", INDEX), ("guide", GUIDE), ("rules", "# Rules\n\nNone.\n")]:
        (folder / f"{name}.md").write_text(text)
    (folder / "secrets.md").write_text("# Secrets\n")
    page = client.get("/help/guide").content.decode()
    return page[page.index("<article") : page.index("</article>")]


def test_links_lead_to_documents_for_customers_only(guide: str, client: Client) -> None:
    assert '<a href="/help/rules#one-rule">the rules</a>' in guide
    assert "<span>the secrets</span>" in guide
    assert "<span>the code</span>" in guide
    assert client.get("/help/rules").status_code == 200
    for name in ("secrets", "README", "..", "guide.md"):
        assert client.get(f"/help/{name}").status_code == 404


def test_html_script_links_and_styles_of_a_document_are_not_rendered(guide: str) -> None:
    assert "<script" not in guide
    assert 'href="javascript' not in guide
    # A right-aligned column gets a class: the content security policy forbids inline styles.
    assert "style=" not in guide
    assert "code &lt;b&gt;" in guide
    assert '<td class="number">1</td>' in guide


def test_headings_have_ids_as_on_github(guide: str) -> None:
    assert re.findall(r'<h2 id="([^"]+)">', guide) == ["one-rule", "one-rule-1"]


def test_the_contents_list_every_document(client: Client) -> None:
    page = client.get("/help").content.decode()

    links = re.findall(r'href="(/help/[\w-]+)"', page)
    assert len(documents_by_name()) > 10
    assert {f"/help/{name}" for name in documents_by_name()} <= set(links)
    assert "/help/rest-api" in links


def test_the_links_and_images_of_each_document_work(client: Client) -> None:
    known_paths = {f"/help/{name}" for name in documents_by_name()} | set(read_console_files())
    for name in documents_by_name():
        page = client.get(f"/help/{name}").content.decode()

        article = page[page.index("<article") : page.index("</article>")]
        assert set(re.findall(r'(?:href|src)="(/[^"#]*)', article)) <= known_paths, name
        for anchor in re.findall(r'href="#([^"]+)"', article):
            assert f'id="{anchor}"' in article, name


def test_anchors_between_documents_exist() -> None:
    documents = documents_by_name()
    links = [
        (document.name, name, anchor)
        for document in documents.values()
        for name, anchor in re.findall(r'href="/help/([\w-]+)#([^"]+)"', document.html)
    ]

    assert len(links) > 10  # the pattern still finds the links
    for document_name, name, anchor in links:
        assert f'id="{anchor}"' in documents[name].html, f"{document_name}: {name}#{anchor}"


def test_documents_for_operators_are_not_shown() -> None:
    folder = REPOSITORY / "platform" / "docs"

    for name in ("operator-admin", "settings", "kubernetes", "threat-model"):
        assert (folder / f"{name}.md").exists()
        assert name not in documents_by_name()


def test_an_installation_without_documents_says_so(
    settings: Any, tmp_path: Path, client: Client
) -> None:
    settings.REPOSITORY = tmp_path

    assert "does not contain the documents" in client.get("/help").content.decode()


def test_the_reference_loads_nothing_from_other_hosts(client: Client) -> None:
    answer = client.get("/help/rest-api")

    page = answer.content.decode()
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert '"url": "/api/v1/openapi.json"' in page
    assert "script-src 'self';" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/help", "/help/policies", "/help/rest-api"])
def test_anonymous_visitors_are_redirected_to_sign_in(path: str) -> None:
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"
