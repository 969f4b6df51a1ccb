// Bundles one view (`index.ts` of the folder it is run in) into the ES module that widgets and pages load.
import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const kind = basename(process.cwd());
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const out = process.env.TILELAB_STATIC_OUT ?? join(root, "tilelab", "static");

mkdirSync(out, { recursive: true });
await build({
  entryPoints: ["index.ts"],
  outfile: join(out, `${kind}.js`),
  bundle: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  charset: "utf8",
  minify: true,
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning"
});
