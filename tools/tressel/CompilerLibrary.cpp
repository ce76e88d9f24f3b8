// libtressel_compiler.so: everything of the command line that needs LLVM and MLIR, behind Compiler.h.
#include "tools/tressel/Compiler.h"

#include "codegen/Bisect.h"
#include "codegen/Compile.h"
#include "codegen/Layouts.h"
#include "codegen/Link.h"
#include "codegen/cuda/tuning/Tunings.h"
#include "codegen/onednn/Params.h"
#include "frontend/onnx/Import.h"
#include "frontend/stablehlo/Import.h"
#include "ir/graph/Draw.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "ir/op/Num.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipeline.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <unistd.h>

namespace tressel::tool {

namespace {

/// The first error that MLIR reports, as "file:line:column: message".
class FirstDiagnostic {
public:
  explicit FirstDiagnostic(mlir::MLIRContext &context)
      : handler_(&context, [this](mlir::Diagnostic &d) {
          if (d.getSeverity() != mlir::DiagnosticSeverity::Error || !text_.empty())
            return mlir::success();
          llvm::raw_string_ostream os(text_);
          if (auto loc = llvm::dyn_cast<mlir::FileLineColLoc>(d.getLocation()))
            os << loc.getFilename().getValue() << ":" << loc.getLine() << ":" << loc.getColumn() << ": ";
          os << d.str();
          for (mlir::Diagnostic &n : d.getNotes())
            if (!llvm::StringRef(n.str()).starts_with("see current operation"))
              os << " (" << n.str() << ")";
          return mlir::success();
        }) {}
  std::string text(const std::string &fallback) const { return text_.empty() ? fallback : text_; }

private:
  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

/// A parsed file; StableHLO is left as it is.
struct ParsedMlir {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool stablehlo = false;
};

ParsedMlir parseMlir(mlir::MLIRContext &context, const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true);
  if (!buffer)
    throw InputError(path + ": " + buffer.getError().message());
  if ((*buffer)->getBuffer().starts_with("ML\xefR"))
    throw InputError(path + ": is MLIR bytecode; only the textual form is read");
  if (std::string problem = graph::problemForParser((*buffer)->getBuffer(), path); !problem.empty())
    throw InputError(problem);
  stablehlo::Form form = stablehlo::detectForm((*buffer)->getBuffer());
  if (form == stablehlo::Form::Pretty)
    throw InputError(stablehlo::prettyFormMessage(path));
  context.allowUnregisteredDialects(form == stablehlo::Form::Generic);
  FirstDiagnostic diagnostic(context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, mlir::ParserConfig(&context));
  if (!module)
    throw InputError(diagnostic.text(path + ": is not MLIR"));
  if (mlir::failed(mlir::verify(*module)))
    throw InputError(diagnostic.text(path + ": is not valid"));
  return {std::move(module), form == stablehlo::Form::Generic};
}

std::string placeOf(mlir::Operation *op, const std::string &path) {
  graph::FileLine where = graph::fileLineOf(op->getLoc());
  return where.file.empty() ? path : where.file + ":" + std::to_string(where.line);
}

/// The @main of a module, after a check that the module is a program: a single @main of ops of the dialect, over
/// tensors.
mlir::func::FuncOp mainOf(mlir::ModuleOp module, const std::string &path) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main || main.isDeclaration())
    throw InputError(path + ": holds no func.func @main with a body");
  for (mlir::Operation &op : *module.getBody())
    if (&op != main)
      throw InputError(placeOf(&op, path) + ": a program is one func.func @main and nothing beside it");
  auto check = [&](mlir::Type type, mlir::Operation *op) {
    if (!graph::isSupported(type) || !dim::isKnown(graph::fromMlir(type).shape))
      throw InputError(placeOf(op, path) + ": type " + [&] {
        std::string text;
        llvm::raw_string_ostream os(text);
        type.print(os);
        return text;
      }() + " is not supported; programs work on ranked tensors whose sizes are numbers or names (#tressel.dims)");
  };
  for (mlir::Type type : main.getArgumentTypes())
    check(type, main);
  main.getBody().walk([&](mlir::Operation *op) {
    if (op->getName().getDialectNamespace() != "tressel" && !llvm::isa<mlir::func::ReturnOp>(op))
      throw InputError(placeOf(op, path) + ": '" + op->getName().getStringRef().str() +
                       "' is no op of the graph dialect");
    for (mlir::Type type : op->getResultTypes())
      check(type, op);
  });
  return main;
}

