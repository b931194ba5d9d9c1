/* Captures the stack of a program that crashes, as a text that `symdex symbolicate` answers. README.md tells how. */

#ifndef SYMDEX_CAPTURE_H
#define SYMDEX_CAPTURE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Captures crashes of this process from now on. Each one is written to the file descriptor `fd`, which stays open; then
 * the process ends by the signal, as it would have without this. Returns 0, or -1 with errno.
 *
 * Call it once, when the program starts, and not in a signal handler. The alternate stack for handlers belongs to the
 * thread that calls it. On other threads, a crash by stack overflow is not captured. */
int capture_install(int fd);

/* Lists the images of the process again. Call it after dlopen and dlclose, and not in a signal handler. */
void capture_list_images(void);

/* Writes the stack of the caller to `fd`: for a failed assertion, or a hang that the program notices. Call it after
 * capture_install. This uses backtrace() where the C library has it, which needs no frame pointers but may allocate, so do
 * not call it in a signal handler. */
void capture_here(int fd);

#ifdef __cplusplus
}
#endif

#endif
