#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef long (*dk_loader)(void *context, long key);
typedef int (*dk_mismatch)(void *context, unsigned sum);

/* The public face of DemoKit. */
void dk_set_loader(dk_loader loader, void *context);
int dk_tile_fetch(int key);
int dk_decode(const unsigned char *bytes, int count);
int dk_prefetch(void *queue);

/* Inside DemoKit: expands runs within runs, checks each innermost one. */
int dk_rle_expand(const unsigned char *bytes, int count, dk_mismatch mismatch, void *context);

#ifdef __cplusplus
}
#endif
