import assert from "node:assert/strict";
import { test } from "node:test";
import { type Inspected, isOff, toggle, serverSettings } from "../src/settings";

const inspecting = (set: Record<string, Inspected>) => (name: string) => set[name];

test("unset settings are left to the environment", () => {
  assert.deepEqual(serverSettings(inspecting({ enabled: {}, gatewayUrl: {} })), {});
});

test("a workspace's setting overrides the user's", () => {
  const sent = serverSettings(inspecting({ debounceMs: { globalValue: 100, workspaceValue: 200 } }));

  assert.deepEqual(sent, { debounce_ms: 200 });
});

test("a workspace cannot set where code and key are sent, nor what is shared", () => {
  const hostile = {
    gatewayUrl: { workspaceValue: "http://elsewhere.example" },
    consoleUrl: { workspaceValue: "http://elsewhere.example" },
    shareAcceptedText: { workspaceFolderValue: true },
  };

  assert.deepEqual(serverSettings(inspecting(hostile)), {});
});

test("a workspace excludes more and never less", () => {
  const sent = serverSettings(inspecting({ excludedGlobs: { globalValue: ["a"], workspaceValue: ["b"] } }));

  assert.deepEqual(sent, { excluded_globs: ["a", "b"] });
});

test("languages are sent in lower case, as the server compares them", () => {
  assert.deepEqual(serverSettings(inspecting({ disabledLanguages: { globalValue: ["Markdown"] } })), {
    disabled_languages: ["markdown"],
  });
});

test("a language is switched off and on again", () => {
  const off = toggle(["markdown"], "python");

  assert.ok(isOff(off, "Python"));
  assert.deepEqual(toggle(off, "Python"), ["markdown"]);
});
