// The page's session: stopped, starting, connecting, ready. Start requests a key and opens the stream.
// Stopping, the end of the hour and leaving the page give both back.

import { end, Refused, start } from "./session.js";
import { Stream } from "./stream.js";

export class Connection {
  // `on`: {state(name, sentence), frame(frame)}
  constructor(page, on) {
    this._page = page;
    this._on = on;
    this._session = null;
    this._stream = null;
    this._timer = null;
    this._numStarts = 0; // also counts stops: code that waited compares it to see whether it is outdated
    // Not `unload`: browsers do not send it for pages in their back/forward cache. A page that comes back
    // from that cache shows correctly that nothing is started.
    addEventListener("pagehide", () => this.stop());
  }

  async start() {
    this._giveBack();
    this._on.state("starting", "");
    const num = this._numStarts;
    let session;
    try {
      session = await start(this._page.startUrl, this._page.token, this._page.texts);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (num === this._numStarts) this._on.state("stopped", error.message);
      return;
    }
    if (num !== this._numStarts) {
      end(this._page.endUrl, this._page.token, session); // the user stopped or restarted meanwhile
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

  // `reason` names a sentence of the page's texts. Without it, the user stopped the session.
  stop(reason) {
    this._giveBack();
    this._on.state("stopped", reason === undefined ? "" : this._page.texts.stopped[reason]);
  }

  ask(frame) {
    return this._stream !== null && this._stream.ask(frame);
  }

  cancel(id) {
    if (this._stream !== null) this._stream.cancel(id);
  }

  outcome(id, outcome) {
    if (this._stream !== null) this._stream.outcome(id, outcome);
  }

  _giveBack() {
    this._numStarts += 1;
    clearTimeout(this._timer);
    if (this._stream !== null) this._stream.close();
    if (this._session !== null) end(this._page.endUrl, this._page.token, this._session);
    this._stream = this._session = null;
  }
}
