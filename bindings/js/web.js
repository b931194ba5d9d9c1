// The package in browsers and workers: the module is fetched from beside this file.

import { start } from "./engine.js";

start(await WebAssembly.compileStreaming(fetch(new URL("symdex.wasm", import.meta.url))));

export * from "./symdex.js";
