import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, locate } from "../src/chat/proposal";

const FILE = "import os\n\ndef f():\n    return 1\n";
const TARGET = { start: 11, text: "def f():\n    return 1\n" };

test("code that has not changed is where it was", () => {
  assert.equal(locate(FILE, TARGET), 11);
});

test("code that has moved is found", () => {
  assert.equal(locate(`# licence\n${FILE}`, TARGET), 21);
});

test("code that has changed, or is there twice, is not guessed", () => {
  assert.equal(locate(FILE.replace("1", "2"), TARGET), null);
  assert.equal(locate(`#\n${TARGET.text}${TARGET.text}`, TARGET), null);
  assert.equal(locate(FILE, { start: 3, text: "" }), null);
});

test("code gets the indentation and the line end of what it replaces", () => {
  assert.equal(fit("def f():\n\n    return 2\n\n", "    def f():\n        pass\n"), "    def f():\n\n        return 2\n");
  assert.equal(fit("    x = 2", "    x = 1\n"), "    x = 2\n");
  assert.equal(fit("x = 2\ny = 3", "x = 1\r\n"), "x = 2\r\ny = 3\r\n");
  assert.equal(fit("x = 2\n", "x = 1"), "x = 2");
  assert.equal(fit("  x = 2", ""), "  x = 2");
});
