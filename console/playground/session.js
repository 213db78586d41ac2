// The key of this page: the console makes it when somebody presses Start, and ends it when he leaves.
// It is in this module's answer and in the stream, and nowhere else.

export class Refused extends Error {}

export async function start(url, token, texts) {
  let response;
  try {
    response = await fetch(url, { method: "POST", headers: { "X-CSRFToken": token } });
  } catch {
    throw new Refused(texts.noConsole);
  }
  // Who has been signed out meanwhile is led to the page for signing in.
  const isJson = (response.headers.get("Content-Type") || "").startsWith("application/json");
  if (!isJson) throw new Refused(response.redirected ? texts.signedOut : texts.noConsole);
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.message);
  return { key: answer.key, issuedAt: answer.issued_at, expiresAt: Date.parse(answer.expires_at) };
}

// A beacon is sent even while the page goes away. False: the browser did not take it.
export function end(url, token, session) {
  const form = new FormData();
  form.append("csrfmiddlewaretoken", token);
  form.append("issued_at", session.issuedAt);
  return navigator.sendBeacon(url, form);
}
