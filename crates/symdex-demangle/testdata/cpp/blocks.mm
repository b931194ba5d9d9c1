@protocol P1
, P2;
__attribute__((objc_root_class))
@interface Obj {}
- (void)m:(int)x;
+ (id)make;
@end
void takep(id<P1> p) {}
void takepp(id<P1, P2> p) {}
void takeobj(Obj *o) {}
void takeobjp(Obj<P1> *o) {}
void cls(Class c) {}
void clsp(Class<P1> c) {}
void sel(SEL s) {}
void str(__strong id *a, __weak id *b, __unsafe_unretained id *c, __autoreleasing id *d) {}
void takeblock(void (^b)(int)) {}
template <class T> void tb(T t) { t(); }
template <class T> struct Box {
    T t;
};
namespace ns {
int run(int x) {
    int (^b)(int) = ^(int y) {
      int (^c)() = ^{
        static int q;
        return ++q;
      };
      return c() + y;
    };
    return b(x);
}
} // namespace ns
struct S {
    int m() {
        return ^{
          static int z;
          return ++z;
        }();
    }
    int v = ^{
      static int k;
      return ++k;
    }();
    S();
    template <class T> T t(T q) {
        return ^(T r) {
          return r;
        }(q);
    }
};
S::S() {}
template int S::t(int);
int us() {
    S s;
    return s.m();
}
int (^gb)(int) = ^(int x) {
  static int l;
  auto lam = [=](int w) {
      return ^{
        return w;
      }();
  };
  return lam(x) + l;
};
template <class T> void inst(T) {}
void ub() {
    inst(^(int x) {
      return x;
    });
    tb(^{
    });
    inst([](int y) {
        return ^{
          return y;
        };
    });
}
@implementation Obj
- (void)m:(int)x {
    int (^b)() = ^{
      static int zz;
      struct L {
          int q() { return 1; }
      };
      return ++zz + L().q();
    };
    b();
}
+ (id)make {
    return ^id {
      return nullptr;
    }();
}
@end
inline int dflt(int a = ^{
  static int s;
  return ++s;
}()) {
    return a;
}
int udf() { return dflt(); }
