"""Settings that connect editors and programs to a gateway.

`platform/docs/clients.md` lists every tested client. These are the most common ones.
"""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Stands for the API key when none is known.
PLACEHOLDER: Final = "cpk_..."


@dataclass(frozen=True, slots=True)
class Editor:
    code: str  # used in URLs
    name: str | Promise
    place: str | Promise  # file or window of the settings
    text: str  # with URL and KEY for the gateway's URL and the API key


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
"""
_TABBY: Final = """\
[server]
endpoint = "URL"
token = "KEY"
"""
_NEOVIM: Final = """\
require("minuet").setup({
  provider = "openai_fim_compatible",
  provider_options = {
    openai_fim_compatible = {
      name = "Caret",
      end_point = "URL/v1/completions",
      model = "caret",
      api_key = function() return "KEY" end,
      stream = true,
    },
  },
})
"""
_LLAMA_VIM: Final = """\
let g:llama_config = { 'endpoint': 'URL/infill', 'api_key': 'KEY' }
"""
_LLAMA_VSCODE: Final = """\
{
  "llama-vscode.endpoint": "URL",
  "llama-vscode.api_key": "KEY"
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
  -H "Content-Type: application/json" \\
  -d '{"prompt": "def mean(values):\\n    return ",
       "suffix": "\\n", "max_tokens": 32}'
"""
_PYTHON: Final = """\
from openai import OpenAI

client = OpenAI(base_url="URL/v1", api_key="KEY")
completion = client.completions.create(
    model="caret",
    prompt="def mean(values):\\n    return ",
    suffix="\\n",
    max_tokens=32,
)
print(completion.choices[0].text)
"""

EDITORS: Final = (
    Editor("continue", "VS Code, Continue", "~/.continue/config.yaml", _CONTINUE),
    Editor("tabby", "Tabby", "~/.tabby-client/agent/config.toml", _TABBY),
    Editor("neovim", "Neovim, minuet-ai", "init.lua", _NEOVIM),
    Editor("llama-vim", "llama.vim", ".vimrc", _LLAMA_VIM),
    Editor("llama-vscode", "llama.vscode", _("VS Code settings.json"), _LLAMA_VSCODE),
    Editor("zed", "Zed", _("settings.json; Zed asks you for the key"), _ZED),
    Editor("curl", "curl", _("Shell"), _CURL),
    Editor("python", "Python", _("Python; pip install openai"), _PYTHON),
)


@dataclass(frozen=True, slots=True)
class EditorSnippet:
    code: str
    name: str
    place: str
    text: str


def settings_with(key: str) -> list[EditorSnippet]:
    return [
        EditorSnippet(editor.code, str(editor.name), str(editor.place), _fill_in(editor.text, key))
        for editor in EDITORS
    ]


def _fill_in(text: str, key: str) -> str:
    return text.replace("URL", settings.GATEWAY_URL).replace("KEY", key).rstrip("\n")
