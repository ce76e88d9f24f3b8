// Values made of nothing, random numbers included.
include "ir/ops/Base.td"

def FullOp : Creation<"full"> {
  let summary = "A tensor with `value` everywhere";
  let description = [{
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements.
  }];
  let arguments = (ins Ints:$shape, Float:$value, Default<Type, "DType::f32">:$dtype);
  let scalar = [{ value }];
  let numpy = "np.full(shape, value, dtype)";
  let example = "full({2, 3}, 7, i32)";
}
def IotaOp : Creation<"iota"> {
  let summary = "A tensor whose elements are their own index in dimension `axis`";
  let description = [{
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) axis is in [-rank, rank).
  }];
  let arguments = (ins Ints:$shape, Default<Int, "0">:$axis, Default<Type, "DType::i64">:$dtype);
  let infer = "inferIota";
  let scalar = [{ cx.index(axis < 0 ? axis + cx.rank() : axis) }];
  let numpy = "np.broadcast_to(np.expand_dims(np.arange(shape[axis]), [i for i in range(len(shape)) if i != axis % len(shape)]), shape).astype(dtype)";
  let example = "iota({2, 3}, 1)";
}
def RandomUniformOp : Creation<"random_uniform"> {
  let family = "Random";
  let summary = "Random numbers in [0, 1), multiples of 2^-24, decided by the seed and the element's index alone";
  let description = [{
    Philox 4x32-10 with the element's row-major index as counter and the seed as key: how the work is split over threads or
    devices changes nothing.
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) the seed is one integer, of rank 0.
  }];
  let arguments = (ins Tensor:$seed, Ints:$shape, Default<Type, "DType::f32">:$dtype);
  let infer = "inferRandom";
  let compute = "Integer";
  let scalar = [{
    auto key = cast(seed, cx.i64);
    auto index = cx.linearIndex();
    auto mask = like(key, 0xffffffff);
    auto k0 = key & mask, k1 = key >> 32;
    auto c0 = index & mask, c1 = index >> 32, c2 = like(key, 0), c3 = like(key, 0);
    for (int round = 0; round < 10; ++round) {
      auto p0 = c0 * 0xD2511F53, p1 = c2 * 0xCD9E8D57;
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c1 = p1 & mask;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c3 = p0 & mask;
      k0 = (k0 + 0x9E3779B9) & mask;
      k1 = (k1 + 0xBB67AE85) & mask;
    }
    return cast(c0 >> 8, cx.f32) * 5.9604644775390625e-08;
  }];
  let numpy = "philox_uniform(seed, shape).astype(dtype)";
  let example = "random_uniform(42, {3})";
}
