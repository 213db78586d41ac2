/** Sentences for answers that ended early without a reason of the language server. */

export const NOTES = {
  length: "The answer was cut off at its longest length.",
  cancelled: "Stopped.",
  failed: "The answer could not be finished.",
} as const;

/** Return the sentence for a finish reason; null for a whole answer. */
export function noteFor(finishReason: string): string | null {
  if (finishReason === "stop") {
    return null;
  }
  return finishReason === "length" || finishReason === "cancelled" ? NOTES[finishReason] : NOTES.failed;
}
