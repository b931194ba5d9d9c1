// Makes the names in names.tsv: one declaration for each production of the mangling grammar.
#include <stddef.h>
namespace std {
enum class align_val_t : size_t {};
template <class T> struct initializer_list {
    const T *b;
    size_t n;
};
struct strong_ordering {
    int v;
    static const strong_ordering less, equal, greater;
};
template <class R, class... A> struct coroutine_traits {
    using promise_type = typename R::promise_type;
};
template <class P = void> struct coroutine_handle {
    static coroutine_handle from_address(void *) noexcept;
    void *address();
    operator coroutine_handle<>() const noexcept;
};
} // namespace std
template <class T> T &&declval() noexcept;
struct S {
    int a, b;
    int f(int);
    int cf() const &;
    int rf() &&;
    int vf() volatile;
    S(int);
    ~S();
    static int st;
    template <class T> operator T *();
    operator bool() const;
    int operator[](int);
    int operator()(int, int);
    S operator->*(int);
    S *operator->();
    S &operator++();
    S operator++(int);
    int operator,(int);
    void *operator new(size_t);
    void operator delete(void *);
    void *operator new[](size_t);
    void operator delete[](void *);
    int operator<=>(const S &) const;
    bool operator==(const S &) const;
    S operator~();
    bool operator!();
    S operator-();
    S operator+();
    int operator*();
    S *operator&();
    int operator%(int);
    int operator^(int);
    int operator&(int);
    int operator|(int);
    int operator<<(int);
    int operator>>(int);
    S &operator+=(int);
    S &operator<<=(int);
    S &operator^=(int);
    S &operator%=(int);
    S &operator=(int);
};
// definitions so that symbols appear
int S::f(int x) { return x; }
int S::cf() const & { return 1; }
int S::rf() && { return 1; }
int S::vf() volatile { return 1; }
S::S(int) {}
S::~S() {}
int S::st = 1;
S::operator bool() const { return true; }
template <class T> S::operator T *() { return 0; }
template S::operator int *();
template S::operator const char *();
int S::operator[](int) { return 0; }
int S::operator()(int, int) { return 0; }
S S::operator->*(int) { return *this; }
S *S::operator->() { return this; }
S &S::operator++() { return *this; }
S S::operator++(int) { return *this; }
int S::operator,(int) { return 0; }
void *S::operator new(size_t) { return 0; }
void S::operator delete(void *) {}
void *S::operator new[](size_t) { return 0; }
void S::operator delete[](void *) {}
int S::operator<=>(const S &) const { return 0; }
bool S::operator==(const S &) const { return 1; }
S S::operator~() { return *this; }
bool S::operator!() { return 1; }
S S::operator-() { return *this; }
S S::operator+() { return *this; }
int S::operator*() { return 1; }
S *S::operator&() { return this; }
int S::operator%(int) { return 0; }
int S::operator^(int) { return 0; }
int S::operator&(int) { return 0; }
int S::operator|(int) { return 0; }
int S::operator<<(int) { return 0; }
int S::operator>>(int) { return 0; }
S &S::operator+=(int) { return *this; }
S &S::operator<<=(int) { return *this; }
S &S::operator^=(int) { return *this; }
S &S::operator%=(int) { return *this; }
S &S::operator=(int) { return *this; }
// expressions
template <class T, class U> auto add(T t, U u) -> decltype(t + u) { return t + u; }
template auto add(int, long) -> decltype(1 + 1l);
template <class T> auto e1(T t) -> decltype(t->f(1)) { return 0; }
template auto e1(S *) -> int;
template <class T> auto e2(T t) -> decltype(t.f(sizeof(T), sizeof t, alignof(T), -1, !t, ~1, +1));
template <class T>
auto e3(T t)
    -> decltype(static_cast<int>(t) + (int)t + int(t) + const_cast<int &>(t) + reinterpret_cast<int &>(t)) {
    return 0;
}
template auto e3(int) -> int;
#define FN(name, expr)                                                                                       \
    template <class T> auto name(T t) -> decltype(expr, 0) { return 0; }