std::string nameIn(mlir::DictionaryAttr attrs, llvm::StringRef key) {
  auto name = attrs ? attrs.getAs<mlir::StringAttr>(key) : mlir::StringAttr();
  return name ? name.str() : "";
}

/// The name of an input or output that has none: by its position.
std::string positionalName(bool isInput, unsigned i) { return (isInput ? "arg" : "out") + std::to_string(i); }

/// Inputs and outputs of @main without a name get one by position: programs are called by name. Throws InputError where two have the
/// same name, given or made.
void nameEverything(mlir::func::FuncOp main, const std::string &path) {
  mlir::Builder b(main.getContext());
  auto name = [&](bool isInput, unsigned count, auto attrsOf, auto set) {
    const char *what = isInput ? "input" : "output";
    std::map<std::string, unsigned> states, ports; // from names to positions
    std::set<unsigned> unnamed;
    auto add = [&](std::map<std::string, unsigned> &names, const std::string &name, unsigned i, const char *kind) {
      auto [other, isNew] = names.emplace(name, i);
      if (isNew)
        return;
      if (unnamed.contains(i))
        throw InputError(placeOf(main, path) + ": " + kind + " " + std::to_string(i) + " of @main has no name and is called \"" + name +
                         "\", but so is " + kind + " " + std::to_string(other->second) + "; give it a tressel.name");
      throw InputError(placeOf(main, path) + ": " + kind + "s " + std::to_string(other->second) + " and " + std::to_string(i) +
                       " of @main are both called \"" + name + "\"");
    };
    for (unsigned i = 0; i < count; ++i) {
      const mlir::DictionaryAttr attrs = attrsOf(i);
      if (std::string state = nameIn(attrs, graph::kStateAttr); !state.empty())
        add(states, state, i, "state");
      else if (std::string given = nameIn(attrs, graph::kNameAttr); !given.empty())
        add(ports, given, i, what);
      else
        unnamed.insert(i);
    }
    for (unsigned i : unnamed) {
      add(ports, positionalName(isInput, i), i, what);
      set(i, b.getStringAttr(positionalName(isInput, i)));
    }
  };
  name(true, main.getNumArguments(), [&](unsigned i) { return main.getArgAttrDict(i); },
       [&](unsigned i, mlir::StringAttr name) { main.setArgAttr(i, graph::kNameAttr, name); });
  name(false, main.getNumResults(), [&](unsigned i) { return main.getResultAttrDict(i); },
       [&](unsigned i, mlir::StringAttr name) { main.setResultAttr(i, graph::kNameAttr, name); });
}

std::string knownDims(const std::set<std::string_view> &names) {
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "; it has: " : ", ") + std::string(name);
  return text.empty() ? "; all its sizes are fixed" : text;
}

Port portOf(const std::string &name, const TensorType &type) {
  Port p{name, type.dtype, {}, {}};
  for (Size size : type.shape) {
    p.sizes.push_back(size.isNumber() ? size : kDynamic);
    p.dimNames.push_back(size.isSymbolic() ? dim::str(size) : "");
  }
  return p;
}

std::string meshOf(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  auto mesh = main ? main->getAttrOfType<mlir::StringAttr>(graph::kMeshAttr) : mlir::StringAttr();
  return mesh ? mesh.str() : "";
}

