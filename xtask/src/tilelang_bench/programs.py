"""Programs of the library in TileLang: how long each takes to compile, and its machine code.

Prints a JSON object for each program: its name, and the median CPU time of a compile to CUDA text in milliseconds.
Writes the machine code of each to FOLDER/NAME.cubin. Products use mma.sync, on every target.

Usage: programs.py TARGET RUNS FOLDER
"""

import glob
import json
import os
import statistics
import sys
import time

import tilelang
import tilelang.language as T
from tilelang import tvm
from tilelang.contrib.nvrtc import compile_cuda, get_nvrtc_version

LOG2_E = 1.4426950408889634


def elementwise(rows, cols, block):
    @T.prim_func
    def main(
        x: T.Tensor((rows, cols), "float32"),
        b: T.Tensor((cols,), "float32"),
        c: T.Tensor((rows,), "float32"),
        y: T.Tensor((rows, cols), "float16"),
    ):
        with T.Kernel(T.ceildiv(rows, block), threads=128) as cta:
            bias = T.alloc_fragment((cols,), "float32")
            scale = T.alloc_fragment((block,), "float32")
            v = T.alloc_fragment((block, cols), "float32")
            T.copy(b[0:cols], bias)
            for i in T.Parallel(block):
                scale[i] = c[cta * block + i]
            for i, j in T.Parallel(block, cols):
                v[i, j] = x[cta * block + i, j] * 1.5 + bias[j]
            for i, j in T.Parallel(block, cols):
                y[cta * block + i, j] = T.max(v[i, j], 0.0) * scale[i]

    return main


def softmax(rows, cols, block):
    @T.prim_func
    def main(x: T.Tensor((rows, cols), "float32"), y: T.Tensor((rows, cols), "float32")):
        with T.Kernel(T.ceildiv(rows, block), threads=128) as cta:
            v = T.alloc_fragment((block, cols), "float32")
            greatest = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(x[cta * block, 0], v)
            T.reduce_max(v, greatest, dim=1)
            for i, j in T.Parallel(block, cols):
                v[i, j] = T.exp(v[i, j] - greatest[i])
            T.reduce_sum(v, total, dim=1)
            for i, j in T.Parallel(block, cols):
                v[i, j] = v[i, j] / total[i]
            T.copy(v, y[cta * block, 0])

    return main


def gemm(rows, cols, depth, tile, step):
    @T.prim_func
    def main(
        a: T.Tensor((rows, depth), "float16"),
        b: T.Tensor((depth, cols), "float16"),
        c: T.Tensor((rows, cols), "float32"),
    ):
        with T.Kernel(T.ceildiv(cols, tile), T.ceildiv(rows, tile), threads=128) as (column, row):
            left = T.alloc_shared((tile, step), "float16")
            right = T.alloc_shared((step, tile), "float16")
            sums = T.alloc_fragment((tile, tile), "float32")
            T.clear(sums)
            for t in T.serial(T.ceildiv(depth, step)):
                T.copy(a[row * tile, t * step], left)
                T.copy(b[t * step, column * tile], right)
                T.gemm(left, right, sums)
            T.copy(sums, c[row * tile, column * tile])

    return main


def short_attention(rows, cols, depth):
    scale = LOG2_E / depth**0.5

    @T.prim_func
    def main(
        q: T.Tensor((rows, depth), "float16"),
        key: T.Tensor((cols, depth), "float16"),
        value: T.Tensor((cols, depth), "float16"),
        out: T.Tensor((rows, depth), "float32"),
    ):
        with T.Kernel(T.ceildiv(rows, 64), threads=128) as cta:
            queries = T.alloc_shared((64, depth), "float16")
            keys = T.alloc_shared((cols, depth), "float16")
            values = T.alloc_shared((cols, depth), "float16")
            scores = T.alloc_fragment((64, cols), "float32")
            weights = T.alloc_fragment((64, cols), "float16")
            held = T.alloc_fragment((64, depth), "float32")
            greatest = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(q[cta * 64, 0], queries)
            T.copy(key[0, 0], keys)
            T.copy(value[0, 0], values)
            T.clear(scores)
            T.gemm(queries, keys, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.reduce_max(scores, greatest, dim=1)
            for i, j in T.Parallel(64, cols):
                scores[i, j] = T.exp2(scores[i, j] * scale - greatest[i] * scale)
            T.reduce_sum(scores, total, dim=1)
            T.copy(scores, weights)
            T.clear(held)
            T.gemm(weights, values, held, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(64, depth):
                held[i, j] = held[i, j] / total[i]
            T.copy(held, out[cta * 64, 0])

    return main


PROGRAMS = {
    "elementwise": lambda: elementwise(128, 128, 64),
    "softmax": lambda: softmax(32, 1024, 4),
    "gemm": lambda: gemm(128, 128, 1024, 128, 64),
    "short_attention": lambda: short_attention(64, 64, 64),
}


CONFIG = {"tl.disable_wgmma": True, "tl.disable_warp_specialized": True}


def cuda_text(program, target):
    with target, tvm.transform.PassContext(config=CONFIG):
        return tilelang.lower(program, target=target, enable_device_compile=False).kernel_source


def machine_code(text, target, kind):
    """Compiles CUDA text to a "cubin" or to "ptx" as TileLang's NVRTC back end does."""
    own = os.path.dirname(tilelang.__file__)
    toolkits = glob.glob(os.path.join(os.path.dirname(own), "nvidia/*/include"))
    folders = [os.path.join(own, "src"), os.path.join(own, "3rdparty/cutlass/include"), *toolkits]
    folders += [os.path.join(toolkit, "cccl") for toolkit in toolkits]
    options = [*(f"-I{folder}" for folder in folders), f"-D__CUDACC_VER_MAJOR__={get_nvrtc_version()[0]}"]
    with target:
        return bytes(compile_cuda(text, target_format=kind, options=options))


def main():
    architecture, runs, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    target = tvm.target.Target({"kind": "cuda", "arch": architecture})
    for name, program in PROGRAMS.items():
        times = []
        for _ in range(runs + 1):
            start = time.process_time()
            text = cuda_text(program(), target)
            times.append((time.process_time() - start) * 1e3)
        with open(os.path.join(folder, f"{name}.cubin"), "wb") as file:
            file.write(machine_code(text, target, "cubin"))
        # The first compile also loads what the compiler needs.
        print(json.dumps({"name": name, "milliseconds": statistics.median(times[1:])}), flush=True)


if __name__ == "__main__":
    main()
