/* Lists the images with their ids and load addresses, on Linux and on Apple's systems.
 *
 * The list is made before a crash, because dl_iterate_phdr takes a lock that the crashed thread may hold. */

#if defined(__linux__)
#define _GNU_SOURCE
#include <link.h>
#elif defined(__APPLE__)
#include <mach-o/dyld.h>
#include <mach-o/loader.h>
#endif

#include "images.h"

#include <string.h>
#include <unistd.h>

#include "capture.h"

enum { MAX_IMAGES = 1024 };

static struct image images[MAX_IMAGES];
static size_t image_count;

const struct image *image_at(uintptr_t address) {
    for (size_t at = 0; at < image_count; at++)
        if (images[at].load_address <= address && address < images[at].end) return &images[at];
    return NULL;
}

/* Sets the name to the last part of `path`. A space would end it in the text. */
static void set_name(struct image *image, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t size = 0;
    while (size < sizeof image->name - 1 && name[size] != '\0') {
        image->name[size] = name[size] > ' ' ? name[size] : '_';
        size++;
    }
    if (size == 0) image->name[size++] = '?';
    image->name[size] = '\0';
}

#if defined(__linux__)

/* Finds the build id among the notes of a segment: each has the sizes of its name and contents, and its type. */
static void find_build_id(struct image *image, const unsigned char *notes, size_t size) {
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof note);
        size_t name = (note.n_namesz + 3) & ~(size_t)3, contents = (note.n_descsz + 3) & ~(size_t)3;
        size_t whole = sizeof note + name + contents;
        if (whole > size) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + sizeof note, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof image->id) {
            memcpy(image->id, notes + sizeof note + name, note.n_descsz);
            image->id_size = note.n_descsz;
            return;
        }
        notes += whole;
        size -= whole;
    }
}

static int list(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (image_count == MAX_IMAGES) return 1;
    struct image image = {.load_address = UINTPTR_MAX};
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[at];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD) {
            if (start < image.load_address) image.load_address = start;
            if (start + segment->p_memsz > image.end) image.end = start + segment->p_memsz;
        }
        if (segment->p_type == PT_NOTE) find_build_id(&image, (const unsigned char *)start, segment->p_memsz);
    }
    char path[4096];
    ssize_t length = 0;
    /* The first image is the program, whose name is empty or a link. */
    if (image_count == 0) length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    set_name(&image, length > 0 ? path : info->dlpi_name);
    if (image.load_address < image.end) images[image_count++] = image;
    return 0;
}

void capture_list_images(void) {
    image_count = 0;
    dl_iterate_phdr(list, NULL);
}

#elif defined(__APPLE__)

#if defined(__LP64__)
typedef struct mach_header_64 header;
typedef struct segment_command_64 segment_command;
enum { SEGMENT = LC_SEGMENT_64 };
#else
typedef struct mach_header header;
typedef struct segment_command segment_command;
enum { SEGMENT = LC_SEGMENT };
#endif

void capture_list_images(void) {
    uint32_t count = _dyld_image_count();
    image_count = 0;
    for (uint32_t number = 0; number < count && image_count < MAX_IMAGES; number++) {
        const header *start = (const header *)_dyld_get_image_header(number);
        const char *path = _dyld_get_image_name(number);
        if (start == NULL || path == NULL) continue;
        struct image image = {.load_address = (uintptr_t)start, .end = (uintptr_t)start};
        const struct load_command *command = (const struct load_command *)(start + 1);
        for (uint32_t at = 0; at < start->ncmds; at++) {
            const segment_command *segment = (const segment_command *)command;
            if (command->cmd == SEGMENT && strcmp(segment->segname, "__TEXT") == 0) image.end += segment->vmsize;
            if (command->cmd == LC_UUID) {
                image.id_size = sizeof((struct uuid_command *)0)->uuid;
                memcpy(image.id, ((const struct uuid_command *)command)->uuid, image.id_size);
            }
            command = (const struct load_command *)((const char *)command + command->cmdsize);
        }
        set_name(&image, path);
        images[image_count++] = image;
    }
}

#endif
