// libtressel_emulated_tiles.so, for tests: SplitProduct.cpp for CPUs with AVX-512 and emulated tiles.
#include "EmulatedTiles.h"

#define TRESSEL_TILES EmulatedTiles
#include "SplitProduct.cpp"

const tressel::kernels::SplitKernels tressel_emulated_tiles = tressel::kernels::splitKernelsEmulated;
int64_t tressel_emulated_tile_products() { return tressel::kernels::EmulatedTiles::numProducts(); }
