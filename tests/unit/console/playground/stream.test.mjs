import assert from "node:assert/strict";
import { test } from "node:test";

import { Stream } from "../../../../console/playground/stream.js";

function opened() {
  const world = { sockets: [], later: [], heard: [], ends: [], numOpen: 0 };
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
      frame: (frame) => world.heard.push(frame),
      end: (reason) => world.ends.push(reason),
    },
  });
  world.last = () => world.sockets.at(-1);
  world.says = (frame) => world.last().onmessage({ data: JSON.stringify(frame) });
  return world;
}

test("the key is offered as a subprotocol and is in no address", () => {
  const { sockets } = opened();
  assert.deepEqual(sockets[0].protocols, ["caret.v1", "caret.key.cpk_test_x"]);
  assert.ok(!sockets[0].url.includes("cpk_"));
});

test("nothing is asked before it is open", () => {
  const world = opened();
  assert.equal(world.stream.ask({ type: "complete", id: "1" }), false);
  world.last().onopen();
  assert.equal(world.stream.ask({ type: "complete", id: "1" }), true);
  assert.equal(world.last().sent.length, 1);
});

test("an outcome waits for its completion's end", () => {
  const world = opened();
  world.last().onopen();
  world.stream.ask({ type: "complete", id: "1" });
  world.stream.outcome("1", { event: "shown" });
  world.says({ type: "delta", id: "1", text: "a" });
  assert.equal(world.last().sent.length, 1);
  world.says({ type: "done", id: "1" });
  world.stream.outcome("1", { event: "accepted" });
  assert.deepEqual(world.last().sent.slice(1).map((frame) => frame.event), ["shown", "accepted"]);
});

test("only what is under way is cancelled", () => {
  const world = opened();
  world.last().onopen();
  world.stream.ask({ type: "complete", id: "1" });
  world.stream.cancel("1");
  world.says({ type: "done", id: "1" });
  world.stream.cancel("1");
  assert.deepEqual(world.last().sent.map((frame) => frame.type), ["complete", "cancel"]);
});

test("a key that is not known yet is tried again, but not for ever", () => {
  const world = opened();
  for (let tries = 0; tries < 20; tries += 1) {
    world.last().onclose({ code: 1006 });
    const next = world.later.pop();
    if (next) next();
  }
  assert.equal(world.sockets.length, 6);
  assert.deepEqual(world.ends, ["unreachable"]);
});

test("a stream that breaks is opened anew, with all its tries", () => {
  const world = opened();
  for (let breaks = 0; breaks < 10; breaks += 1) {
    world.last().onopen();
    world.last().onclose({ code: 1006 });
    world.later.pop()();
  }
  assert.deepEqual([world.numOpen, world.ends.length], [10, 0]);
});

test("a key that has ended is not tried again", () => {
  const world = opened();
  world.last().onopen();
  world.last().onclose({ code: 4401 });
  assert.deepEqual([world.ends, world.later.length], [["key"], 0]);
});

test("what was closed stays closed and says nothing", () => {
  const world = opened();
  world.stream.close();
  assert.deepEqual([world.ends, world.later.length, world.stream.isOpen], [[], 0, false]);
});
