"""Check that a package has a permissive licence, by its metadata and by its licence files.

The metadata must name a permissive licence. At least one licence file must contain the text of a
permissive licence. Neither the metadata nor a licence file may mention a copyleft licence. Packages
that fail a check are not used.
"""

import re
from collections.abc import Sequence
from email.message import Message

PERMISSIVE_NAME = re.compile(
    r"\b(MIT|Expat|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation)\b", re.IGNORECASE
)
COPYLEFT_NAME = re.compile(
    r"\b([AL]?GPL|MPL|EPL|CDDL|EUPL|CC[- ]BY)\b|[AL]?GPL[v-]?\d"
    r"|GNU (Lesser |Affero )?General Public|Mozilla Public|Eclipse Public",
    re.IGNORECASE,
)
# The parts of Python's licence that mention the GPL: its history and its choice of law.
PYTHON_GPL_MENTIONS = re.compile(
    r"HISTORY OF THE SOFTWARE.*?TERMS AND CONDITIONS"
    r"|with\s+regard\s+to\s+derivative\s+works.*?GNU\s+General\s+Public\s+License\s+\(GPL\)",
    re.DOTALL,
)
# Expressions for parts of licence texts, by the licence's name.
TEXTS = {
    "Apache-2.0": r"Apache License[\s,]+Version 2\.0|apache\.org/licenses/LICENSE-2\.0",
    "MIT": r"Permission is hereby granted, free of charge",
    "BSD": r"Redistribution\s+and\s+use\s+in\s+source\s+and\s+binary\s+forms",
    "ISC": r"Permission to use, copy, modify, and(/or)? distribute this software",
    "PSF-2.0": r"PYTHON SOFTWARE FOUNDATION LICENSE",
}


class LicenceError(ValueError):
    """The package may not be used for training."""


def check_licence(metadata: Message, texts: Sequence[str]) -> str:
    """Return the licences found in the texts of the licence files, joined by " AND ".

    Raises LicenceError with the reason in one sentence.
    """
    declared = _declared_licence(metadata)
    if COPYLEFT_NAME.search(declared):
        raise LicenceError(f"its metadata names a copyleft licence: {declared}")
    if not PERMISSIVE_NAME.search(declared):
        raise LicenceError(f"its metadata names no permissive licence: {declared or 'none at all'}")
    if any(mentions_copyleft(PYTHON_GPL_MENTIONS.sub("", text)) for text in texts):
        raise LicenceError("one of its licence files mentions a copyleft licence")
    licences = [
        name for name, pattern in TEXTS.items() if any(re.search(pattern, text) for text in texts)
    ]
    if not licences:
        raise LicenceError("no licence file has the text of a permissive licence")
    return " AND ".join(licences)


def mentions_copyleft(text: str) -> bool:
    return COPYLEFT_NAME.search(text) is not None


def _declared_licence(metadata: Message) -> str:
    """Return the SPDX expression.

    Without one, return the first line of the free text and the names of the licence classifiers,
    joined by " | ".
    """
    expression = metadata.get("License-Expression")
    if expression:
        return str(expression)
    free_text = str(metadata.get("License") or "").strip().split("\n")[0]
    classifiers = map(str, metadata.get_all("Classifier") or [])
    names = [text.rsplit(" :: ", 1)[-1] for text in classifiers if text.startswith("License ::")]
    return " | ".join([free_text, *names]).strip(" |")
