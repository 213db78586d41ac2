"use strict";
// Makes pages quicker to use. Every page also works without it.

(() => {
  const YEAR_S = 365 * 24 * 3600;
  const OPEN_MENUS = "details.menu[open], details.tip[open]"; // closed by Escape and by clicks elsewhere

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
    closeMenus();
    shortcuts.showModal();
  }

  const isTyping = (target) => target.isContentEditable || target.closest("input, textarea, select");

  // The arrow keys move through the search results; Enter in the field opens the first.
  function moveInResults(event) {
    const links = [...palette.querySelectorAll(".search-result")];
    const current = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (links[current + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp") (current > 0 ? links[current - 1] : field).focus();
    else if (event.key === "Enter" && document.activeElement === field && links.length) links[0].click();
    else if (event.key === "Escape") palette.close(); // the search field would only clear itself
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") openPalette(event);
    else if (palette?.open) moveInResults(event);
    else if (event.key === "?" && !isTyping(event.target)) openShortcuts(event);
    else if (event.key === "Escape") closeMenus();
  });

  function closeMenus() {
    if (location.hash === "#menu") location.hash = "";
    for (const open of document.querySelectorAll(OPEN_MENUS)) open.open = false;
  }

  async function copy(button) {
    const label = button.querySelector("span");
    const text = label.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    label.textContent = button.dataset.copied;
    setTimeout(() => { label.textContent = text; }, 1600);
  }

  document.addEventListener("click", (event) => {
    const clicked = (selector) => event.target.closest(selector);
    if (clicked("[data-palette]")) openPalette(event);
    if (clicked("[data-shortcuts]")) openShortcuts(event);
    if (clicked("[data-dismiss]")) clicked(".toast").remove();
    if (clicked("[data-copy]")) copy(clicked("[data-copy]"));
    if (event.target === palette || event.target === shortcuts) event.target.close();
    for (const open of document.querySelectorAll(OPEN_MENUS)) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // Apply a filter as soon as it changes, and hide the button that serves browsers without scripts.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-submit-on-change]");
    if (form) form.requestSubmit();
  });

  // Show the buttons that need this script, and hide those that replace it.
  function adaptButtons(root) {
    for (const button of root.querySelectorAll("[data-dismiss], [data-copy]")) button.hidden = false;
    for (const button of root.querySelectorAll("form[data-submit-on-change] [data-apply]")) button.hidden = true;
  }
  adaptButtons(document);
  // If the tabs do not all fit, scroll to the current one.
  for (const current of document.querySelectorAll(".tabs [aria-current]")) {
    const [row, tab] = [current.closest(".tabs"), current.getBoundingClientRect()];
    row.scrollLeft += tab.left - row.getBoundingClientRect().left - (row.clientWidth - tab.width) / 2;
  }
  document.addEventListener("htmx:load", (event) => adaptButtons(event.target));
})();
