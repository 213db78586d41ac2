/** Sentences for the reasons of `caret_ls.skip_rules.SkipReason`. */

export const REASONS: Readonly<Record<string, string>> = {
  paused: "Suggestions are paused.",
  language_off: "Suggestions are off for this language.",
  selection: "Text is selected.",
  excluded: "This file is excluded, by the tenant's policy or by your settings.",
  mode_off: "Your policy or your API key does not allow inline suggestions here.",
  block_off: "Your policy or your API key does not allow blocks here.",
  docstring_off: "Your policy or your API key does not allow docstrings here.",
  chat_off: "Your policy or your API key does not allow chats here.",
  edit_off: "Your settings, your policy, your API key or the model does not allow next edits here.",
  no_model: "No model of this installation supports this. An operator can publish one.",
  secret_file: "This file may contain secrets, so it is not sent.",
  generated_file: "This file seems to be generated.",
  in_comment: "The cursor is in a comment.",
  in_string: "The cursor is in a string.",
  statement_ended: "The statement is complete.",
  mid_line: "The cursor is in the middle of a line.",
  blank_file: "The file is empty.",
  completion_list_open: "No suggestion continues the word that is selected in the completion list. Press Esc to close the list.",
  not_requested: "No suggestion was requested yet.",
  newer_keystroke: "You continued typing before the suggestion arrived.",
  nothing_to_suggest: "The model had nothing to suggest here.",
  overloaded: "The gateway is busy. Try again in a moment.",
  over_budget: "The budget is used up.",
  signed_out: "You are signed out, or the key was rejected.",
  offline: "The gateway cannot be reached.",
  refused: "The gateway rejected the request. The log has the reason.",
  file_closed: "The language server does not know this file.",
  withheld: "The answer was withheld, because it contained a secret or public code.",
  no_function: "There is no function here, or Caret does not support docstrings in this language.",
  has_docstring: "The function already has a docstring.",
  file_changed: "The file has changed in the meantime. Try again.",
};

export const SUGGESTED = "The last request returned a suggestion.";

/** Return the sentence; show an unknown reason of a newer server by its name. */
export function sentenceFor(reason: string | null): string {
  return reason === null ? SUGGESTED : (REASONS[reason] ?? reason);
}
