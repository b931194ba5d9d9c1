export module a.b.c;
export struct M {
    int x;
    void f();
};
void M::f() {}
export int mf(M) { return 1; }
int hidden() { return 2; }
static int st() { return 3; }
export template <class T> T tm(T t) { return t; }
template int tm(int);
export namespace nn {
struct In {
    M m;
    void g(M, In);
};
void In::g(M, In) {}
} // namespace nn
export int gl = st();
export using FF = int(M);
namespace {
struct An {};
} // namespace
export inline auto ml = [](M m) {
    static int q;
    return ++q;
};
int ul = ml(M{});
export M operator+(M a, M) { return a; }
export struct Ct {
    Ct();
    ~Ct();
    operator M();
};
Ct::Ct() {}
Ct::~Ct() {}
Ct::operator M() { return {}; }
export template <class T, M *> struct W {};
void tw(W<M, nullptr>, W<nn::In, nullptr>) {}
