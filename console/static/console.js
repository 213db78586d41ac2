"use strict";
// Makes pages quicker to use. Every page also works without it.

(() => {
  const YEAR_S = 365 * 24 * 3600;
  const OPEN = "details.menu[open], details.tip[open]"; // closed by Escape and by clicks elsewhere

  // Tell the server the browser's time zone, which it uses from the next page on.
  if (!/(^|; )caret-zone=/.test(document.cookie)) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    if (zone) document.cookie = `caret-zone=${zone}; Path=/; Max-Age=${YEAR_S}; SameSite=Lax${secure}`;
  }

  const palette = document.getElementById("palette");
  const field = document.getElementById("palette-q");

  function openPalette(event) {
    if (!palette || palette.open) return;
    event.preventDefault();
    palette.showModal();
    field.select();
    field.dispatchEvent(new Event("opened"));
  }

  const shortcuts = document.getElementById("shortcuts");

  function openShortcuts(event) {
    if (!shortcuts || shortcuts.open) return;
    event.preventDefault();
    leave();
    shortcuts.showModal();
  }

  const isTyping = (target) => target.isContentEditable || target.closest("input, textarea, select");

  // The arrow keys move through the search results; Enter in the field opens the first.
  function walk(event) {
    const links = [...palette.querySelectorAll(".search-result")];
    const here = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (links[here + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp") (here > 0 ? links[here - 1] : field).focus();
    else if (event.key === "Enter" && document.activeElement === field && links.length) links[0].click();
    else if (event.key === "Escape") palette.close(); // the search field would only clear itself
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openPalette(event);
    else if (palette?.open) walk(event);
    else if (event.key === "?" && !isTyping(event.target)) openShortcuts(event);
    else if (event.key === "Escape") leave();
  });

  function leave() {
    if (location.hash === "#menu") location.hash = "";
    for (const open of document.querySelectorAll(OPEN)) open.open = false;
  }

  async function copy(button) {
    const label = button.querySelector("span");
    const before = label.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    label.textContent = button.dataset.copied;
    setTimeout(() => { label.textContent = before; }, 1600);
  }

  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest(selector);
    if (on("[data-palette]")) openPalette(event);
    if (on("[data-shortcuts]")) openShortcuts(event);
    if (on("[data-dismiss]")) on(".toast").remove();
    if (on("[data-copy]")) copy(on("[data-copy]"));
    if (event.target === palette || event.target === shortcuts) event.target.close();
    for (const open of document.querySelectorAll(OPEN)) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // Apply a filter as soon as it changes, and hide the button that serves browsers without scripts.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-live]");
    if (form) form.requestSubmit();
  });

  function show(root) {
    for (const button of root.querySelectorAll("[data-dismiss], [data-copy]")) button.hidden = false;
    for (const button of root.querySelectorAll("form[data-live] [data-apply]")) button.hidden = true;
  }
  show(document);
  // Scroll tabs that do not fit to the current one.
  for (const here of document.querySelectorAll(".tabs [aria-current]")) {
    const [row, tab] = [here.closest(".tabs"), here.getBoundingClientRect()];
    row.scrollLeft += tab.left - row.getBoundingClientRect().left - (row.clientWidth - tab.width) / 2;
  }
  document.addEventListener("htmx:load", (event) => show(event.target));
})();
