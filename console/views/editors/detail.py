"""The settings of editors, and Caret's own clients to download from this installation.

`platform/scripts/build_clients` puts the files into the folder CARET_DOWNLOADS. The names of its
files are the only ones that can be requested.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.layout.tabs import Tab
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.editor_settings import PLACEHOLDER, settings_with
from tenants.base.permissions import Permission


@dataclass(frozen=True, slots=True)
class OwnClient:
    name: Promise
    pattern: re.Pattern[str]  # of its file's name
    install: str  # the command that installs NAME


_CLIENTS: Final = (
    OwnClient(
        _("Extension for VS Code, VSCodium and code-server"),
        re.compile(r"caret-[0-9][\w.+-]*\.vsix"),
        "code --install-extension NAME",
    ),
    OwnClient(
        _("Language server, for the extension and for every editor with LSP"),
        re.compile(r"caret_ls-[0-9][\w.+-]*\.whl"),
        "pipx install ./NAME",
    ),
    OwnClient(
        _("Plugin for Neovim 0.11"),
        re.compile(r"caret\.nvim\.tar\.gz"),
        "mkdir -p ~/.local/share/nvim/site/pack/caret/start && "
        "tar -xzf NAME -C ~/.local/share/nvim/site/pack/caret/start",
    ),
)


@dataclass(frozen=True, slots=True)
class DownloadLine:
    name: str
    file_name: str  # "": the installation has not built it
    url: str
    size: str
    install: str


@require_GET
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def editors(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    snippets = settings_with(PLACEHOLDER)
    requested_code = request.GET.get("editor", "")
    snippet = next(
        (
            settings_snippet
            for settings_snippet in snippets
            if settings_snippet.code == requested_code
        ),
        snippets[0],
    )
    address = reverse("console:editors")
    lines = _list_downloads(_find_files())
    context = {
        "downloads": lines,
        "is_complete": all(line.file_name for line in lines),
        "tabs": [
            Tab(
                settings_snippet.name,
                f"{address}?editor={settings_snippet.code}#settings",
                settings_snippet is snippet,
            )
            for settings_snippet in snippets
        ],
        "snippet": snippet,
        "needs_key": PLACEHOLDER in snippet.text,
        "gateway_url": settings.GATEWAY_URL,
    }
    return render_page(request, member, "console/editors/detail.html", context)


@require_GET
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def download(request: HttpRequest, member: CurrentMember, name: str) -> HttpResponse:
    path = _find_files().get(name)
    if path is None:
        raise Http404
    return file_response(path.read_bytes(), name=name, content_type="application/octet-stream")


def _find_files() -> dict[str, Path]:
    """Return the clients' files by name. Other files of the folder are not served."""
    folder: Path = settings.DOWNLOADS
    if not folder.is_dir():
        return {}
    return {
        path.name: path
        for path in sorted(folder.iterdir())
        if path.is_file() and any(client.pattern.fullmatch(path.name) for client in _CLIENTS)
    }


def _list_downloads(files: dict[str, Path]) -> list[DownloadLine]:
    return [_to_line(client, files) for client in _CLIENTS]


def _to_line(client: OwnClient, files: dict[str, Path]) -> DownloadLine:
    names = [name for name in files if client.pattern.fullmatch(name)]
    if not names:
        return DownloadLine(str(client.name), "", "", "", "")
    newest = max(names, key=lambda name: files[name].stat().st_mtime)
    return DownloadLine(
        name=str(client.name),
        file_name=newest,
        url=reverse("console:editors-download", args=[newest]),
        size=filesizeformat(files[newest].stat().st_size),
        install=client.install.replace("NAME", newest),
    )
