/** Sentences for the reasons of `caret_ls.skip_rules.SkipReason`. */

export const REASONS: Readonly<Record<string, string>> = {
  paused: "Suggestions are paused.",
  language_off: "Suggestions are off for this language.",
  selection: "Text is selected.",
  excluded: "This file is excluded, by the tenant's policy or by your settings.",
  mode_off: "Your policy or your API key allows no inline suggestions here.",
  block_off: "Your policy or your API key allows no blocks here.",
  docstring_off: "Your policy or your API key allows no docstrings here.",
  chat_off: "Your policy or your API key allows no chats here.",
  edit_off: "Next edits are off here: by your settings, your policy, your API key or the model.",
  no_model: "No model of this installation serves this. An operator can publish one.",
  secret_file: "This file looks as if it held secrets; it does not leave this machine.",
  generated_file: "This file looks generated.",
  in_comment: "The cursor is in a comment.",
  in_string: "The cursor is in a string.",
  statement_ended: "The statement is complete.",
  mid_line: "The cursor is in the middle of a line.",
  blank_file: "The file is empty.",
  completion_list_open: "No suggestion goes on from the word chosen in the list; Esc closes it.",
  not_requested: "Nothing was asked yet.",
  newer_keystroke: "You have typed on before the suggestion came.",
  nothing_to_suggest: "The model had nothing to suggest here.",
  overloaded: "The gateway is busy and asked to wait.",
  over_budget: "The budget is spent.",
  signed_out: "You are signed out, or the key is refused.",
  offline: "The gateway cannot be reached.",
  refused: "The gateway has refused the request; the log says why.",
  file_closed: "The file is not known to the language server.",
  withheld: "The answer was withheld, because it contained a secret or public code.",
  no_function: "There is no function here, or docstrings are not known for this language.",
  has_docstring: "The function has a docstring already.",
  file_changed: "The file has changed meanwhile. Try again.",
};

export const SUGGESTED = "The last request brought a suggestion.";

/** Return the sentence; show an unknown reason of a newer server by its name. */
export function sentenceFor(reason: string | null): string {
  return reason === null ? SUGGESTED : (REASONS[reason] ?? reason);
}
