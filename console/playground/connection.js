// The page's session. Its states are stopped, starting, connecting and ready. `start` gets a key and
// opens the stream. `stop`, the end of the hour, and leaving the page revoke the key and close the
// stream.

import { end, Refused, start } from "./playground_key.js";
import { Stream } from "./stream.js";

export class Connection {
  // `on`: {state(name, sentence), frame(frame)}
  constructor(page, on) {
    this._page = page;
    this._on = on;
    this._session = null;
    this._stream = null;
    this._timer = null;
    this._generation = 0; // grows with each start and stop, so that a waiting start sees if it was cancelled
    // Not `unload`: browsers do not send it if they keep the page for the Back button. A page that
    // comes back shows that it is not started.
    addEventListener("pagehide", () => this.stop());
  }

  async start() {
    this._release();
    this._on.state("starting", "");
    const generation = this._generation;
    let session;
    try {
      session = await start(this._page.startUrl, this._page.token, this._page.texts);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (generation === this._generation) this._on.state("stopped", error.message);
      return;
    }
    if (generation !== this._generation) {
      end(this._page.endUrl, this._page.token, session); // stopped or started again in the meantime
      return;
    }
    this._session = session;
    this._on.state("connecting", "");
    this._timer = setTimeout(() => this.stop("hour"), this._session.expiresAt - Date.now());
    this._stream = new Stream({
      url: this._page.streamUrl,
      key: this._session.key,
      makeSocket: (url, protocols) => new WebSocket(url, protocols),
      on: {
        open: () => this._on.state("ready", ""),
        frame: this._on.frame,
        end: (reason) => this.stop(reason),
      },
    });
  }

  // `reason` is a key of `texts.stopped`; undefined: the user stopped.
  stop(reason) {
    this._release();
    this._on.state("stopped", reason === undefined ? "" : this._page.texts.stopped[reason]);
  }

  request(frame) {
    return this._stream !== null && this._stream.request(frame);
  }

  cancel(id) {
    if (this._stream !== null) this._stream.cancel(id);
  }

  outcome(id, outcome) {
    if (this._stream !== null) this._stream.outcome(id, outcome);
  }

  _release() {
    this._generation += 1;
    clearTimeout(this._timer);
    if (this._stream !== null) this._stream.close();
    if (this._session !== null) end(this._page.endUrl, this._page.token, this._session);
    this._stream = this._session = null;
  }
}
