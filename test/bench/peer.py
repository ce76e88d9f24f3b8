"""An arm of another framework: one ONNX model of fixed sizes, called again and again. Protocol: Bench.h.

usage: peer.py FRAMEWORK FOLDER      FOLDER holds model.onnx and inputs.npz (peers.py); threads as OMP_NUM_THREADS says
"""
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np

from protocol import serve

MOST_SECONDS = 60  # of one call: what takes longer is not measured
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))


def with_onnxruntime(model, inputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def with_openvino(model, inputs):
    import openvino
    compiled = openvino.Core().compile_model(str(model), "CPU", {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY",
                                                                 "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    named = {port.get_any_name(): inputs[name] for port, name in zip(compiled.inputs, inputs)}
    return lambda: list(request.infer(named).values())


def with_iree(model, inputs):
    from iree import runtime
    mlir, program = model.with_suffix(".mlir"), model.with_suffix(".vmfb")
    tools = pathlib.Path(sys.executable).parent
    for command in ([tools / "iree-import-onnx", model, "--opset-version", "17", "-o", mlir],
                    [tools / "iree-compile", mlir, "--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "-o", program]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{command[0].name}: " + next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-200:]))
    runtime.flags.parse_flags(f"--task_topology_max_group_count={THREADS}")
    module = runtime.load_vm_flatbuffer_file(str(program), driver="local-task")
    entry = next(name for name in module.vm_module.function_names if not name.startswith("__") and not name.endswith("$async"))
    arrays = [runtime.asdevicearray(module.context.config.device if hasattr(module, "context") else runtime.get_device("local-task"), a)
              for a in inputs.values()]

    def call():
        results = getattr(module, entry)(*arrays)
        return [r.to_host() for r in (results if isinstance(results, (tuple, list)) else [results])]
    return call


def by_nodes(name):
    def start(model, inputs):
        import onnx_eval
        made = getattr(onnx_eval, name)(model)
        x = made.array(next(iter(inputs.values())))
        return lambda: [made.run(x)]
    return start


def with_torch(model, inputs):
    import torch
    torch.set_num_threads(THREADS)
    return by_nodes("Torch")(model, inputs)


def with_jax(model, inputs):
    return by_nodes("Jax")(model, inputs)


def with_mlx(model, inputs):
    return by_nodes("Mlx")(model, inputs)


def with_ncnn(model, inputs):
    import ncnn
    param = model.with_suffix(".ncnn.param")
    if not param.exists():
        shapes = ",".join("[" + ",".join(map(str, a.shape)) + "]" for a in inputs.values())
        done = subprocess.run([pathlib.Path(sys.executable).parent / "pnnx", str(model), f"inputshape={shapes}", "fp16=0"], capture_output=True, text=True,
                              cwd=model.parent)
        if not param.exists():
            raise RuntimeError("pnnx: " + (done.stderr or done.stdout).strip()[-200:])
    net = ncnn.Net()
    net.opt.num_threads, net.opt.use_fp16_storage, net.opt.use_fp16_arithmetic, net.opt.use_bf16_storage = THREADS, False, False, False
    net.load_param(str(param))
    net.load_model(str(model.with_suffix(".ncnn.bin")))
    x = next(iter(inputs.values()))
    if x.shape[0] != 1:
        raise RuntimeError("ncnn computes one example at a time")

    def call():
        extractor = net.create_extractor()
        extractor.input(net.input_names()[0], ncnn.Mat(x[0]).clone())
        return [np.array(extractor.extract(name)[1]) for name in net.output_names()]
    return call


def with_litert(model, inputs):
    raise RuntimeError("LiteRT reads .tflite files, and what makes them of ONNX models needs TensorFlow")


def main():
    framework, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    with np.load(folder / "inputs.npz") as file:
        inputs = {name: file[name] for name in file.files}
    call = globals()["with_" + framework](folder / "model.onnx", inputs)

    def too_slow():
        print(f"a call takes more than {MOST_SECONDS} s", file=sys.stderr, flush=True)
        os._exit(1)

    def first():
        watch = threading.Timer(MOST_SECONDS, too_slow)
        watch.start()
        results = call()
        watch.cancel()
        return results

    def seconds(_, case):
        def repeat(at_least):
            calls, start = 0, time.perf_counter()
            while True:
                call()
                calls += 1
                passed = time.perf_counter() - start
                if passed >= at_least:
                    return passed / calls
        repeat(20e-3)
        return repeat(50e-3)

    serve(seconds, lambda _, case: np.concatenate([np.asarray(y, np.float32).ravel() for y in first()]))


try:
    main()
except Exception as error:  # the last line on standard error is the reason in the report
    sys.exit(f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error).strip() else ''}")
