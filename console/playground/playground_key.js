// The API key of this page. The console creates it on Start and revokes it when the user leaves.
// Only the return value of `start` and the stream hold the key.

export class Refused extends Error {}

export async function start(url, token, texts) {
  let response;
  try {
    response = await fetch(url, { method: "POST", headers: { "X-CSRFToken": token } });
  } catch {
    throw new Refused(texts.noConsole);
  }
  // A signed-out user is redirected to the sign-in page.
  const isJson = (response.headers.get("Content-Type") || "").startsWith("application/json");
  if (!isJson) throw new Refused(response.redirected ? texts.signedOut : texts.noConsole);
  const body = await response.json();
  if (!response.ok) throw new Refused(body.message);
  return { key: body.key, issuedAt: body.issued_at, expiresAt: Date.parse(body.expires_at) };
}

// Browsers send a beacon even while the page closes. Returns false if the browser rejected it.
export function end(url, token, session) {
  const form = new FormData();
  form.append("csrfmiddlewaretoken", token);
  form.append("issued_at", session.issuedAt);
  return navigator.sendBeacon(url, form);
}
