#include "Workloads.h"

#include "tressel/runtime/CustomOp.h"

#include <sstream>

namespace tressel::bench {
namespace {

template <typename... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Writes @main op by op. Values are names.
class Program {
public:
  explicit Program(int64_t n) : type(concat("tensor<", n, "x", n, "xf32>")) {}

  std::string input(const std::string &name) { return argument(name, "tressel.name"); }
  std::string parameter(const std::string &name) { return argument(name, "tressel.state"); }
  /// A tensor that is there already, but not the same at each call: a parameter, and a number that comes with the call.
  std::string resident(const std::string &name, const std::string &device) {
    const std::string kept = parameter(name);
    if (number.empty()) {
      number = "%number";
      arguments += ", %number: tensor<f32> {tressel.name = \"number\", tressel.pinned}";
    }
    return line(concat("tressel.add ", kept, ", ", number, " {", placed(device, ""), "} : (", type,
                       ", tensor<f32>) -> ", type));
  }
  std::string product(const std::string &a, const std::string &b, const std::string &device = "") {
    return op("matmul", a, b, device);
  }
  std::string difference(const std::string &a, const std::string &b, const std::string &device) {
    return op("sub", a, b, device);
  }
  std::string transposed(const std::string &a, const std::string &device) {
    return line(concat("tressel.transpose ", a, " {", placed(device, ""), "} : (", type, ") -> ", type));
  }
  /// A custom op of tiles.
  std::string tileOp(const char *name, const std::vector<std::string> &operands, const std::string &device) {
    std::string values, types;
    for (const std::string &operand : operands) {
      values += (values.empty() ? "" : ", ") + operand;
      types += (types.empty() ? "" : ", ") + type;
    }
    return line(concat("tressel.", name, " ", values, " {", placed(device, ""), "} : (", types, ") -> ", type));
  }
  std::string sum(const std::string &a, const std::string &b, const std::string &device = "") {
    return op("add", a, b, device);
  }
  std::string elementwise(const char *what, const std::string &a, const std::string &device = "") {
    return line(concat("tressel.", what, " ", a, " {", placed(device, ""), "} : (", type, ") -> ", type));
  }
  /// The sum of all elements: something small that needs all of them.
  std::string total(const std::string &a, const std::string &device) {
    return line(concat("tressel.sum ", a, " {axis = array<i64: 0, 1>", placed(device, ", "), "} : (", type,
                       ") -> tensor<f32>"));
  }
  void giveBack(const std::string &value, bool isTotal = false) {
    const std::string of = isTotal ? "tensor<f32>" : type;
    resultNames += (results ? ", " : "") + value;
    resultTypes += (results ? ", " : "") + of;
    signature += concat(results ? ", " : "", of, " {tressel.name = \"y", results, "\", tressel.pinned}");
    ++results;
  }
  std::string text() const {
    return concat("func.func @main(", arguments, ") -> (", signature, ") {\n", body, "  return ", resultNames, " : ",
                  resultTypes, "\n}\n");
  }

private:
  static std::string placed(const std::string &device, const char *before) {
    return device.empty() ? "" : concat(before, "tressel.device = \"", device, "\"");
  }
  std::string argument(const std::string &name, const char *attribute) {
    arguments += concat(arguments.empty() ? "" : ", ", "%", name, ": ", type, " {", attribute, " = \"", name,
                        "\", tressel.pinned}");
    return "%" + name;
  }
  std::string op(const char *what, const std::string &a, const std::string &b, const std::string &device) {
    return line(
        concat("tressel.", what, " ", a, ", ", b, " {", placed(device, ""), "} : (", type, ", ", type, ") -> ", type));
  }
  std::string line(const std::string &text) {
    body += concat("  %v", values, " = ", text, "\n");
    return concat("%v", values++);
  }