/// Describes the module by its own declarations, with the names that `compile` gives.
ModelInfo describeStablehlo(mlir::ModuleOp module, const std::string &path) {
  ModelInfo info;
  info.format = "stablehlo";
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main || main.isDeclaration())
    throw InputError(path + ": holds no func.func @main with a body");
  try {
    info.mesh = meshOf(*stablehlo::import(module, path));
  } catch (const stablehlo::UnsupportedError &e) {
    for (const stablehlo::Unsupported &u : e.list)
      info.unsupported.push_back({u.op, u.where, u.why});
  }
  auto add = [](std::vector<Port> &ports, bool isInput, mlir::TypeRange types) {
    for (auto [i, type] : llvm::enumerate(types))
      if (graph::isSupported(type) && llvm::cast<mlir::RankedTensorType>(type).hasStaticShape())
        ports.push_back(portOf(positionalName(isInput, static_cast<unsigned>(i)), graph::fromMlir(type)));
  };
  add(info.inputs, true, main.getArgumentTypes());
  add(info.outputs, false, main.getResultTypes());
  module.walk([&](mlir::Operation *op) {
    llvm::StringRef name = op->getName().getStringRef();
    if (name.ends_with(".return") || llvm::isa<mlir::ModuleOp, mlir::func::FuncOp>(op))
      return;
    ++info.opCounts[op->getName().stripDialect().str()];
    if (name == "stablehlo.constant" && graph::isSupported(op->getResult(0).getType()))
      info.weightBytes += graph::fromMlir(op->getResult(0).getType()).bytes();
  });
  return info;
}

ModelInfo describeMlir(const std::string &path, mlir::MLIRContext &context) {
  ParsedMlir parsed = parseMlir(context, path);
  if (parsed.stablehlo)
    return describeStablehlo(*parsed.module, path);
  mlir::func::FuncOp main = mainOf(*parsed.module, path);
  nameEverything(main, path);
  ModelInfo info;
  info.format = "mlir";
  info.mesh = meshOf(*parsed.module);
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    TensorType type = graph::fromMlir(main.getArgumentTypes()[i]);
    mlir::DictionaryAttr attrs = main.getArgAttrDict(i);
    if (std::string state = nameIn(attrs, graph::kStateAttr); !state.empty())
      info.states.push_back(portOf(state, type));
    else
      info.inputs.push_back(portOf(nameIn(attrs, graph::kNameAttr), type));
  }
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    if (nameIn(main.getResultAttrDict(i), graph::kStateAttr).empty())
      info.outputs.push_back(
          portOf(nameIn(main.getResultAttrDict(i), graph::kNameAttr), graph::fromMlir(main.getResultTypes()[i])));
  main.getBody().walk([&](mlir::Operation *op) {
    if (llvm::isa<mlir::func::ReturnOp>(op))
      return;
    ++info.opCounts[op->getName().stripDialect().str()];
    if (op->getName().stripDialect() == "constant")
      info.weightBytes += graph::fromMlir(op->getResult(0).getType()).bytes();
  });
  return info;
}

Port portOf(const onnx::DeclaredValue &value) {
  Port p{value.name, value.dtype, {}, {}};
  for (const onnx::DeclaredDim &dim : value.dims) {
    p.sizes.push_back(dim.size);
    p.dimNames.push_back(dim.name);
  }
  return p;
}

ModelInfo describeOnnx(const std::string &path, mlir::MLIRContext *checks) {
  onnx::ModelFile model = onnx::ModelFile::load(path);
  ModelInfo info;
  info.format = "onnx";
  info.producer = model.producer();
  info.opsets = model.opsets();
  for (const auto &value : model.inputs())
    info.inputs.push_back(portOf(value));
  for (const auto &value : model.outputs())
    info.outputs.push_back(portOf(value));
  info.opCounts = model.opCounts();
  info.weightBytes = model.weightBytes();
  for (const onnx::Unsupported &u : model.unsupportedOps())
    info.unsupported.push_back({u.op, u.node, u.why, u.opset});
  if (checks)
    for (const onnx::Malformed &m : onnx::findMalformed(model, *checks))
      info.malformed.push_back({m.op, m.node, m.why});
  return info;
}

bool isOnnx(const std::string &path) { return path.ends_with(".onnx"); }
void checkKind(const std::string &path) {
  if (!isOnnx(path) && !path.ends_with(".mlir"))
    throw InputError(path + ": neither .onnx, .mlir nor .tsl");
}

