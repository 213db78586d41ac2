import assert from "node:assert/strict";
import { test } from "node:test";
import { choicesIn, type Situation } from "../src/menu";

const situation: Situation = { status: "ready", language: "python", disabledLanguages: [] };
const commands = (changed: Partial<Situation>) =>
  choicesIn({ ...situation, ...changed }).map((choice) => choice.command);

test("a signed-out user is offered sign-in first", () => {
  assert.equal(commands({ status: "signed_out" })[0], "caret.signIn");
});

test("paused suggestions can be resumed", () => {
  assert.equal(commands({ status: "paused" })[0], "caret.resume");
});

test("without a server no command is offered that needs it", () => {
  const offered = commands({ status: "missing" });

  assert.equal(offered[0], "caret.restart");
  assert.ok(!offered.includes("caret.pause") && !offered.includes("caret.explainNoSuggestion"));
  assert.ok(!offered.includes("caret.openLog"));
});

test("a language that is off can be switched on", () => {
  const offered = choicesIn({ ...situation, disabledLanguages: ["python"] });

  assert.ok(offered.some(({ label, argument }) => label === "Turn on for {0}" && argument === "python"));
});

test("without a file no language is offered", () => {
  assert.ok(!commands({ language: undefined }).includes("caret.toggleLanguage"));
});
