// Two functions of one unit with the same code, which the linker merges. Made with ziglang 0.17.1 (clang 22), lld 19:
//
//     python -m ziglang cc -target x86_64-linux-gnu -O2 -g -ffunction-sections -fPIC -fvisibility=hidden \
//         -ffile-prefix-map=$PWD=/src/symdex -fdebug-compilation-dir=/src/symdex \
//         -mllvm -emit-func-debug-line-table-offsets -c merged.c -o merged.o
//     ld.lld-19 -shared --icf=all --gc-sections --build-id -u first -u second merged.o -o merged.so
int total;
int first(int x) {
  total += x;
  return total * 7;
}
int second(int x) {
  total += x;
  return total * 7;
}
