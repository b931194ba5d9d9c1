#pragma once

/* C that carries well-formed Swift 5 names. `cargo xtask testdata` rewrites the linkage names of
   these units to the form swiftc gives them; everything else is plain C. */
#define SWIFT(mangled) __asm("_" mangled)
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline))

/* DemoApp.TileLoader.install() -> () */
void TileLoader_install(void) SWIFT("$s7DemoApp10TileLoaderC7installyyF");
