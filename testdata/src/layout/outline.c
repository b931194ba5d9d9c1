/* Repeated sequences for the machine outliner: OUTLINED_FUNCTION_n, with tails. */
#ifndef SECOND
volatile int g_pulse;
#define NAME(function) function
#else
/* The same again in a second unit, so that OUTLINED_FUNCTION_n come twice in an image. */
extern volatile int g_pulse;
#define NAME(function) second_##function
#endif

int open_gate(int, int, int);
int hold_gate(int, int, int);
int shut_gate(int, int, int);

#define CYCLE(a, b, c)                                                                             \
  do {                                                                                             \
    g_pulse = open_gate(a, b, c);                                                                  \
    hold_gate(b, c, a);                                                                            \
    g_pulse += shut_gate(c, a, b);                                                                 \
    open_gate(a + 1, b + 2, c + 3);                                                                \
    hold_gate(b, c, a);                                                                            \
    g_pulse += 77;                                                                                 \
  } while (0)

static inline __attribute__((always_inline)) int cycle(int a, int b, int c) {
  CYCLE(a, b, c);
  return a;
}

int NAME(once)(int a, int b, int c) {
  CYCLE(a, b, c);
  return g_pulse;
}

int NAME(primed)(int a, int b, int c) {
  open_gate(a, b, c);
  CYCLE(a, b, c);
  return 2;
}

int NAME(either)(int a, int b, int c) {
  if (a)
    CYCLE(a, b, c);
  else
    CYCLE(b, a, c);
  return 3;
}

int NAME(thrice)(int a, int b, int c) {
  return cycle(a, b, c) + cycle(a, b, c) + cycle(a, b, c);
}

int NAME(repeated)(int a, int b, int c) {
  for (int i = 0; i < a; i++)
    CYCLE(a, b, c);
  return 5;
}
