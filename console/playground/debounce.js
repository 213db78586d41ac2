// Calls a function once the user has stopped typing for a while.

export const DELAY_MS = 75; // as in Copilot

export class Debouncer {
  constructor(act, { wait = DELAY_MS, set = setTimeout, clear = clearTimeout } = {}) {
    this._act = act;
    this._wait = wait;
    // Browsers throw if their timer functions get another `this` than the window.
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
