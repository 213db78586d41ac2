"""The licences of packages: only permissive ones allow the use of a package for training."""

from email.message import Message

import pytest

from inference.demo_model.dataset.licences import LicenceError, check_licence

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person"
BSD = "Redistribution and use in source and binary\nforms, with or without modification"
GPL = "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007"
PYTHON = (
    "A. HISTORY OF THE SOFTWARE\nAll Python licenses, unlike the GPL, let you distribute\n"
    "B. TERMS AND CONDITIONS\nPYTHON SOFTWARE FOUNDATION LICENSE VERSION 2\n"
)


def metadata(**headers: str) -> Message:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("headers", "texts", "licence"),
    [
        ({"License_Expression": "MIT"}, [MIT], "MIT"),
        ({"License": "BSD-3-Clause"}, [BSD], "BSD"),
        (
            {"Classifier": "License :: OSI Approved :: BSD License"},
            [BSD, PYTHON],
            "BSD AND PSF-2.0",
        ),
    ],
)
def test_a_permissive_package_is_accepted(
    headers: dict[str, str], texts: list[str], licence: str
) -> None:
    assert check_licence(metadata(**headers), texts) == licence


@pytest.mark.parametrize(
    ("headers", "texts", "reason"),
    [
        ({"License_Expression": "GPL-3.0-or-later"}, [MIT], "names a copyleft licence"),
        ({"License": "LGPLv3"}, [MIT], "names a copyleft licence"),
        ({"License": "MPL 2.0"}, [MIT], "names a copyleft licence"),
        ({"License_Expression": "MIT AND MPL-2.0"}, [MIT], "names a copyleft licence"),
        ({}, [MIT], "no permissive licence: none at all"),
        ({"License": "Proprietary"}, [MIT], "no permissive licence: Proprietary"),
        ({"License": "MIT"}, [], "no licence file has the text"),
        ({"License": "MIT"}, ["All rights reserved."], "no licence file has the text"),
        ({"License": "MIT"}, [MIT, GPL], "mentions a copyleft licence"),
    ],
)
def test_any_other_package_is_rejected(
    headers: dict[str, str], texts: list[str], reason: str
) -> None:
    with pytest.raises(LicenceError, match=reason):
        check_licence(metadata(**headers), texts)
