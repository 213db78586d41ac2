"""Emacs with lsp-mode or eglot: a suggestion is shown, accepted and counted."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from caret.contracts.usage import OutcomeRecord
from caret.local.paths import REPOSITORY
from tests.functional.clients.plugin_sources import find_plugin
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.editor.emacs import CONTROL_RETURN, EMACS, PACKAGES, running_emacs
from tests.functional.gateway.gateway_stack import Site

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.skipif(
        EMACS is None or not PACKAGES.is_dir(),
        reason="needs Debian's packages emacs-nox, elpa-lsp-mode and elpa-eglot",
    ),
]
_TEXT: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"
# M-> goes to the end of the buffer. Emacs indents the second line.
_TYPED: Final = "\x1b>        self.path = path\rself.m"
_COMPLETE: Final = "\x1b\t"  # M-TAB
# lsp-mode's sources have no autoloads. The test replaces SOURCES and EDITORS by folders, and
# `running_emacs` replaces COMMAND.
_LSP_MODE: Final = """\
(dolist (folder '("SOURCES" "EDITORS")) (add-to-list 'load-path folder))
(mapc #'require '(lsp-lens lsp-headerline lsp-modeline lsp-diagnostics lsp-completion))
(setq lsp-enable-snippet nil lsp-auto-guess-root t)
(require 'caret)
(setq caret-command '(COMMAND))
(add-hook 'python-mode-hook #'lsp)
"""
_EGLOT: Final = """\
(require 'eglot)
(add-to-list 'eglot-server-programs '(python-mode COMMAND))
(add-hook 'python-mode-hook #'eglot-ensure)
"""
_OVERLAY: Final = "lsp-inline-completion--overlay"


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


def _create_file(ada: Developer) -> tuple[Path, dict[str, str]]:
    """Create a file in a repository.

    Return the file and the environment variables of the language server.
    """
    file = ada.write_file("reader.py", _TEXT)
    (file.parent / ".git").mkdir()
    return file, {"CARET_API_KEY": ada.key, "CARET_GATEWAY_URL": ada.site.url}


async def _expect_accepted(ada: Developer) -> OutcomeRecord:
    """Expect that the suggestion is shown and then accepted. Return the second outcome."""
    first, second = (await ada.wait_for_records(OutcomeRecord, 2))[:2]
    assert (first.event, second.event) == ("shown", "accepted")
    assert first.display_ms is not None
    return second


async def test_lsp_mode_shows_and_accepts_a_suggestion(ada: Developer) -> None:
    sources = await asyncio.to_thread(find_plugin, "emacs-lsp/lsp-mode", ada.home)
    editors = REPOSITORY / "platform" / "ide" / "editors"
    init = _LSP_MODE.replace("SOURCES", str(sources)).replace("EDITORS", str(editors))
    file, variables = _create_file(ada)

    with running_emacs(ada.home, file, init, **variables) as emacs:
        await emacs.wait_for_value("lsp-inline-completion-mode")
        emacs.press(_TYPED)
        suggestion = await emacs.wait_for_value(
            f"(and (overlayp {_OVERLAY}) (overlay-get {_OVERLAY} 'after-string))"
        )
        emacs.press(CONTROL_RETURN)
        outcome = await _expect_accepted(ada)
        text = emacs.evaluate("(buffer-string)")

    assert f"self.m{suggestion}" in text
    assert outcome.chars == len(suggestion)


async def test_eglot_completes_with_a_suggestion(ada: Developer) -> None:
    file, variables = _create_file(ada)

    with running_emacs(ada.home, file, _EGLOT, **variables) as emacs:
        await emacs.wait_for_value("(eglot-managed-p)")
        emacs.press(_TYPED)
        emacs.press(_COMPLETE)
        outcome = await _expect_accepted(ada)
        text = emacs.evaluate("(buffer-string)")

    assert outcome.chars == len(text.rpartition("self.m")[2]) > 0
