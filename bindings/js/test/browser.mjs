// What the tests in Chromium share: a server of static files, and the harness of the service's page.

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { after } from "node:test";

import { command, root, testThatNeeds, testdata } from "./support.mjs";

const nodeModules = path.join(root, "target/playwright/node_modules");
const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Whether the tests can run: they build indexes with the command. */
export const canRun = Boolean(chromium && command && existsSync(path.join(nodeModules, "playwright-core")));

/** A test in Chromium. */
export const testInBrowser = (name, run) =>
  testThatNeeds(canRun, "Chromium, target/playwright or the command is missing; .ci/run installs them", name, run);

const MEDIA_TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

const servers = [];
after(() => servers.forEach((server) => server.close()));

/** Serves the files of a folder, and lists the paths that were asked for. */
export async function serve(folder) {
  const requested = [];
  const server = createServer(({ method, url }, response) => {
    // Browsers fetch the icon when they like.
    if (!url.endsWith("icon.svg") && !url.endsWith("favicon.ico")) requested.push(url);
    const file = path.join(folder, url === "/" ? "index.html" : url);
    const type = MEDIA_TYPES[path.extname(file)];
    if (method !== "GET" || !type || !existsSync(file)) return response.writeHead(404).end();
    return response.writeHead(200, { "Content-Type": type }).end(readFileSync(file));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  servers.push(server);
  return { url: `http://127.0.0.1:${server.address().port}`, requested };
}

/** The harness of the service's page, for the page at `url`. */
export async function harnessFor(url) {
  Object.assign(process.env, {
    CHROMIUM: chromium,
    NODE_MODULES: nodeModules,
    SYMDEX_TESTDATA: testdata(""),
    SYMDEX_URL: url,
  });
  return import("../../../crates/symdex-cli/tests/serve/browser/harness.mjs");
}
