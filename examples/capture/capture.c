/* The capture itself: signal handler, walk of the stack, output. images.c has the list of images.
 *
 * The handler and all that it calls are async-signal-safe. They use memory that exists already, the instructions of this
 * file, and the functions read, write, sigaction and raise, which POSIX lists as safe. They take no lock, and allocate
 * nothing. */

#if defined(__linux__)
#define _GNU_SOURCE
#elif defined(__APPLE__)
#define _XOPEN_SOURCE 700
#define _DARWIN_C_SOURCE
#endif

#include "capture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

/* Other C libraries, such as musl and Android's before API level 33, have no backtrace(). */
#if defined(__GLIBC__) || defined(__APPLE__)
#include <execinfo.h>
#endif

#include "images.h"

/* More frames than this are a recursion without end. */
enum { MAX_FRAMES = 256 };

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};

static int output = -1;
/* A pipe through which memory is copied. The kernel refuses to read what is not mapped; this process would crash. */
static int probe[2] = {-1, -1};
static atomic_flag is_captured = ATOMIC_FLAG_INIT;
static char handler_stack[64 * 1024];

/* Where a walk begins. In a leaf function without a frame record, and in the first instructions of any function, the
 * address to return to is only in the link register, or at the top of the stack. Elsewhere, that place can have anything. */
struct start {
    uintptr_t pc, fp, maybe_caller;
};

/* What the ABI puts at the frame pointer: the caller's frame pointer, and the address to return to. */
struct frame_record {
    uintptr_t fp, return_address;
};

/* Removes the signature of a pointer (arm64e, and AArch64 built with -mbranch-protection). The instruction XPACLRI does
 * nothing on processors without signatures. */
static uintptr_t without_signature(uintptr_t address) {
#if defined(__aarch64__)
    register uintptr_t x30 __asm__("x30") = address;
    __asm__("hint #7" : "+r"(x30));
    return x30;
#else
    return address;
#endif
}

/* Copies a frame record. Returns 0 if its memory cannot be read. */
static int copy_record(uintptr_t at, struct frame_record *record) {
    if (write(probe[1], (const void *)at, sizeof *record) != (ssize_t)sizeof *record) return 0;
    return read(probe[0], record, sizeof *record) == (ssize_t)sizeof *record;
}

static struct start start_of(const ucontext_t *context) {
    struct start start = {0, 0, 0};
    struct frame_record top = {0, 0};
#if defined(__APPLE__) && defined(__aarch64__)
    start.pc = (uintptr_t)__darwin_arm_thread_state64_get_pc(context->uc_mcontext->__ss);
    start.fp = (uintptr_t)__darwin_arm_thread_state64_get_fp(context->uc_mcontext->__ss);
    start.maybe_caller = (uintptr_t)__darwin_arm_thread_state64_get_lr(context->uc_mcontext->__ss);
#elif defined(__APPLE__) && defined(__x86_64__)
    start.pc = (uintptr_t)context->uc_mcontext->__ss.__rip;
    start.fp = (uintptr_t)context->uc_mcontext->__ss.__rbp;
    copy_record((uintptr_t)context->uc_mcontext->__ss.__rsp, &top);
    start.maybe_caller = top.fp;
#elif defined(__linux__) && defined(__aarch64__)
    start.pc = context->uc_mcontext.pc;
    start.fp = context->uc_mcontext.regs[29];
    start.maybe_caller = context->uc_mcontext.regs[30];
#elif defined(__linux__) && defined(__x86_64__)
    start.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    start.fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
    copy_record((uintptr_t)context->uc_mcontext.gregs[REG_RSP], &top);
    start.maybe_caller = top.fp;
#else
#error "this example knows x86_64 and AArch64 of Linux and of Apple's systems"
#endif
    (void)top;
    return start;
}

/* Collects text, and writes it when a line is complete. */
struct line {
    char text[512];
    size_t size;
};

static void add(struct line *line, const char *text) {
    while (*text != '\0' && line->size < sizeof line->text - 1) line->text[line->size++] = *text++;
}

static void add_hexadecimal(struct line *line, uintptr_t number, int digits) {
    char text[2 * sizeof number + 1];
    size_t at = sizeof text - 1;
    text[at] = '\0';
    while (at > 0 && (digits > 0 || number != 0)) {
        text[--at] = "0123456789abcdef"[number & 15];
        number >>= 4;
        digits--;
    }
    add(line, text + at);
}

