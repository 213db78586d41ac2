import assert from "node:assert/strict";
import { test } from "node:test";

import { completeFrame, MAX_TEXT_CHARS } from "../../../../console/playground/request.js";

const FILES = [
  { path: "a.py", text: "abc", editedAt: 1 },
  { path: "b.py", text: "b = 1\n", editedAt: 2 },
  { path: "c.py", text: " \n", editedAt: 3 },
];
const frameWith = (changes) =>
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
  const { prefix, suffix, path } = frameWith({});
  assert.deepEqual([prefix, suffix, path], ["a", "bc", "a.py"]);
});

test("the other files are context, without empty ones", () => {
  assert.deepEqual(frameWith({}).files, [{ path: "b.py", text: "b = 1\n", edited_at: 2 }]);
  assert.deepEqual(frameWith({ active: 1 }).files.map((file) => file.path), ["a.py"]);
});

test("the request asks for an explanation of its prompt", () => {
  assert.equal(frameWith({}).include_prompt_segments, true);
});

test("a text that is too long is cut far from the cursor", () => {
  const half = MAX_TEXT_CHARS + 10;
  const text = `x${"a".repeat(half - 1)}${"b".repeat(half - 1)}y`;
  const files = [{ path: "a.py", text, editedAt: 1 }];
  const { prefix, suffix } = frameWith({ files, cursor: half });
  assert.equal(prefix, "a".repeat(MAX_TEXT_CHARS));
  assert.equal(suffix, "b".repeat(MAX_TEXT_CHARS));
});
