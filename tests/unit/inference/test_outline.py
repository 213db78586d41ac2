"""A file's outline: the signatures of its definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.foundation.parsing.grammars import Grammar
from caret.foundation.parsing.parse import ParseBudget
from inference.context.sources.outline import MAX_PARSED_CHARS, QUERIES, outline
from tests.fakes.clock import FakeClock


def frozen_budget() -> ParseBudget:
    """Return a budget whose clock does not advance."""
    return ParseBudget(total_s=1.0, now_s=FakeClock().monotonic_s)


# For each path: the text of the file, and its outline.
FILES = {
    "a.py": (
        """\
import os
LIMIT = 3

@dataclass
class A(B):
    x: int = 1

    async def f(
        self, a: int
    ) -> int:
        def local(): ...
        return a
""",
        """\
LIMIT = 3
class A(B):
    x: int = 1
    async def f(
        self, a: int
    ) -> int:
""",
    ),
    "a.js": (
        """\
import x from 'y';
class A {
  m(a) {
    const b = 1;
  }
}
export const f = async (a) => {
};
""",
        """\
class A
  m(a)
export const f = async (a) =>
""",
    ),
    "a.ts": (
        """\
export interface P {
  a: string;
}
function g<T>(a: T): T {
  return a;
}
type U = 1 | 2;
""",
        """\
export interface P {
  a: string;
}
function g<T>(a: T): T
type U = 1 | 2;
""",
    ),
    "a.tsx": (
        """\
export function C(p: P) {
  return <div/>;
}
enum E { A }
""",
        """\
export function C(p: P)
enum E { A }
""",
    ),
    "a.go": (
        """\
package a

type S struct {
	A int
}

func (s *S) M(a int) (int, error) {
	return a, nil
}
""",
        """\
type S struct {
	A int
}
func (s *S) M(a int) (int, error)
""",
    ),
    "a.rs": (
        """\
impl A {
    pub fn new(x: u8) -> Self {
        A { x }
    }
}
const K: u8 = 1;
""",
        """\
impl A
    pub fn new(x: u8) -> Self
const K: u8 = 1;
""",
    ),
    "A.java": (
        """\
public class A extends B {
  private int x = 1;
  public int f(int a) throws E {
    return a;
  }
}
""",
        """\
public class A extends B
  private int x = 1;
  public int f(int a) throws E
""",
    ),
    "a.c": (
        """\
#include <a.h>
struct s {
  int a;
};
int f(int a);
static int g(int b)
{
  return b;
}
""",
        """\
struct s {
  int a;
}
int f(int a);
static int g(int b)
""",
    ),
    "a.cpp": (
        """\
namespace n {
class A : public B {
 public:
  int f() const { return x_; }
  int x_;
};
}
""",
        """\
namespace n
class A : public B
  int f() const
  int x_;
""",
    ),
    "a.cs": (
        """\
namespace N {
  class A : B {
    public int X { get; set; }
    public int F(int a) { return a; }
  }
}
""",
        """\
namespace N
  class A : B
    public int X { get; set; }
    public int F(int a)
""",
    ),
    "a.rb": (
        """\
module M
  class A < B
    def f(a)
      a
    end
    def self.g
      1
    end
  end
end
""",
        """\
module M
  class A < B
    def f(a)
    def self.g
""",
    ),
    "a.php": (
        """\
<?php
class A {
  public function f(int $a): int {
    return $a;
  }
}
function g($a) {
}
""",
        """\
class A
  public function f(int $a): int
function g($a)
""",
    ),
    "a.sql": (
        """\
CREATE TABLE a (
  id int
);
SELECT 1;
CREATE VIEW v AS SELECT 1;
""",
        """\
CREATE TABLE a (
  id int
)
CREATE VIEW v AS SELECT 1
""",
    ),
    "a.sh": (
        """\
X=1
f() {
  Y=2
  echo $Y
}
echo
""",
        """\
X=1
f()
""",
    ),
    "a.css": (
        """\
a {
  color: red;
}
.b, .c > d {
  x: y;
}
""",
        """\
a
.b, .c > d
""",
    ),
    "a.html": (
        """\
<div id="a">
<p>text</p>
<form action="/x">
<input>
</form>
</div>
""",
        """\
<div id="a">
<form action="/x">
""",
    ),
    "a.json": (
        """\
{
  "name": "a",
  "scripts": {
    "build": "x"
  },
  "files": [
    1
  ]
}
""",
        """\
  "name": "a"
  "scripts":
    "build": "x"
  "files":
""",
    ),
    "a.yaml": (
        """\
a: 1
b:
  c0: 0
  c1: 1
  c2: 2
d:
  - x
""",
        """\
a: 1
b:
  c0: 0
  c1: 1
  c2: 2
d:
  - x
""",
    ),
}


def test_every_grammar_has_a_query_and_a_file_to_test() -> None:
    assert set(QUERIES) == set(Grammar)
    assert len(FILES) == len(Grammar)


@pytest.mark.parametrize("path", FILES)
def test_an_outline_contains_the_signatures(path: str) -> None:
    text, expected = FILES[path]

    assert outline(path, text, frozen_budget()) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes.txt", "def f(): pass\ndef g(): pass\n"),
        ("Makefile", "all:\n\tmake\n"),
        ("a.py", "print(1)\n"),
        ("a.py", "def only(): pass\n"),
        ("a.py", ""),
    ],
)
def test_a_file_without_a_grammar_or_with_few_definitions_has_no_outline(
    path: str, text: str
) -> None:
    assert outline(path, text, frozen_budget()) == ""


def test_a_file_with_syntax_errors_has_an_outline() -> None:
    broken = "def f(a):\n    return (\n\ndef g(b):\n    x = [\n\nclass C:\n    def h(self): pass\n"

    assert "def f(a):" in outline("a.py", broken, frozen_budget())


def test_only_the_beginning_of_a_long_file_is_parsed() -> None:
    text = "".join(f"def f{n}():\n    pass\n" for n in range(5_000))

    assert outline("a.py", text, frozen_budget()) == outline(
        "a.py", text[:MAX_PARSED_CHARS], frozen_budget()
    )


def test_a_long_table_is_represented_by_its_first_line() -> None:
    table = "TABLE = {\n" + "".join(f"    {n}: 'x',\n" for n in range(100)) + "}\n"

    assert outline("a.py", f"{table}{table}", frozen_budget()) == "TABLE = {\nTABLE = {\n"


@given(st.text(max_size=400), st.sampled_from(sorted(FILES)))
def test_any_text_is_accepted(text: str, path: str) -> None:
    assert isinstance(outline(path, text, frozen_budget()), str)


@pytest.mark.parametrize("path", FILES)
def test_half_a_surrogate_pair_is_accepted(path: str) -> None:
    assert isinstance(outline(path, "\ud800 " + FILES[path][0], frozen_budget()), str)
