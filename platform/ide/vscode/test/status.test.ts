import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../src/status";

test("a language that is off is said where all is well", () => {
  assert.equal(shown("ready", "python", ["python"]), "language_off");
});

test("what the user can do something about comes before it", () => {
  assert.equal(shown("offline", "python", ["python"]), "offline");
});
