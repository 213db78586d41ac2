// Passkeys, which only scripts can use. A form with `data-passkey` ("create" or "get") is submitted
// with the browser's response to the challenge in #passkey-question; with `data-passkey-now`, at once.
// Elements that need passkeys have `data-passkey-only` and stay hidden until the browser supports
// them. Otherwise elements with `data-passkey-missing` are shown.
"use strict";

(() => {
  const REFUSALS = {
    NotAllowedError: "No passkey was used. Try again.",
    InvalidStateError: "This device already has a passkey for your account.",
    SecurityError: "Passkeys do not work at this address.",
  };

  // A passkey belongs to a host name, never to a network address.
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname);
  const isUsable = Boolean(window.PublicKeyCredential) && window.isSecureContext && !isAddress;

  const toBytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));

  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

  const withBytes = (keys) => (keys || []).map((key) => ({ ...key, id: toBytes(key.id) }));

  function readQuestion() {
    const { publicKey } = JSON.parse(document.getElementById("passkey-question").textContent);
    const question = { ...publicKey, challenge: toBytes(publicKey.challenge) };
    if (publicKey.user) question.user = { ...publicKey.user, id: toBytes(publicKey.user.id) };
    question.excludeCredentials = withBytes(publicKey.excludeCredentials);
    question.allowCredentials = withBytes(publicKey.allowCredentials);
    return { publicKey: question };
  }

  function writeAnswer(credential) {
    const response = {};
    for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (credential.response[name]) response[name] = toText(credential.response[name]);
    }
    const { credProps } = credential.getClientExtensionResults();
    return JSON.stringify({
      id: credential.id,
      rawId: toText(credential.rawId),
      type: credential.type,
      response,
      clientExtensionResults: credProps ? { credProps } : {},
    });
  }

  async function ask(form) {
    const notice = form.querySelector("[data-passkey-error]");
    notice.hidden = true;
    try {
      form.elements.credential.value = writeAnswer(
        await navigator.credentials[form.dataset.passkey](readQuestion()),
      );
      form.submit();
    } catch (error) {
      notice.textContent = REFUSALS[error.name] || "Your browser could not use the passkey. Try again.";
      notice.hidden = false;
    }
  }

  for (const element of document.querySelectorAll("[data-passkey-only]")) element.hidden = !isUsable;
  for (const element of document.querySelectorAll("[data-passkey-missing]")) element.hidden = isUsable;
  for (const form of isUsable ? document.querySelectorAll("form[data-passkey]") : []) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask(form);
    });
    if ("passkeyNow" in form.dataset) ask(form);
  }
})();
