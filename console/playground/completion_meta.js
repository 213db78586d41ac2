// Explains a finished completion with the page's texts. Pure.

export const NUMBERS = [
  ["first_token_ms", "ms"],
  ["total_ms", "ms"],
  ["time_to_engine_ms", "ms"],
  ["assemble_ms", "ms"],
  ["engine_ms", "ms"],
  ["prompt_tokens", "count"],
  ["cached_tokens", "count"],
  ["generated_tokens", "count"],
];

// Error codes that end the session: the gateway would reject every further request.
const KEY_ERRORS = new Set(["revoked_api_key", "expired_api_key", "invalid_api_key", "tenant_suspended"]);

export function endsSession(frame) {
  return frame.type === "error" && KEY_ERRORS.has(frame.code);
}

// Returns {outcome, sentences}: `outcome` is shown | nothing | refused; `texts` has the sentences.
export function explain(frame, text, texts) {
  if (frame.type === "error") {
    const known = texts.error[frame.code];
    return { outcome: "refused", sentences: [known || frame.message, ...retrySentences(frame, texts)] };
  }
  const cut = frame.meta.filter_reason;
  const sentences = [texts.finish[frame.finish_reason] || frame.finish_reason];
  if (cut) sentences.push(texts.cut[cut] || cut);
  const isNothing = frame.finish_reason === "filtered" || text === "";
  if (isNothing && frame.finish_reason === "stop" && !cut) sentences[0] = texts.empty;
  return { outcome: isNothing ? "nothing" : "shown", sentences };
}

function retrySentences(frame, texts) {
  if (frame.retry_after_s === undefined) return [];
  return [texts.retry.replace("{seconds}", String(Math.ceil(frame.retry_after_s)))];
}

// Returns the segments with their start, width and cached width, as shares of the whole prompt.
export function segmentShares(segments) {
  const total = segments.reduce((sum, segment) => sum + segment.tokens, 0);
  let before = 0;
  return segments.map((segment) => {
    const share = {
      ...segment,
      from: before / total,
      width: segment.tokens / total,
      cachedWidth: (segment.cached_tokens || 0) / total,
    };
    before += segment.tokens;
    return share;
  });
}

// Returns one sum for each kind of segment, in the order of the prompt.
export function totalsByKind(segments) {
  const sums = new Map();
  for (const { kind, tokens, cached_tokens: cached } of segments) {
    const sum = sums.get(kind) || { kind, tokens: 0, cached: cached === null ? null : 0 };
    sum.tokens += tokens;
    if (sum.cached !== null) sum.cached += cached;
    sums.set(kind, sum);
  }
  return [...sums.values()];
}
