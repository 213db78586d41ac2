// Creates and uses passkeys. A page marks its form with `data-passkey`, "create" or "get". On submit,
// the browser gets the options in #passkey-options, and the form is sent with the browser's response.
// A form with `data-passkey-now` starts at once. Elements with `data-passkey-only` are shown only if
// the browser supports passkeys here; elements with `data-passkey-missing` are shown otherwise.
// The script element has the error texts as data attributes, in the reader's language.
"use strict";

(() => {
  const texts = document.currentScript.dataset;
  const ERRORS = {
    NotAllowedError: texts.notAllowed,
    InvalidStateError: texts.invalidState,
    SecurityError: texts.security,
  };

  // A passkey belongs to a host name, never to an IP address.
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname);
  const isUsable = Boolean(window.PublicKeyCredential) && window.isSecureContext && !isAddress;

  const toBytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));

  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");

  const withBytes = (keys) => (keys || []).map((key) => ({ ...key, id: toBytes(key.id) }));

  function readOptions() {
    const { publicKey } = JSON.parse(document.getElementById("passkey-options").textContent);
    const options = { ...publicKey, challenge: toBytes(publicKey.challenge) };
    if (publicKey.user) options.user = { ...publicKey.user, id: toBytes(publicKey.user.id) };
    options.excludeCredentials = withBytes(publicKey.excludeCredentials);
    options.allowCredentials = withBytes(publicKey.allowCredentials);
    return { publicKey: options };
  }

  function writeResponse(credential) {
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

  async function sendPasskey(form) {
    const notice = form.querySelector("[data-passkey-error]");
    notice.hidden = true;
    try {
      form.elements.credential.value = writeResponse(
        await navigator.credentials[form.dataset.passkey](readOptions()),
      );
      form.submit();
    } catch (error) {
      notice.textContent = ERRORS[error.name] || texts.failed;
      notice.hidden = false;
    }
  }

  for (const element of document.querySelectorAll("[data-passkey-only]")) element.hidden = !isUsable;
  for (const element of document.querySelectorAll("[data-passkey-missing]")) element.hidden = isUsable;
  for (const form of isUsable ? document.querySelectorAll("form[data-passkey]") : []) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sendPasskey(form);
    });
    if ("passkeyNow" in form.dataset) sendPasskey(form);
  }
})();