class Library : public CompilerLibrary {
public:
  std::string checkDisabledPasses(const std::vector<std::string> &names) override {
    passes::PipelineOptions options;
    options.disabled = names;
    return passes::problemWithNames(options);
  }

  ModelInfo describe(const std::string &path, bool checksInputs) override {
    checkKind(path);
    if (isOnnx(path) && !checksInputs)
      return describeOnnx(path, nullptr);
    std::unique_ptr<mlir::MLIRContext> context = makeContext();
    return isOnnx(path) ? describeOnnx(path, context.get()) : describeMlir(path, *context);
  }

  CompiledModel compile(const CompileRequest &request) override {
    const auto start = std::chrono::steady_clock::now();
    if (request.progress)
      request.progress("import", 0, 0);
    std::unique_ptr<mlir::MLIRContext> context = makeContext();
    CompiledModel program;
    const op::KeepSubnormals folding(request.keepSubnormals); // also for what the importers fold
    mlir::OwningOpRef<mlir::ModuleOp> module = load(request, *context, program);
    program.timings.emplace_back(
        "import", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (request.stripLocations)
      module->walk([&](mlir::Operation *op) { op->setLoc(mlir::UnknownLoc::get(context.get())); });

    if (!request.ranks.empty())
      codegen::makeRankProgram(*module, request.ranks, /*dimension=*/0);
    codegen::CompileReport report;
    codegen::CompileOptions options;
    options.cpu = request.cpu;
    options.machine = request.machine;
    options.gpus = request.gpus;
    options.emulateGpu = request.emulateGpu;
    if (!request.tuning.empty()) {
      const bool isNew = request.tuneOn && !std::filesystem::exists(request.tuning);
      options.tunings =
          isNew ? std::make_shared<codegen::cuda::Tunings>() : codegen::cuda::Tunings::load(request.tuning);
      options.tuneOn = request.tuneOn;
      codegen::cuda::setTunings(options.tunings);
    }
    options.history = request.history;
    options.kernelKeys = request.kernelKeys;
    options.allowLibrary = request.allowLibrary;
    options.gpuLibraries = request.gpuLibraries;
    options.deterministic = request.deterministic;
    options.forPackage = request.forPackage;
    options.measure = request.measure;
    options.winograd = request.winograd;
    options.keepSubnormals = request.keepSubnormals;
    options.memoryBudget = request.memoryBudget;
    options.autocast = request.autocast;
    options.verifyEach = request.verifyEach;
    options.disabledPasses = request.disabledPasses;
    options.emit = request.emit;
    options.sink = request.sink;
    options.report = &report;
    options.scheduleOnly = request.explain;
    options.decisions = request.explain ? &program.decisions : nullptr;
    options.progress = request.progress;
    if (!request.useCache)
      options.cache = nullptr;
    if (request.compare > 0) {
      program.comparison = codegen::compareLayouts(*module, request.compare, /*dimension=*/0, options).text;
      return program;
    }
    codegen::CompiledProgram compiled = codegen::compile(*module, options);
    if (options.tuneOn) {
      const std::string text = options.tunings->toJson();
      runtime::writeFile(request.tuning, std::as_bytes(std::span(text)));
    }
    program.numTuned = report.numTuned, program.numTunedFaster = report.numTunedFaster;
    program.schedule = std::move(compiled.schedule);
    program.image = std::move(compiled.image);
    program.constants = std::move(compiled.constants);
    program.cpuLevel = std::move(compiled.cpuLevel);
    program.kernels = std::move(compiled.kernels);
    program.numGpuKernels = report.numGpuKernels;
    program.numGpuCompiled = report.numGpuCompiled, program.numGpuCached = report.numGpuCached;
    program.gpu = std::move(compiled.gpu);
    for (const codegen::PassTiming &t : report.timings)
      program.timings.emplace_back(t.pass, t.seconds);
    program.numKernels = report.numKernels;
    program.numLibraryKernels = report.numLibraryKernels;
    program.numCompiled = report.numCompiled, program.numCached = report.numCached, program.numShared = report.numShared;
    program.numMeasured = report.numMeasured, program.numKnown = report.numKnown, program.numFailed = report.numFailed;
    if (request.useCache)
      program.noCache = options.cache ? options.cache->problem() : codegen::ObjectCache::whyNone();
    return program;
  }

  std::optional<std::string> draw(const std::string &graph, const std::string &file, const std::string &title) override {
    const auto form = graph::drawingOf(file);
    if (!form)
      return std::nullopt;
    graph::Drawn drawn = graph::draw(graph, *form, title);
    if (!drawn.problem.empty())
      throw InputError(file + ": " + drawn.problem);
    return std::move(drawn.text);
  }

  std::vector<std::byte> library(const std::string &symbol, std::span<const std::byte> package, bool shared) override {
    const std::vector<char> object = codegen::dataObject(symbol, package);
    const std::span<const char> bytes(object);
    return shared ? codegen::linkImage({&bytes, 1}) : codegen::archiveOf(symbol + ".o", object);
  }

  CacheInfo cache(CacheAction action, int64_t &damaged) override {
    codegen::ObjectCache *cache = codegen::ObjectCache::ofUser();
    if (!cache)
      return {.folder = {}, .problem = codegen::ObjectCache::whyNone()};
    std::error_code ec; // a folder that cannot be used is an error, even before anything is written to it
    std::filesystem::create_directories(cache->folder(), ec);
    if (!ec && ::access(cache->folder().c_str(), R_OK | W_OK | X_OK) != 0)
      ec.assign(errno, std::generic_category());
    if (ec)
      return {.folder = cache->folder(), .problem = cache->folder() + ": " + ec.message()};
    if (action == CacheAction::Verify)
      damaged = cache->verify().damaged;
    const codegen::ObjectCache::Info info = action == CacheAction::Clear ? cache->clear() : cache->info();
    return {cache->folder(), cache->problem(), info.entries, info.bytes, cache->limit(), info.hits, info.misses};
  }

  BisectOutcome bisect(const BisectRequest &request) override {
    std::unique_ptr<mlir::MLIRContext> context = makeContext();
    CompiledModel program;
    const op::KeepSubnormals folding(request.model.keepSubnormals);
    mlir::OwningOpRef<mlir::ModuleOp> module = load(request.model, *context, program);
    if (request.model.keepSubnormals)
      module->getOperation()->setAttr(graph::kKeepSubnormalsAttr, mlir::UnitAttr::get(context.get()));
    if (!graph::symbolsOf(*module).empty())
      throw InputError(request.model.path + ": has sizes that are known only when it runs; bisect works on fixed ones");
    auto main = module->lookupSymbol<mlir::func::FuncOp>("main");
    codegen::BisectOptions options;
    options.cpu = request.model.cpu;
    options.machine = request.machine;
    if (!request.model.gpus.empty())
      options.gpu = request.model.gpus.front();
    options.allowLibrary = request.model.allowLibrary;
    options.rtol = request.rtol;
    options.atol = request.atol;
    options.progress = request.progress;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      std::string name = nameIn(main.getArgAttrDict(i), graph::kStateAttr);
      if (name.empty())
        name = nameIn(main.getArgAttrDict(i), graph::kNameAttr);
      options.inputs.push_back(request.value(name, graph::fromMlir(main.getArgumentTypes()[i])));
    }
    codegen::BisectReport report = codegen::bisect(*module, options);
    return {report.kind != codegen::BisectReport::Kind::Agrees, verdictOf(report), std::move(report.reproducer),
            std::move(report.inputs)};
  }

private:
  static std::string verdictOf(const codegen::BisectReport &report) {
    using Kind = codegen::BisectReport::Kind;
    std::string text;
    switch (report.kind) {
    case Kind::Agrees:
      return "no difference: compiled and interpreted give the same results";
    case Kind::CannotRun:
      text = "the program cannot be compiled or run: " + report.difference;
      break;
    case Kind::Pass:
      text = "the pass '" + report.culprit + "' changes the results";
      break;
    case Kind::Kernel:
      text = "the kernel of {" + report.culprit + "}, made by the provider '" + report.provider +
             "', does not compute what its ops say";
      break;
    case Kind::Combination:
      text = "every pass and every kernel is right by itself; what goes wrong is memory, order or the runtime";
      break;
    }
    if (report.kind != Kind::CannotRun)
      text += "\nfirst difference: " + report.difference;
    return text + "\nsmallest program that shows it: " + report.ops +
           (report.where.empty() ? "" : ", from " + report.where);
  }

