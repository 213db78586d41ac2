"""Write the licence texts of all packages of the corpus, each text once.

    python -m inference.demo_model.dataset.notices --wheels DIR

Packages share one text if their licences differ only in copyright lines, the title, punctuation and
white space, or in the appendix of Apache's licence. Each copyright line is listed with its package.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.demo_model.dataset.packages import (
    Package,
    licence_texts,
    open_wheel,
    read_package_list,
)

NOTICES = Path(__file__).parent / "NOTICES.txt"
COPYRIGHT = re.compile(r"^\W*(copyright\s+(\(c\)|©|\d|by)|(\(c\)|©)\s*\d).*$", re.IGNORECASE)
TITLE = re.compile(r"^(The )?(MIT|ISC|BSD)\b.{0,30}$", re.MULTILINE)  # such as "MIT License"
APACHE_TERMS = re.compile(
    r"TERMS AND CONDITIONS FOR USE, REPRODUCTION.*?END OF TERMS AND CONDITIONS", re.DOTALL
)
INTRODUCTION = """\
Licences of the packages whose code the demonstration model was trained on.
The list with versions and hashes is packages.tsv; python -m inference.demo_model.dataset.notices
writes this file. The packages of each licence text are listed above the text.
"""


@dataclass(frozen=True, slots=True)
class Licence:
    copyrights: tuple[str, ...]  # the copyright lines
    body: str  # without the copyright lines

    @property
    def terms(self) -> str:
        """The letters and digits of the licence, in lower case, without title and appendix.

        Licences with the same terms share one text.
        """
        apache = APACHE_TERMS.search(self.body)
        text = apache.group() if apache else TITLE.sub("", self.body)
        return re.sub(r"\W+", "", text).lower()


def split_licence(text: str) -> Licence:
    lines = [line.rstrip() for line in text.splitlines()]
    copyrights = tuple(line.strip() for line in lines if COPYRIGHT.match(line))
    body = "\n".join(line for line in lines if not COPYRIGHT.match(line))
    return Licence(copyrights, re.sub(r"\n{3,}", "\n\n", body).strip())


def compose_notices(texts: Mapping[str, Sequence[str]]) -> str:
    """Return all notices, given the licence texts of each package.

    The licence with the most packages comes first.
    """
    bodies: dict[str, str] = {}
    entries: dict[str, list[str]] = {}  # packages and their copyright lines, by the licence's terms
    for package, package_texts in texts.items():
        for licence in map(split_licence, package_texts):
            bodies.setdefault(licence.terms, licence.body)
            entry = "\n".join([package, *(f"    {line}" for line in licence.copyrights)])
            entries.setdefault(licence.terms, []).append(entry)
    sorted_terms = sorted(entries, key=lambda terms: -len(entries[terms]))
    separator = "=" * 80
    parts = [
        f"{separator}\n" + "\n".join(entries[terms]) + f"\n\n{bodies[terms]}\n"
        for terms in sorted_terms
    ]
    return "\n".join([INTRODUCTION, *parts])


def _read_licence_texts(packages: Sequence[Package], wheels: Path) -> dict[str, list[str]]:
    """Return the licence texts of each package, by its name and version."""
    texts = {}
    for package in packages:
        with open_wheel(package, wheels) as wheel:
            texts[f"{package.name} {package.version}"] = list(licence_texts(wheel).values())
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="inference.demo_model.dataset.notices", description=__doc__
    )
    parser.add_argument("--wheels", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    NOTICES.write_text(compose_notices(_read_licence_texts(read_package_list(), options.wheels)))


if __name__ == "__main__":
    main()
