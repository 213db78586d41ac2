import assert from "node:assert/strict";
import { test } from "node:test";

import { completeFrame, MAX_TEXT_CHARS } from "../../../../console/playground/request.js";

const FILES = [
  { path: "a.py", text: "abc", editedAt: 1 },
  { path: "b.py", text: "b = 1\n", editedAt: 2 },
  { path: "c.py", text: " \n", editedAt: 3 },
];
const asked = (changes) =>
  completeFrame({
    id: "1",
    mode: "inline",
    language: "python",
    files: FILES,
    active: 0,
    cursor: 1,
    trigger: "automatic",
    ...changes,
  });

test("the text is divided at the cursor", () => {
  const { prefix, suffix, path } = asked({});
  assert.deepEqual([prefix, suffix, path], ["a", "bc", "a.py"]);
});

test("the other files are context, without empty ones", () => {
  assert.deepEqual(asked({}).files, [{ path: "b.py", text: "b = 1\n", edited_at: 2 }]);
  assert.deepEqual(asked({ active: 1 }).files.map((file) => file.path), ["a.py"]);
});

test("it asks what its prompt was made of", () => assert.equal(asked({}).include_prompt_segments, true));

test("what is too long is cut far from the cursor", () => {
  const half = MAX_TEXT_CHARS + 10;
  const text = `x${"a".repeat(half - 1)}${"b".repeat(half - 1)}y`;
  const { prefix, suffix } = asked({ files: [{ path: "a.py", text, editedAt: 1 }], cursor: half });
  assert.equal(prefix, "a".repeat(MAX_TEXT_CHARS));
  assert.equal(suffix, "b".repeat(MAX_TEXT_CHARS));
});
