"use strict";
// Updates the last minute's figures of the overview every two seconds, while the session is valid.

(() => {
  const section = document.querySelector("[data-live-socket]");
  if (!section) return;
  const state = section.querySelector("[data-live-state]");
  // The wait before the client reconnects. It doubles with each failure.
  const MIN_WAIT_MS = 1000, MAX_WAIT_MS = 60000;
  let wait_ms = MIN_WAIT_MS;

  function show(values) {
    for (const element of section.querySelectorAll("[data-live-value]")) {
      const text = values[element.dataset.liveValue];
      if (text !== undefined && element.textContent !== text) element.textContent = text;
    }
    section.classList.add("is-live");
    state.textContent = `${state.dataset.liveText}, ${values.at}`;
  }

  function connect() {
    const address = new URL(section.dataset.liveSocket, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.addEventListener("message", (event) => { wait_ms = MIN_WAIT_MS; show(JSON.parse(event.data)); });
    socket.addEventListener("close", (event) => {
      section.classList.remove("is-live");
      // 4401: the session has ended or its access has changed, so the whole page must be reloaded.
      if (event.code === 4401) state.textContent = state.dataset.endedText;
      else reconnectLater();
    });
  }

  function reconnectLater() {
    setTimeout(() => { if (document.hidden) reconnectLater(); else connect(); }, wait_ms);
    wait_ms = Math.min(2 * wait_ms, MAX_WAIT_MS);
  }

  connect();
})();
