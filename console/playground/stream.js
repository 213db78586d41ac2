// The browser's client for the protocol caret.v1 (platform/docs/protocol.md).
//
// Rules:
// 1. The key is sent as a subprotocol, never in a URL.
// 2. Gateways know a new key within a second, so the client retries until then. It also reopens a
//    connection that breaks.
// 3. Outcomes wait for the end of their completion, as the protocol requires.

const RETRY_DELAYS_MS = [0, 150, 300, 600, 1200, 2400];
const CLOSE_CODE_KEY_ENDED = 4401;

export class Stream {
  // `on`: {open, frame, end}; `end` gets the reason: "unreachable" or "key".
  constructor({ url, key, on, makeSocket, later = (call, ms) => setTimeout(call, ms) }) {
    this._url = url;
    this._key = key;
    this._on = on;
    this._makeSocket = makeSocket;
    this._later = later;
    this._socket = null;
    this._isOpen = false;
    this._isClosed = false;
    this._numTries = 0;
    this._unfinished = new Map(); // id of a request -> outcomes that wait for its end
    this._connect();
  }

  get isOpen() {
    return this._isOpen;
  }

  // Returns false if the stream is not open.
  request(frame) {
    if (!this._isOpen) return false;
    this._unfinished.set(frame.id, []);
    this._send(frame);
    return true;
  }

  cancel(id) {
    if (this._unfinished.has(id)) this._send({ type: "cancel", id });
  }

  outcome(id, outcome) {
    const frame = { type: "outcome", id, ...outcome };
    if (this._unfinished.has(id)) this._unfinished.get(id).push(frame);
    else this._send(frame);
  }

  close() {
    this._isClosed = true;
    this._isOpen = false;
    if (this._socket !== null) this._socket.close();
  }

  _connect() {
    if (this._isClosed) return;
    const socket = this._makeSocket(this._url, ["caret.v1", `caret.key.${this._key}`]);
    this._socket = socket;
    socket.onopen = () => {
      this._isOpen = true;
      this._numTries = 0;
      this._on.open();
    };
    socket.onmessage = (message) => this._received(JSON.parse(message.data));
    socket.onclose = (event) => this._closed(event.code);
  }

  _closed(code) {
    this._isOpen = false;
    this._unfinished.clear();
    if (this._isClosed) return;
    this._numTries += 1;
    if (code === CLOSE_CODE_KEY_ENDED) this._end("key");
    else if (this._numTries >= RETRY_DELAYS_MS.length) this._end("unreachable");
    else this._later(() => this._connect(), RETRY_DELAYS_MS[this._numTries]);
  }

  _end(reason) {
    this._isClosed = true;
    this._on.end(reason);
  }

  _received(frame) {
    this._on.frame(frame);
    if (frame.type === "delta") return;
    const waiting = this._unfinished.get(frame.id) || [];
    this._unfinished.delete(frame.id);
    for (const outcome of waiting) this._send(outcome);
  }

  _send(frame) {
    if (this._isOpen) this._socket.send(JSON.stringify(frame));
  }
}
