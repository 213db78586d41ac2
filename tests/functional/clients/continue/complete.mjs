// Drive Continue's completion provider as its extension for VS Code does: read a scenario (JSON)
// from standard input, print the result.
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { parseConfigYaml } from "@continuedev/config-yaml";
import { CompletionProvider } from "core/autocomplete/CompletionProvider";
import { llmsFromModelConfig } from "core/config/yaml/models";
import FileSystemIde from "core/util/filesystem";

const main = async () => {
  const scenario = JSON.parse(await text(process.stdin));
  const [model] = parseConfigYaml(scenario.config).models;
  const [llm] = await llmsFromModelConfig({ model, uniqueId: "test", config: {} });
  const errors = [];
  const provider = new CompletionProvider(
    { loadConfig: async () => ({ config: {} }) },
    new FileSystemIde(pathToFileURL(scenario.folder).href),
    async () => llm,
    (error) => errors.push(error.message),
    async () => [],
  );
  const complete = (pos) =>
    provider.provideInlineCompletionItems({
      isUntitledFile: false,
      completionId: `completion-${pos.character}`,
      filepath: pathToFileURL(scenario.file).href,
      pos,
      recentlyVisitedRanges: [],
      recentlyEditedRanges: [],
    });
  // While a developer types, only the last request passes the debouncer. The others never settle.
  const outcome = await scenario.positions.map(complete).at(-1);
  const completion = outcome?.completion ?? null;
  // The last line: Continue logs to standard output, too.
  process.stdout.write(`\n${JSON.stringify({ roles: model.roles, completion, errors })}`);
  process.exit(0);
};
void main();