  /// The module of a model. `program` notes the sizes that were assumed. An error says so where an assumed size may be
  /// its cause.
  static onnx::Imported importFixed(const onnx::ModelFile &model, mlir::MLIRContext &context, const onnx::ImportOptions &options) {
    try {
      return onnx::import(model, context, options);
    } catch (const onnx::UnsupportedError &) { // an error for any sizes
      throw;
    } catch (const InputError &e) {
      std::string assumed;
      for (const onnx::BoundDim &d : onnx::bindDims(model, options))
        if (d.assumed)
          assumed += (assumed.empty() ? "--dim " : " --dim ") + d.name + "=N";
      if (assumed.empty())
        throw;
      throw InputError(Error::Details{.message = e.message(), .where = e.where(), .op = e.op(),
                                      .hint = "sizes that are not given are taken as 1: give " + assumed});
    }
  }

  /// A module that JAX made for several devices runs whole on a machine without accelerators.
  static void leaveMesh(const CompileRequest &request, mlir::func::FuncOp main, CompiledModel &program) {
    auto mesh = main->getAttrOfType<mlir::StringAttr>(graph::kMeshAttr);
    if (!mesh || (request.machine && request.machine->numAccelerators() > 0))
      return;
    program.notes.push_back("the model is for a mesh of devices (" + mesh.getValue().str() +
                            "), and the machine has no accelerators: it is compiled whole");
    main->removeAttr(graph::kMeshAttr);
  }

