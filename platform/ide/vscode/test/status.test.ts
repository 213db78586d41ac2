import assert from "node:assert/strict";
import { test } from "node:test";
import { displayedStatus } from "../src/status";

test("a disabled language is shown if there is no problem", () => {
  assert.equal(displayedStatus("ready", "python", ["python"]), "language_off");
});

test("a problem that the user can fix is shown before a disabled language", () => {
  assert.equal(displayedStatus("offline", "python", ["python"]), "offline");
});
