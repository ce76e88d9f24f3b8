// What this processor's arithmetic and memory do at most, measured.
#pragma once

namespace tressel::bench {

/// Floating-point operations that `threads` threads do in a second, multiplying and adding vectors in registers only.
double peakFlops(int threads);
/// The same for f32 numbers on tile registers, as our kernels split them (runtime/kernels/README.md, Tiles): each
/// multiply-add takes six of bf16. 0 where there are no tile registers, or TRESSEL_KERNEL_TILES=0 forbids them.
double tilePeakFlops(int threads);
/// Bytes per second that `threads` threads read from memory and write to it, copying more than caches hold.
double copyBandwidth(int threads);

} // namespace tressel::bench
