"""Display names of stages, triggers and protocols, which records name by identifiers."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Trigger

_Name = str | Promise

STAGES: Final[Mapping[str, _Name]] = {
    "authenticate": _("Receive and authenticate"),
    "admit": _("Admit"),
    "assemble": _("Assemble the prompt"),
    "route": _("Choose a replica"),
    "generate": _("Engine, to its first token"),
    "filter": _("Filter, to the first text"),
    "stream": _("Stream the rest"),
}
TRIGGERS: Final[Mapping[Trigger, _Name]] = {
    Trigger.PREFETCH: _("In advance"),
    Trigger.AUTOMATIC: _("At a pause in typing"),
    Trigger.MANUAL: _("By a key"),
}
PROTOCOLS: Final[Mapping[str, _Name]] = {
    "stream": _("Caret’s own, streamed"),
    "openai": "OpenAI",
    "chat": _("OpenAI, chat"),
    "mistral": "Mistral",
    "ollama": "Ollama",
    "infill": "llama.cpp",
    "tabby": "Tabby",
}
