/* What the library does with arguments that are wrong: arguments FOLDER ID, a folder with the index <ID>.symdex. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symdex.h"

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, symdex_message(context)); \
            return 1;                                                               \
        }                                                                           \
    } while (0)

int main(int argc, char **argv) {
    symdex_context *context = symdex_context_new();
    symdex_index *index = (symdex_index *)context;
    symdex_metadata metadata;
    const symdex_frame *frames;
    const symdex_answer *answers;
    uint64_t offset, offsets[2] = {0, UINT64_MAX};
    size_t len;
    CHECK(argc == 3 && context != NULL);
    CHECK(strcmp(symdex_version(), "0.1.0") == 0);
    CHECK(strcmp(symdex_message(NULL), "the context is NULL") == 0);
    CHECK(strcmp(symdex_message(context), "") == 0);
    CHECK(symdex_index_open(NULL, "x", &index) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_index_open(context, "x", NULL) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(symdex_message(context), "index is NULL") == 0);
    CHECK(symdex_index_open(context, NULL, &index) == SYMDEX_STATUS_INVALID_ARGUMENT && index == NULL);
    CHECK(strcmp(symdex_message(context), "path is NULL") == 0);
    CHECK(symdex_index_open(context, "/no/such/file", &index) == SYMDEX_STATUS_NOT_FOUND && index == NULL);
    CHECK(strstr(symdex_message(context), "/no/such/file") != NULL);
    CHECK(symdex_index_map(context, "/no/such/file", &index) == SYMDEX_STATUS_NOT_FOUND);
    CHECK(symdex_index_open(context, argv[1], &index) == SYMDEX_STATUS_IO && index == NULL);
    CHECK(symdex_index_open_bytes(context, (const uint8_t *)"no index", 8, &index) == SYMDEX_STATUS_UNSUPPORTED);
    CHECK(symdex_index_open_bytes(context, NULL, 8, &index) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_index_open_bytes(context, NULL, 0, &index) == SYMDEX_STATUS_UNSUPPORTED);
    CHECK(symdex_index_find(context, argv[1], "../x", &index) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_index_find(context, argv[1], "00", &index) == SYMDEX_STATUS_NOT_FOUND);
    CHECK(symdex_index_find(context, argv[1], argv[2], &index) == SYMDEX_STATUS_OK && index != NULL);
    CHECK(symdex_index_metadata(context, NULL, &metadata) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_index_metadata(context, index, NULL) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_index_metadata(context, index, &metadata) == SYMDEX_STATUS_OK);
    CHECK(strcmp(metadata.id.data, argv[2]) == 0 && metadata.id.size == strlen(argv[2]));
    CHECK(strcmp(metadata.arch.data, "arm64") == 0 && metadata.format_version == 1);
    CHECK(symdex_image_offset(context, index, 4100, 4096, true, &offset) == SYMDEX_STATUS_OK && offset == 3);
    CHECK(symdex_image_offset(context, index, 4095, 4096, true, &offset) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_lookup(context, NULL, 0, SYMDEX_EXACT, &frames, &len) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_lookup(context, index, 0, 2, &frames, &len) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(strcmp(symdex_message(context), "there is no line policy 2") == 0);
    CHECK(symdex_lookup(context, index, 0, SYMDEX_EXACT, NULL, &len) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_lookup(context, index, UINT64_MAX, SYMDEX_EXACT, &frames, &len) == SYMDEX_STATUS_OK);
    CHECK(len == 0 && frames == NULL);
    CHECK(symdex_lookup_many(context, index, NULL, 2, SYMDEX_EXACT, &answers) == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_lookup_many(context, index, offsets, SIZE_MAX, SYMDEX_EXACT, &answers)
          == SYMDEX_STATUS_INVALID_ARGUMENT);
    CHECK(symdex_lookup_many(context, index, NULL, 0, SYMDEX_EXACT, &answers) == SYMDEX_STATUS_OK);
    CHECK(symdex_lookup_many(context, index, offsets, 2, SYMDEX_EXACT, &answers) == SYMDEX_STATUS_OK);
    CHECK(answers[1].len == 0 && answers[1].frames == NULL && answers[1].status == SYMDEX_STATUS_OK);
    symdex_index_free(index);
    symdex_index_free(NULL);
    symdex_context_free(context);
    symdex_context_free(NULL);
    return 0;
}
