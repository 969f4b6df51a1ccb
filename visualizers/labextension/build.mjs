// Builds the prebuilt JupyterLab extension with esbuild alone.
//
// JupyterLab loads an extension as a module-federation container: a script that puts `{init, get}` under
// `window._JUPYTERLAB[name]`. The bundler of Lab would write it for us and weighs hundreds of megabytes; ours is the
// forty lines of `container()` below. Packages that Lab shares stay outside the bundle and come from its share scope.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const out = process.env.TILELAB_LABEXTENSION_OUT ?? join(here, '..', '..', 'tilelab', 'labextension');
const manifest = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));

// An exact list: a pattern such as /^@codemirror\// would also match packages that Lab does not share.
const SHARED = [
  '@jupyterlab/application', '@jupyterlab/apputils', '@jupyterlab/coreutils', '@jupyterlab/notebook', '@jupyterlab/services',
  '@jupyterlab/settingregistry', '@jupyterlab/statusbar', '@jupyterlab/translation', '@jupyterlab/ui-components',
  '@lumino/coreutils', '@lumino/signaling', '@lumino/widgets', 'react'
];

/** The federation container around a CommonJS bundle; `used` names the shared packages that it requires. */
function container(name, bundle, used) {
  return `"use strict";
(() => {
  const used = ${JSON.stringify(used)};
  let scope;
  let plugins;

  // The version in use, or else the newest: what the host itself would take for a singleton.
  function provided(name) {
    const versions = Object.entries((scope && scope[name]) || {});
    if (versions.length === 0) throw new Error("${name}: this application does not share " + name);
    const parts = version => version.split(/[.+-]/).map(part => Number.parseInt(part, 10) || 0);
    const newer = (a, b) => {
      const [x, y] = [parts(a), parts(b)];
      for (let i = 0; i < 3; i++) if ((x[i] || 0) !== (y[i] || 0)) return (y[i] || 0) - (x[i] || 0);
      return 0;
    };
    versions.sort(([a, p], [b, q]) => Number(Boolean(q.loaded)) - Number(Boolean(p.loaded)) || newer(a, b));
    versions[0][1].loaded = 1;
    return versions[0][1].get();
  }

  async function load() {
    const modules = {};
    await Promise.all(used.map(async name => { modules[name] = (await provided(name))(); }));
    const module = { exports: {} };
    bundle(name => {
      if (!(name in modules)) throw new Error("${name}: not a shared package: " + name);
      return modules[name];
    }, module, module.exports);
    return module.exports.default;
  }

  const host = (window._JUPYTERLAB = window._JUPYTERLAB || {});
  host[${JSON.stringify(name)}] = {
    init(shared) { scope = shared; },
    async get(request) {
      if (request !== "./extension" && request !== "./index") throw new Error("${name} has no module " + request);
      plugins = plugins || load();
      const loaded = await plugins;
      // Without __esModule the host would take the array itself for a module and fail the whole page.
      return () => ({ __esModule: true, default: loaded });
    }
  };

  function bundle(require, module, exports) {
${bundle}
  }
})();
`;
}

const result = await build({
  entryPoints: [join(here, 'src', 'index.ts')],
  bundle: true,
  write: false,
  metafile: true,
  format: 'cjs',
  platform: 'browser',
  target: 'es2022',
  jsx: 'transform',
  loader: { '.css': 'text', '.svg': 'text' },
  external: SHARED,
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  logLevel: 'warning'
});

const inputs = Object.values(result.metafile.outputs).flatMap(output => output.imports);
const used = [...new Set(inputs.filter(i => i.external).map(i => i.path))].sort();
const foreign = used.filter(name => !SHARED.includes(name));
if (foreign.length > 0) throw new Error(`not shared by JupyterLab and not bundled: ${foreign.join(', ')}`);

const script = container(manifest.name, result.outputFiles[0].text, used);
const hash = createHash('sha256').update(script).digest('hex').slice(0, 20);
const load = `static/remoteEntry.${hash}.js`;

rmSync(out, { recursive: true, force: true });
mkdirSync(join(out, 'static'), { recursive: true });
writeFileSync(join(out, load), script);
cpSync(join(here, 'schema'), join(out, 'schemas', manifest.name), { recursive: true });

const { name, version, description, license } = manifest;
const json = value => `${JSON.stringify(value, null, 2)}\n`;
const jupyterlab = { ...manifest.jupyterlab, schemaDir: 'schemas', _build: { load, extension: './extension' } };
const published = json({ name, version, description, license, jupyterlab });
writeFileSync(join(out, 'package.json'), published);
writeFileSync(join(out, 'schemas', manifest.name, 'package.json.orig'), published);
writeFileSync(
  join(out, 'install.json'),
  json({ packageManager: 'python', packageName: 'tilelab', uninstallInstructions: 'Use your Python package manager to uninstall the package tilelab' })
);
console.log(`labextension: ${load} (${(script.length / 1024).toFixed(1)} kB; shared: ${used.length})`);
