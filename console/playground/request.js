// Builds the frame that requests a completion. Pure.

export const MAX_TEXT_CHARS = 512 * 1024; // the gateway's limit for each side of the cursor

export function completeFrame({ id, mode, language, files, active, cursor, trigger }) {
  const { path, text } = files[active];
  return {
    type: "complete",
    id,
    mode,
    language,
    path,
    prefix: text.slice(0, cursor).slice(-MAX_TEXT_CHARS),
    suffix: text.slice(cursor).slice(0, MAX_TEXT_CHARS),
    files: files
      .filter((file, index) => index !== active && file.text.trim() !== "")
      .map((file) => ({ path: file.path, text: file.text, edited_at: file.editedAt })),
    trigger,
    include_prompt_segments: true,
  };
}
