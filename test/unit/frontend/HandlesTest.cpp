// Handles that were moved from, and modules and functions that are part of themselves: one clear error each, with the
// line that used them.
#include <tressel/debug.h>
#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

using namespace tressel;

namespace {

/// The message of the Error that is thrown, which names a line of the statement at `line` unless that is 0.
std::string errorOf(unsigned line, const std::function<void()> &fn) {
  try {
    fn();
  } catch (const InternalError &e) {
    return std::string("internal: ") + e.what();
  } catch (const Error &e) {
    if (line) {
      EXPECT_GE(e.where().line, line) << e.what();
      EXPECT_LE(e.where().line, line + 2) << e.what();
      EXPECT_TRUE(e.where() && std::string(e.where().file).ends_with("HandlesTest.cpp")) << e.what();
    }
    EXPECT_TRUE(!e.hint().empty() || e.message().starts_with("a handle")) << e.what(); // the runtime is short of words
    return e.message();
  }
  return "nothing was thrown";
}

template <typename T> T moveOut(T &from) { return std::move(from); }

TEST(MovedFrom, Tensor) {
  Tensor x = ones({3}), y = moveOut(x);
  const std::string empty = "an empty Tensor was used";
  EXPECT_FALSE(x.defined());
  EXPECT_EQ(errorOf(__LINE__, [&] { x.wait(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.size(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.dim(0); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.item<float>(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.to_vector<float>(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.data(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)x.to(cpu()); }), empty);
  EXPECT_EQ(errorOf(0, [&] { (void)x.shape(); }), empty);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)(x + 1); }), "an operand is an empty Tensor");
  EXPECT_EQ(y.size(), 3);
  x = y; // has a value again
  EXPECT_EQ(x.size(), 3);
}

TEST(MovedFrom, Variable) {
  Variable v(ones({3}), "v"), w = moveOut(v);
  const std::string moved = "this Variable was moved from";
  EXPECT_FALSE(v.defined());
  EXPECT_EQ(errorOf(__LINE__, [&] { v.value(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { v.assign(ones({3})); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.shape(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.dtype(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.type(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.name(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { v.set_name("w"); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.version(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)v.frozen(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)(v + 1); }), moved);
  auto f = jit([v](Tensor x) { return x * v; });
  EXPECT_EQ(errorOf(0, [&] { f(ones({3})); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { w.assign(Tensor()); }), "the Variable 'v' is assigned an empty Tensor");
  EXPECT_EQ(w.name(), "v");
}

TEST(MovedFrom, JittedFunction) {
  auto f = jit([](Tensor x) { return x + 1; });
  auto g = moveOut(f);
  const std::string moved = "this jitted function was moved from";
  EXPECT_EQ(errorOf(__LINE__, [&] { f(ones({2})); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f(1.0f); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f.compile({f32, {2}}); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)f.stats(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)f.graph(1.0f); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f.trace_only(1.0f); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)f.explain(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f.draw_plan("never-written.svg"); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f.dump("never-written", 1.0f); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { f.export_package("never-written.tsl", {.inputs = {{f32, {2}}}}); }), moved);
  DisableJit opByOp;
  EXPECT_EQ(errorOf(__LINE__, [&] { f(1.0f); }), moved);
  EXPECT_EQ(g(1.0f).item<float>(), 2);
}

TEST(MovedFrom, Modules) {
  nn::Dense dense(3), other = moveOut(dense);
  const std::string moved = "this Dense was moved from", module = "this module was moved from";
  const std::vector<TensorSpec> types{{f32, {2, 4}}};
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.initialize(types, 1); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.initialize(1); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense(ones({2, 4})); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense(1.0f); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.hybridize(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)dense.stats(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)dense.clone(); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.compile(types); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)dense.summary(types); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.export_package("never-written.tsl", {.inputs = types}); }), moved);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.to(f16); }), module);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.save_weights("never-written"); }), module);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.load_weights("never-written"); }), module);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.save_state("never-written"); }), module);
  EXPECT_EQ(errorOf(__LINE__, [&] { dense.load_state("never-written"); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.parameters(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.buffers(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.states(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.parameter_count(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.children(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense["x"]; }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.contains("x"); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.type_name(); }), module);
  EXPECT_EQ(errorOf(0, [&] { dense.freeze(); }), module);
  EXPECT_EQ(errorOf(0, [&] { (void)dense.frozen(); }), module);
  EXPECT_EQ(errorOf(0, [&] { dense.on(cpu()); }), module);
  EXPECT_EQ(errorOf(0, [&] { dense.apply([](const std::string &, const nn::ModuleHandle &) {}); }), module);
  EXPECT_EQ(errorOf(0, [&] { dense.forward(ones({2, 4})); }), "this Parameter was moved from");
  nn::LSTM lstm(2), secondLstm = moveOut(lstm);
  nn::GRU gru(2), secondGru = moveOut(gru);
  EXPECT_EQ(errorOf(0, [&] { lstm.forward(ones({1, 1, 2})); }), module);
  EXPECT_EQ(errorOf(0, [&] { gru.forward(ones({1, 1, 2})); }), module);
  other.initialize(types, 1);
  EXPECT_EQ(other(ones({2, 4})).shape(), (Shape{2, 3}));
  dense = other; // is a module again
  EXPECT_EQ(dense(ones({2, 4})).shape(), (Shape{2, 3}));
}

TEST(MovedFrom, ModulesInModules) {
  nn::Dense dense(3), other = moveOut(dense);
  nn::Sequential net;
  EXPECT_EQ(errorOf(__LINE__, [&] { net.add(dense); }),
            "this module, to be the child '0' of a Sequential, was moved from");
  EXPECT_EQ(net.size(), 0u);
  EXPECT_EQ(errorOf(0,
                    [&] {
                      (void)nn::Sequential{relu, dense};
                    }),
            "this module, to be the child '1' of a Sequential, was moved from");
  net.add(other);
  EXPECT_EQ(errorOf(__LINE__, [&] { net.replace("0", dense); }), "this module, to be put at '0', was moved from");
  nn::Sequential rest = moveOut(net);
  EXPECT_EQ(errorOf(__LINE__, [&] { net.add(relu); }), "this Sequential was moved from");
  EXPECT_EQ(errorOf(__LINE__, [&] { (void)net.size(); }), "this Sequential was moved from");
  EXPECT_EQ(errorOf(__LINE__, [&] { net(ones({2, 4})); }), "this Sequential was moved from");
  // A member that was moved out of a module: the module itself says which, and can still be cloned.
  struct Net : nn::Module<Net> {
    static std::string type_name() { return "Net"; }
    nn::Dense head = child("head", nn::Dense(3));
    Tensor forward(Tensor x) const { return head(x); }
  } whole;
  whole.initialize({{f32, {2, 4}}}, 1);
  nn::Dense head = moveOut(whole.head);
  EXPECT_EQ(errorOf(0, [&] { whole(ones({2, 4})); }), "this Dense was moved from (in a Net)");
  EXPECT_EQ(errorOf(0, [&] { whole.clone()(ones({2, 4})); }), "this Dense was moved from (in a Net)");
  EXPECT_EQ(whole.parameters().size(), 2u);
  EXPECT_EQ(head(ones({2, 4})).shape(), (Shape{2, 3}));
}

TEST(MovedFrom, Packages) {
  const std::string path = testing::TempDir() + "tressel-moved.tsl";
  jit([](Tensor x) { return x + 1; }).export_package(path, {.inputs = {{f32, {1}}}});
  const std::string moved = "a handle that was moved from is used";
  runtime::Package package = runtime::Package::open(path), other = moveOut(package);
  EXPECT_EQ(errorOf(0, [&] { (void)package.functions(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.schedule(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.levels(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.constantBytes(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.fileBytes(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.stateValue("w"); }), moved);
  EXPECT_EQ(errorOf(0, [&] { package.check(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.executable(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)package.context(); }), moved);
  runtime::Context context = other.context(), kept = moveOut(context);
  float x = 1, y = 0;
  const void *in = &x;
  void *out = &y;
  EXPECT_EQ(errorOf(0, [&] { context.run({&in, 1}, {&out, 1}); }), moved);
  EXPECT_EQ(errorOf(0, [&] { context.run({&in, 1}, {&out, 1}, {}); }), moved);
  EXPECT_EQ(errorOf(0, [&] { context.bindStates({}); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)context.outputTypes({}); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)context.bytes(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)context.arenaBytes(); }), moved);
  EXPECT_EQ(errorOf(0, [&] { context.setProfile(nullptr); }), moved);
  EXPECT_EQ(errorOf(0, [&] { (void)context.executable(); }), moved);
  kept.run({&in, 1}, {&out, 1});
  EXPECT_EQ(y, 2);
  std::filesystem::remove(path);
}

TEST(MovedFrom, FunctionsGivenToLayers) {
  nn::Initializer init = nn::init::ones(), taken = moveOut(init);
  EXPECT_EQ(errorOf(0, [&] { nn::Dense(3, nullptr, {.weight_init = init}); }),
            "the parameter 'weight' has no initializer, or one that was moved from");
  EXPECT_THROW(nn::Lambda(std::function<Tensor(Tensor)>()), Error);
  nn::Sequential net;
  EXPECT_EQ(errorOf(__LINE__, [&] { net.add(nn::Activation(nullptr)); }), "the function '0' of a Sequential is null");
}

TEST(Circles, ModulesAreNoPartOfThemselves) {
  nn::Sequential s, t;
  EXPECT_EQ(errorOf(__LINE__, [&] { s.add(s); }), "a Sequential would be part of itself");
  s.add(t);
  EXPECT_EQ(errorOf(__LINE__, [&] { t.add(s); }), "a Sequential that holds the Sequential would be part of it");
  EXPECT_EQ(t.size(), 0u) << "as before";
  EXPECT_TRUE(s.parameters().empty());
  nn::Sequential u;
  u.add(s);
  u.add(s); // once more is no circle: they share what they hold
  EXPECT_EQ(errorOf(__LINE__, [&] { t.add(u); }), "a Sequential that holds the Sequential would be part of it");
  t.add(nn::Dense(2));
  EXPECT_EQ(errorOf(__LINE__, [&] { s.replace("0", u); }),
            "a Sequential that holds the Sequential would be part of it");
  EXPECT_EQ(errorOf(__LINE__, [&] { s.replace("0", s); }), "a Sequential would be part of itself");
  EXPECT_EQ(s.parameters().size(), 2u);
  struct Holder : nn::Module<Holder> {
    static std::string type_name() { return "Holder"; }
    void hold(const nn::Sequential &net) { child("net", net); }
    Tensor forward(Tensor x) const { return x; }
  } holder;
  nn::Sequential around{holder};
  EXPECT_EQ(errorOf(__LINE__ - 4, [&] { holder.hold(around); }),
            "a Sequential that holds the Holder would be part of it");
}

/// Up to the number of calls, which depends on the stack.
std::string endless(unsigned line, const std::function<void()> &fn) {
  const std::string message = errorOf(line, fn);
  return message.substr(0, message.find(':'));
}

TEST(Circles, JittedFunctionsThatCallThemselves) {
  std::function<Tensor(Tensor)> self;
  const unsigned line = __LINE__ + 2;
  auto f = jit([&](Tensor x) { return self(x) + 1; }, {.name = "f"});
  self = [&](Tensor x) { return f(x); };
  EXPECT_EQ(endless(line, [&] { f(ones({2})); }), "'f' calls itself without end");
  EXPECT_EQ(endless(line, [&] { f.compile({f32, {2}}); }), "'f' calls itself without end");
  std::thread([&] { EXPECT_EQ(endless(line, [&] { f(ones({2})); }), "'f' calls itself without end"); }).join();
  {
    DisableJit opByOp;
    EXPECT_EQ(endless(line, [&] { f(ones({2})); }), "'f' calls itself without end");
  }
  // By the value of a tensor: a trace records both branches.
  auto g = jit(
      [&](Tensor x) {
        return cond(
            max(x) > 0, [&](Tensor v) { return self(v - 1); }, [](Tensor v) { return v; }, x);
      },
      {.name = "g"});
  self = [&](Tensor x) { return g(x); };
  EXPECT_EQ(endless(0, [&] { g(ones({2})); }), "'g' calls itself without end");
  EXPECT_EQ(f.stats().traces, 0u);
  // A plain function, in the bodies of control flow alone.
  std::function<Tensor(Tensor)> plain = [&](Tensor x) {
    return cond(
        max(x) > 0, [&](Tensor v) { return plain(v - 1); }, [](Tensor v) { return v; }, x);
  };
  EXPECT_EQ(plain(full({2}, 3.0)).to_vector<float>(), (std::vector<float>{0, 0}));
  auto p = jit([&](Tensor x) { return plain(x); });
  EXPECT_EQ(endless(__LINE__ - 4, [&] { p(ones({2})); }), "the function with this 'cond' calls itself without end");
  std::function<Tensor(Tensor)> loop = [&](Tensor x) {
    return while_loop([](Tensor v) { return max(v) > 0; }, [&](Tensor v) { return loop(v - 1); }, x);
  };
  auto w = jit([&](Tensor x) { return loop(x); });
  EXPECT_EQ(endless(__LINE__ - 3, [&] { w(ones({2})); }), "the function with this 'while_loop' calls itself without end");
  auto h = jit([&](Tensor x) { return self(x); }, {.name = "h"});
  self = [&](Tensor x) {
    h.compile({f32, {3}});
    return x;
  };
  EXPECT_EQ(errorOf(__LINE__ - 3, [&] { h(ones({2})); }), "'h' is compiled while it is being recorded");
}

TEST(Circles, RecursionThatEndsIsNone) {
  std::function<Tensor(Tensor, int)> self;
  auto f = jit([&](Tensor x, int n) { return n ? self(x, n - 1) + 1 : x; });
  self = [&](Tensor x, int n) { return f(x, n); };
  EXPECT_EQ(f(tensor(1.0f), 300).item<float>(), 301);
}

TEST(Circles, ModulesThatCallThemselves) {
  struct Endless : nn::Module<Endless> {
    static std::string type_name() { return "Endless"; }
    Tensor forward(Tensor x) const { return (*this)(x); }
  } net;
  EXPECT_EQ(endless(0, [&] { net(ones({2})); }), "a Endless calls itself without end");
}

} // namespace
