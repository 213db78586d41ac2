"""Build the tokenised corpus.

    python -m inference.demo_model.dataset.build --wheels DIR --to DIR

Downloads the packages of `packages.tsv`, and checks their hashes and licences. Writes the tokens of
the standard library and of the packages, without the held-out files and their copies.
"""

import argparse
import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from inference.demo_model import token_corpus
from inference.demo_model.corpus import SourceFile, read_corpus, standard_library
from inference.demo_model.dataset.packages import (
    Package,
    check_wheel_licence,
    download,
    open_wheel,
    read_package_list,
)
from inference.demo_model.dataset.python_files import (
    HeldOutFilter,
    drop_copies,
    iterate_wheel_files,
)
from inference.demo_model.token_corpus import Group

LIBRARY_NAME = "cpython"  # the repository's name for files of the standard library
TOKENIZER = Path(__file__).parents[1] / "weights" / "tokenizer.json"


def collect_training_files(
    packages: Sequence[Package], wheels: Path
) -> Iterator[tuple[Group, str, SourceFile]]:
    """Yield every training file once, with its group and its repository.

    Print the paths of files that are skipped because they share text with held-out files. Raises
    LicenceError, PackageError.
    """
    library = read_corpus(standard_library())
    held_out = HeldOutFilter(library.held_out)
    files = [*library.training, *iterate_package_files(packages, wheels)]
    library_ids = {id(file) for file in library.training}  # `drop_copies` yields the same objects
    for file in drop_copies(files):
        if held_out.has_shared_text(file):
            print(f"skipping a file that shares text with a held-out file: {file.path}")
        elif id(file) in library_ids:
            yield (Group.LIBRARY_TESTS if file.is_test else Group.LIBRARY), LIBRARY_NAME, file
        else:
            # The paths of packages begin with the package's name.
            repository, _, path = file.path.partition("/")
            group = Group.PACKAGE_TESTS if file.is_test else Group.PACKAGES
            yield group, repository, dataclasses.replace(file, path=path)


def iterate_package_files(packages: Sequence[Package], wheels: Path) -> Iterator[SourceFile]:
    """Yield the files of all packages.

    Raises LicenceError or PackageError for a package that does not pass the checks.
    """
    for package in packages:
        with open_wheel(package, wheels) as wheel:
            check_wheel_licence(wheel)
            yield from iterate_wheel_files(wheel, package.name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="inference.demo_model.dataset.build", description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True, metavar="DIR")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR")
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER, metavar="FILE")
    parser.add_argument("--offline", action="store_true", help="download nothing")
    parser.add_argument(
        "--max-tokens",
        type=float,
        default=math.inf,
        metavar="N",
        help="keep N tokens: the standard library, then the list's first packages (default: all)",
    )
    options = parser.parse_args()
    packages = read_package_list()
    if not options.offline:
        download(packages, options.wheels)
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    files = collect_training_files(packages, options.wheels)
    corpus = token_corpus.encode(files, tokenizer, max_tokens=options.max_tokens)
    token_corpus.save(corpus, tokenizer, read_corpus(standard_library()).held_out, options.to)
    counts: Counter[str] = Counter()
    for file in corpus.files:
        counts[file.group] += len(file)
    print(json.dumps({"files": len(corpus.files), "tokens": dict(counts)}))


if __name__ == "__main__":
    main()
