// The API key of this page. The console creates it when the user presses Start, and revokes it when
// the user leaves. Only this module's response and the stream contain it.

export class Refused extends Error {}

export async function start(url, token, texts) {
  let response;
  try {
    response = await fetch(url, { method: "POST", headers: { "X-CSRFToken": token } });
  } catch {
    throw new Refused(texts.noConsole);
  }
  // Send users who were signed out meanwhile to the sign-in page.
  const isJson = (response.headers.get("Content-Type") || "").startsWith("application/json");
  if (!isJson) throw new Refused(response.redirected ? texts.signedOut : texts.noConsole);
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.message);
  return { key: answer.key, issuedAt: answer.issued_at, expiresAt: Date.parse(answer.expires_at) };
}

// A beacon is sent even while the page unloads. Return false if the browser rejected it.
export function end(url, token, session) {
  const form = new FormData();
  form.append("csrfmiddlewaretoken", token);
  form.append("issued_at", session.issuedAt);
  return navigator.sendBeacon(url, form);
}