static void finish(struct line *line, int fd) {
    line->text[line->size++] = '\n';
    const char *rest = line->text;
    while (line->size > 0) {
        ssize_t written = write(fd, rest, line->size);
        if (written <= 0) break;
        rest += written;
        line->size -= (size_t)written;
    }
    line->size = 0;
}

/* Writes `image address load_address id`, which symdex calls an address list. A remark may follow. */
static void write_frame(uintptr_t address, const char *remark, int fd) {
    struct line line = {.size = 0};
    const struct image *image = image_at(address);
    add(&line, image == NULL ? "?" : image->name);
    add(&line, " 0x");
    add_hexadecimal(&line, address, 1);
    add(&line, " 0x");
    add_hexadecimal(&line, image == NULL ? 0 : image->load_address, 1);
    if (image != NULL && image->id_size > 0) add(&line, " ");
    for (size_t at = 0; image != NULL && at < image->id_size; at++) add_hexadecimal(&line, image->id[at], 2);
    add(&line, remark);
    finish(&line, fd);
}

/* Walks the frame records from `fp` on. Stacks grow downwards, so each record lies above the one before it. */
static void write_records(uintptr_t fp, int fd) {
    struct frame_record record;
    for (int depth = 0; depth < MAX_FRAMES; depth++) {
        if (fp % sizeof fp != 0 || !copy_record(fp, &record)) return;
        uintptr_t address = without_signature(record.return_address);
        if (address == 0) return;
        write_frame(address, "", fd);
        if (record.fp <= fp) return;
        fp = record.fp;
    }
}

static void write_stack(struct start start, int fd) {
    write_frame(without_signature(start.pc), "", fd);
    struct frame_record record = {0, 0};
    if (start.fp % sizeof start.fp == 0) copy_record(start.fp, &record);
    uintptr_t caller = without_signature(start.maybe_caller);
    if (image_at(caller) != NULL && caller != without_signature(record.return_address))
        write_frame(caller, " maybe-the-caller", fd);
    write_records(start.fp, fd);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    /* A second crash, in the handler or on another thread, must not write into the same text. */
    if (!atomic_flag_test_and_set(&is_captured)) {
        struct line line = {.size = 0};
        add(&line, "Signal 0x");
        add_hexadecimal(&line, (uintptr_t)number, 1);
        add(&line, ", address 0x");
        add_hexadecimal(&line, (uintptr_t)info->si_addr, 1);
        finish(&line, output);
        add(&line, "Thread 0 Crashed:");
        finish(&line, output);
        write_stack(start_of(context), output);
    }
    struct sigaction ends = {.sa_handler = SIG_DFL};
    sigaction(number, &ends, NULL);
    raise(number);
}

void capture_here(int fd) {
    struct line line = {.size = 0};
    /* All addresses below this title are return addresses. */
    add(&line, "Backtrace:");
    finish(&line, fd);
#if defined(__GLIBC__) || defined(__APPLE__)
    void *addresses[MAX_FRAMES];
    int count = backtrace(addresses, MAX_FRAMES);
    /* The first one lies in this function. */
    for (int at = 1; at < count; at++) write_frame(without_signature((uintptr_t)addresses[at]), "", fd);
#else
    write_records((uintptr_t)__builtin_frame_address(0), fd);
#endif
}

int capture_install(int fd) {
    output = fd;
    capture_list_images();
    if (probe[0] == -1 && pipe(probe) != 0) return -1;
    for (int end = 0; end < 2; end++)
        if (fcntl(probe[end], F_SETFD, FD_CLOEXEC) != 0 || fcntl(probe[end], F_SETFL, O_NONBLOCK) != 0) return -1;
    /* The stack of a thread that overflows it has no room for a handler. */
    stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    if (sigaltstack(&stack, NULL) != 0) return -1;
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = on_signal;
    sigemptyset(&action.sa_mask);
    for (size_t at = 0; at < sizeof SIGNALS / sizeof *SIGNALS; at++)
        if (sigaction(SIGNALS[at], &action, NULL) != 0) return -1;
    return 0;
}
