import assert from "node:assert/strict";
import { test } from "node:test";
import { type Inspected, isOff, toggled, toldSettings } from "../src/settings";

const inspecting = (set: Record<string, Inspected>) => (name: string) => set[name];

test("unset settings are left to the environment", () => {
  assert.deepEqual(toldSettings(inspecting({ enabled: {}, gatewayUrl: {} })), {});
});

test("a workspace's setting overrides the user's", () => {
  const told = toldSettings(inspecting({ debounceMs: { globalValue: 100, workspaceValue: 200 } }));

  assert.deepEqual(told, { debounce_ms: 200 });
});

test("a workspace cannot set where code and key are sent, nor what is shared", () => {
  const hostile = {
    gatewayUrl: { workspaceValue: "http://elsewhere.example" },
    consoleUrl: { workspaceValue: "http://elsewhere.example" },
    shareAcceptedText: { workspaceFolderValue: true },
  };

  assert.deepEqual(toldSettings(inspecting(hostile)), {});
});

test("a workspace excludes more and never less", () => {
  const told = toldSettings(inspecting({ excludedGlobs: { globalValue: ["a"], workspaceValue: ["b"] } }));

  assert.deepEqual(told, { excluded_globs: ["a", "b"] });
});

test("languages are sent in lower case, as the server compares them", () => {
  assert.deepEqual(toldSettings(inspecting({ disabledLanguages: { globalValue: ["Markdown"] } })), {
    disabled_languages: ["markdown"],
  });
});

test("a language is switched off and on again", () => {
  const off = toggled(["markdown"], "python");

  assert.ok(isOff(off, "Python"));
  assert.deepEqual(toggled(off, "Python"), ["markdown"]);
});
