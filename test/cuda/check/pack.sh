#!/usr/bin/env bash
# Puts what a check on a machine with a card needs into BUILD/gpu/stage: tests, the command line with its compiler, compiled programs and models; with FOLDER,
# also packed there with LLVM and MLIR, in less than 60 MiB, the steps of training in as many again and the example over two accelerators in 13, for a machine that has nothing of this project. Nothing is
# built or downloaded there; its C library must be at least as new as the one here.
#   test/cuda/check/pack.sh BUILD [FOLDER]
set -euo pipefail
build=$(readlink -f "$1") out=${2:-}
here=$(dirname "$(readlink -f "$0")") source=$(readlink -f "$(dirname "$0")/../../..")
stage=$build/gpu/stage cache=$build/gpu/cache
rm -rf "$stage"
mkdir -p "$stage/bin" "$stage/lib"
for program in test_devices test_cuda_semantics gpu-bench gpu_ops_test cuda_loops_test cuda_device_test cuda_ops_test cuda_forms_test tressel data_parallel; do
  strip -o "$stage/bin/$program" "$build/bin/$program"
done
for library in libtressel_runtime.so.0 libtressel_kernels.so.0 libtressel_devices.so.0 libtressel_cuda.so.0 libtressel_compiler.so; do
  strip -o "$stage/lib/$library" "$(readlink -f "$build/lib/$library")"
done
"$source/build/venv/bin/python" "$here/programs.py" "$stage/programs" --tressel "$build/bin/tressel"
"$source/build/venv/bin/python" "$here/programs.py" "$stage/steps" --steps "$build/bin/tressel-bench"
for model in magika/model.onnx silero/silero_vad_v6.onnx basic-pitch/nmp.onnx openwakeword/alexa_v0.1.onnx \
  openwakeword/embedding_model.onnx ppocr/ch_ppocr_mobile_v2.0_cls_infer.onnx; do
  mkdir -p "$stage/models/$(dirname $model)"
  cp "$source/build/models/$model" "$stage/models/$model"
done
[ -n "$out" ] || exit 0

rm -rf "$out"
mkdir -p "$out" "$cache"
take() { # NAME FOLDER: a library that such a machine may lack
  mkdir -p "$2"
  cp -L "$(ldconfig -p | awk -v name="$1" '$1 == name {print $NF; exit}')" "$2/"
}
take libzip.so.4 "$stage/lib"
# The example also computes on the processor, with oneDNN.
mkdir -p "$stage/parallel/bin"
mv "$stage/bin/data_parallel" "$stage/parallel/bin/"
for name in libdnnl.so.2 libOpenCL.so.1 libgomp.so.1 libprotobuf-lite.so.32 libpng16.so.16 libjpeg.so.62 libutf8proc.so.2; do
  take $name "$stage/parallel/lib"
done
strip "$stage/parallel/lib/libdnnl.so.2"
# What the others need of these is never called: Z3 and oneDNN are empty there.
for name in libz3.so.4 libdnnl.so.2; do
  echo | gcc -shared -o "$stage/lib/$name" -Wl,-soname,$name -x c -
done
pack() { xz --x86 --lzma2=preset=9,dict=192MiB -c "$1"; }
for library in /usr/lib/llvm-22/lib/libLLVM.so.22.1 /usr/lib/llvm-22/lib/libMLIR.so.22.1; do
  kept=$cache/$(basename $library).xz
  [ "$kept" -nt "$library" ] || pack $library >"$kept"
  cp "$kept" "$out/"
done
for part in tressel steps parallel; do
  case $part in
  tressel) tar -C "$stage" -cf "$stage.tar" --exclude ./steps --exclude ./parallel . ;;
  steps) tar -C "$stage" -cf "$stage.tar" ./steps ;;
  parallel) tar -C "$stage/parallel" -cf "$stage.tar" . ;;
  esac
  pack "$stage.tar" >"$out/$part.tar.xz"
done
rm -f "$stage.tar"
du -sh "$out"
