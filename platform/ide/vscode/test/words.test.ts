import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import german from "../l10n/bundle.l10n.de.json";
import contributed from "../package.nls.json";
import contributedInGerman from "../package.nls.de.json";
import { TEXTS } from "../src/chat/page";
import { NOTES } from "../src/chat/notes";
import { CHOICES } from "../src/menu";
import { REASONS, SUGGESTED, sentenceFor } from "../src/reasons";
import { STATUS_DISPLAYS } from "../src/status";

const LITERAL = /l10n\.t\(\s*"([^"]+)"/g;

test("each text has a German translation", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf-8" }).filter((file) => file.endsWith(".ts"));
  const source = files.map((file) => readFileSync(`src/${file}`, "utf-8")).join("\n");
  const texts = [
    ...Object.values(STATUS_DISPLAYS).map((display) => display.text),
    ...Object.values(REASONS),
    SUGGESTED,
    ...Object.values(TEXTS),
    ...Object.values(NOTES),
    ...Object.values(CHOICES).map((choice) => choice.label),
    ...[...source.matchAll(LITERAL)].map((match) => match[1]),
  ];

  assert.deepEqual(Object.keys(german).sort(), [...new Set(texts)].sort());
  assert.deepEqual(Object.keys(contributedInGerman), Object.keys(contributed));
});

test("an unknown reason of a newer server is shown by its name", () => {
  assert.equal(sentenceFor("moon_phase"), "moon_phase");
});

test("each reason of the language server has a sentence", () => {
  const source = readFileSync("../caret_ls/skip_rules.py", "utf-8");
  const names = [...source.matchAll(/^ {4}[A-Z_]+ = "(\w+)"/gm)].map((match) => match[1] ?? "");

  assert.ok(names.length > 0);
  assert.deepEqual(names.filter((name) => !(name in REASONS)), []);
});
