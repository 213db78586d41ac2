/** Messages between the extension and the page of the chat panel. */

import type { ChatCommand, SentContext, Turn } from "./conversation";

export type ToPage =
  | { readonly type: "state"; readonly turns: readonly Turn[]; readonly isBusy: boolean }
  | { readonly type: "context"; readonly context: SentContext }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "end"; readonly note: string | null };

export type FromPage =
  | { readonly type: "ready" }
  | { readonly type: "ask"; readonly text: string; readonly hasOpenFiles: boolean }
  | { readonly type: "command"; readonly command: ChatCommand; readonly hasOpenFiles: boolean }
  | { readonly type: "stop" }
  | { readonly type: "clear" }
  | { readonly type: "copy"; readonly code: string }
  | { readonly type: "apply"; readonly code: string; readonly turn: number }
  | { readonly type: "newFile"; readonly code: string; readonly language: string };
