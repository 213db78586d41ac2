"""The console with demonstration data, and screenshots of its pages."""

import html
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from django.core.management import call_command
from django.test.utils import setup_test_environment
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from caret.local.paths import EmbeddedPaths
from tenants.base.permissions import Role
from tenants.demo.tenants import TENANT_NAMES
from tenants.security.authorization.actor import Actor
from tenants.security.authorization.directory import find_tenant, list_members
from tests.browser.chromium import ASYNC_SAFE, chromium
from tests.browser.pages import Page, all_pages
from tests.browser.sample_data import Scene
from tests.browser.tabs import Look, Tabs, tabs_of
from tests.fixtures.companies import Company, Person
from tests.stack.console import console
from tests.stack.services import migrate, running_services

_SLUG: Final = "acme"
_WIDTHS: Final = (1440, 390)
_SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Gallery:
    """A running console, and the browser that takes its screenshots."""

    browser: Browser
    url: str
    scene: Scene


@contextmanager
def running_gallery(paths: EmbeddedPaths, *, num_days: int) -> Iterator[Gallery]:
    setup_test_environment()  # for Django's test client, which makes the sessions
    with running_services(paths) as services:
        migrate(paths)
        call_command(
            "create_demo_tenants", state=paths.home / "demonstration.json", stdout=sys.stderr
        )
        call_command("seed_demo_data", slug=[_SLUG], days=num_days, stdout=sys.stderr)
        scene = Scene(_find_demo_company())
        with console(services, **ASYNC_SAFE) as port, chromium() as browser:
            yield Gallery(browser, f"http://localhost:{port}", scene)


def take_screenshots(gallery: Gallery, folder: Path, *, only: str) -> list[str]:
    """Take screenshots of the pages whose name contains `only`, and return the pages' names."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = [page for page in all_pages() if only in page.name]
    errors = [error for page in pages for error in _take(gallery, page, folder)]
    for error in errors:
        sys.stderr.write(f"{error}\n")
    names = sorted(page.name for page in pages)
    (folder / "index.html").write_text(_index(names))
    return names


def _take(gallery: Gallery, page: Page, folder: Path) -> list[str]:
    """Take screenshots of the page, also if it has errors, and return the errors."""
    with tabs_of(gallery.browser, gallery.url) as tabs:
        for width in _WIDTHS:
            tab = _open(tabs, gallery.scene, page, width)
            for scheme in _SCHEMES:
                tab.emulate_media(color_scheme=scheme)
                tab.screenshot(path=folder / _file(page.name, width, scheme), full_page=True)
        errors = [f"{page.name}: {error}" for error in tabs.errors]
        tabs.errors.clear()  # otherwise `tabs_of` would fail at its end
    return errors


def _open(tabs: Tabs, scene: Scene, page: Page, width: int) -> Tab:
    tab = tabs.open(scene.session(page.visitor), Look(width=width, motion="reduce"))
    path = page.path_in(scene)
    response = tab.goto(path, wait_until="networkidle")
    status = None if response is None else response.status
    if status != page.status or not page.is_at(tab.url, path):
        tabs.errors.append(f"{path} was answered by {status} at {tab.url}")
    return tab


def _find_demo_company() -> Company:
    tenant_id = find_tenant(slug=_SLUG)
    assert tenant_id is not None
    people: dict[Role, Person] = {}
    for row in list_members(tenant_id=tenant_id):
        actor = Actor(tenant_id, row.user_id, row.role, address="192.0.2.7", request_id="")
        people.setdefault(row.role, Person(row.user_id, row.email, actor))
    return Company(tenant_id, _SLUG, TENANT_NAMES[_SLUG], people)


def _file(name: str, width: int, scheme: str) -> str:
    return f"{name}-{width}-{scheme}.png"


def _index(names: list[str]) -> str:
    sections = "\n".join(map(_section, names))
    style = "body{font-family:sans-serif}div{display:flex;gap:1rem;align-items:start}img{width:24%}"
    return (
        f"<!doctype html><meta charset=utf-8><title>Pages</title><style>{style}</style>{sections}"
    )


def _section(name: str) -> str:
    files = [_file(name, width, scheme) for width in _WIDTHS for scheme in _SCHEMES]
    pictures = "".join(f'<a href="{file}"><img src="{file}" alt="{file}"></a>' for file in files)
    return f"<h2>{html.escape(name)}</h2><div>{pictures}</div>"
