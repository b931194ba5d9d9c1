#include "swift.h"

int objc_msgSend(void);
void *sel_registerName(const char *name);

struct ViewController {
  void *isa, *canvas;
  long rows, taps;
};

typedef struct ViewController *Self;

/* DemoApp.ViewController.isReady.getter : Swift.Bool */
static INLINE _Bool isReady(Self self) SWIFT("$s7DemoApp14ViewControllerC7isReadySbvg");
/* DemoApp.ViewController.render(scale: Swift.Int) -> Swift.Int */
static INLINE long render(Self self, long scale) SWIFT("$s7DemoApp14ViewControllerC6render5scaleS2i_tF");
/* DemoApp.ViewController.didTapRender(Any) -> (), and its @objc thunk */
NOINLINE void didTapRender(Self self, void *sender) SWIFT("$s7DemoApp14ViewControllerC12didTapRenderyyypF");
void didTapRender_objc(Self self, void *cmd, void *sender)
    SWIFT("$s7DemoApp14ViewControllerC12didTapRenderyyypFTo");

static _Bool isReady(Self self) {
  return self->canvas && self->rows > 0;
}

static long render(Self self, long scale) {
  void *selector = sel_registerName("renderScene:scale:");
  int (*send)(void *, void *, int, int) = (int (*)(void *, void *, int, int))objc_msgSend;
  return send(self->canvas, selector, (int)self->rows, (int)scale) + scale;
}

void didTapRender(Self self, void *sender) {
  if (!isReady(self))
    return;
  TileLoader_install();
  self->taps += render(self, 2);
}

#line 0 "<compiler-generated>"
void didTapRender_objc(Self self, void *cmd, void *sender) { didTapRender(self, sender); self->taps++; }
