/** The menu of the status bar for each situation. */

import { isOff } from "./settings";
import { isMissing, isRunning, type Status } from "./status";

export interface Situation {
  readonly status: Status;
  readonly language: string | undefined; // of the active editor's file
  readonly disabledLanguages: readonly string[];
}

export interface Choice {
  readonly icon: string;
  readonly label: string;
  readonly argument?: string; // replaces {0} in the label
  readonly command: string;
}

export const CHOICES = {
  signIn: { icon: "sign-in", label: "Sign in", command: "caret.signIn" },
  enterKey: { icon: "key", label: "Enter an API key", command: "caret.enterKey" },
  signOut: { icon: "sign-out", label: "Sign out", command: "caret.signOut" },
  getKey: { icon: "add", label: "Create an API key in the console", command: "caret.getKey" },
  pause: { icon: "debug-pause", label: "Pause suggestions", command: "caret.pause" },
  resume: { icon: "debug-continue", label: "Resume suggestions", command: "caret.resume" },
  enable: { icon: "check", label: "Turn on for {0}", command: "caret.toggleLanguage" },
  disable: { icon: "circle-slash", label: "Turn off for {0}", command: "caret.toggleLanguage" },
  explainNoSuggestion: { icon: "question", label: "Why no suggestion?", command: "caret.explainNoSuggestion" },
  chat: { icon: "comment-discussion", label: "Open the chat", command: "caret.chat.focus" },
  restart: { icon: "debug-restart", label: "Restart the language server", command: "caret.restart" },
  consent: { icon: "law", label: "My consent and data", command: "caret.openConsent" },
  log: { icon: "output", label: "Open the log", command: "caret.openLog" },
} as const satisfies Record<string, Choice>;

/** Return the choices; the first one fixes a problem, if any. */
export function choicesIn(situation: Situation): Choice[] {
  const choices = isRunning(situation.status) ? ofRunning(situation) : [CHOICES.restart];
  const log = isMissing(situation.status) ? [] : [CHOICES.log]; // there is none
  return [...choices, ...ofLanguage(situation), CHOICES.consent, ...log];
}

function ofRunning({ status }: Situation): Choice[] {
  if (status === "signed_out") {
    return [CHOICES.signIn, CHOICES.enterKey, CHOICES.getKey, CHOICES.explainNoSuggestion, CHOICES.pause];
  }
  const pauseOrResume = status === "paused" ? CHOICES.resume : CHOICES.pause;
  return [pauseOrResume, CHOICES.chat, CHOICES.explainNoSuggestion, CHOICES.signIn, CHOICES.signOut];
}

function ofLanguage({ language, disabledLanguages }: Situation): Choice[] {
  if (language === undefined) {
    return [];
  }
  const choice = isOff(disabledLanguages, language) ? CHOICES.enable : CHOICES.disable;
  return [{ ...choice, argument: language }];
}
