int fetch(int page);
__attribute__((cold)) void complain(int page, int size);
__attribute__((cold, noreturn)) void give_up(int size);

static inline __attribute__((always_inline)) int twice(int size) {
  return fetch(size) + size;
}
