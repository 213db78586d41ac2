"""Display names of stages, triggers and protocols. Usage records contain their identifiers."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Trigger

_Name = str | Promise

# In a usage record, the time of `authenticate` includes `receive`, and `record` has no time.
STAGES: Final[Mapping[str, _Name]] = {
    "authenticate": _("Receive and authenticate"),
    "admit": _("Admit"),
    "assemble": _("Assemble the prompt"),
    "route": _("Choose a replica"),
    "generate": _("Engine, until the first token"),
    "filter": _("Filter, until the first text"),
    "stream": _("Stream the rest"),
}
TRIGGERS: Final[Mapping[Trigger, _Name]] = {
    Trigger.PREFETCH: _("Prefetch"),
    Trigger.AUTOMATIC: _("Pause in typing"),
    Trigger.MANUAL: _("Shortcut"),
}
PROTOCOLS: Final[Mapping[str, _Name]] = {
    "stream": _("Caret stream"),
    "openai": "OpenAI",
    "chat": _("OpenAI chat"),
    "mistral": "Mistral",
    "ollama": "Ollama",
    "infill": "llama.cpp",
    "tabby": "Tabby",
}
