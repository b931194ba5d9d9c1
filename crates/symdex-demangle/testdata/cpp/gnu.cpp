// Makes names for gnu.tsv: forms that only GCC writes.
// g++-12 -std=c++17 -fgnu-tm -c gnu.cpp; and with -fabi-version=2 for argument packs that begin with I.
#include <cstddef>
namespace std {
inline namespace text {
template <class C, class A = C> struct basic {};
} // namespace text
template <class... T> struct list {};
template <class T> struct is_small {
    struct inner {
        enum { value = sizeof(T) < 8 };
    };
    enum { value = sizeof(T) < 8 };
};
template <bool B, class T> struct enable {};
template <class T> struct enable<true, T> { using type = T; };
} // namespace std
template <class T> struct is_tiny {
    enum { value = sizeof(T) < 4 };
};

// Conversions to types with template arguments.
struct Source {
    operator std::basic<char>() const;
    operator std::list<std::basic<char>>();
    template <class T> operator std::list<std::basic<T>>();
};
Source::operator std::basic<char>() const { return {}; }
Source::operator std::list<std::basic<char>>() { return {}; }
template <class T> Source::operator std::list<std::basic<T>>() { return {}; }
template Source::operator std::list<std::basic<long>>();

// Members of dependent types: sr and a type.
template <class T> typename std::enable<std::is_small<T>::value, T>::type in_std(T x) { return x; }
template <class T> typename std::enable<std::is_small<T>::inner::value, T>::type in_inner(T x) { return x; }
template <class T> typename std::enable<is_tiny<T>::value, T>::type in_global(T x) { return x; }
template <class T> typename std::enable<!(is_tiny<T>::value && std::is_small<T>::value), T>::type both(T x) {
    return x;
}
template <class... T> typename std::enable<std::is_small<std::list<T...>>::value, int>::type packed(T &&...) {
    return 0;
}
template int in_std(int);
template int in_inner(int);
template char in_global(char);
template int both(int);
template int packed<int, char>(int &&, char &&);

// Inherited constructors of template classes.
template <class T> struct Base {
    Base(T, std::list<T>);
    template <class U> Base(U *, T);
};
template <class T> struct Derived : Base<T> {
    using Base<T>::Base;
};
Derived<int> *derive(int *number) {
    return new Derived<int>(1, {}) ? new Derived<int>(number, 2) : nullptr;
}
template <class T> struct Extended : T {
    using T::T;
};
Extended<Base<int>> *extend() { return new Extended<Base<int>>(1, {}); }

// A template template parameter with arguments is a substitution of its own.
template <class T, template <class> class C> int wrapped(C<T>, const C<T> &, T *, const T *);
template <class T, template <class> class C> int wrapped(C<T>, const C<T> &, T *, const T *) {
    return std::is_small<T>::value;
}
template int wrapped(std::list<int>, const std::list<int> &, int *, const int *);
template <class T, template <class> class C>
typename std::enable<std::is_small<C<T>>::value, T>::type nested(C<T>, T *, const T *) {
    return {};
}
template int nested(std::list<int>, int *, const int *);

// Clones for transactional memory.
__attribute__((transaction_safe)) int transact(int x, std::list<int>) { return x + 1; }
struct Account {
    __attribute__((transaction_safe)) void add(int);
    int sum;
};
void Account::add(int more) { sum += more; }
int atomic(Account &account) {
    __transaction_atomic { account.add(1); }
    return transact(1, {});
}
