"""A small training corpus and a small tokenizer, for the tests of the demo model."""

from functools import cache

from tokenizers import Tokenizer

from inference.demo_model.corpus import SourceFile
from inference.demo_model.token_corpus import Group, TokenCorpus, encode
from inference.demo_model.tokenizer import train_tokenizer

METHODS = [
    f'    def method_{n}(self, value):\n        """Return field {n}."""\n'
    f"        if value:\n            return self.field_{n}\n        return None\n\n"
    for n in range(80)
]
FILES = [SourceFile(f"m{n}.py", "class A:\n" + "".join(METHODS), is_test=False) for n in range(3)]
SHORT_FILE = SourceFile("short.py", "NAME = 'ü'\n", is_test=False)


@cache
def small_tokenizer() -> Tokenizer:
    return train_tokenizer(file.text for file in FILES)


@cache
def small_corpus() -> TokenCorpus:
    """Return a corpus of a package with FILES and SHORT_FILE, in this order, and of other files.

    Each other group has one file. Its repository has the group's name.
    """
    # The group, repository and text of each file.
    package = [(Group.PACKAGES, "package", file) for file in [*FILES, SHORT_FILE]]
    other_files = [(group, str(group), FILES[0]) for group in Group if group is not Group.PACKAGES]
    return encode([*package, *other_files], small_tokenizer())
