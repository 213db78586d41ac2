"""The imports of a file, and the framework that they belong to."""

import pytest

from caret_ls.imports import framework_of, imports_of

CASES = [  # language, text, imports, framework
    ("python", "import os\nfrom django.db import models\nx = 1\n", ("os", "django.db"), "django"),
    ("go", 'import (\n\t"fmt"\n\tg "github.com/gin-gonic/gin"\n)\n',
     ("fmt", "github.com/gin-gonic/gin"), "gin"),
    ("typescript", "import {a} from './a'\nimport React from 'react'\n", ("./a", "react"), "react"),
    ("javascript", "const e = require('express')\n", ("express",), "express"),
    ("rust", "use axum::Router;\nuse std::io;\n", ("axum::Router", "std::io"), "axum"),
    ("java", "import static a.b.C;\nimport org.springframework.x.Y;\n",
     ("a.b.C", "org.springframework.x.Y"), "spring"),
    ("c", '#include <stdio.h>\n#include "a.h"\n', ("stdio.h", "a.h"), ""),
    ("klingon", "import os\n", (), ""),
    ("python", "", (), ""),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "imports", "framework"), CASES)
def test_imports_and_framework_are_detected(
    language: str, text: str, imports: tuple[str, ...], framework: str
) -> None:
    assert imports_of(language, text) == imports
    assert framework_of(imports) == framework


def test_imports_are_listed_once_and_at_most_forty() -> None:
    text = "import os\n" * 3 + "".join(f"import m{number}\n" for number in range(100))

    imports = imports_of("python", text)

    assert imports[:2] == ("os", "m0")
    assert len(imports) == 40


def test_a_package_that_only_begins_like_a_framework_is_not_one() -> None:
    assert framework_of(("reactor", "djangonaut")) == ""
