import assert from "node:assert/strict";
import { test } from "node:test";

import { Suggestion } from "../../../../console/playground/suggestion.js";

function suggested(text) {
  const clock = { now: 0 };
  const suggestion = new Suggestion("1", { now: () => clock.now });
  if (text) suggestion.grow(text);
  clock.now = 900.4;
  return suggestion;
}

const events = (suggestion) => suggestion.outcomes.map((each) => each.event);

test("it is shown once, however often it grows", () => {
  const suggestion = suggested("a");
  suggestion.grow("b");
  assert.deepEqual(suggestion.outcomes, [{ event: "shown", after_ms: 0 }]);
  assert.equal(suggestion.left, "ab");
});

test("taking all of it accepts it", () => {
  const suggestion = suggested("a\nb");
  assert.equal(suggestion.takeAll(), "a\nb");
  assert.deepEqual(suggestion.outcomes[1], { event: "accepted", chars: 3, lines: 2, after_ms: 900 });
  assert.ok(suggestion.isOver);
});

test("a word is a part, and the last word accepts all", () => {
  const suggestion = suggested("count + 1");
  assert.equal(suggestion.takeWord(), "count");
  assert.equal(suggestion.takeWord(), " +");
  assert.equal(suggestion.takeWord(), " 1");
  assert.deepEqual(events(suggestion), ["shown", "partially_accepted", "partially_accepted", "accepted"]);
  assert.equal(suggestion.outcomes[3].chars, 9);
});

test("what is typed as suggested takes it off", () => {
  const suggestion = suggested("count");
  assert.ok(suggestion.type("co"));
  assert.equal(suggestion.left, "unt");
  assert.ok(suggestion.type("unt"));
  assert.deepEqual(events(suggestion), ["shown", "accepted"]);
});

test("something else that is typed is not its own", () => {
  const suggestion = suggested("count");
  assert.ok(!suggestion.type("x"));
  assert.ok(!suggestion.type(""));
  assert.equal(suggestion.left, "count");
});

test("it is rejected once, and not where nothing was shown", () => {
  const seen = suggested("a");
  seen.reject();
  seen.reject();
  assert.deepEqual(events(seen), ["shown", "rejected"]);
  const unseen = suggested("");
  unseen.reject();
  assert.deepEqual(events(unseen), []);
});

test("what is over neither grows nor gives", () => {
  const suggestion = suggested("a");
  suggestion.takeAll();
  suggestion.grow("b");
  assert.equal(suggestion.takeAll(), "");
  assert.equal(suggestion.takeWord(), "");
  assert.ok(!suggestion.type("b"));
  assert.deepEqual(events(suggestion), ["shown", "accepted"]);
});
