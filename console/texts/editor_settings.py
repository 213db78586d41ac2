"""Settings that connect editors and programs to a gateway.

Caret's own clients come first. Other clients follow, but only the most common ones:
platform/docs/clients.md lists all tested clients.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Mode

# Shown instead of an API key on pages that know none.
PLACEHOLDER: Final = "cpk_..."


@dataclass(frozen=True, slots=True)
class Editor:
    """An editor or another client, with a template of its settings."""

    code: str  # identifier in URLs
    name: str | Promise
    location: str | Promise  # file or window that the settings belong to
    # The template. It contains URL, CONSOLE and KEY instead of the gateway's URL, the console's URL
    # and the API key.
    text: str
    mode: Mode = Mode.FIM  # the client requests this mode, so the API key must allow it


_CARET_VSCODE: Final = """\
{
  "caret.gatewayUrl": "URL",
  "caret.consoleUrl": "CONSOLE"
}
"""
_CARET_LS: Final = """\
umask 077
mkdir -p ~/.config/caret
echo 'gateway_url = "URL"' > ~/.config/caret/config.toml
echo 'KEY' > ~/.config/caret/key
"""
_CARET_NEOVIM: Final = """\
-- The plugin caret.nvim needs no settings. Some that you can change:
require("caret").setup({
  accept = "<Tab>",
  settings = { gateway_url = "URL", console_url = "CONSOLE" },
})

-- With lazy.nvim, after you have unpacked the plugin in ~/.local/share/nvim:
{ dir = vim.fn.stdpath("data") .. "/caret.nvim", event = "BufReadPost", opts = {} }
"""
_CONTINUE: Final = """\
name: Caret
version: 0.0.1
schema: v1
models:
  - name: Caret
    provider: mistral
    model: caret
    apiBase: URL/v1/
    apiKey: KEY
    roles: [autocomplete]
    requestOptions:
      headers:
        X-Caret-Editor: vscode
"""
_TABBY: Final = """\
[server]
endpoint = "URL"
token = "KEY"
"""
_MINUET: Final = """\
require("minuet").setup({
  provider = "openai_fim_compatible",
  n_completions = 1,
  virtualtext = {
    auto_trigger_ft = { "*" },
    keymap = { accept = "<A-A>", accept_line = "<A-a>", dismiss = "<A-e>" },
  },
  provider_options = {
    openai_fim_compatible = {
      name = "Caret",
      end_point = "URL/v1/completions",
      model = "caret",
      api_key = function() return "KEY" end,
      stream = true,
      transform = {
        function(request)
          request.headers["X-Caret-Editor"] = "neovim"
          request.headers["X-Caret-Path"] = vim.fn.expand("%:.")
          return request
        end,
      },
    },
  },
})
"""
# llama.vim and llama.vscode cannot send X-Caret-Editor, so their URLs contain the editor.
_LLAMA_VIM: Final = """\
let g:llama_config = {
    \\ 'endpoint_fim': 'URL/infill?editor=vim',
    \\ 'endpoint_inst': 'URL/v1/chat/completions?editor=vim',
    \\ 'api_key': 'KEY',
    \\ }
"""
# llama.vscode appends "/infill" to the endpoint. HTTP requests do not contain text after a "#".
_LLAMA_VSCODE: Final = """\
{
  "llama-vscode.endpoint": "URL/infill?editor=vscode#",
  "llama-vscode.api_key": "KEY",
  "llama-vscode.ai_model": "caret",
  "llama-vscode.ask_install_llamacpp": false
}
"""
_ZED: Final = """\
{
  "edit_predictions": {
    "provider": "open_ai_compatible_api",
    "open_ai_compatible_api": {
      "api_url": "URL/v1/completions",
      "model": "caret",
      "prompt_format": "qwen"
    }
  }
}
"""
_CURL: Final = """\
curl URL/v1/completions \\
  -H "Authorization: Bearer KEY" \\
  -H "Content-Type: application/json" -H "X-Caret-Editor: curl" \\
  -d '{"prompt": "def mean(values):\\n    return ",
       "suffix": "\\n", "max_tokens": 32}'
"""
_CHAT_CURL: Final = """\
curl URL/v1/chat/completions \\
  -H "Authorization: Bearer KEY" \\
  -H "Content-Type: application/json" -H "X-Caret-Editor: curl" \\
  -d '{"messages": [{"role": "user", "content": "Explain list comprehensions."}]}'
"""
_CHAT_PYTHON: Final = """\
from openai import OpenAI

client = OpenAI(
    base_url="URL/v1",
    api_key="KEY",
    default_headers={"X-Caret-Editor": "openai"},
)
response = client.chat.completions.create(
    model="caret",
    messages=[{"role": "user", "content": "Explain list comprehensions."}],
)
print(response.choices[0].message.content)
"""
_PYTHON: Final = """\
from openai import OpenAI

client = OpenAI(
    base_url="URL/v1",
    api_key="KEY",
    default_headers={"X-Caret-Editor": "openai"},
)
completion = client.completions.create(
    model="caret",
    prompt="def mean(values):\\n    return ",
    suffix="\\n",
    max_tokens=32,
)
print(completion.choices[0].text)
"""

OWN_CLIENTS: Final = (
    Editor(
        "caret-vscode",
        _("VS Code, Caret"),
        _("VS Code settings.json; only if the extension comes from another installation"),
        _CARET_VSCODE,
        Mode.INLINE,
    ),
    Editor(
        "caret-ls",
        _("Language server"),
        _("Shell; for Neovim and other editors with LSP"),
        _CARET_LS,
        Mode.INLINE,
    ),
    Editor(
        "caret-neovim",
        _("Neovim, Caret"),
        _("init.lua; install the plugin first"),
        _CARET_NEOVIM,
        Mode.INLINE,
    ),
)
EDITORS: Final = (
    *OWN_CLIENTS,
    Editor("continue", "VS Code, Continue", "~/.continue/config.yaml", _CONTINUE),
    Editor("tabby", "Tabby", "~/.tabby-client/agent/config.toml", _TABBY),
    Editor("neovim", "Neovim, minuet-ai", "init.lua", _MINUET),
    Editor("llama-vim", "llama.vim", ".vimrc", _LLAMA_VIM),
    Editor("llama-vscode", "llama.vscode", _("VS Code settings.json"), _LLAMA_VSCODE),
    Editor("zed", "Zed", _("settings.json; Zed asks you for the key"), _ZED),
    Editor("curl", "curl", _("Shell"), _CURL),
    Editor("python", "Python", _("Python; pip install openai"), _PYTHON),
    Editor("curl-chat", _("Chat, curl"), _("Shell"), _CHAT_CURL, Mode.CHAT),
    Editor(
        "python-chat", _("Chat, Python"), _("Python; pip install openai"), _CHAT_PYTHON, Mode.CHAT
    ),
)


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """As Editor, with translated texts and completed settings."""

    code: str
    name: str
    location: str
    text: str


def list_editor_settings(key: str, modes: Set[Mode] = frozenset(Mode)) -> list[EditorSettings]:
    """Return the settings for an API key, of each client whose mode is in `modes`."""
    return [
        EditorSettings(
            editor.code, str(editor.name), str(editor.location), _fill_in(editor.text, key)
        )
        for editor in EDITORS
        if editor.mode in modes
    ]


def _fill_in(text: str, key: str) -> str:
    values = {"URL": settings.GATEWAY_URL, "CONSOLE": settings.CONSOLE_URL, "KEY": key}
    return re.sub(r"\b(URL|CONSOLE|KEY)\b", lambda match: values[match[0]], text).rstrip("\n")
