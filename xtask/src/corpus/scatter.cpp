// One unit of many alike: `UNIT` is its namespace, and `functions.inc` says `ONE(n)` for each of its functions.

namespace UNIT {

struct State {
    int values[8];
    int at;
};

template <int N> inline int mix(State &state, int x) {
    int &value = state.values[(state.at + N) & 7];
    value = (value ^ x) * (N | 1);
    if (x > value) {
        value += x >> (N & 15);
    }
    return value;
}

template <int N, int Depth> struct Fold {
    static inline __attribute__((always_inline)) int run(State &state, int x) {
        int first = mix<N>(state, x);
        int second = Fold<N, Depth - 1>::run(state, first + Depth);
        return mix<N + Depth>(state, first - second);
    }
};

template <int N> struct Fold<N, 0> {
    static inline __attribute__((always_inline)) int run(State &state, int x) { return state.at += x; }
};

template <int N> int work(State &state, int x) {
    int y = Fold<N, 6>::run(state, x);
    for (int i = 0; i < (N & 7); ++i) {
        y = mix<N + 1>(state, y + i);
    }
    return y;
}

#define ONE(n) template int work<n>(State &, int);
#include "functions.inc"

} // namespace UNIT
