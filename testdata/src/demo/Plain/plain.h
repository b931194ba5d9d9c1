#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int plain_each_row(int rows, int (^draw)(int row));
int plain_checksum(const unsigned char *bytes, int count, int (*mismatch)(void *, unsigned), void *context);
int plain_wait(int milliseconds);

#ifdef __cplusplus
}
#endif
