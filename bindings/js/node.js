// The package in Node.js: the module is read from the file beside this one.

import { readFileSync } from "node:fs";

import { start } from "./engine.js";

start(new WebAssembly.Module(readFileSync(new URL("symdex.wasm", import.meta.url))));

export * from "./symdex.js";
