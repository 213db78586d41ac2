import assert from "node:assert/strict";
import { test } from "node:test";

import { Suggestion } from "../../../../console/playground/suggestion.js";

function suggestionOf(text) {
  const clock = { now: 0 };
  const suggestion = new Suggestion("1", { now: () => clock.now });
  if (text) suggestion.append(text);
  clock.now = 900.4;
  return suggestion;
}

const events = (suggestion) => suggestion.outcomes.map((each) => each.event);

test("a growing suggestion is reported as shown once", () => {
  const suggestion = suggestionOf("a");
  suggestion.append("b");
  assert.deepEqual(suggestion.outcomes, [{ event: "shown", after_ms: 0 }]);
  assert.equal(suggestion.remaining, "ab");
});

test("taking the whole text accepts it", () => {
  const suggestion = suggestionOf("a\nb");
  assert.equal(suggestion.acceptAll(), "a\nb");
  assert.deepEqual(suggestion.outcomes[1], { event: "accepted", chars: 3, lines: 2, after_ms: 900 });
  assert.ok(suggestion.isOver);
});

test("taking a word accepts a part, and the last word the whole", () => {
  const suggestion = suggestionOf("count + 1");
  assert.equal(suggestion.acceptWord(), "count");
  assert.equal(suggestion.acceptWord(), " +");
  assert.equal(suggestion.acceptWord(), " 1");
  assert.deepEqual(events(suggestion), ["shown", "partially_accepted", "partially_accepted", "accepted"]);
  assert.equal(suggestion.outcomes[3].chars, 9);
});

test("typing the suggested text shortens the suggestion", () => {
  const suggestion = suggestionOf("count");
  assert.ok(suggestion.type("co"));
  assert.equal(suggestion.remaining, "unt");
  assert.ok(suggestion.type("unt"));
  assert.deepEqual(events(suggestion), ["shown", "accepted"]);
});

test("other typed text does not match", () => {
  const suggestion = suggestionOf("count");
  assert.ok(!suggestion.type("x"));
  assert.ok(!suggestion.type(""));
  assert.equal(suggestion.remaining, "count");
});

test("a suggestion is rejected once, and only if it was shown", () => {
  const seen = suggestionOf("a");
  seen.reject();
  seen.reject();
  assert.deepEqual(events(seen), ["shown", "rejected"]);
  const unseen = suggestionOf("");
  unseen.reject();
  assert.deepEqual(events(unseen), []);
});

test("an ended suggestion does not change", () => {
  const suggestion = suggestionOf("a");
  suggestion.acceptAll();
  suggestion.append("b");
  assert.equal(suggestion.acceptAll(), "");
  assert.equal(suggestion.acceptWord(), "");
  assert.ok(!suggestion.type("b"));
  assert.deepEqual(events(suggestion), ["shown", "accepted"]);
});
