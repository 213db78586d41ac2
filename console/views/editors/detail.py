"""The page with the settings of editors and the downloads of Caret's own clients.

platform/scripts/build_clients puts the clients' files into the folder CARET_DOWNLOADS. Of this
folder, only files whose name matches a client's pattern can be downloaded.
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
from console.texts.editor_settings import PLACEHOLDER, list_editor_settings
from tenants.base.permissions import Permission


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file to download: a client, or settings for an editor."""

    name: Promise  # of the editors that the file is for
    pattern: re.Pattern[str]  # of the file's name
    content_type: str
    install: str = ""  # shell command that installs the file NAME; "": there is no command
    steps: Promise | None = None  # the user's steps after the command, or without a command


_BINARY: Final = "application/octet-stream"
_NEOVIM_PACKAGES: Final = "~/.local/share/nvim/site/pack/caret/start"
_OWN_CLIENTS: Final = (
    ClientFile(
        _("VS Code, VSCodium and code-server"),
        re.compile(r"caret-[0-9][\w.+-]*\.vsix"),
        _BINARY,
        "code --install-extension NAME",
        _("Then run “Caret: Sign In”. The language server is included; it needs Python 3.11."),
    ),
    ClientFile(
        _("Neovim 0.11 or newer"),
        re.compile(r"caret\.nvim\.tar\.gz"),
        "application/gzip",
        f"mkdir -p {_NEOVIM_PACKAGES} && tar -xzf NAME -C {_NEOVIM_PACKAGES}",
        _("Then run “:Caret sign_in”. The language server is included; it needs Python 3.11."),
    ),
    ClientFile(
        _("Language server, for other editors"),
        re.compile(r"caret-ls-[0-9][\w.+-]*\.pyz"),
        _BINARY,
        "mkdir -p ~/.local/bin && install -m 755 NAME ~/.local/bin/caret-ls",
        _(
            "JetBrains, Emacs, Helix and Sublime Text need it. It is a single file and needs "
            "Python 3.11. ~/.local/bin must be on the PATH."
        ),
    ),
)
_OTHER_EDITORS: Final = (
    ClientFile(
        _("JetBrains IDEs with LSP4IJ"),
        re.compile(r"caret-jetbrains\.zip"),
        "application/zip",
        "unzip NAME",
        _(
            "Then choose “New Language Server” and “Import from custom template”, and "
            "select the folder."
        ),
    ),
    ClientFile(
        _("Emacs with lsp-mode 10"),
        re.compile(r"caret\.el"),
        "text/plain; charset=utf-8",
        steps=_(
            "Install it with M-x package-install-file, and add (require 'caret) to your init file. "
            "Then run M-x caret-sign-in."
        ),
    ),
    ClientFile(
        _("Helix"),
        re.compile(r"caret-helix\.toml"),
        "application/toml",
        "cat NAME >> ~/.config/helix/languages.toml",
        _("Suggestions appear in the completion list."),
    ),
    ClientFile(
        _("Sublime Text with the LSP package"),
        re.compile(r"caret\.sublime-settings"),
        "text/plain; charset=utf-8",
        steps=_(
            "Save it as Packages/User/LSP.sublime-settings. "
            "Suggestions appear in the completion list."
        ),
    ),
    ClientFile(
        _("Zed"),
        re.compile(r"caret-zed\.json"),
        "application/json",
        steps=_(
            "Add it to your settings.json. Zed asks you for an API key. Zed does not support "
            "inline suggestions over LSP, so it does not use the language server."
        ),
    ),
)
_CLIENTS: Final = (*_OWN_CLIENTS, *_OTHER_EDITORS)


@dataclass(frozen=True, slots=True)
class DownloadLine:
    """A client or settings as the page shows them, with the newest file to download.

    If there is no file, all fields but `name` are "".
    """

    name: str
    file_name: str
    url: str
    size: str  # formatted
    install: str
    steps: str


@require_GET
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def editors(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    all_settings = list_editor_settings(PLACEHOLDER)
    requested_code = request.GET.get("editor", "")
    shown_settings = next(
        (editor for editor in all_settings if editor.code == requested_code), all_settings[0]
    )
    url = reverse("console:editors")
    files = _find_files()
    own_clients = [_to_line(client, files) for client in _OWN_CLIENTS]
    other_editors = [_to_line(client, files) for client in _OTHER_EDITORS]
    context = {
        "own_clients": own_clients,
        "other_editors": other_editors,
        # True: there is a file for each client and each editor.
        "is_complete": all(line.file_name for line in (*own_clients, *other_editors)),
        "tabs": [
            Tab(
                editor.name,
                f"{url}?editor={editor.code}#settings",
                is_current=editor is shown_settings,
            )
            for editor in all_settings
        ],
        "editor_settings": shown_settings,
        "needs_key": PLACEHOLDER in shown_settings.text,
        "gateway_url": settings.GATEWAY_URL,
    }
    return render_page(request, member, "console/editors/detail.html", context)


@require_GET
@member_required
@permission_required(Permission.USE_PLAYGROUND)
def download(request: HttpRequest, member: CurrentMember, name: str) -> HttpResponse:
    path = _find_files().get(name)
    client = _find_client(name)
    if path is None or client is None:
        raise Http404
    return file_response(path.read_bytes(), name=name, content_type=client.content_type)


def _find_files() -> dict[str, Path]:
    """Return the clients' files by name, without other files of the folder."""
    folder: Path = settings.DOWNLOADS
    if not folder.is_dir():
        return {}
    return {
        path.name: path
        for path in sorted(folder.iterdir())
        if path.is_file() and _find_client(path.name) is not None
    }


def _find_client(file_name: str) -> ClientFile | None:
    return next((client for client in _CLIENTS if client.pattern.fullmatch(file_name)), None)


def _to_line(client: ClientFile, files: dict[str, Path]) -> DownloadLine:
    names = [name for name in files if client.pattern.fullmatch(name)]
    if not names:
        return DownloadLine(str(client.name), "", "", "", "", "")
    newest = max(names, key=lambda name: files[name].stat().st_mtime)
    return DownloadLine(
        name=str(client.name),
        file_name=newest,
        url=reverse("console:editors-download", args=[newest]),
        size=filesizeformat(files[newest].stat().st_size),
        install=client.install.replace("NAME", newest),
        steps=str(client.steps or ""),
    )
