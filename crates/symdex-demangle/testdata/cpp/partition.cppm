export module a.b:p.q;
export struct PM {};
export void pmf(PM) {}
int pv = 3;
export extern "C++" void ecpp(PM) {}
int (*fp)(PM);
PM fpm(PM, PM) { return {}; }