  static mlir::OwningOpRef<mlir::ModuleOp> load(const CompileRequest &request, mlir::MLIRContext &context,
                                                CompiledModel &program) {
    checkKind(request.path);
    mlir::OwningOpRef<mlir::ModuleOp> module;
    if (isOnnx(request.path)) {
      const onnx::ModelFile model = onnx::ModelFile::load(request.path);
      const onnx::ImportOptions options{.dims = request.dims, .keepDynamic = request.keepDynamic};
      onnx::Imported imported = request.keepDynamic ? onnx::importOpen(model, context, options)
                                                    : importFixed(model, context, options);
      module = std::move(imported.module);
      for (const onnx::BoundDim &d : imported.dims)
        if (d.assumed)
          program.assumed.push_back({d.name, d.size.number(), d.why});
    } else {
      ParsedMlir parsed = parseMlir(context, request.path);
      module = parsed.stablehlo ? stablehlo::import(*parsed.module, request.path) : std::move(parsed.module);
      if (parsed.stablehlo)
        leaveMesh(request, mainOf(*module, request.path), program);
      nameEverything(mainOf(*module, request.path), request.path);
      std::set<std::string_view> names;
      for (Size symbol : graph::symbolsOf(*module))
        names.insert(dim::symbolName(symbol));
      for (const auto &[name, range] : request.dims)
        if (request.keepDynamic && names.contains(name))
          throw InputError(request.path + ": --dim " + name + ": the dimensions of an .mlir file are what its types say (#tressel.dims); "
                                                              "change them there, or give the size to tressel run");
        else if (!names.contains(name))
          throw InputError(request.path + ": has no symbolic dimension '" + name + "'" + knownDims(names));
    }
    return module;
  }

  static std::unique_ptr<mlir::MLIRContext> makeContext() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    return context;
  }
};

} // namespace

} // namespace tressel::tool

extern "C" __attribute__((visibility("default"))) tressel::tool::CompilerLibrary *tressel_compiler_library() {
  static tressel::tool::Library library;
  tressel::onednn::registerKernels(); // for packages that name them
  return &library;
}
