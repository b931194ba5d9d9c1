// Looks up the same offsets on several threads: threads INDEX OFFSET ...
//
// The threads share the index; each has a context of its own. Prints the functions at each offset, as the first thread
// found them, and fails if another thread found others.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "symdex.h"

struct Free {
    void operator()(symdex_context *context) const { symdex_context_free(context); }
    void operator()(symdex_index *index) const { symdex_index_free(index); }
};
using Context = std::unique_ptr<symdex_context, Free>;
using Index = std::unique_ptr<symdex_index, Free>;

static std::string functions(const symdex_index *index, const std::vector<std::uint64_t> &offsets) {
    Context context(symdex_context_new());
    std::ostringstream out;
    for (std::uint64_t offset : offsets) {
        const symdex_frame *frames;
        std::size_t len;
        if (symdex_lookup(context.get(), index, offset, SYMDEX_STATEMENT, &frames, &len) != SYMDEX_STATUS_OK) {
            return symdex_message(context.get());
        }
        out << offset << ':';
        for (std::size_t i = 0; i < len; i++) {
            const symdex_text &name = frames[i].function;
            out << ' ' << (name.data ? std::string(name.data, name.size) : "??");
        }
        out << '\n';
    }
    return out.str();
}

int main(int argc, char **argv) {
    Context context(symdex_context_new());
    symdex_index *opened = nullptr;
    if (argc < 2 || symdex_index_map(context.get(), argv[1], &opened) != SYMDEX_STATUS_OK) {
        std::cerr << (argc < 2 ? "usage: threads INDEX OFFSET ..." : symdex_message(context.get())) << '\n';
        return 1;
    }
    Index index(opened);
    std::vector<std::uint64_t> offsets;
    for (int i = 2; i < argc; i++) {
        offsets.push_back(std::strtoull(argv[i], nullptr, 0));
    }
    std::vector<std::string> found(4);
    std::vector<std::thread> threads;
    for (std::string &out : found) {
        threads.emplace_back([&] { out = functions(index.get(), offsets); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (const std::string &other : found) {
        if (other != found[0]) {
            std::cerr << "two threads have different answers\n";
            return 1;
        }
    }
    std::cout << found[0];
}
