/* The images of the process, listed before a crash. */

#ifndef SYMDEX_CAPTURE_IMAGES_H
#define SYMDEX_CAPTURE_IMAGES_H

#include <stddef.h>
#include <stdint.h>

/* A linked binary in memory. */
struct image {
    /* Where its first byte is, and the end of its code. */
    uintptr_t load_address, end;
    /* LC_UUID, or the GNU build id; none if the size is 0. */
    unsigned char id[32];
    size_t id_size;
    /* The last part of its path, without spaces. */
    char name[64];
};

/* The image that has the address, or NULL. Async-signal-safe. */
const struct image *image_at(uintptr_t address);

#endif
