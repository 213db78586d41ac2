import assert from "node:assert/strict";
import { test } from "node:test";
import { Conversation } from "../src/chat/conversation";
import { noteFor } from "../src/chat/notes";
import { pageOf, TEXTS } from "../src/chat/page";

const PAGE = {
  nonce: "n0nce",
  cspSource: "https://editor.example",
  scriptUrl: "https://editor.example/chat.js",
  styleUrl: "https://editor.example/chat.css",
  texts: { ...TEXTS, placeholder: `"><script>alert(1)</script>` },
};

test("the page runs only its own script and loads nothing from elsewhere", () => {
  const html = pageOf(PAGE);
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1];

  assert.equal(
    policy,
    "default-src 'none'; style-src https://editor.example; script-src 'nonce-n0nce'; base-uri 'none'; form-action 'none'",
  );
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.ok(!/\son\w+=|style="/.test(html));
});

test("a conversation is sent with the new question and without the empty answer", () => {
  const conversation = new Conversation();
  conversation.begin("Why?");
  conversation.append("Be");
  conversation.append("cause.");
  conversation.end(null);
  conversation.begin("Explain", "explain");

  assert.deepEqual(conversation.sent(), [
    { role: "user", text: "Why?" },
    { role: "assistant", text: "Because." },
    { role: "user", text: "Explain", command: "explain" },
  ]);
});

test("a question without an answer is not sent again", () => {
  const conversation = new Conversation();
  conversation.begin("Why?");
  conversation.end("Offline");
  conversation.begin("How?");

  assert.deepEqual(conversation.sent(), [{ role: "user", text: "How?" }]);
});

test("an answer that was stopped stays, and so does the reason", () => {
  const conversation = new Conversation();
  conversation.begin("Why?");
  conversation.append("Be");
  conversation.end("Stopped.");

  assert.deepEqual([conversation.turns[1]?.text, conversation.turns[1]?.note], ["Be", "Stopped."]);
  assert.equal(conversation.isBusy, false);
});

test("only a whole answer has no note", () => {
  assert.equal(noteFor("stop"), null);
  assert.ok(noteFor("length")?.includes("cut off"));
  assert.equal(noteFor("anything"), noteFor("failed"));
});