FN(x1, (t << 1) >> 2)
FN(x2, t < 1 && t > 2 || t <= 3 && t >= 4) FN(x3, t == 1 ? t != 2 : 3) FN(x4, (t & 1) | (t ^ 2))
    FN(x5, t % 2 * 3 / 4 - 5) FN(x6, new int) FN(x7, new T(1)) FN(x8, new T[3]) FN(x9, ::new T{1})
        FN(x10, (delete new T, 0)) FN(x11, (delete[] new T[2], 0)) FN(x12, (::delete new T, 0))
            FN(x13, noexcept(t)) FN(x14, T{}) FN(x15, T()) FN(x16, T(t)) FN(x17, (T)t) FN(x18, nullptr)
                FN(x19, true && false) FN(x20, 'a') FN(x21, L'a') FN(x22, 1.5) FN(x23, 1.5f) FN(x24, -2.25L)
                    FN(x25, 1u + 2ul + 3ull + 4l + 5ll) FN(x26, u8'a') FN(x27, u'a') FN(x28, U'a')
                        FN(x29, "hello") FN(x30, sizeof(T[3])) FN(x31, typeid_(t)) FN(x32, (throw t, 0))
                            FN(x33, (throw, 0)) FN(x34, t *(t + t) * t) FN(x35, (t, t)) FN(x36, (t = t) = t)
                                FN(x37, -(-t)) FN(x38, !(t + t)) FN(x39, (t ? t : t) ? t : (t ? t : t))
                                    FN(x40, 1e300) FN(x41, 0.0f) FN(x42, 1e-42f) FN(x43, 5e-324) FN(x44, 0.0L)
                                        FN(x45, 1e-4940L) FN(x46, (short)3 + (unsigned char)4)
                                            FN(x47, (__int128)5) FN(x49, (t ? t : t, t = t, t += 1, t[0], &t,
                                                                          *t, t++, ++t, t--, --t))
                                                FN(x48, __builtin_huge_val()) template <class T>
                                                int typeid_(T);
#define X(n) template int n(int);
X(x1)
X(x2) X(x3) X(x4) X(x5) X(x6) X(x7) X(x8) X(x9) X(x10) X(x11) X(x12) X(x13) X(x14) X(x15) X(x16) X(x17) X(x18)
    X(x19) X(x20) X(x21) X(x22) X(x23) X(x24) X(x25) X(x26) X(x27) X(x28) X(x29) X(x30) X(x32) X(x33) X(x34)
        X(x35) X(x36) X(x37) X(x38) X(x39) X(x40) X(x41) X(x42) X(x43) X(x44) X(x45) X(x46)
            X(x47) template int x49(int *);
