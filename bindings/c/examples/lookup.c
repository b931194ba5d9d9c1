/* Looks up image offsets: lookup [--exact] INDEX < OFFSETS
 *
 * Reads offsets from standard input, one a line, and prints the frames at each, the innermost first, in the columns
 * offset, name, readable name, file, line, "inlined" or "", start of the function. "-" stands for what is absent.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symdex.h"

enum { STACK = 64 };

static void print_text(symdex_text text) {
    /* A text can have a 0 within, so this does not use %s. */
    putchar('\t');
    fwrite(text.data ? text.data : "-", 1, text.data ? text.size : 1, stdout);
}

static void print_answer(uint64_t offset, const symdex_answer *answer) {
    size_t i;
    if (answer->len == 0) {
        printf("%" PRIu64 "\n", offset);
    }
    for (i = 0; i < answer->len; i++) {
        const symdex_frame *frame = &answer->frames[i];
        printf("%" PRIu64, offset);
        print_text(frame->name);
        print_text(frame->function);
        print_text(frame->file);
        if (frame->flags & SYMDEX_HAS_LINE) {
            printf("\t%" PRIu32, frame->line);
        } else {
            printf("\t-");
        }
        printf("\t%s", frame->flags & SYMDEX_INLINED ? "inlined" : "");
        if (frame->flags & SYMDEX_HAS_FUNCTION_START) {
            printf("\t%" PRIu64 "\n", frame->function_start);
        } else {
            printf("\t-\n");
        }
    }
}

static int lookup(symdex_context *context, const symdex_index *index, const uint64_t *offsets, size_t len,
                  symdex_line_policy policy) {
    const symdex_answer *answers;
    size_t i;
    if (symdex_lookup_many(context, index, offsets, len, policy, &answers) != SYMDEX_STATUS_OK) {
        fprintf(stderr, "lookup: %s\n", symdex_message(context));
        return 1;
    }
    for (i = 0; i < len; i++) {
        if (answers[i].status != SYMDEX_STATUS_OK) {
            fprintf(stderr, "lookup: %s\n", symdex_message(context));
            return 1;
        }
        print_answer(offsets[i], &answers[i]);
    }
    return 0;
}

int main(int argc, char **argv) {
    symdex_line_policy policy = SYMDEX_STATEMENT;
    symdex_context *context;
    symdex_index *index = NULL;
    uint64_t stack[STACK];
    size_t len = 0;
    int failed = 0;
    if (argc == 3 && strcmp(argv[1], "--exact") == 0) {
        policy = SYMDEX_EXACT;
    } else if (argc != 2) {
        fprintf(stderr, "usage: lookup [--exact] INDEX < OFFSETS\n");
        return 2;
    }
    context = symdex_context_new();
    if (symdex_index_open(context, argv[argc - 1], &index) != SYMDEX_STATUS_OK) {
        fprintf(stderr, "lookup: %s\n", symdex_message(context));
        symdex_context_free(context);
        return 1;
    }
    while (!failed && scanf("%" SCNu64, &stack[len]) == 1) {
        if (++len == STACK) {
            failed = lookup(context, index, stack, len, policy);
            len = 0;
        }
    }
    failed = failed || lookup(context, index, stack, len, policy);
    symdex_index_free(index);
    symdex_context_free(context);
    return failed;
}
