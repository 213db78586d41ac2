/** Sentences for answers that ended early without a reason of the language server. */

export const NOTES = {
  length: "The answer reached the maximum length and was cut off.",
  cancelled: "Stopped.",
  failed: "The answer could not be completed.",
} as const;

/** Return the sentence for a finish reason; null for a whole answer. */
export function noteFor(finishReason: string): string | null {
  if (finishReason === "stop") {
    return null;
  }
  return finishReason === "length" || finishReason === "cancelled" ? NOTES[finishReason] : NOTES.failed;
}
