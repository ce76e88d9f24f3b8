// Values made of nothing, random numbers included.
include "ir/ops/Base.td"

def FullOp : Creation<"full"> {
  let summary = "A tensor with `value` everywhere";
  let description = [{
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements.
  }];
  let arguments = (ins Sizes:$shape, Float:$value, Default<Type, "DType::f32">:$dtype);
  let scalar = [{ value }];
  let numpy = "np.full(shape, value, dtype)";
  let example = "full({2, 3}, 7, i32)";
}
def DimSizeOp : Creation<"dim_size"> {
  let summary = "A size as a tensor of rank 0";
  let description = [{
    For computing with a size that is only known when the program runs: `sum(x) / dim_size(x.dim(0), f32)`.
    - (C1) the size is not negative.
  }];
  let arguments = (ins Size:$size, Default<Type, "DType::i64">:$dtype);
  let infer = "inferDimSize";
  let scalar = [{ cx.sizeOf(size) }];
  let numpy = "np.array(size, dtype)";
  let example = "dim_size(3)";
}
def IotaOp : Creation<"iota"> {
  let summary = "A tensor whose elements are their own index in dimension `axis`";
  let description = [{
    - (C1) the shape has at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) axis is in [-rank, rank).
  }];
  let arguments = (ins Sizes:$shape, Default<Int, "0">:$axis, Default<Type, "DType::i64">:$dtype);
  let infer = "inferIota";
  let scalar = [{ cx.index(axis < 0 ? axis + cx.rank() : axis) }];
  let numpy = "np.broadcast_to(np.expand_dims(np.arange(shape[axis]), [i for i in range(len(shape)) if i != axis % len(shape)]), shape).astype(dtype)";
  let example = "iota({2, 3}, 1)";
}
def EyeOp : Creation<"eye"> {
  let summary = "Matrices with ones on the diagonal, or on the k-th one over it, and zeros elsewhere";
  let description = [{
    - (C1) the shape has 2 to 8 dimensions, none negative, and less than 2^48 elements.
  }];
  let arguments = (ins Sizes:$shape, Default<Int, "0">:$k, Default<Type, "DType::f32">:$dtype);
  let infer = "inferEye";
  let scalar = [{ cast(cx.index(cx.rank() - 1) == cx.index(cx.rank() - 2) + k, cx.i64) }];
  let numpy = "np.broadcast_to(np.eye(shape[-2], shape[-1], k, dtype), shape)";
  let samples = ["shape: 2 3 | 4 4 | 2 3 2", "k: 0 | 1 | -1"];
  let example = "eye({2, 3})";
}
def LinspaceOp : Creation<"linspace"> {
  let summary = "`num` evenly spaced numbers from start to stop, which is left out if `endpoint` is false";
  let description = [{
    - (C1) num is not negative and less than 2^48;
    - (C2) the element type is a float.
  }];
  let arguments = (ins Float:$start, Float:$stop, Int:$num, Default<Bool, "true">:$endpoint,
                       Default<Type, "DType::f32">:$dtype);
  let infer = "inferLinspace";
  let scalar = [{
    const double steps = static_cast<double>(endpoint ? num - 1 : num), step = steps > 0 ? (stop - start) / steps : 0;
    auto at = cast(cx.index(0), cx.f64);
    auto value = at * step + start;
    return select(at == steps && at > 0, like(value, stop), value); // the last one exactly
  }];
  let numpy = "np.linspace(start, stop, num, endpoint, dtype=dtype)";
  let samples = ["start: 0 | -1.5 | 2", "stop: 1 | 3.25 | -2", "num: 0 | 1 | 2 | 7", "endpoint: 0 | 1"];
  let example = "linspace(0, 1, 5)";
}
def FullLikeOp : Composite<"full_like"> {
  let family = "Constant";
  let summary = "A tensor of x's shape and type with `value` everywhere";
  let description = [{
    `full_like(x, 0)` and `full_like(x, 1)` are zeros and ones like x.
  }];
  let arguments = (ins Tensor:$x, Float:$value);
  let infer = "inferDecomposition";
  let decomposition = [{ full(x.sizes(), value, x.dtype()) }];
  let numpy = "np.full_like(x, value)";
  let example = "full_like(tensor({1.0, 2}), 7)";
}
