/** The conversation of the chat panel. Pure: the page shows it, the language server continues it. */

export type ChatCommand = "explain" | "tests";

export interface SentContext {
  readonly files: readonly string[]; // the current one first
  readonly selection: readonly [number, number] | null; // first and last line, from 1
  readonly withheld: string | null; // the current file, if it must not be sent
}

export interface Turn {
  readonly role: "user" | "assistant";
  text: string;
  readonly command?: ChatCommand;
  context?: SentContext; // of a question
  note?: string; // why an answer ended early
}

/** What the language server gets. */
export interface SentTurn {
  readonly role: string;
  readonly text: string;
  readonly command?: ChatCommand;
}

export class Conversation {
  turns: Turn[] = [];
  isBusy = false;

  begin(text: string, command?: ChatCommand): void {
    this.turns.push({ role: "user", text, ...(command && { command }) });
    this.turns.push({ role: "assistant", text: "" });
    this.isBusy = true;
  }

  setContext(context: SentContext): void {
    const question = this.turns.at(-2);
    if (question !== undefined) {
      question.context = context;
    }
  }

  append(text: string): void {
    const answer = this.turns.at(-1);
    if (answer !== undefined) {
      answer.text += text;
    }
  }

  end(note: string | null): void {
    const answer = this.turns.at(-1);
    if (answer !== undefined && note !== null) {
      answer.note = note;
    }
    this.isBusy = false;
  }

  clear(): void {
    this.turns = [];
    this.isBusy = false;
  }

  /** Return the turns to send: without the empty answer, and without questions that had none. */
  sent(): SentTurn[] {
    const answered = this.turns.filter((turn, index) => {
      const answer = turn.role === "user" ? this.turns[index + 1] : turn;
      return index >= this.turns.length - 2 ? turn.role === "user" : answer?.text !== "";
    });
    return answered.map(({ role, text, command }) => ({ role, text, ...(command && { command }) }));
  }
}
