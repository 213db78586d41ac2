// Wait for a pause in typing.

export const PAUSE_MS = 75; // the same as Copilot

export class Pause {
  constructor(act, { wait = PAUSE_MS, set = setTimeout, clear = clearTimeout } = {}) {
    this._act = act;
    this._wait = wait;
    // Browsers require timers to be called as methods of the window.
    this._set = (call, ms) => set(call, ms);
    this._clear = (timer) => clear(timer);
    this._timer = null;
  }

  begin() {
    this.stop();
    this._timer = this._set(() => {
      this._timer = null;
      this._act();
    }, this._wait);
  }

  stop() {
    if (this._timer !== null) this._clear(this._timer);
    this._timer = null;
  }
}
