// Drive the real tabby-agent: read a scenario (JSON) from standard input, print the results.
// Requests to other hosts than the gateway fail, such as those with which the agent reports its use.
import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const scenario = JSON.parse(await text(process.stdin));
const originalFetch = globalThis.fetch;
globalThis.fetch = async (request, options) => {
  const url = new URL(request.url ?? request);
  if (url.origin !== new URL(scenario.endpoint).origin) throw new TypeError("refused");
  return originalFetch(request, options);
};

const { TabbyAgent } = createRequire(`${scenario.folder}/`)("tabby-agent");
const agent = new TabbyAgent();
const reportedIssues = [];
agent.on("issuesUpdated", (event) => reportedIssues.push(event.issues));
const dataStore = { data: {}, load: async () => {}, save: async () => {} };
await agent.initialize({
  config: {
    server: { endpoint: scenario.endpoint, token: scenario.token },
    completion: { debounce: { mode: "fixed", interval: 0 } },
  },
  dataStore,
});
// Wait for up to two seconds until the condition is true.
const waitUntil = async (condition) => {
  for (let tries = 0; tries < 100 && !condition(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const seen = { status: agent.getStatus(), health: agent.getServerHealthState() };
if (seen.status === "ready") {
  await waitUntil(() => agent.getConfig().anonymousUsageTracking.disable);
  seen.isTrackingDisabled = agent.getConfig().anonymousUsageTracking.disable;
  // The second request supersedes the first: the agent closes the connection of the first.
  const first = agent.provideCompletions(scenario.superseded).catch((error) => error.name);
  await new Promise((resolve) => setTimeout(resolve, scenario.pauseMs));
  seen.completion = await agent.provideCompletions(scenario.request);
  seen.superseded = await first;
  const id = seen.completion.id;
  const event = { completion_id: id, choice_index: 0, view_id: `view-${id}-at-1` };
  seen.events = [
    await agent.postEvent({ ...event, type: "view" }),
    await agent.postEvent({ ...event, type: "view", view_id: `view-${id}-at-2` }),
    await agent.postEvent({ ...event, type: "select", select_kind: "line", elapsed: 386 }),
    await agent.postEvent({ ...event, type: "select", elapsed: 500 }),
    await agent.postEvent({ ...event, type: "dismiss", elapsed: 45 }),
  ];
}
seen.issues = reportedIssues;
process.stdout.write(JSON.stringify(seen));
process.exit(0);
