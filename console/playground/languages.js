// The languages, without their own completions: suggestions come from the gateway.
// C++ and Rust use the older parsers: the tables of the newer ones are as large as the editor.

import { cssLanguage } from "@codemirror/lang-css";
import { goLanguage } from "@codemirror/lang-go";
import { htmlLanguage } from "@codemirror/lang-html";
import { javaLanguage } from "@codemirror/lang-java";
import { javascriptLanguage, typescriptLanguage } from "@codemirror/lang-javascript";
import { jsonLanguage } from "@codemirror/lang-json";
import { pythonLanguage } from "@codemirror/lang-python";
import { PostgreSQL } from "@codemirror/lang-sql";
import { yamlLanguage } from "@codemirror/lang-yaml";
import { StreamLanguage } from "@codemirror/language";
import { cpp } from "@codemirror/legacy-modes/mode/clike";
import { rust } from "@codemirror/legacy-modes/mode/rust";

// Keyed by the gateway's names; `indent` is in spaces.
export const LANGUAGES = {
  python: { parser: pythonLanguage, indent: 4 },
  javascript: { parser: javascriptLanguage, indent: 2 },
  typescript: { parser: typescriptLanguage, indent: 2 },
  go: { parser: goLanguage, indent: 4 },
  rust: { parser: StreamLanguage.define(rust), indent: 4 },
  java: { parser: javaLanguage, indent: 4 },
  cpp: { parser: StreamLanguage.define(cpp), indent: 4 },
  sql: { parser: PostgreSQL.language, indent: 2 },
  html: { parser: htmlLanguage, indent: 2 },
  css: { parser: cssLanguage, indent: 2 },
  json: { parser: jsonLanguage, indent: 2 },
  yaml: { parser: yamlLanguage, indent: 2 },
};
