#ifndef SYMDEX_H
#define SYMDEX_H

/* Written by cbindgen from bindings/c/src; do not edit. README.md says how it is used. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * `symdex_frame.line` is a line.
 */
#define SYMDEX_HAS_LINE 1

/**
 * `symdex_frame.function_start` is an image offset.
 */
#define SYMDEX_HAS_FUNCTION_START 2

/**
 * The frame is inlined into the next one.
 */
#define SYMDEX_INLINED 4

/**
 * The frame comes from the symbol table, not from debug information.
 */
#define SYMDEX_FROM_SYMBOL_TABLE 8

/**
 * What became of a call. `symdex_message` describes everything but SYMDEX_STATUS_OK.
 */
typedef enum symdex_status {
  /**
   * The call did what it says.
   */
  SYMDEX_STATUS_OK = 0,
  /**
   * An argument is NULL that must not be, or has a value that is not allowed.
   */
  SYMDEX_STATUS_INVALID_ARGUMENT = 1,
  /**
   * There is no such file, or the folder has no index of this id.
   */
  SYMDEX_STATUS_NOT_FOUND = 2,
  /**
   * The file cannot be read.
   */
  SYMDEX_STATUS_IO = 3,
  /**
   * The index is damaged.
   */
  SYMDEX_STATUS_DAMAGED = 4,
  /**
   * The file is not a symdex index, or it was written by a version of symdex that this library does not know.
   */
  SYMDEX_STATUS_UNSUPPORTED = 5,
  /**
   * The answer is too large for one call, or the index is too large to be read into memory.
   */
  SYMDEX_STATUS_TOO_LARGE = 6,
  /**
   * A bug of this library. The handles of the call can only be freed.
   */
  SYMDEX_STATUS_INTERNAL = 7,
} symdex_status;

/**
 * The memory of one thread. A thread has one for any number of indexes.
 */
typedef struct symdex_context symdex_context;

/**
 * An open index. Any number of threads can use it at the same time.
 */
typedef struct symdex_index symdex_index;

/**
 * A text: `size` bytes and a 0 after them. It is not always UTF-8, and can have a 0 within. `data` is NULL if there is
 * no text.
 */
typedef struct symdex_text {
  /**
   * The bytes.
   */
  const char *data;
  /**
   * How many there are, without the 0.
   */
  size_t size;
} symdex_text;

/**
 * What an index states about its image and its build.
 */
typedef struct symdex_metadata {
  /**
   * The id of the image in lower-case hexadecimal: LC_UUID, the ELF build id, or `h-` and a hash.
   */
  struct symdex_text id;
  /**
   * The file name of the image.
   */
  struct symdex_text image_name;
  /**
   * The architecture, such as `arm64`.
   */
  struct symdex_text arch;
  /**
   * The version of symdex that built the index.
   */
  struct symdex_text builder;
  /**
   * The most that the index answers: `lines`, `names`, `bounds` (functions without names) or `nothing`.
   */
  struct symdex_text grade;
  /**
   * The address that image offset 0 was linked at.
   */
  uint64_t base;
  /**
   * Bytes from the base to the end of the code.
   */
  uint64_t image_size;
  /**
   * Compile units that were read.
   */
  uint64_t units;
  /**
   * Functions with debug information.
   */
  uint64_t functions;
  /**
   * Ranges of code with debug information.
   */
  uint64_t ranges;
  /**
   * Ranges of code of the symbol table.
   */
  uint64_t symbols;
  /**
   * How many times something could not be indexed. 0 for a whole index.
   */
  uint64_t partial;
  /**
   * The type and subtype of the processor, as in Mach-O.
   */
  uint32_t cputype;
  /**
   * As `cputype`.
   */
  uint32_t cpusubtype;
  /**
   * The version of the format.
   */
  uint32_t format_version;
  /**
   * Whether the index stores readable names.
   */
  bool has_readable_names;
} symdex_metadata;

/**
 * Which line rows a lookup uses. The functions are the same under both.
 */
typedef uint32_t symdex_line_policy;

/**
 * A function at an address.
 */
typedef struct symdex_frame {
  /**
   * The mangled name, without the `_` of Mach-O.
   */
  struct symdex_text name;
  /**
   * The name as people read it: the readable name of the index, or with the feature `demangle` the demangled name.
   * Otherwise, it is the same as `name`.
   */
  struct symdex_text function;
  /**
   * The path of the source file.
   */
  struct symdex_text file;
  /**
   * Image offset of the start of the function that contains the code; see SYMDEX_HAS_FUNCTION_START.
   */
  uint64_t function_start;
  /**
   * The line, from 1 on, or 0 for code that the compiler generated; see SYMDEX_HAS_LINE.
   */
  uint32_t line;
  /**
   * SYMDEX_HAS_LINE, SYMDEX_HAS_FUNCTION_START, SYMDEX_INLINED, SYMDEX_FROM_SYMBOL_TABLE.
   */
  uint32_t flags;
} symdex_frame;

