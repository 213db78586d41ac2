import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, drawingOf, isAt, type Lines, linesOf, partOf, startOf } from "../src/edit/change";

const NO_BREAK = "\u00a0";

function linesIn(...texts: string[]): Lines {
  return { count: texts.length, at: (line) => texts[line] ?? "" };
}

test("a text is split into lines without their ends", () => {
  assert.deepEqual(linesOf("a\r\nb\n"), ["a", "b"]);
  assert.deepEqual(linesOf("a\n\nb"), ["a", "", "b"]);
  assert.deepEqual(linesOf(""), []);
});

test("lines that stay the same are no part of the change", () => {
  assert.deepEqual(changeOf(3, ["a", "b", "c"], ["a", "x", "c"]), { line: 4, removed: ["b"], added: ["x"] });
  assert.deepEqual(changeOf(3, ["last"], ["last", "x"]), { line: 4, removed: [], added: ["x"] });
  assert.deepEqual(changeOf(3, ["a", "a"], ["a"]), { line: 4, removed: ["a"], added: [] });
});

test("within a line only the differing part changes", () => {
  assert.deepEqual(partOf("f(count)", "f(counter)"), { start: 7, removed: "", added: "er" });
  assert.deepEqual(partOf("aa", "a"), { start: 1, removed: "a", added: "" });
  assert.deepEqual(partOf("x = 1", "x = 22"), { start: 4, removed: "1", added: "22" });
});

test("a part never splits a character of two code units", () => {
  assert.deepEqual(partOf("a😀b", "a😁b"), { start: 1, removed: "😀", added: "😁" });
});

test("a change within a line stands in that line", () => {
  const change = changeOf(1, ["print(total(1))"], ["print(total_of( 1))"]);

  assert.deepEqual(drawingOf(change, linesIn("", "print(total(1))"), 4), {
    removed: [{ line: 1, start: 11, end: 12 }],
    added: [{ line: 1, character: 12, text: `_of(${NO_BREAK}`, margin: 0 }],
  });
});

test("added lines stand as a block to the right of the text", () => {
  const change = changeOf(1, ["b"], ["\tx", "yyyyyyyy"]);

  const { removed, added } = drawingOf(change, linesIn("a", "b", "\tcc", "d"), 4);

  assert.deepEqual(removed, [{ line: 1, start: 0, end: 1 }]);
  assert.deepEqual(
    added.map(({ line, character, margin }) => ({ line, character, margin })),
    [
      { line: 1, character: 1, margin: 8 },
      { line: 2, character: 3, margin: 3 },
    ],
  );
  assert.deepEqual(
    added.map(({ text }) => text.replaceAll(NO_BREAK, " ")),
    ["     x    ", " yyyyyyyy "],
  );
});

test("a block at the end of the file stands beside its last lines", () => {
  const change = { line: 3, removed: [], added: ["x", "y"] };

  const { added } = drawingOf(change, linesIn("a", "b", "c"), 4);

  assert.deepEqual(
    added.map(({ line }) => line),
    [1, 2],
  );
});

test("a block longer than the file tells how many lines are missing", () => {
  const change = { line: 0, removed: [], added: ["1", "2", "3", "4"] };

  const { added } = drawingOf(change, linesIn("a", "b"), 4);

  assert.deepEqual(
    added.map(({ text }) => text.replaceAll(NO_BREAK, " ").trim()),
    ["1", "… +3"],
  );
});

test("removed lines without new ones have no block", () => {
  const { removed, added } = drawingOf({ line: 0, removed: ["a", "b"], added: [] }, linesIn("a", "b"), 4);

  assert.equal(removed.length, 2);
  assert.deepEqual(added, []);
});

test("the cursor is at a change in its lines, and at both sides of an insertion", () => {
  const replacement = { line: 4, removed: ["a", "b"], added: ["x"] };
  const insertion = { line: 4, removed: [], added: ["x"] };
  const lines = [2, 3, 4, 5, 6];

  assert.deepEqual(lines.filter((line) => isAt(replacement, line)), [4, 5]);
  assert.deepEqual(lines.filter((line) => isAt(insertion, line)), [3, 4]);
});

test("the cursor goes to the changed part, or to the first word", () => {
  const lines = linesIn("a", "    b", "c");

  assert.deepEqual(startOf({ line: 1, removed: ["    b"], added: ["    bc"] }, lines), { line: 1, character: 5 });
  assert.deepEqual(startOf({ line: 1, removed: [], added: ["x", "y"] }, lines), { line: 1, character: 4 });
  assert.deepEqual(startOf({ line: 3, removed: [], added: ["x"] }, lines), { line: 2, character: 0 });
});
