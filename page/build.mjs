// Bundles the sources of the page into src/fishergraph/explore/assets: `npm ci && npm run build`.
//
// The bundle begins with a digest of the sources and of the lock file. A test compares it, so a stale bundle is found
// where there is no Node.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const ASSETS = join(HERE, "..", "src", "fishergraph", "explore", "assets");

function digest() {
  const files = ["package-lock.json", "build.mjs", ...readdirSync(join(HERE, "src")).map((name) => `src/${name}`)];
  const hash = createHash("sha256");
  for (const name of files.sort()) hash.update(`${name}\0`).update(readFileSync(join(HERE, name))).update("\0");
  return hash.digest("hex");
}

// The licences of all packages that the page depends on: their code is in the bundle, or in what is bundled.
function licences() {
  const locked = Object.entries(JSON.parse(readFileSync(join(HERE, "package-lock.json"), "utf8")).packages);
  const paths = locked.filter(([path, about]) => path && !about.dev && !about.optional).map(([path]) => path);
  const texts = paths.sort().map((path) => {
    const folder = join(HERE, path);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((one) => join(folder, one)).find(existsSync);
    return `${about.name} ${about.version} (${about.license})\n\n${readFileSync(file, "utf8").trim()}\n`;
  });
  // regl-scatterplot holds a copy of kdbush under the ISC licence, without its text.
  texts.push(`kdbush 4.0.2 (ISC), inside regl-scatterplot\n\n${ISC("2018, Vladimir Agafonkin")}\n`);
  return `The page bundles these packages.\n\n${texts.join("\n" + "-".repeat(80) + "\n\n")}`;
}

const ISC = (who) => `ISC License

Copyright (c) ${who}

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted, provided that the above copyright notice
and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS
OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER
TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF
THIS SOFTWARE.`;

const shared = { bundle: true, minify: true, charset: "utf8", legalComments: "none", target: ["es2022"] };
const script = await build({
  ...shared,
  absWorkingDir: HERE,
  entryPoints: ["src/main.js"],
  format: "iife",
  alias: { regl: "regl/dist/regl.unchecked.js" }, // without the checks that are for people who write shaders
  write: false,
});
const style = await build({ ...shared, absWorkingDir: HERE, entryPoints: ["src/page.css"], write: false });
writeFileSync(join(ASSETS, "page.js"), `/* sources ${digest()}; licences in LICENSES.txt */\n${script.outputFiles[0].text}`);
writeFileSync(join(ASSETS, "page.css"), style.outputFiles[0].text);
writeFileSync(join(ASSETS, "LICENSES.txt"), licences());
copyFileSync(join(HERE, "src", "page.html"), join(ASSETS, "page.html"));