/**
 * The answer to one of several lookups.
 */
typedef struct symdex_answer {
  /**
   * The frames, the innermost inlined function first; NULL if `len` is 0.
   */
  const struct symdex_frame *frames;
  /**
   * How many there are. 0 if the index knows no code at the address, or if the status is not SYMDEX_STATUS_OK.
   */
  size_t len;
  /**
   * What became of the lookup.
   */
  enum symdex_status status;
} symdex_answer;

/**
 * Code without a line of its own has the line of the statement before it. Reports use this.
 */
#define SYMDEX_STATEMENT 0

/**
 * Each line row counts as it is, as in atos and llvm-symbolizer.
 */
#define SYMDEX_EXACT 1

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of this library, such as "0.1.0".
 */
const char *symdex_version(void);

/**
 * Creates the memory of one thread: what lookups cache (up to 16 MiB), the last answers, and the last message. A
 * thread needs one for any number of indexes. Free it with symdex_context_free. NULL if there is a bug in this
 * library.
 */
struct symdex_context *symdex_context_new(void);

/**
 * Frees a context, with the answers and the message that it holds. NULL is ignored.
 */
void symdex_context_free(struct symdex_context *context);

/**
 * Returns the message of the last call with this context that did not return SYMDEX_STATUS_OK: one line of UTF-8. It
 * lives in the context until its next call.
 */
const char *symdex_message(const struct symdex_context *context);

/**
 * Reads the index file at `path` into memory and opens it. On SYMDEX_STATUS_OK, `*index` is the index; otherwise it is
 * NULL. Free it with symdex_index_free.
 */
enum symdex_status symdex_index_open(struct symdex_context *context,
                                     const char *path,
                                     struct symdex_index **index);

/**
 * Maps the index file at `path` into memory and opens it: faster, and the pages are shared by all processes. Nobody
 * may change or truncate the file while the index is open, or the process can end with SIGBUS. Otherwise as
 * symdex_index_open.
 */
enum symdex_status symdex_index_map(struct symdex_context *context,
                                    const char *path,
                                    struct symdex_index **index);

/**
 * Opens the index in the `size` bytes at `bytes`. They are copied. Otherwise as symdex_index_open.
 */
enum symdex_status symdex_index_open_bytes(struct symdex_context *context,
                                           const uint8_t *bytes,
                                           size_t size,
                                           struct symdex_index **index);

/**
 * Opens the index of the image `id` in a folder: the file `<id>.symdex` in it, or in the subfolder that has the first
 * two digits as its name. `id` is in hexadecimal, with dashes or without. Otherwise as symdex_index_open.
 */
enum symdex_status symdex_index_find(struct symdex_context *context,
                                     const char *folder,
                                     const char *id,
                                     struct symdex_index **index);

/**
 * Frees an index. No call may be using it. Answers from it stay valid. NULL is ignored.
 */
void symdex_index_free(struct symdex_index *index);

/**
 * Writes what an index states about its image and its build to `*metadata`. The texts live as long as the index.
 */
enum symdex_status symdex_index_metadata(struct symdex_context *context,
                                         const struct symdex_index *index,
                                         struct symdex_metadata *metadata);

/**
 * Writes the image offset to look up for an address of a stack to `*offset`. `load_address` is where the image was
 * loaded. `is_return_address` is true for all frames but the one that the signal or exception interrupted: their code
 * is that before the address. Fails with SYMDEX_STATUS_INVALID_ARGUMENT if the address lies below the image.
 */
enum symdex_status symdex_image_offset(struct symdex_context *context,
                                       const struct symdex_index *index,
                                       uint64_t address,
                                       uint64_t load_address,
                                       bool is_return_address,
                                       uint64_t *offset);

/**
 * Looks up one image offset. On SYMDEX_STATUS_OK, `*frames` has `*len` frames, the innermost inlined function first.
 * `*len` is 0 if the index knows no code there. The frames and their texts live in the context until its next call.
 */
enum symdex_status symdex_lookup(struct symdex_context *context,
                                 const struct symdex_index *index,
                                 uint64_t offset,
                                 symdex_line_policy policy,
                                 const struct symdex_frame **frames,
                                 size_t *len);

/**
 * Looks up `len` image offsets, such as a whole stack, in any order. On SYMDEX_STATUS_OK, `*answers` has `len`
 * answers, in the order of the offsets, each with a status of its own. The message is that of one of the answers that
 * failed. The answers, frames and texts live in the context until its next call.
 */
enum symdex_status symdex_lookup_many(struct symdex_context *context,
                                      const struct symdex_index *index,
                                      const uint64_t *offsets,
                                      size_t len,
                                      symdex_line_policy policy,
                                      const struct symdex_answer **answers);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SYMDEX_H */