  std::string type, number, arguments, signature, body, resultNames, resultTypes;
  int values = 0, results = 0;
};

std::string gpu(int64_t i) { return concat("gpu", i); }

Size potrfFlops(Size n) { return n * n * n / 3; }
Size trsmFlops(Size n) { return n * n * n; }

std::string chains(int chains, int length, int devices) {
  Program p(2048);
  for (int c = 0; c < chains; ++c) {
    const std::string w = p.parameter(concat("w", c));
    std::string x = p.resident(concat("x", c), gpu(c % devices));
    for (int i = 0; i < length; ++i)
      x = p.product(x, w, gpu(c % devices));
    p.giveBack(x);
  }
  return p.text();
}

/// Micro-batches through stages, one device each.
std::string pipeline(int stages, int batches) {
  Program p(2048);
  std::vector<std::string> weights;
  for (int s = 0; s < stages; ++s)
    weights.push_back(p.parameter(concat("w", s)));
  for (int b = 0; b < batches; ++b) {
    std::string x = p.input(concat("x", b));
    for (int s = 0; s < stages; ++s)
      for (int layer = 0; layer < 3; ++layer)
        x = p.product(x, weights[static_cast<size_t>(s)], gpu(s));
    p.giveBack(x);
  }
  return p.text();
}

/// A part of the batch per device, weights on all.
std::string dataParallel(int devices, int layers) {
  Program p(2048);
  std::vector<std::string> weights;
  for (int l = 0; l < layers; ++l)
    weights.push_back(p.parameter(concat("w", l)));
  for (int d = 0; d < devices; ++d) {
    std::string x = p.input(concat("x", d));
    for (const std::string &w : weights)
      x = p.product(x, w, gpu(d));
    p.giveBack(x);
  }
  return p.text();
}

std::string tree(int leaves, int devices) {
  Program p(2048);
  const std::string w = p.parameter("w");
  std::vector<std::string> level;
  for (int i = 0; i < leaves; ++i) {
    std::string x = p.resident(concat("x", i), gpu(i * devices / leaves));
    for (int k = 0; k < 4; ++k)
      x = p.product(x, w, gpu(i * devices / leaves));
    level.push_back(x);
  }
  for (int stride = 1; stride < leaves; stride *= 2)
    for (int i = 0; i + stride < leaves; i += 2 * stride)
      level[static_cast<size_t>(i)] =
          p.sum(level[static_cast<size_t>(i)], level[static_cast<size_t>(i + stride)], gpu(i * devices / leaves));
  p.giveBack(level[0]);
  return p.text();
}

/// A ring of blocks; in each step a block needs its neighbours' of the step before.
std::string stencil(int devices, int blocks, int steps) {
  Program p(2048);
  const std::string w = p.parameter("w");
  std::vector<std::string> now;
  for (int b = 0; b < blocks; ++b)
    now.push_back(p.resident(concat("x", b), gpu(b * devices / blocks)));
  for (int s = 0; s < steps; ++s) {
    std::vector<std::string> next;
    for (int b = 0; b < blocks; ++b) {
      const std::string device = gpu(b * devices / blocks);
      auto at = [&](int i) { return now[static_cast<size_t>((i + blocks) % blocks)]; };
      std::string x = p.product(p.sum(at(b - 1), at(b + 1), device), w, device);
      next.push_back(p.product(x, at(b), device));
    }
    now = std::move(next);
  }
  for (int b = 0; b < blocks; ++b)
    p.giveBack(p.total(now[static_cast<size_t>(b)], gpu(b * devices / blocks)), true);
  return p.text();
}

/// C = A B in tiles that come from the host, each of C on one device.
std::string tiledProduct(int tiles, int devices) {
  Program p(2048);
  std::vector<std::string> a, b;
  for (int i = 0; i < tiles * tiles; ++i) {
    a.push_back(p.input(concat("a", i)));
    b.push_back(p.input(concat("b", i)));
  }
  for (int i = 0; i < tiles; ++i)
    for (int j = 0; j < tiles; ++j) {
      const std::string device = gpu((i * tiles + j) % devices);
      std::string c;
      for (int k = 0; k < tiles; ++k) {
        const std::string part =
            p.product(a[static_cast<size_t>(i * tiles + k)], b[static_cast<size_t>(k * tiles + j)], device);
        c = c.empty() ? part : p.sum(c, part, device);
      }
      p.giveBack(c);
    }
  return p.text();
}

/// The dependences of a tiled factorization, each tile's work done where the tile is (cyclic over a grid of devices),
/// with products in the place of the small kernels.
std::string factorization(int tiles, int devices) {
  Program p(2048);
  std::vector<std::vector<std::string>> t(static_cast<size_t>(tiles));
  auto owner = [&](int i, int j) { return gpu((i % 2) * (devices / 2) + j % (devices / 2)); };
  for (int i = 0; i < tiles; ++i)
    for (int j = 0; j <= i; ++j)
      t[static_cast<size_t>(i)].push_back(p.resident(concat("t", i, "_", j), owner(i, j)));
  auto at = [&](int i, int j) -> std::string & { return t[static_cast<size_t>(i)][static_cast<size_t>(j)]; };
  for (int k = 0; k < tiles; ++k) {
    at(k, k) = p.product(at(k, k), at(k, k), owner(k, k));
    for (int i = k + 1; i < tiles; ++i)
      at(i, k) = p.product(at(i, k), at(k, k), owner(i, k));
    for (int i = k + 1; i < tiles; ++i)
      for (int j = k + 1; j <= i; ++j)
        at(i, j) = p.sum(at(i, j), p.product(at(i, k), at(j, k), owner(i, j)), owner(i, j));
  }
  for (int i = 0; i < tiles; ++i)
    p.giveBack(p.total(at(i, i), owner(i, i)), true);
  return p.text();
}

/// Towers that meet twice, placed by the compiler.
std::string towers(int width, int length) {
  Program p(1024);
  const std::string x = p.input("x");
  std::vector<std::string> ends;
  for (int half = 0; half < 2; ++half) {
    std::string meet = x;
    for (const std::string &end : ends)
      meet = p.sum(meet, end);
    ends.clear();
    for (int t = 0; t < width; ++t) {
      const std::string w = p.parameter(concat("w", half, "_", t));
      std::string y = meet;
      for (int i = 0; i < length; ++i)
        y = p.product(y, w);
      ends.push_back(y);
    }
  }
  for (const std::string &end : ends)
    p.giveBack(end);
  return p.text();
}

/// Forward through layers of n x n weights, and back: each weight's gradient needs the activation before it.
std::string trainingStep(int64_t n, int layers) {
  Program p(n);
  const std::string device = gpu(0);
  std::vector<std::string> weights, activations{p.input("x")};
  for (int l = 0; l < layers; ++l) {
    weights.push_back(p.parameter(concat("w", l)));
    activations.push_back(p.elementwise("tanh", p.product(activations.back(), weights.back(), device), device));
  }
  std::string gradient = activations.back();
  for (int l = layers; l-- > 0;) {
    const auto at = static_cast<size_t>(l);
    const std::string ofWeight = p.product(p.transposed(activations[at], device), gradient, device);
    p.giveBack(p.total(ofWeight, device), true); // a norm, say: the gradient itself would be the step's next weight
    gradient = p.sum(p.product(gradient, p.transposed(weights[at], device), device), activations[at], device);
  }
  p.giveBack(p.total(gradient, device), true);
  return p.text();
}

/// Results are read again, the last first.
std::string readAgain(int64_t n, int length) {
  Program p(n);
  const std::string device = gpu(0), w = p.parameter("w");
  std::vector<std::string> made{p.input("x")};
  for (int i = 0; i < length; ++i)
    made.push_back(p.product(made.back(), w, device));
  std::string last = made.back();
  for (size_t i = made.size() - 1; i-- > 0;)
    last = p.product(last, made[i], device);
  p.giveBack(last);
  return p.text();
}

/// Layers of a weight each.
std::string manyParameters(int64_t n, int layers) {
  Program p(n);
  std::string x = p.input("x");
  for (int l = 0; l < layers; ++l)
    x = p.elementwise("tanh", p.product(x, p.parameter(concat("w", l)), gpu(0)), gpu(0));
  p.giveBack(x);
  return p.text();
}

/// Blocks whose inputs are read again in the opposite order, through ops that cost little.
std::string cheapBetween(int64_t n, int blocks) {
  Program p(n);
  const std::string device = gpu(0), w = p.parameter("w");
  std::vector<std::string> made{p.input("x")};
  std::vector<std::string> cheap;
  for (int i = 0; i < blocks; ++i) {
    made.push_back(p.product(made.back(), w, device));
    cheap.push_back(p.elementwise("exp", made.back(), device));
    made.back() = p.product(made.back(), cheap.back(), device);
  }
  std::string last = made.back();
  for (size_t i = cheap.size(); i-- > 0;)
    last = p.product(p.product(last, cheap[i], device), made[i], device);
  p.giveBack(last);
  return p.text();
}

} // namespace

std::string productsOnDevices(int64_t n, int count, int devices, bool giveBack) {
  Program p(n);
  for (int d = 0; d < devices; ++d) {
    const std::string w = p.parameter(concat("w", d));
    std::string x = p.resident(concat("x", d), gpu(d));
    for (int i = 0; i < count; ++i) {
      x = p.product(x, w, gpu(d));
      if (giveBack)
        p.giveBack(x);
    }
    if (!giveBack)
      p.giveBack(p.total(x, gpu(d)), true);
  }
  return p.text();
}

std::string cholesky(int tiles, int64_t size, int devices) {
  Program p(size);
  std::vector<std::vector<std::string>> t(static_cast<size_t>(tiles));
  auto owner = [&](int i, int j) {
    return devices == 0 ? std::string() : gpu(i % 2 * (devices / 2) + j % (devices / 2));
  };
  for (int i = 0; i < tiles; ++i)
    for (int j = 0; j <= i; ++j)
      t[static_cast<size_t>(i)].push_back(p.input(concat("a", i, "_", j)));
  auto at = [&](int i, int j) -> std::string & { return t[static_cast<size_t>(i)][static_cast<size_t>(j)]; };
  for (int k = 0; k < tiles; ++k) {
    at(k, k) = p.tileOp("bench.potrf", {at(k, k)}, owner(k, k));
    for (int i = k + 1; i < tiles; ++i)
      at(i, k) = p.tileOp("bench.trsm", {at(i, k), at(k, k)}, owner(i, k));
    for (int i = k + 1; i < tiles; ++i)
      for (int j = k + 1; j <= i; ++j) {
        const std::string device = owner(i, j);
        at(i, j) = p.difference(at(i, j), p.product(at(i, k), p.transposed(at(j, k), device), device), device);
      }
  }
  for (int i = 0; i < tiles; ++i)
    for (int j = 0; j <= i; ++j)
      p.giveBack(at(i, j));
  return p.text();
}

void registerTileOps() {
  static const bool done = [] {
    auto infer = [](runtime::CustomOp::Types in, const auto &) { return std::vector{in[0]}; };
    runtime::registerCustomOp({.name = "bench.potrf",
                               .symbol = "bench_potrf",
                               .infer = infer,
                               .flops = [](auto in, auto, const auto &) { return potrfFlops(in[0].shape[0]); }});
    runtime::registerCustomOp({.name = "bench.trsm",
                               .symbol = "bench_trsm",
                               .minInputs = 2,
                               .maxInputs = 2,
                               .infer = infer,
                               .flops = [](auto in, auto, const auto &) { return trsmFlops(in[0].shape[0]); }});
    return true;
  }();
  (void)done;
}

TaskGraph choleskyTasks(int tiles, int64_t size) {
  TaskGraph graph;
  const TensorType tile{f32, {size, size}};
  graph.data.assign(static_cast<size_t>(tiles * (tiles + 1) / 2), tile);
  auto kernel = [&](const char *name, const char *provider, int inputs, Size flops) {
    graph.kernels.push_back({.symbol = name,
                             .provider = provider,
                             .numInputs = inputs,
                             .flops = flops,
                             .bytes = (inputs + 1) * tile.bytes()});
  };
  kernel("potrf", "custom", 1, potrfFlops(size));
  kernel("trsm", "custom", 2, trsmFlops(size));
  kernel("gemm", "builtin", 3, 2 * size * size * size + size * size);
  auto at = [](int i, int j) { return static_cast<uint32_t>(i * (i + 1) / 2 + j); };
  for (int k = 0; k < tiles; ++k) {
    graph.tasks.push_back({0, {at(k, k)}, at(k, k)});
    for (int i = k + 1; i < tiles; ++i)
      graph.tasks.push_back({1, {at(i, k), at(k, k)}, at(i, k)});
    for (int i = k + 1; i < tiles; ++i)
      for (int j = k + 1; j <= i; ++j)
        graph.tasks.push_back({2, {at(i, j), at(i, k), at(j, k)}, at(i, j)});
  }
  return graph;
}

runtime::MachineModel referenceMachine() {
  runtime::MachineModel machine = runtime::machinePreset("2gpu-pcie3");
  machine.name = "reference";
  constexpr double bytes = 4000.0 * 4000 * 4, flops = 2 * 4000.0 * 4000 * 4000;
  for (runtime::DeviceModel &device : machine.devices)
    if (device.device.kind == runtime::DeviceKind::Gpu) {
      device.flopsPerSecond[f32] = flops * 50 / 0.5627;
      device.efficiency = {{"", 1.0}};
    }
  for (runtime::LinkModel &link : machine.links)
    link.bytesPerSecond = bytes * 50 / 2.5115;
  for (runtime::RouteModel &route : machine.routes)
    route.pageableBytesPerSecond = 0;
  return machine;
}

std::string branches(int64_t ops) {
  Program p(64);
  constexpr int width = 64;
  std::vector<std::string> ends(width, p.input("x")), weights;
  for (int i = 0; i < width; ++i) // each its own: equal branches would become one
    weights.push_back(p.parameter(concat("w", i)));
  for (int64_t i = 0; i < ops - width; ++i) {
    std::string &end = ends[static_cast<size_t>(i % width)];
    end = p.product(end, weights[static_cast<size_t>(i % width)]);
  }
  std::string all = ends[0];
  for (int i = 1; i < width; ++i)
    all = p.sum(all, ends[static_cast<size_t>(i)]);
  p.giveBack(all);
  return p.text();
}

const std::vector<Workload> &memoryWorkloads() {
  static const std::vector<Workload> all{
      {"training step", "2gpu-pcie3", trainingStep(1024, 24)},
      {"read again", "2gpu-pcie3", readAgain(1024, 32)},
      {"many parameters", "2gpu-pcie3", manyParameters(1024, 32)},
      {"cheap between", "2gpu-pcie3", cheapBetween(1024, 24)},
  };
  return all;
}

const std::vector<Workload> &workloads() {
  static const std::vector<Workload> all{
      {"chains", "4gpu-pcie3", chains(8, 6, 4)},
      {"copy back", "2gpu-pcie3", productsOnDevices(4000, 50, 2, true)},
      {"pipeline", "4gpu-pcie3", pipeline(4, 8)},
      {"data parallel", "4gpu-pcie3", dataParallel(4, 8)},
      {"tree", "4gpu-pcie3", tree(16, 4)},
      {"stencil", "4gpu-pcie3", stencil(4, 16, 4)},
      {"tiled product", "4gpu-pcie3", tiledProduct(4, 4)},
      {"factorization", "4gpu-pcie3", factorization(8, 4)},
      {"towers", "2gpu-pcie3", towers(4, 4)},
      {"towers on one server", "dgx-h100", towers(8, 6)},
  };
  return all;
}

} // namespace tressel::bench
