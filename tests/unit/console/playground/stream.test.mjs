import assert from "node:assert/strict";
import { test } from "node:test";

import { Stream } from "../../../../console/playground/stream.js";

function openStream() {
  const world = { sockets: [], later: [], received: [], ends: [], numOpen: 0 };
  world.stream = new Stream({
    url: "ws://gateway/v1/stream",
    key: "cpk_test_x",
    makeSocket: (url, protocols) => {
      const socket = { url, protocols, sent: [], send: (text) => socket.sent.push(JSON.parse(text)) };
      socket.close = () => socket.onclose({ code: 1000 });
      world.sockets.push(socket);
      return socket;
    },
    later: (call) => world.later.push(call),
    on: {
      open: () => (world.numOpen += 1),
      frame: (frame) => world.received.push(frame),
      end: (reason) => world.ends.push(reason),
    },
  });
  world.last = () => world.sockets.at(-1);
  world.receive = (frame) => world.last().onmessage({ data: JSON.stringify(frame) });
  return world;
}

test("the key is sent as a subprotocol and not in the URL", () => {
  const { sockets } = openStream();
  assert.deepEqual(sockets[0].protocols, ["caret.v1", "caret.key.cpk_test_x"]);
  assert.ok(!sockets[0].url.includes("cpk_"));
});

test("no request is sent before the stream is open", () => {
  const world = openStream();
  assert.equal(world.stream.request({ type: "complete", id: "1" }), false);
  world.last().onopen();
  assert.equal(world.stream.request({ type: "complete", id: "1" }), true);
  assert.equal(world.last().sent.length, 1);
});

test("an outcome waits for the end of its completion", () => {
  const world = openStream();
  world.last().onopen();
  world.stream.request({ type: "complete", id: "1" });
  world.stream.outcome("1", { event: "shown" });
  world.receive({ type: "delta", id: "1", text: "a" });
  assert.equal(world.last().sent.length, 1);
  world.receive({ type: "done", id: "1" });
  world.stream.outcome("1", { event: "accepted" });
  assert.deepEqual(world.last().sent.slice(1).map((frame) => frame.event), ["shown", "accepted"]);
});

test("only a completion in flight is cancelled", () => {
  const world = openStream();
  world.last().onopen();
  world.stream.request({ type: "complete", id: "1" });
  world.stream.cancel("1");
  world.receive({ type: "done", id: "1" });
  world.stream.cancel("1");
  assert.deepEqual(world.last().sent.map((frame) => frame.type), ["complete", "cancel"]);
});

test("an unknown key is retried a limited number of times", () => {
  const world = openStream();
  for (let tries = 0; tries < 20; tries += 1) {
    world.last().onclose({ code: 1006 });
    const next = world.later.pop();
    if (next) next();
  }
  assert.equal(world.sockets.length, 6);
  assert.deepEqual(world.ends, ["unreachable"]);
});

test("a broken stream is reopened with all retries", () => {
  const world = openStream();
  for (let breaks = 0; breaks < 10; breaks += 1) {
    world.last().onopen();
    world.last().onclose({ code: 1006 });
    world.later.pop()();
  }
  assert.deepEqual([world.numOpen, world.ends.length], [10, 0]);
});

test("a revoked key is not retried", () => {
  const world = openStream();
  world.last().onopen();
  world.last().onclose({ code: 4401 });
  assert.deepEqual([world.ends, world.later.length], [["key"], 0]);
});

test("a closed stream stays closed and reports nothing", () => {
  const world = openStream();
  world.stream.close();
  assert.deepEqual([world.ends, world.later.length, world.stream.isOpen], [[], 0, false]);
});
