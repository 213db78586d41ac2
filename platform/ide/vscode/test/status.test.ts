import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../src/status";

test("a disabled language is shown if there is no problem", () => {
  assert.equal(shown("ready", "python", ["python"]), "language_off");
});

test("a problem that the user can fix is shown before a disabled language", () => {
  assert.equal(shown("offline", "python", ["python"]), "offline");
});
