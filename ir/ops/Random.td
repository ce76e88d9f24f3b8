// Random numbers: Philox 4x32-10 with the element's row-major index as counter and the seed as key, so that how the work is
// split over threads or devices changes nothing, and a seed gives the same numbers on every machine. For other numbers take
// another seed.
include "ir/ops/Base.td"

class Random<string mnemonic> : Creation<mnemonic> {
  let family = "Random";
  let compute = "Integer";
  let infer = "inferRandom";
  let sharding = "shardingOfRandom";
}
def RandomUniformOp : Random<"random_uniform"> {
  let summary = "Random numbers in [0, 1): multiples of 2^-53 for f64, else of 2^-24";
  let description = [{
    A seed has one row of numbers, of which the result holds those from number `first` on, in row-major order: a tensor can be drawn
    in parts.
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) the seed is one integer, of rank 0.
  }];
  let arguments = (ins Tensor:$seed, Sizes:$shape, Default<Type, "DType::f32">:$dtype, Default<Size, "0">:$first);
  let scalar = [{
    auto words = philox(cast(seed, cx.i64), cx.linearIndex() + cx.sizeOf(first));
    if (dtype == DType::f64) // 53 bits
      return cast((words[0] << 21) ^ (words[1] >> 11), cx.f64) * 0x1p-53;
    return cast(cast(words[0] >> 8, cx.f32) * 0x1p-24, cx.f64);
  }];
  let numpy = "random_uniform(seed, shape, dtype, first)";
  let samples = ["first: 0 | 5 | 4294967301"];
  let example = "random_uniform(7, {2, 3})";
}
def RandomNormalOp : Random<"random_normal"> {
  let summary = "Random numbers of the normal distribution with mean 0 and deviation 1";
  let description = [{
    Box and Muller's transform of two uniform numbers. `first` is as in `random_uniform`.
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) the seed is one integer, of rank 0;
    - (C3) the element type is a float.
  }];
  let arguments = (ins Tensor:$seed, Sizes:$shape, Default<Type, "DType::f32">:$dtype, Default<Size, "0">:$first);
  let infer = "inferRandomFloat";
  let scalar = [{
    auto words = philox(cast(seed, cx.i64), cx.linearIndex() + cx.sizeOf(first));
    if (dtype == DType::f64) {
      auto u = cast((words[0] << 21) ^ (words[1] >> 11), cx.f64) * 0x1p-53;
      auto v = cast((words[2] << 21) ^ (words[3] >> 11), cx.f64) * 0x1p-53 - 0.5; // the angle from -pi to pi
      return sqrt(log(1 - u) * -2) * cos(v * 6.283185307179586477);
    }
    auto u = cast(words[0] >> 8, cx.f32) * 0x1p-24;
    auto v = cast(words[1] >> 8, cx.f32) * 0x1p-24 - 0.5;
    return cast(sqrt(log(1 - u) * -2) * cos(v * 6.283185307179586477), cx.f64);
  }];
  let numpy = "random_normal(seed, shape, dtype, first)";
  let samples = ["first: 0 | 5 | 4294967301"];
  let example = "random_normal(7, {2, 3})";
}
def RandintOp : Random<"randint"> {
  let summary = "Random integers in [low, high)";
  let description = [{
    `first` is as in `random_uniform`.
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) the seed is one integer, of rank 0;
    - (C3) low < high, and the element type is an integer that holds low and high - 1.
  }];
  let arguments = (ins Tensor:$seed, Int:$low, Int:$high, Sizes:$shape, Default<Type, "DType::i64">:$dtype, Default<Size, "0">:$first);
  let infer = "inferRandint";
  let scalar = [{
    auto words = philox(cast(seed, cx.i64), cx.linearIndex() + cx.sizeOf(first));
    const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    if (range <= (uint64_t(1) << 32)) // the high half of a product; what it prefers is below 2^-32 * range
      return (range >> 32 ? words[0] : (words[0] * static_cast<int64_t>(range)) >> 32) + low;
    auto bits = ((words[0] << 32) ^ words[1]) >> 1;
    return (range >> 63 ? (words[0] << 32) ^ words[1] : bits % static_cast<int64_t>(range)) + low;
  }];
  let numpy = "randint(seed, low, high, shape, dtype, first)";
  let samples = ["seed: i64 scalar | i32 scalar", "low: 0 | -5 | 3", "high: 4 | 100 | 7 | 5000000000",
                 "first: 0 | 5 | 4294967301"];
  let example = "randint(7, 1, 7, {10})";
}

// --- Written in the above -------------------------------------------------------------------------------------------------------
class RandomComposite<string mnemonic> : Composite<mnemonic> {
  let family = "Random";
}
def BernoulliOp : RandomComposite<"bernoulli"> {
  let summary = "True with the probability p, elementwise";
  let description = [{
    - (C1) the seed is one integer, of rank 0;
    - (C2) p holds floats.
  }];
  let arguments = (ins Tensor:$seed, Tensor:$p);
  let infer = "inferBernoulli";
  let decomposition = [{ less(random_uniform(seed, p.sizes(), wide(p).dtype()), wide(p)) }];
  let samples = ["seed: i64 scalar", "p: n m | n"];
  let domains = ["0, 99", "0, 1"];
  let numpy = "bernoulli(seed, p, dtypes['p'])";
  let example = "bernoulli(7, full({5}, 0.5))";
}
def PermutationOp : RandomComposite<"permutation"> {
  let summary = "The numbers 0 to n - 1 in random order, as i64";
  let description = [{
    - (C1) the seed is one integer, of rank 0;
    - (C2) n is not negative, and less than 2^32.
  }];
  let arguments = (ins Tensor:$seed, Size:$n);
  let infer = "inferPermutation";
  let decomposition = [{ argsort(random_uniform(seed, {n}, DType::f64), 0) }];
  let numpy = "np.argsort(random_uniform(seed, (n,), np.float64), kind='stable')";
  let samples = ["seed: i64 scalar", "n: 0 | 1 | 5 | 40"];
  let example = "permutation(7, 5)";
}
def CategoricalOp : RandomComposite<"categorical"> {
  let summary = "A random index along `axis` with the probabilities softmax(logits), as i64";
  let description = [{
    The largest of the logits plus Gumbel noise.
    - (C1) the seed is one integer, of rank 0;
    - (C2) logits hold floats, and axis is in [-rank, rank), of a dimension that is not empty.
  }];
  let arguments = (ins Tensor:$seed, Tensor:$logits, Default<Int, "-1">:$axis);
  let infer = "inferCategorical";
  let decomposition = [{
    Expr x = wide(logits), u = random_uniform(seed, x.sizes(), x.dtype());
    return argmax(x - log(negative(log1p(negative(u)))), axis); // 1 - u is never 0
  }];
  let samples = ["seed: i64 scalar", "logits: n m", "axis: 0 | 1 | -1"];
  let numpy = "categorical(seed, logits, axis, dtypes['logits'])";
  let example = "categorical(7, tensor({{0.0, 2, 1}, {3, 0, 0}}))";
}
