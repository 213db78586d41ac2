"use strict";
// Updates the overview's last minute every two seconds while the session lasts.

(() => {
  const section = document.querySelector("[data-live-socket]");
  if (!section) return;
  const state = section.querySelector("[data-live-state]");
  const FIRST_MS = 1000, LONGEST_MS = 60000;
  let wait_ms = FIRST_MS;

  function say(values) {
    for (const place of section.querySelectorAll("[data-live-value]")) {
      const text = values[place.dataset.liveValue];
      if (text !== undefined && place.textContent !== text) place.textContent = text;
    }
    section.classList.add("is-live");
    state.textContent = `${state.dataset.liveText}, ${values.at}`;
  }

  function open() {
    const address = new URL(section.dataset.liveSocket, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.addEventListener("message", (event) => { wait_ms = FIRST_MS; say(JSON.parse(event.data)); });
    socket.addEventListener("close", (event) => {
      section.classList.remove("is-live");
      // 4401: the session has ended or lost its permission, so a new connection would fail, too.
      if (event.code === 4401) state.textContent = state.dataset.endedText;
      else again();
    });
  }

  function again() {
    setTimeout(() => { if (document.hidden) again(); else open(); }, wait_ms);
    wait_ms = Math.min(2 * wait_ms, LONGEST_MS);
  }

  open();
})();
