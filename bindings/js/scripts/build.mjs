// Compiles symdex.wasm, and assembles the page of docs/try in target/try.
//
// The compiler needs the standard library for WebAssembly: rustup's (`rustup target add wasm32-unknown-unknown`), or its
// source, from which it is then compiled (Debian: `apt install rustc-web rust-web-src lld-19`).

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { assemble } from "./assemble.mjs";

const TARGET = "wasm32-unknown-unknown";
const folder = fileURLToPath(new URL("..", import.meta.url));
const root = path.resolve(folder, "../..");
const targetFolder = path.join(root, "target/wasm");

/** What a program prints; null if it is not installed or fails. */
function output(program, ...options) {
  const { status, stdout } = spawnSync(program, options, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}

/** The compiler, with the options of cargo that it needs. */
function compiler() {
  const compilers = [process.env.RUSTC, "rustc", "/usr/bin/rustc"].filter(Boolean);
  for (const rustc of compilers) {
    const library = output(rustc, "--print", "target-libdir", "--target", TARGET);
    if (library && existsSync(library)) return { rustc, options: [], flags: [] };
  }
  for (const rustc of compilers) {
    const sysroot = output(rustc, "--print", "sysroot");
    if (!sysroot || !existsSync(path.join(sysroot, "lib/rustlib/src/rust/library/Cargo.lock"))) continue;
    const linker = ["wasm-ld", "wasm-ld-19"].find((name) => output(name, "--version"));
    if (!linker) throw new Error("no linker for WebAssembly: install lld (Debian: apt install lld-19)");
    return {
      rustc,
      options: ["-Z", "build-std=std,panic_abort"],
      flags: [`-Clinker=${linker}`, "-Clinker-flavor=wasm-ld"],
    };
  }
  throw new Error(
    `no compiler has the standard library for ${TARGET}: run \`rustup target add ${TARGET}\`, or install the source of ` +
      "the standard library (Debian: apt install rustc-web rust-web-src lld-19)",
  );
}

/** The C compiler for WebAssembly, which zstd needs, in the variables that its build reads. */
function compilerOfC() {
  const found = (...names) => names.find((name) => output(name, "--version"));
  const [clang, archiver] = [found("clang-19", "clang"), found("llvm-ar-19", "llvm-ar")];
  if (!clang || !archiver) {
    throw new Error("no C compiler for WebAssembly: install clang and llvm (Debian: apt install clang-19 llvm-19)");
  }
  return { CC_wasm32_unknown_unknown: clang, AR_wasm32_unknown_unknown: archiver };
}

function build() {
  const { rustc, options, flags } = compiler();
  // Names that are demangled need up to 1.25 MB of stack (RUST_STACK in symdex-demangle). The paths in messages of panics
  // are the same on every machine.
  const home = process.env.CARGO_HOME ?? path.join(process.env.HOME ?? "", ".cargo");
  const rustflags = [
    ...flags,
    "-Clink-arg=-zstack-size=4194304",
    `--remap-path-prefix=${root}=symdex`,
    `--remap-path-prefix=${home}=cargo`,
  ];
  const command = ["build", ...options, "--target", TARGET, "--profile", "wasm", "--package", "symdex-js", "--lib"];
  const environment = {
    ...compilerOfC(),
    ...process.env,
    RUSTC: rustc,
    // Compiling the standard library is an unstable option of cargo.
    RUSTC_BOOTSTRAP: "1",
    CARGO_TARGET_DIR: targetFolder,
    CARGO_ENCODED_RUSTFLAGS: rustflags.join("\x1f"),
  };
  const { status } = spawnSync("cargo", command, { cwd: root, env: environment, stdio: "inherit" });
  if (status !== 0) throw new Error("the module was not compiled");
  const module = path.join(folder, "symdex.wasm");
  copyFileSync(path.join(targetFolder, TARGET, "wasm/symdex_js.wasm"), module);
  // The package has them, too.
  for (const license of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(path.join(root, license), path.join(folder, license));
  }
  const compressed = gzipSync(readFileSync(module), { level: 9 }).length;
  console.log(`symdex.wasm: ${statSync(module).size} bytes, ${compressed} compressed with gzip`);
}

try {
  build();
  console.log(`the page: ${assemble()}`);
} catch (error) {
  console.error(`build: ${error.message}`);
  process.exitCode = 1;
}