// packs and folds
template <class... T> auto fold1(T... t) -> decltype((t + ...)) { return (t + ...); }
template int fold1(int, int);
template <class... T> auto fold2(T... t) -> decltype((... + t)) { return (... + t); }
template int fold2(int, int, int);
template <class... T> auto fold3(T... t) -> decltype((1 * ... * t)) { return 1; }
template int fold3(int);
template <class... T> auto fold4(T... t) -> decltype((t - ... - 2)) { return 1; }
template int fold4(int, int);
template <class... T> auto fold5(T... t) -> decltype((t, ...)) { return 1; }
template int fold5(int);
template <class... T> int szp(int (&)[sizeof...(T)], T...) { return 0; }
template int szp<int, long>(int (&)[2], int, long);
template <class... T> auto szp2(T... t) -> int (&)[sizeof...(t) + 1];
template <class... T> auto szp3(T... t) -> decltype(sizeof...(t)) { return 0; }
template size_t szp3(int, char);
template size_t szp3<>();
template <class... T> struct tup {};
template <class... T> void packs(tup<T *...>, tup<const T &...>, T &&...) {}
template void packs(tup<int *, char *>, tup<const int &, const char &>, int &&, char &&);
template void packs(tup<>, tup<>);
template <class... T> void packf(T (*...f)(T), tup<T[2]...>) {}
template void packf<int, char>(int (*)(int), char (*)(char), tup<int[2], char[2]>);
template <class... T, class... U> void two(tup<tup<T, U>...>, tup<T...>, tup<U...>) {}
template void two(tup<tup<int, char>>, tup<int>, tup<char>);
template <int... N> void ints() {}
template void ints<1, -2, 3>();
template void ints<>();
template <template <class...> class TT, class T> void tt(TT<T>) {}
template void tt(tup<int>);
template <auto V> void autov() {}
struct Lit {
    int a;
    double b;
    constexpr bool operator==(const Lit &) const = default;
};
enum E { A = 1, B = -3 };
enum class EC : char { x = 5 };
int glob;
int arr[5];
void fn(int);
union Un {
    int i;
    float f;
};
struct Nested {
    Lit l;
    int a[3];
    const char *p;
};
template void autov<1>();
template void autov<'c'>();
template void autov<A>();
template void autov<EC::x>();
template void autov<(E)-3>();
template void autov<&glob>();
template void autov<&fn>();
template void autov<nullptr>();
template void autov<true>();
template void autov<Lit{1, 2.5}>();
template void autov<&S::f>();
template void autov<&S::a>();
template void autov<&arr[2]>();
template void autov<Nested{{1, 2.0}, {1, 2, 3}, nullptr}>();
template void autov<Un{.f = 1.5f}>();
template void autov<1.5>();
template void autov<2.5f>();
template void autov<[] {}>();
template void autov<1ull>();
template void autov<(short)-1>();
template void autov<&arr[5]>();
template <class T, T V> struct con {};
template <class T> void pcon(con<T, T(3)>) {}
template void pcon(con<int, 3>);
template <auto... V> struct vals {};
template <auto... V> void fvals(vals<V...>) {}
template void fvals(vals<1, 'a', 2u>);
// lambdas
inline auto lam = [](auto x, auto... y) {
    struct L {
        void m() {}
    };
    L{}.m();
    return x;
};
inline auto lam2 = []<class T, int N, template <class> class TT>(T (&)[N], TT<T> *) {
    static int v;
    return ++v;
};
inline auto lam3 = []<class... T>(T... t)
    requires(sizeof...(T) > 1)
{ return sizeof...(t); };
template <class T> struct Box {};
inline int usel() {
    int a[3];
    int r = lam(1, 2, 3.0);
    r += lam2(a, (Box<int> *)0);
    r += lam3(1, 2);
    return r + [](int x = [] { return 3; }()) { return x; }();
}
inline int deflam(
    int a =
        [](int q) {
            static int z;
            return z += q;
        }(2),
    int b =
        [] {
            static int y;
            return ++y;
        }()) {
    return a + b;
}
struct DM {
    int m = [](int q) {
        static int z;
        return z += q;
    }(2);
    void dd(int x = [](int y) {
        static int k;
        return k += y;
    }(1)) {}
};
int call() {
    DM d;
    d.dd();
    return usel() + deflam();
}
inline auto outer = [] {
    return [](int) {
        return [](char c) {
            static int i;
            return ++i;
        }('a');
    }(1);
};
int co = outer();
template <class T> int tlam(T t) {
    auto l = [](T x, auto y) {
        static int s;
        return ++s;
    };
    return l(t, 1.0);
}
template int tlam(int);
// noexcept types, function types
template <class F> void ft(F) {}
template void ft(void (*)() noexcept);
template void ft(int (S::*)(int) const & noexcept);
template void ft(int (S::*)() &&);
template void ft(void (*)(int, ...));
template void ft(int (*(*)(char))[3]);
template void ft(int (S::*)[4]);
template void ft(void (*(*)(int))(char));
template void ft(int S::*const *);
template void ft(int (&)[3]);
template <bool N> void nx(void (*)() noexcept(N)) {}
template void nx<true>(void (*)() noexcept);
template <class F> void fr(F &&) {}
void uf() {
    int a[3];
    fr(a);
    fr(fn);
    const int c = 0;
    fr(c);
    fr((int &&)glob);
}
template <class T> void collapse(T &, T &&) {}
template void collapse<int &>(int &, int &);
template void collapse<int &&>(int &, int &&);
template void collapse<const int>(const int &, const int &&);
extern "C" typedef void CF(int);
void takec(CF *) {}
void cv(int *__restrict a, volatile int *b, const volatile char *c, int const *const *d) {}
typedef float f4 __attribute__((ext_vector_type(4)));
void vec(int __attribute__((vector_size(16))) v, f4 w) {}
template <int N> using V = int __attribute__((vector_size(N * 4)));
template <int N> void dvec(V<N>) {}
template void dvec<4>(V<4>);
void bi(_BitInt(13) a, unsigned _BitInt(7) b) {}
template <int N> void dbi(_BitInt(N) a) {}
template void dbi<5>(_BitInt(5));
void fl(_Float16 a, __bf16 b, __float128 c, __int128 d, unsigned __int128 e, char8_t f, char16_t g,
        char32_t h, wchar_t i, long double j, decltype(nullptr) k) {}
