"""Pairs of a glob and a path, each with the answer whether the glob excludes the path.

The gateway, the console and the language server are tested with the same cases.
"""

from typing import Final

# Glob, path, is the path excluded?
EXCLUSION_CASES: Final = [
    ("**/.env", ".env", True),
    ("**/.env", "a/b/.env", True),
    ("**/.env", "a/b.env", False),
    ("a/**/[bc]?.py", "a/x/y/b1.py", True),
    ("a/**/[bc]?.py", "a/c2.py", True),
    ("a/**/[!b]?.py", "a/b2.py", False),
    ("*", "any/thing", True),
    ("[", "[", True),  # a bracket that is not closed
    ("[x]longer.py", "xlonger.py", True),
    # Upper and lower case.
    ("**/.env", ".ENV", True),
    ("**/.ENV", "a/.env", True),
    ("*.pem", "x.PEM", True),
    ("secrets/**", "Secrets/a.py", True),
    ("SECRETS/**", "secrets/a.py", True),
    ("[A-C]*.key", "b.key", True),
    ("[a-c]*.key", "B.key", True),
    ("[!a].key", "A.key", False),
    ("**/*.\u00c4rger", "a.\u00e4RGER", True),
    ("\u0394/*", "\u03b4/a.py", True),
    # Letters with several case mappings, or with a longer one.
    ("secrets/**", "\u017fecrets/a.py", True),  # long s
    ("\u017fecrets/**", "SECRETS/a.py", True),
    ("*.key", "a.\u212aEY", True),  # the Kelvin sign
    ("ini/**", "\u0130ni/a.py", True),  # I with a dot
    ("\u0130ni/**", "i\u0307ni/a.py", True),
    ("\u0130ni/**", "ini/a.py", True),
    ("ini/**", "\u0131ni/a.py", True),  # i without a dot
    ("stra\u00dfe/**", "STRASSE/a.py", True),
    ("strasse/**", "Stra\u00dfe/a.py", True),
    ("\u03c3\u03c2/*", "\u03a3\u03a3/a", True),  # both small sigmas
    ("o\ufb03ce/*", "OFFICE/a", True),  # a ligature
    ("?.key", "\u00df.key", True),
    ("[\u00df].key", "\u00df.key", True),
    # Composed and decomposed letters, as Linux and macOS write them.
    ("caf\u00e9/**", "cafe\u0301/a.py", True),
    ("cafe\u0301/**", "CAF\u00c9/a.py", True),
    ("caf?/**", "cafe\u0301/a.py", True),
    ("caf\u00e9/**", "cafe/a.py", False),
    ("\uac00/*", "\u1100\u1161/a", True),  # a Korean syllable
    # Windows paths, and paths with `..`.
    ("secrets/**", "Secrets\\a.py", True),
    ("secrets\\**", "secrets/a.py", True),
    ("**/.env", "C:\\work\\shop\\.Env", True),
    ("**/.env", "./.env", True),
    ("**/.env", "/.env", True),
    ("secrets/**", "src/../secrets/a.py", True),
    ("src/secrets/**", "src/./secrets//a.py", True),
    ("secrets/**", "../secrets/a.py", True),
    ("secrets/**", "secrets/../a.py", False),
    # Paths that only look similar.
    ("secrets/**", "secret/a.py", False),
    ("*.pem", "a.pern", False),
    ("src/*", "\uff53rc/a.py", False),  # a full-width letter is a different letter
]
