#include "TileCache.hpp"
#include "kit.h"

namespace {

demokit::TileCache<demokit::Tile, 16> cache;
dk_loader loader;
void *loader_context;

} // namespace

void dk_set_loader(dk_loader new_loader, void *context) {
  loader = new_loader;
  loader_context = context;
}

int dk_tile_fetch(int key) {
  return cache.get_or_load(key, [](int missing) {
    return int(loader(loader_context, missing)) + 1;
  });
}