void cplx(_Complex double a, _Complex float b) {}
// concepts
template <class T>
concept C = requires(T t) {
    t + t;
    typename T::type;
    { t.f() } noexcept;
    requires sizeof(T) > 1;
} || sizeof(T) == 4;
template <class T>
concept Any = true;
template <class T, class U>
concept Conv = true;
template <class T>
    requires C<T>
void con1(T) {}
template void con1(int);
template <Any T> void con2(T) {}
template void con2(int);
void con3(Any auto x, Conv<int> auto y) {}
template void con3(int, char);
template <class T>
void con4(T)
    requires(sizeof(T) == 4 && Any<T>)
{}
template void con4(int);
template <class T>
void con5(T t)
    requires requires(T u, T v) {
        u + v;
        { u - v } noexcept -> Any;
        typename Box<T>;
        requires Any<T>;
        { u *v };
    }
{}
template void con5(int);
template <Any auto V> void con6() {}
template void con6<3>();
template <template <Any> class TT> void con7() {}
template <Any T> struct ABox {};
template void con7<ABox>();
template <class T> struct Fr {
    friend void frf(Fr, T)
        requires Any<T>
    {}
    template <class U>
    friend void frg(Fr, U)
        requires Any<T>
    {}
};
void ufr() {
    frf(Fr<int>{}, 1);
    frg(Fr<int>{}, 'c');
}
template <template <class T, T...> class TT> void ttp() {}
template <class T, T...> struct seq {};
template void ttp<seq>();
struct DT {
    void self(this DT &me, int) {}
    template <class Me> void tself(this Me &&me) {}
};
void udt() {
    DT d;
    d.self(1);
    d.tself();
    DT{}.tself();
}
// inline namespaces, abi tags, anonymous
inline namespace __attribute__((abi_tag("cx"))) v2 {
    struct T2 {};
} // namespace v2
T2 ft2() { return {}; }
struct __attribute__((abi_tag("t1", "t2"))) Tagged {
    Tagged();
    ~Tagged();
};
Tagged::Tagged() {}
Tagged::~Tagged() {}
Tagged gt() { return {}; }
__attribute__((abi_tag("q"))) int tagged_var;
namespace {
struct An {
    void m() {}
    virtual ~An() {}
};
int anv;
void anf(An) {}
} // namespace
void uan() {
    An a;
    a.m();
    anf(a);
    anv++;
}
typedef struct {
    int x;
    void m() {}
} Td;
void utd(Td t) { t.m(); }
struct HasUn {
    struct {
        int q;
    } u;
    union {
        int w;
    };
    enum { EE = 3 } e;
};
template <class T> void un(T) {}
void uun() {
    HasUn h;
    un(h.u);
    un(h.e);
    struct {
        int i;
    } l;
    un(l);
    enum { LL };
    un(LL);
}
// virtual, thunks, vtables
struct VA {
    virtual VA *f();
    virtual ~VA();
    int a;
};
struct VB {
    virtual VB *g();
    virtual ~VB();
    int b;
};
struct VC : virtual VA, VB {
    VC *f() override;
    VC *g() override;
    ~VC();
};
VA *VA::f() { return this; }
VA::~VA() {}
VB *VB::g() { return this; }
VB::~VB() {}
VC *VC::f() { return this; }
VC *VC::g() { return this; }
VC::~VC() {}
struct VD : VC {
    ~VD();
};
VD::~VD() {}
// guard, tls, ref temp
S &single() {
    static S s(1);
    return s;
}
extern thread_local S tls;
thread_local S tls(2);
S &utls() { return tls; }
const S &rt = S(3);
inline const S &irt = S(4);
inline thread_local S itls(4);
S &uitls() {
    (void)irt;
    return itls;
}
// literal ops
int operator""_km(unsigned long long x) { return 0; }
int operator""_s(const char *, size_t) { return 0; }
template <char... c> int operator""_t() { return 0; }
template int operator""_t < '1', '2'>();
int ulit() { return 3_km + "a"_s; }
// conversion operators
struct Conv1 {
    template <class T> operator T() const;
    template <class T> operator T &&();
    template <class T, class U> operator tup<T, U>();
    operator int S::*();
};
template <class T> Conv1::operator T() const { return T(); }
template Conv1::operator int() const;
template Conv1::operator Box<int>() const;
template <class T, class U> Conv1::operator tup<T, U>() { return {}; }
template Conv1::operator tup<int, char>();
Conv1::operator int S::*() { return 0; }
template <class Q> struct Conv2 {
    template <class T> operator Box<T>();
    operator Q();
};
template <class Q> template <class T> Conv2<Q>::operator Box<T>() { return {}; }
template <class Q> Conv2<Q>::operator Q() { return Q(); }
template Conv2<int>::operator Box<char>();
template struct Conv2<long>;
// unresolved names
template <class T>
auto un1(T t)
    -> decltype(T::template foo<int>(t), T::bar, t.T::~T(), t.template foo<T>(1), t.~T(), ::glob, 0) {
    return 0;
}
struct HasFoo {
    template <class A> static int foo(...);
    static int bar;
};
template int un1(HasFoo);
template <class T>
auto un2(T t) -> decltype(T::type::val, T::type::template q<int>::val, t + t, operator+(t, t), t.operator+(t),
                          &T::operator+, 0) {
    return 0;
}
struct HasType {
    struct type {
        static int val;
        template <class> struct q {
            static int val;
        };
    };
    HasType operator+(HasType);
};
int operator+(HasType, const HasType &);
namespace N1 {
namespace N2 {
template <class T> int g(T);
struct AD {};
} // namespace N2
} // namespace N1
template <class T> int adl2(T);
template <class T> auto un3(T t) -> decltype(adl(t), ::adl2(t), N1::N2::g(t), N1::N2::g<T>(t), 0) {
    return 0;
}
namespace N1 {
namespace N2 {
int adl(AD);
}
} // namespace N1
template int un3(N1::N2::AD);
template <class T> void dep(typename T::type, typename T::template q<int>::w, typename Box<T>::z) {}
template <class T> struct enable {};
template <class T> typename enable<T>::type nope(T);
template <class T> auto mem(T *t) -> decltype((t->*(&S::a)), (*t).*(&S::a), t->S::a, 0) { return 0; }
template int mem(S *);
template <class T> auto init(T t) -> decltype(T{t, 1}, Lit{.a = 1, .b = 2.0}, Box<T>{}, 0) { return 0; }
template <class T> auto aidx(T t) -> int (&)[sizeof(T) > 2 ? (3 > 2) : (4 >> 1)];
template <class T> Box<int[(sizeof(T) > 3)]> gt1(T) { return {}; }
template Box<int[1]> gt1(int);
template <class T> con<bool, (sizeof(T) > 3)> gt2(T) { return {}; }
template con<bool, true> gt2(int);
template <class T> con<int, (sizeof(T) >> 1)> gt3(T) { return {}; }
template con<int, 2> gt3(int);
template <class T> con<bool, (sizeof(T) < 3 || (sizeof(T) > 1))> gt4(T) { return {}; }
template con<bool, true> gt4(int);
template <class T> decltype(auto) da(T t) { return t; }
template decltype(auto) da(int);
// enable_if attribute
void ei(int x) __attribute__((enable_if(x > 0, "pos"))) {}
void ei(int x) {}
template <class T> void ovl(T t) __attribute__((enable_if(sizeof(T) > 1, ""))) {}
template void ovl(int);
// overloadable
// inheriting ctor
struct Base {
    Base(int, ...);
    Base(long);
    template <class T> Base(T *, T *);
};
Base::Base(long) {}
struct Der : Base {
    using Base::Base;
    int x = 1;
};
void uder() {
    Der d(1L);
    int q;
    Der e(&q, &q);
}
template <class T> Base::Base(T *, T *) {}
// structured binding
static auto [sba, sbb] = Lit{1, 2.0};
int usb() { return sba; }
auto [gba, gbb] = Lit{3, 4.0};
namespace nsb {
int tmpa[3];
auto &[x, y, z] = tmpa;
} // namespace nsb
int unsb() { return nsb::x; }
// coroutines
struct task {
    struct promise_type {
        task get_return_object();
        struct sus {
            bool await_ready() noexcept;
            void await_suspend(std::coroutine_handle<>) noexcept;
            void await_resume() noexcept;
        };
        sus initial_suspend();
        sus final_suspend() noexcept;
        void return_void();
        void unhandled_exception();
    };
    promise_type::sus operator co_await();
};
task coro(int x) { co_return; }
task::promise_type::sus task::operator co_await() { return {}; }
template <class T> constexpr int vart = 3;
template <class T> constexpr int vart<T *> = 4;
int uvt(const int *) { return 0; }
int vv = uvt(&vart<int>) + uvt(&vart<int *>);
template <class T> T vtm{};
int uvtm() { return vtm<int> + vtm<short>; }
struct SVT {
    template <class T> static T v;
};
template <class T> T SVT::v{};
int usvt() { return SVT::v<int>; }
static int ovstat(int) __attribute__((used));
static int ovstat(int) { return 0; }
namespace {
namespace in {
int deep() { return 1; }
} // namespace in
} // namespace
int udeep() { return in::deep(); }
void pf(void (*)(void (*)(int), int (&)[3]), char (*(&)[4])(int)) {}
void varr(int (*)[3][4]) {}
template <size_t N, size_t M> void marr(const char (&)[N][M]) {}
template void marr(const char (&)[2][3]);
void addrsp(int __attribute__((address_space(3))) * p) {}
template <class T> void as(T __attribute__((address_space(5))) *) {}
template void as(int __attribute__((address_space(5))) *);
void noder(int __attribute__((noderef)) * p) {}
void pure(int (*f)() __attribute__((noreturn))) {}
struct alignas(64) Al {
    void *operator new(size_t, std::align_val_t);
};
void *Al::operator new(size_t, std::align_val_t) { return 0; }
struct PV {
    virtual void pv() = 0;
};
void PV::pv() {}
