// Bundle complete.mjs with Continue's sources: `node bundle.mjs SOURCES`.
// Packages that package.json does not list (of other providers, and SQLite, which is compiled) are
// replaced by empty classes. Continue's cache of completions is therefore empty at each start.
import { symlink } from "node:fs/promises";
import { build } from "esbuild";

const sources = process.argv[2];
const here = import.meta.dirname;
const EMPTY = "module.exports = new Proxy(class {}, { get: () => class {} });";
const SQLITE = `const database = { exec: async () => {}, run: async () => {}, all: async () => [] };
module.exports = { open: async () => database };`;

const resolveSources = {
  name: "sources",
  setup(bundler) {
    const inside = (path, kind) => bundler.resolve(path, { kind, resolveDir: sources });
    bundler.onResolve({ filter: /^core\// }, ({ path, kind }) => inside(`./${path}`, kind));
    bundler.onResolve({ filter: /^@continuedev\/[\w-]+$/ }, ({ path, kind }) =>
      inside(`./packages/${path.split("/")[1]}/src/index.ts`, kind),
    );
    bundler.onResolve({ filter: /^[^./]/ }, async ({ path, kind, pluginData }) => {
      if (kind === "entry-point" || pluginData === "package") return undefined;
      const options = { kind, resolveDir: here, pluginData: "package" };
      const resolved = await bundler.resolve(path, options);
      return resolved.errors.length ? { path, namespace: "missing" } : resolved;
    });
    bundler.onLoad({ filter: /.*/, namespace: "missing" }, ({ path }) => ({
      contents: path === "sqlite" ? SQLITE : EMPTY,
    }));
  },
};
await build({
  entryPoints: [`${here}/complete.mjs`],
  outfile: `${here}/complete.cjs`,
  bundle: true,
  platform: "node",
  logLevel: "error",
  plugins: [resolveSources],
  tsconfigRaw: {},
});
// The grammars are read from beside the bundle, as in the extension.
await symlink(`${here}/node_modules/web-tree-sitter/tree-sitter.wasm`, `${here}/tree-sitter.wasm`);
await symlink(`${here}/node_modules/tree-sitter-wasms/out`, `${here}/tree-sitter-wasms`);
