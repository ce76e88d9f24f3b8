; ModuleID = 'kernels'
source_filename = "kernels"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define dso_local i32 @add_relu_transpose_greater_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr i8, ptr %3, i64 32
  %12 = load ptr, ptr %11, align 8
  %13 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %13
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %14 = phi i64 [ %24, %after2 ], [ %1, %loop.preheader ]
  %15 = shl nsw i64 %14, 6
  %16 = call i64 @llvm.smin.i64(i64 %15, i64 960)
  %17 = or disjoint i64 %16, 48
  %.not5 = icmp sgt i64 %15, %17
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %after4, %loop
  %18 = phi i64 [ 0, %loop ], [ %268, %after4 ]
  %19 = shl nsw i64 %18, 10
  %20 = getelementptr float, ptr %4, i64 %19
  %21 = getelementptr float, ptr %8, i64 %19
  %22 = getelementptr float, ptr %10, i64 %18
  %23 = getelementptr i8, ptr %12, i64 %19
  br i1 %.not5, label %after4, label %loop3.preheader

loop3.preheader:                                  ; preds = %loop1
  br label %loop3

after2:                                           ; preds = %after4
  %24 = add nsw i64 %14, 1
  %.not22.not = icmp slt i64 %14, %13
  br i1 %.not22.not, label %loop, label %after.loopexit

loop3:                                            ; preds = %loop3.preheader, %loop3
  %25 = phi i64 [ %267, %loop3 ], [ %15, %loop3.preheader ]
  %26 = getelementptr float, ptr %20, i64 %25
  %27 = load <16 x float>, ptr %26, align 4
  %28 = getelementptr float, ptr %6, i64 %25
  %29 = load <16 x float>, ptr %28, align 4
  %30 = fadd contract <16 x float> %27, %29
  %.inv = fcmp contract olt <16 x float> %30, zeroinitializer
  %31 = select contract <16 x i1> %.inv, <16 x float> zeroinitializer, <16 x float> %30
  %32 = getelementptr i8, ptr %26, i64 4096
  %33 = load <16 x float>, ptr %32, align 4
  %34 = fadd contract <16 x float> %33, %29
  %.inv6 = fcmp contract olt <16 x float> %34, zeroinitializer
  %35 = select contract <16 x i1> %.inv6, <16 x float> zeroinitializer, <16 x float> %34
  %36 = getelementptr i8, ptr %26, i64 8192
  %37 = load <16 x float>, ptr %36, align 4
  %38 = fadd contract <16 x float> %37, %29
  %.inv7 = fcmp contract olt <16 x float> %38, zeroinitializer
  %39 = select contract <16 x i1> %.inv7, <16 x float> zeroinitializer, <16 x float> %38
  %40 = getelementptr i8, ptr %26, i64 12288
  %41 = load <16 x float>, ptr %40, align 4
  %42 = fadd contract <16 x float> %41, %29
  %.inv8 = fcmp contract olt <16 x float> %42, zeroinitializer
  %43 = select contract <16 x i1> %.inv8, <16 x float> zeroinitializer, <16 x float> %42
  %44 = getelementptr i8, ptr %26, i64 16384
  %45 = load <16 x float>, ptr %44, align 4
  %46 = fadd contract <16 x float> %45, %29
  %.inv9 = fcmp contract olt <16 x float> %46, zeroinitializer
  %47 = select contract <16 x i1> %.inv9, <16 x float> zeroinitializer, <16 x float> %46
  %48 = getelementptr i8, ptr %26, i64 20480
  %49 = load <16 x float>, ptr %48, align 4
  %50 = fadd contract <16 x float> %49, %29
  %.inv10 = fcmp contract olt <16 x float> %50, zeroinitializer
  %51 = select contract <16 x i1> %.inv10, <16 x float> zeroinitializer, <16 x float> %50
  %52 = getelementptr i8, ptr %26, i64 24576
  %53 = load <16 x float>, ptr %52, align 4
  %54 = fadd contract <16 x float> %53, %29
  %.inv11 = fcmp contract olt <16 x float> %54, zeroinitializer
  %55 = select contract <16 x i1> %.inv11, <16 x float> zeroinitializer, <16 x float> %54
  %56 = getelementptr i8, ptr %26, i64 28672
  %57 = load <16 x float>, ptr %56, align 4
  %58 = fadd contract <16 x float> %57, %29
  %.inv12 = fcmp contract olt <16 x float> %58, zeroinitializer
  %59 = select contract <16 x i1> %.inv12, <16 x float> zeroinitializer, <16 x float> %58
  %60 = getelementptr i8, ptr %26, i64 32768
  %61 = load <16 x float>, ptr %60, align 4
  %62 = fadd contract <16 x float> %61, %29
  %.inv13 = fcmp contract olt <16 x float> %62, zeroinitializer
  %63 = select contract <16 x i1> %.inv13, <16 x float> zeroinitializer, <16 x float> %62
  %64 = getelementptr i8, ptr %26, i64 36864
  %65 = load <16 x float>, ptr %64, align 4
  %66 = fadd contract <16 x float> %65, %29
  %.inv14 = fcmp contract olt <16 x float> %66, zeroinitializer
  %67 = select contract <16 x i1> %.inv14, <16 x float> zeroinitializer, <16 x float> %66
  %68 = getelementptr i8, ptr %26, i64 40960
  %69 = load <16 x float>, ptr %68, align 4
  %70 = fadd contract <16 x float> %69, %29
  %.inv15 = fcmp contract olt <16 x float> %70, zeroinitializer
  %71 = select contract <16 x i1> %.inv15, <16 x float> zeroinitializer, <16 x float> %70
  %72 = getelementptr i8, ptr %26, i64 45056
  %73 = load <16 x float>, ptr %72, align 4
  %74 = fadd contract <16 x float> %73, %29
  %.inv16 = fcmp contract olt <16 x float> %74, zeroinitializer
  %75 = select contract <16 x i1> %.inv16, <16 x float> zeroinitializer, <16 x float> %74
  %76 = getelementptr i8, ptr %26, i64 49152
  %77 = load <16 x float>, ptr %76, align 4
  %78 = fadd contract <16 x float> %77, %29
  %.inv17 = fcmp contract olt <16 x float> %78, zeroinitializer
  %79 = select contract <16 x i1> %.inv17, <16 x float> zeroinitializer, <16 x float> %78
  %80 = getelementptr i8, ptr %26, i64 53248
  %81 = load <16 x float>, ptr %80, align 4
  %82 = fadd contract <16 x float> %81, %29
  %.inv18 = fcmp contract olt <16 x float> %82, zeroinitializer
  %83 = select contract <16 x i1> %.inv18, <16 x float> zeroinitializer, <16 x float> %82
  %84 = getelementptr i8, ptr %26, i64 57344
  %85 = load <16 x float>, ptr %84, align 4
  %86 = fadd contract <16 x float> %85, %29
  %.inv19 = fcmp contract olt <16 x float> %86, zeroinitializer
  %87 = select contract <16 x i1> %.inv19, <16 x float> zeroinitializer, <16 x float> %86
  %88 = getelementptr i8, ptr %26, i64 61440
  %89 = load <16 x float>, ptr %88, align 4
  %90 = fadd contract <16 x float> %89, %29
  %.inv20 = fcmp contract olt <16 x float> %90, zeroinitializer
  %91 = select contract <16 x i1> %.inv20, <16 x float> zeroinitializer, <16 x float> %90
  %92 = fcmp contract ogt <16 x float> %30, zeroinitializer
  %93 = fcmp contract ogt <16 x float> %34, zeroinitializer
  %94 = fcmp contract ogt <16 x float> %38, zeroinitializer
  %95 = fcmp contract ogt <16 x float> %42, zeroinitializer
  %96 = fcmp contract ogt <16 x float> %46, zeroinitializer
  %97 = fcmp contract ogt <16 x float> %50, zeroinitializer
  %98 = fcmp contract ogt <16 x float> %54, zeroinitializer
  %99 = fcmp contract ogt <16 x float> %58, zeroinitializer
  %100 = fcmp contract ogt <16 x float> %62, zeroinitializer
  %101 = fcmp contract ogt <16 x float> %66, zeroinitializer
  %102 = fcmp contract ogt <16 x float> %70, zeroinitializer
  %103 = fcmp contract ogt <16 x float> %74, zeroinitializer
  %104 = fcmp contract ogt <16 x float> %78, zeroinitializer
  %105 = fcmp contract ogt <16 x float> %82, zeroinitializer
  %106 = fcmp contract ogt <16 x float> %86, zeroinitializer
  %107 = fcmp contract ogt <16 x float> %90, zeroinitializer
  %108 = getelementptr float, ptr %21, i64 %25
  %109 = getelementptr i8, ptr %108, i64 1024
  call void @llvm.prefetch.p0(ptr %109, i32 1, i32 3, i32 1)
  store <16 x float> %31, ptr %108, align 4
  %110 = getelementptr i8, ptr %108, i64 4096
  %111 = getelementptr i8, ptr %108, i64 5120
  call void @llvm.prefetch.p0(ptr %111, i32 1, i32 3, i32 1)
  store <16 x float> %35, ptr %110, align 4
  %112 = getelementptr i8, ptr %108, i64 8192
  %113 = getelementptr i8, ptr %108, i64 9216
  call void @llvm.prefetch.p0(ptr %113, i32 1, i32 3, i32 1)
  store <16 x float> %39, ptr %112, align 4
  %114 = getelementptr i8, ptr %108, i64 12288
  %115 = getelementptr i8, ptr %108, i64 13312
  call void @llvm.prefetch.p0(ptr %115, i32 1, i32 3, i32 1)
  store <16 x float> %43, ptr %114, align 4
  %116 = getelementptr i8, ptr %108, i64 16384
  %117 = getelementptr i8, ptr %108, i64 17408
  call void @llvm.prefetch.p0(ptr %117, i32 1, i32 3, i32 1)
  store <16 x float> %47, ptr %116, align 4
  %118 = getelementptr i8, ptr %108, i64 20480
  %119 = getelementptr i8, ptr %108, i64 21504
  call void @llvm.prefetch.p0(ptr %119, i32 1, i32 3, i32 1)
  store <16 x float> %51, ptr %118, align 4
  %120 = getelementptr i8, ptr %108, i64 24576
  %121 = getelementptr i8, ptr %108, i64 25600
  call void @llvm.prefetch.p0(ptr %121, i32 1, i32 3, i32 1)
  store <16 x float> %55, ptr %120, align 4
  %122 = getelementptr i8, ptr %108, i64 28672
  %123 = getelementptr i8, ptr %108, i64 29696
  call void @llvm.prefetch.p0(ptr %123, i32 1, i32 3, i32 1)
  store <16 x float> %59, ptr %122, align 4
  %124 = getelementptr i8, ptr %108, i64 32768
  %125 = getelementptr i8, ptr %108, i64 33792
  call void @llvm.prefetch.p0(ptr %125, i32 1, i32 3, i32 1)
  store <16 x float> %63, ptr %124, align 4
  %126 = getelementptr i8, ptr %108, i64 36864
  %127 = getelementptr i8, ptr %108, i64 37888
  call void @llvm.prefetch.p0(ptr %127, i32 1, i32 3, i32 1)
  store <16 x float> %67, ptr %126, align 4
  %128 = getelementptr i8, ptr %108, i64 40960
  %129 = getelementptr i8, ptr %108, i64 41984
  call void @llvm.prefetch.p0(ptr %129, i32 1, i32 3, i32 1)
  store <16 x float> %71, ptr %128, align 4
  %130 = getelementptr i8, ptr %108, i64 45056
  %131 = getelementptr i8, ptr %108, i64 46080
  call void @llvm.prefetch.p0(ptr %131, i32 1, i32 3, i32 1)
  store <16 x float> %75, ptr %130, align 4
  %132 = getelementptr i8, ptr %108, i64 49152
  %133 = getelementptr i8, ptr %108, i64 50176
  call void @llvm.prefetch.p0(ptr %133, i32 1, i32 3, i32 1)
  store <16 x float> %79, ptr %132, align 4
  %134 = getelementptr i8, ptr %108, i64 53248
  %135 = getelementptr i8, ptr %108, i64 54272
  call void @llvm.prefetch.p0(ptr %135, i32 1, i32 3, i32 1)
  store <16 x float> %83, ptr %134, align 4
  %136 = getelementptr i8, ptr %108, i64 57344
  %137 = getelementptr i8, ptr %108, i64 58368
  call void @llvm.prefetch.p0(ptr %137, i32 1, i32 3, i32 1)
  store <16 x float> %87, ptr %136, align 4
  %138 = getelementptr i8, ptr %108, i64 61440
  %139 = getelementptr i8, ptr %108, i64 62464
  call void @llvm.prefetch.p0(ptr %139, i32 1, i32 3, i32 1)
  store <16 x float> %91, ptr %138, align 4
  %140 = shufflevector <16 x float> %31, <16 x float> %39, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %141 = shufflevector <16 x float> %31, <16 x float> %39, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %142 = shufflevector <16 x float> %35, <16 x float> %43, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %143 = shufflevector <16 x float> %35, <16 x float> %43, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %144 = shufflevector <16 x float> %47, <16 x float> %55, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %145 = shufflevector <16 x float> %47, <16 x float> %55, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %146 = shufflevector <16 x float> %51, <16 x float> %59, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %147 = shufflevector <16 x float> %51, <16 x float> %59, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %148 = shufflevector <16 x float> %63, <16 x float> %71, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %149 = shufflevector <16 x float> %63, <16 x float> %71, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %150 = shufflevector <16 x float> %67, <16 x float> %75, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %151 = shufflevector <16 x float> %67, <16 x float> %75, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %152 = shufflevector <16 x float> %79, <16 x float> %87, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %153 = shufflevector <16 x float> %79, <16 x float> %87, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %154 = shufflevector <16 x float> %83, <16 x float> %91, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %155 = shufflevector <16 x float> %83, <16 x float> %91, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %156 = shufflevector <16 x float> %140, <16 x float> %142, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %157 = shufflevector <16 x float> %140, <16 x float> %142, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %158 = shufflevector <16 x float> %141, <16 x float> %143, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %159 = shufflevector <16 x float> %141, <16 x float> %143, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %160 = shufflevector <16 x float> %144, <16 x float> %146, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %161 = shufflevector <16 x float> %144, <16 x float> %146, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %162 = shufflevector <16 x float> %145, <16 x float> %147, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %163 = shufflevector <16 x float> %145, <16 x float> %147, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %164 = shufflevector <16 x float> %148, <16 x float> %150, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %165 = shufflevector <16 x float> %148, <16 x float> %150, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %166 = shufflevector <16 x float> %149, <16 x float> %151, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %167 = shufflevector <16 x float> %149, <16 x float> %151, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %168 = shufflevector <16 x float> %152, <16 x float> %154, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %169 = shufflevector <16 x float> %152, <16 x float> %154, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %170 = shufflevector <16 x float> %153, <16 x float> %155, <16 x i32> <i32 0, i32 16, i32 1, i32 17, i32 4, i32 20, i32 5, i32 21, i32 8, i32 24, i32 9, i32 25, i32 12, i32 28, i32 13, i32 29>
  %171 = shufflevector <16 x float> %153, <16 x float> %155, <16 x i32> <i32 2, i32 18, i32 3, i32 19, i32 6, i32 22, i32 7, i32 23, i32 10, i32 26, i32 11, i32 27, i32 14, i32 30, i32 15, i32 31>
  %172 = shufflevector <16 x float> %156, <16 x float> %160, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %173 = shufflevector <16 x float> %156, <16 x float> %160, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %174 = shufflevector <16 x float> %157, <16 x float> %161, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %175 = shufflevector <16 x float> %157, <16 x float> %161, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %176 = shufflevector <16 x float> %158, <16 x float> %162, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %177 = shufflevector <16 x float> %158, <16 x float> %162, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %178 = shufflevector <16 x float> %159, <16 x float> %163, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %179 = shufflevector <16 x float> %159, <16 x float> %163, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %180 = shufflevector <16 x float> %164, <16 x float> %168, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %181 = shufflevector <16 x float> %164, <16 x float> %168, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %182 = shufflevector <16 x float> %165, <16 x float> %169, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %183 = shufflevector <16 x float> %165, <16 x float> %169, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %184 = shufflevector <16 x float> %166, <16 x float> %170, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %185 = shufflevector <16 x float> %166, <16 x float> %170, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %186 = shufflevector <16 x float> %167, <16 x float> %171, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %187 = shufflevector <16 x float> %167, <16 x float> %171, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %188 = shufflevector <16 x float> %172, <16 x float> %180, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %189 = shufflevector <16 x float> %172, <16 x float> %180, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %190 = shufflevector <16 x float> %174, <16 x float> %182, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %191 = shufflevector <16 x float> %174, <16 x float> %182, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %192 = shufflevector <16 x float> %176, <16 x float> %184, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %193 = shufflevector <16 x float> %176, <16 x float> %184, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %194 = shufflevector <16 x float> %178, <16 x float> %186, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %195 = shufflevector <16 x float> %178, <16 x float> %186, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %196 = shufflevector <16 x float> %173, <16 x float> %181, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %197 = shufflevector <16 x float> %173, <16 x float> %181, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %198 = shufflevector <16 x float> %175, <16 x float> %183, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %199 = shufflevector <16 x float> %175, <16 x float> %183, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %200 = shufflevector <16 x float> %177, <16 x float> %185, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %201 = shufflevector <16 x float> %177, <16 x float> %185, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %202 = shufflevector <16 x float> %179, <16 x float> %187, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %203 = shufflevector <16 x float> %179, <16 x float> %187, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %.idx = shl i64 %25, 7
  %204 = getelementptr i8, ptr %22, i64 %.idx
  store <16 x float> %188, ptr %204, align 4
  %205 = getelementptr i8, ptr %204, i64 128
  store <16 x float> %190, ptr %205, align 4
  %206 = getelementptr i8, ptr %204, i64 256
  store <16 x float> %192, ptr %206, align 4
  %207 = getelementptr i8, ptr %204, i64 384
  store <16 x float> %194, ptr %207, align 4
  %208 = getelementptr i8, ptr %204, i64 512
  store <16 x float> %196, ptr %208, align 4
  %209 = getelementptr i8, ptr %204, i64 640
  store <16 x float> %198, ptr %209, align 4
  %210 = getelementptr i8, ptr %204, i64 768
  store <16 x float> %200, ptr %210, align 4
  %211 = getelementptr i8, ptr %204, i64 896
  store <16 x float> %202, ptr %211, align 4
  %212 = getelementptr i8, ptr %204, i64 1024
  store <16 x float> %189, ptr %212, align 4
  %213 = getelementptr i8, ptr %204, i64 1152
  store <16 x float> %191, ptr %213, align 4
  %214 = getelementptr i8, ptr %204, i64 1280
  store <16 x float> %193, ptr %214, align 4
  %215 = getelementptr i8, ptr %204, i64 1408
  store <16 x float> %195, ptr %215, align 4
  %216 = getelementptr i8, ptr %204, i64 1536
  store <16 x float> %197, ptr %216, align 4
  %217 = getelementptr i8, ptr %204, i64 1664
  store <16 x float> %199, ptr %217, align 4
  %218 = getelementptr i8, ptr %204, i64 1792
  store <16 x float> %201, ptr %218, align 4
  %219 = getelementptr i8, ptr %204, i64 1920
  store <16 x float> %203, ptr %219, align 4
  %220 = zext <16 x i1> %92 to <16 x i8>
  %221 = getelementptr i8, ptr %23, i64 %25
  %222 = getelementptr i8, ptr %221, i64 1024
  call void @llvm.prefetch.p0(ptr %222, i32 1, i32 3, i32 1)
  store <16 x i8> %220, ptr %221, align 1
  %223 = zext <16 x i1> %93 to <16 x i8>
  %224 = getelementptr i8, ptr %221, i64 2048
  call void @llvm.prefetch.p0(ptr %224, i32 1, i32 3, i32 1)
  store <16 x i8> %223, ptr %222, align 1
  %225 = zext <16 x i1> %94 to <16 x i8>
  %226 = getelementptr i8, ptr %221, i64 2048
  %227 = getelementptr i8, ptr %221, i64 3072
  call void @llvm.prefetch.p0(ptr %227, i32 1, i32 3, i32 1)
  store <16 x i8> %225, ptr %226, align 1
  %228 = zext <16 x i1> %95 to <16 x i8>
  %229 = getelementptr i8, ptr %221, i64 3072
  %230 = getelementptr i8, ptr %221, i64 4096
  call void @llvm.prefetch.p0(ptr %230, i32 1, i32 3, i32 1)
  store <16 x i8> %228, ptr %229, align 1
  %231 = zext <16 x i1> %96 to <16 x i8>
  %232 = getelementptr i8, ptr %221, i64 4096
  %233 = getelementptr i8, ptr %221, i64 5120
  call void @llvm.prefetch.p0(ptr %233, i32 1, i32 3, i32 1)
  store <16 x i8> %231, ptr %232, align 1
  %234 = zext <16 x i1> %97 to <16 x i8>
  %235 = getelementptr i8, ptr %221, i64 5120
  %236 = getelementptr i8, ptr %221, i64 6144
  call void @llvm.prefetch.p0(ptr %236, i32 1, i32 3, i32 1)
  store <16 x i8> %234, ptr %235, align 1
  %237 = zext <16 x i1> %98 to <16 x i8>
  %238 = getelementptr i8, ptr %221, i64 6144
  %239 = getelementptr i8, ptr %221, i64 7168
  call void @llvm.prefetch.p0(ptr %239, i32 1, i32 3, i32 1)
  store <16 x i8> %237, ptr %238, align 1
  %240 = zext <16 x i1> %99 to <16 x i8>
  %241 = getelementptr i8, ptr %221, i64 7168
  %242 = getelementptr i8, ptr %221, i64 8192
  call void @llvm.prefetch.p0(ptr %242, i32 1, i32 3, i32 1)
  store <16 x i8> %240, ptr %241, align 1
  %243 = zext <16 x i1> %100 to <16 x i8>
  %244 = getelementptr i8, ptr %221, i64 8192
  %245 = getelementptr i8, ptr %221, i64 9216
  call void @llvm.prefetch.p0(ptr %245, i32 1, i32 3, i32 1)
  store <16 x i8> %243, ptr %244, align 1
  %246 = zext <16 x i1> %101 to <16 x i8>
  %247 = getelementptr i8, ptr %221, i64 9216
  %248 = getelementptr i8, ptr %221, i64 10240
  call void @llvm.prefetch.p0(ptr %248, i32 1, i32 3, i32 1)
  store <16 x i8> %246, ptr %247, align 1
  %249 = zext <16 x i1> %102 to <16 x i8>
  %250 = getelementptr i8, ptr %221, i64 10240
  %251 = getelementptr i8, ptr %221, i64 11264
  call void @llvm.prefetch.p0(ptr %251, i32 1, i32 3, i32 1)
  store <16 x i8> %249, ptr %250, align 1
  %252 = zext <16 x i1> %103 to <16 x i8>
  %253 = getelementptr i8, ptr %221, i64 11264
  %254 = getelementptr i8, ptr %221, i64 12288
  call void @llvm.prefetch.p0(ptr %254, i32 1, i32 3, i32 1)
  store <16 x i8> %252, ptr %253, align 1
  %255 = zext <16 x i1> %104 to <16 x i8>
  %256 = getelementptr i8, ptr %221, i64 12288
  %257 = getelementptr i8, ptr %221, i64 13312
  call void @llvm.prefetch.p0(ptr %257, i32 1, i32 3, i32 1)
  store <16 x i8> %255, ptr %256, align 1
  %258 = zext <16 x i1> %105 to <16 x i8>
  %259 = getelementptr i8, ptr %221, i64 13312
  %260 = getelementptr i8, ptr %221, i64 14336
  call void @llvm.prefetch.p0(ptr %260, i32 1, i32 3, i32 1)
  store <16 x i8> %258, ptr %259, align 1
  %261 = zext <16 x i1> %106 to <16 x i8>
  %262 = getelementptr i8, ptr %221, i64 14336
  %263 = getelementptr i8, ptr %221, i64 15360
  call void @llvm.prefetch.p0(ptr %263, i32 1, i32 3, i32 1)
  store <16 x i8> %261, ptr %262, align 1
  %264 = zext <16 x i1> %107 to <16 x i8>
  %265 = getelementptr i8, ptr %221, i64 15360
  %266 = getelementptr i8, ptr %221, i64 16384
  call void @llvm.prefetch.p0(ptr %266, i32 1, i32 3, i32 1)
  store <16 x i8> %264, ptr %265, align 1
  %267 = add nsw i64 %25, 16
  %.not21.not = icmp slt i64 %25, %17
  br i1 %.not21.not, label %loop3, label %after4.loopexit

after4.loopexit:                                  ; preds = %loop3
  br label %after4

after4:                                           ; preds = %after4.loopexit, %loop1
  %268 = add nuw nsw i64 %18, 16
  %269 = icmp eq i64 %18, 0
  br i1 %269, label %loop1, label %after2
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite)
declare void @llvm.prefetch.p0(ptr readonly captures(none), i32 immarg, i32 immarg, i32 immarg) #1

; Function Attrs: nounwind
define dso_local i32 @matmul_add_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %12 = phi i64 [ %68, %after2 ], [ %1, %loop.preheader ]
  %.idx = shl i64 %12, 15
  %13 = getelementptr i8, ptr %4, i64 %.idx
  %.idx40 = mul i64 %12, 320
  %14 = getelementptr i8, ptr %10, i64 %.idx40
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %.039 = phi <16 x float> [ zeroinitializer, %loop ], [ %25, %loop1 ]
  %.038 = phi <16 x float> [ zeroinitializer, %loop ], [ %29, %loop1 ]
  %.037 = phi <16 x float> [ zeroinitializer, %loop ], [ %33, %loop1 ]
  %.036 = phi <16 x float> [ zeroinitializer, %loop ], [ %37, %loop1 ]
  %.035 = phi <16 x float> [ zeroinitializer, %loop ], [ %41, %loop1 ]
  %.034 = phi <16 x float> [ zeroinitializer, %loop ], [ %45, %loop1 ]
  %.033 = phi <16 x float> [ zeroinitializer, %loop ], [ %49, %loop1 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop ], [ %21, %loop1 ]
  %15 = phi i64 [ 0, %loop ], [ %50, %loop1 ]
  %16 = getelementptr float, ptr %13, i64 %15
  %17 = load float, ptr %16, align 4
  %.splatinsert = insertelement <16 x float> poison, float %17, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx41 = mul i64 %15, 40
  %18 = getelementptr i8, ptr %6, i64 %.idx41
  %19 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %18, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %20 = fmul contract <16 x float> %.splat, %19
  %21 = fadd contract <16 x float> %.0, %20
  %22 = getelementptr i8, ptr %16, i64 4096
  %23 = load float, ptr %22, align 4
  %.splatinsert3 = insertelement <16 x float> poison, float %23, i64 0
  %.splat4 = shufflevector <16 x float> %.splatinsert3, <16 x float> poison, <16 x i32> zeroinitializer
  %24 = fmul contract <16 x float> %.splat4, %19
  %25 = fadd contract <16 x float> %.039, %24
  %26 = getelementptr i8, ptr %16, i64 8192
  %27 = load float, ptr %26, align 4
  %.splatinsert5 = insertelement <16 x float> poison, float %27, i64 0
  %.splat6 = shufflevector <16 x float> %.splatinsert5, <16 x float> poison, <16 x i32> zeroinitializer
  %28 = fmul contract <16 x float> %.splat6, %19
  %29 = fadd contract <16 x float> %.038, %28
  %30 = getelementptr i8, ptr %16, i64 12288
  %31 = load float, ptr %30, align 4
  %.splatinsert7 = insertelement <16 x float> poison, float %31, i64 0
  %.splat8 = shufflevector <16 x float> %.splatinsert7, <16 x float> poison, <16 x i32> zeroinitializer
  %32 = fmul contract <16 x float> %.splat8, %19
  %33 = fadd contract <16 x float> %.037, %32
  %34 = getelementptr i8, ptr %16, i64 16384
  %35 = load float, ptr %34, align 4
  %.splatinsert9 = insertelement <16 x float> poison, float %35, i64 0
  %.splat10 = shufflevector <16 x float> %.splatinsert9, <16 x float> poison, <16 x i32> zeroinitializer
  %36 = fmul contract <16 x float> %.splat10, %19
  %37 = fadd contract <16 x float> %.036, %36
  %38 = getelementptr i8, ptr %16, i64 20480
  %39 = load float, ptr %38, align 4
  %.splatinsert11 = insertelement <16 x float> poison, float %39, i64 0
  %.splat12 = shufflevector <16 x float> %.splatinsert11, <16 x float> poison, <16 x i32> zeroinitializer
  %40 = fmul contract <16 x float> %.splat12, %19
  %41 = fadd contract <16 x float> %.035, %40
  %42 = getelementptr i8, ptr %16, i64 24576
  %43 = load float, ptr %42, align 4
  %.splatinsert13 = insertelement <16 x float> poison, float %43, i64 0
  %.splat14 = shufflevector <16 x float> %.splatinsert13, <16 x float> poison, <16 x i32> zeroinitializer
  %44 = fmul contract <16 x float> %.splat14, %19
  %45 = fadd contract <16 x float> %.034, %44
  %46 = getelementptr i8, ptr %16, i64 28672
  %47 = load float, ptr %46, align 4
  %.splatinsert15 = insertelement <16 x float> poison, float %47, i64 0
  %.splat16 = shufflevector <16 x float> %.splatinsert15, <16 x float> poison, <16 x i32> zeroinitializer
  %48 = fmul contract <16 x float> %.splat16, %19
  %49 = fadd contract <16 x float> %.033, %48
  %50 = add nuw nsw i64 %15, 1
  %51 = icmp samesign ult i64 %15, 1023
  br i1 %51, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %.lcssa49 = phi <16 x float> [ %21, %loop1 ]
  %.lcssa48 = phi <16 x float> [ %25, %loop1 ]
  %.lcssa47 = phi <16 x float> [ %29, %loop1 ]
  %.lcssa46 = phi <16 x float> [ %33, %loop1 ]
  %.lcssa45 = phi <16 x float> [ %37, %loop1 ]
  %.lcssa44 = phi <16 x float> [ %41, %loop1 ]
  %.lcssa43 = phi <16 x float> [ %45, %loop1 ]
  %.lcssa = phi <16 x float> [ %49, %loop1 ]
  %52 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %8, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %53 = fadd contract <16 x float> %.lcssa49, %52
  %54 = fadd contract <16 x float> %.lcssa48, %52
  %55 = fadd contract <16 x float> %.lcssa47, %52
  %56 = fadd contract <16 x float> %.lcssa46, %52
  %57 = fadd contract <16 x float> %.lcssa45, %52
  %58 = fadd contract <16 x float> %.lcssa44, %52
  %59 = fadd contract <16 x float> %.lcssa43, %52
  %60 = fadd contract <16 x float> %.lcssa, %52
  call void @llvm.masked.store.v16f32.p0(<16 x float> %53, ptr align 4 %14, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %61 = getelementptr i8, ptr %14, i64 40
  call void @llvm.masked.store.v16f32.p0(<16 x float> %54, ptr align 4 %61, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %62 = getelementptr i8, ptr %14, i64 80
  call void @llvm.masked.store.v16f32.p0(<16 x float> %55, ptr align 4 %62, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %63 = getelementptr i8, ptr %14, i64 120
  call void @llvm.masked.store.v16f32.p0(<16 x float> %56, ptr align 4 %63, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %64 = getelementptr i8, ptr %14, i64 160
  call void @llvm.masked.store.v16f32.p0(<16 x float> %57, ptr align 4 %64, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %65 = getelementptr i8, ptr %14, i64 200
  call void @llvm.masked.store.v16f32.p0(<16 x float> %58, ptr align 4 %65, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %66 = getelementptr i8, ptr %14, i64 240
  call void @llvm.masked.store.v16f32.p0(<16 x float> %59, ptr align 4 %66, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %67 = getelementptr i8, ptr %14, i64 280
  call void @llvm.masked.store.v16f32.p0(<16 x float> %60, ptr align 4 %67, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %68 = add nsw i64 %12, 1
  %.not42.not = icmp slt i64 %12, %11
  br i1 %.not42.not, label %loop, label %after.loopexit
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr captures(none), <16 x i1>, <16 x float>) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr captures(none), <16 x i1>) #3

; Function Attrs: nounwind
define dso_local i32 @max_sub_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %8 = call contract float @llvm.arithmetic.fence.f32(float 1.000000e+00)
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %9 = phi i64 [ %44, %loop ], [ %1, %loop.preheader ]
  %10 = mul nsw i64 %9, 10
  %11 = getelementptr float, ptr %6, i64 %10
  %12 = getelementptr float, ptr %4, i64 %10
  %13 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %12, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %14 = fcmp contract oeq <16 x float> %13, splat (float 0xFFF0000000000000)
  %15 = select contract <16 x i1> %14, <16 x float> <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float poison, float poison, float poison, float poison, float poison, float poison>, <16 x float> %13
  %16 = shufflevector <16 x float> %15, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %17 = shufflevector <16 x float> %15, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, <16 x i32> <i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 8, i32 9, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %18 = shufflevector <16 x float> %17, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %19 = fcmp contract oge <8 x float> %16, %18
  %20 = fcmp contract uno <8 x float> %16, zeroinitializer
  %21 = or <8 x i1> %19, %20
  %22 = select contract <8 x i1> %21, <8 x float> %16, <8 x float> %18
  %23 = shufflevector <8 x float> %22, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %24 = shufflevector <8 x float> %22, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %25 = fcmp contract oge <4 x float> %23, %24
  %26 = fcmp contract uno <4 x float> %23, zeroinitializer
  %27 = or <4 x i1> %25, %26
  %28 = select contract <4 x i1> %27, <4 x float> %23, <4 x float> %24
  %29 = shufflevector <4 x float> %28, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %30 = shufflevector <4 x float> %28, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %31 = fcmp contract oge <2 x float> %29, %30
  %32 = fcmp contract uno <2 x float> %29, zeroinitializer
  %33 = or <2 x i1> %31, %32
  %34 = select contract <2 x i1> %33, <2 x float> %29, <2 x float> %30
  %35 = shufflevector <2 x float> %34, <2 x float> poison, <1 x i32> zeroinitializer
  %36 = shufflevector <2 x float> %34, <2 x float> poison, <1 x i32> <i32 1>
  %37 = fcmp contract oge <1 x float> %35, %36
  %38 = fcmp contract uno <1 x float> %35, zeroinitializer
  %39 = or <1 x i1> %37, %38
  %40 = select contract <1 x i1> %39, <1 x float> %35, <1 x float> %36
  %41 = extractelement <1 x float> %40, i64 0
  %42 = fmul contract float %41, %8
  %.splatinsert = insertelement <16 x float> poison, float %42, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  %43 = fsub contract <16 x float> %13, %.splat
  call void @llvm.masked.store.v16f32.p0(<16 x float> %43, ptr align 4 %11, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %44 = add nsw i64 %9, 1
  %.not4.not = icmp slt i64 %9, %7
  br i1 %.not4.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare float @llvm.arithmetic.fence.f32(float) #4

; Function Attrs: nounwind
define dso_local i32 @not_equal_less_where_where_take_and_2_more_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr i8, ptr %3, i64 32
  %12 = load ptr, ptr %11, align 8
  %13 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %13
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %14 = getelementptr i8, ptr %4, i64 192
  %15 = getelementptr i8, ptr %4, i64 128
  %16 = getelementptr i8, ptr %4, i64 64
  %17 = getelementptr i8, ptr %4, i64 64
  %18 = getelementptr i8, ptr %4, i64 128
  %19 = getelementptr i8, ptr %4, i64 192
  %20 = getelementptr i8, ptr %8, i64 8
  %21 = getelementptr i8, ptr %8, i64 16
  %22 = getelementptr i8, ptr %8, i64 24
  %23 = getelementptr i8, ptr %10, i64 64
  %24 = getelementptr i8, ptr %10, i64 128
  %25 = getelementptr i8, ptr %10, i64 192
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %.0 = phi i32 [ %99, %loop ], [ 0, %loop.preheader ]
  %26 = phi i64 [ %100, %loop ], [ %1, %loop.preheader ]
  %27 = load <8 x i64>, ptr %14, align 8
  %28 = icmp ne <8 x i64> %27, splat (i64 -100)
  %29 = uitofp <8 x i1> %28 to <8 x float>
  %30 = load <8 x i64>, ptr %15, align 8
  %31 = icmp ne <8 x i64> %30, splat (i64 -100)
  %32 = uitofp <8 x i1> %31 to <8 x float>
  %33 = load <8 x i64>, ptr %16, align 8
  %34 = icmp ne <8 x i64> %33, splat (i64 -100)
  %35 = uitofp <8 x i1> %34 to <8 x float>
  %36 = load <8 x i64>, ptr %4, align 8
  %37 = icmp ne <8 x i64> %36, splat (i64 -100)
  %38 = uitofp <8 x i1> %37 to <8 x float>
  %39 = fadd contract <8 x float> %38, %35
  %40 = fadd contract <8 x float> %39, %32
  %41 = fadd contract <8 x float> %40, %29
  %42 = shufflevector <8 x float> %41, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %43 = shufflevector <8 x float> %41, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %44 = fadd contract <4 x float> %42, %43
  %45 = shufflevector <4 x float> %44, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %46 = shufflevector <4 x float> %44, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %47 = fadd contract <2 x float> %45, %46
  %48 = shufflevector <2 x float> %47, <2 x float> poison, <1 x i32> zeroinitializer
  %49 = shufflevector <2 x float> %47, <2 x float> poison, <1 x i32> <i32 1>
  %50 = fadd contract <1 x float> %48, %49
  %51 = extractelement <1 x float> %50, i64 0
  store float %51, ptr %12, align 4
  %52 = load <8 x i64>, ptr %4, align 8
  %53 = icmp ne <8 x i64> %52, splat (i64 -100)
  %54 = load <8 x i64>, ptr %17, align 8
  %55 = icmp ne <8 x i64> %54, splat (i64 -100)
  %56 = load <8 x i64>, ptr %18, align 8
  %57 = icmp ne <8 x i64> %56, splat (i64 -100)
  %58 = load <8 x i64>, ptr %19, align 8
  %59 = icmp ne <8 x i64> %58, splat (i64 -100)
  %60 = icmp slt <8 x i64> %52, zeroinitializer
  %61 = select <8 x i1> %60, <8 x i64> splat (i64 10), <8 x i64> %52
  %62 = select <8 x i1> %53, <8 x i64> %61, <8 x i64> zeroinitializer
  %63 = icmp ugt <8 x i64> %62, splat (i64 9)
  %64 = select <8 x i1> %63, <8 x i64> zeroinitializer, <8 x i64> %62
  %65 = getelementptr i64, ptr %6, <8 x i64> %64
  %66 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> align 8 %65, <8 x i1> splat (i1 true), <8 x i64> poison)
  %67 = icmp slt <8 x i64> %54, zeroinitializer
  %68 = select <8 x i1> %67, <8 x i64> splat (i64 10), <8 x i64> %54
  %69 = select <8 x i1> %55, <8 x i64> %68, <8 x i64> zeroinitializer
  %70 = icmp ugt <8 x i64> %69, splat (i64 9)
  %71 = select <8 x i1> %70, <8 x i64> zeroinitializer, <8 x i64> %69
  %72 = getelementptr i64, ptr %6, <8 x i64> %71
  %73 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> align 8 %72, <8 x i1> splat (i1 true), <8 x i64> poison)
  %74 = icmp slt <8 x i64> %56, zeroinitializer
  %75 = select <8 x i1> %74, <8 x i64> splat (i64 10), <8 x i64> %56
  %76 = select <8 x i1> %57, <8 x i64> %75, <8 x i64> zeroinitializer
  %77 = icmp ugt <8 x i64> %76, splat (i64 9)
  %78 = select <8 x i1> %77, <8 x i64> zeroinitializer, <8 x i64> %76
  %79 = getelementptr i64, ptr %6, <8 x i64> %78
  %80 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> align 8 %79, <8 x i1> splat (i1 true), <8 x i64> poison)
  %81 = icmp slt <8 x i64> %58, zeroinitializer
  %82 = select <8 x i1> %81, <8 x i64> splat (i64 10), <8 x i64> %58
  %83 = select <8 x i1> %59, <8 x i64> %82, <8 x i64> zeroinitializer
  %84 = icmp ugt <8 x i64> %83, splat (i64 9)
  %85 = select <8 x i1> %84, <8 x i64> zeroinitializer, <8 x i64> %83
  %86 = getelementptr i64, ptr %6, <8 x i64> %85
  %87 = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> align 8 %86, <8 x i1> splat (i1 true), <8 x i64> poison)
  %88 = zext <8 x i1> %53 to <8 x i8>
  store <8 x i8> %88, ptr %8, align 1
  %89 = zext <8 x i1> %55 to <8 x i8>
  store <8 x i8> %89, ptr %20, align 1
  %90 = zext <8 x i1> %57 to <8 x i8>
  store <8 x i8> %90, ptr %21, align 1
  %91 = zext <8 x i1> %59 to <8 x i8>
  store <8 x i8> %91, ptr %22, align 1
  store <8 x i64> %66, ptr %10, align 8
  store <8 x i64> %73, ptr %23, align 8
  store <8 x i64> %80, ptr %24, align 8
  store <8 x i64> %87, ptr %25, align 8
  %92 = bitcast <8 x i1> %84 to i8
  %.not24 = icmp eq i8 %92, 0
  %93 = bitcast <8 x i1> %63 to i8
  %.not21 = icmp eq i8 %93, 0
  %94 = bitcast <8 x i1> %70 to i8
  %.not22 = icmp eq i8 %94, 0
  %95 = bitcast <8 x i1> %77 to i8
  %.not23 = icmp eq i8 %95, 0
  %96 = select i1 %.not24, i1 %.not23, i1 false
  %97 = select i1 %96, i1 %.not22, i1 false
  %98 = select i1 %97, i1 %.not21, i1 false
  %99 = select i1 %98, i32 %.0, i32 1
  %100 = add nsw i64 %26, 1
  %.not25.not = icmp slt i64 %26, %13
  br i1 %.not25.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  %.lcssa = phi i32 [ %99, %loop ]
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  %.1 = phi i32 [ 0, %entry ], [ %.lcssa, %after.loopexit ]
  ret i32 %.1
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>) #5

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr>, <8 x i1>, <8 x i64>) #6

; Function Attrs: nounwind
define dso_local i32 @exp_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %8 = phi i64 [ %66, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %9 = phi i64 [ 0, %loop ], [ %64, %loop1 ]
  %10 = getelementptr float, ptr %4, i64 %9
  %11 = load <16 x float>, ptr %10, align 4
  %12 = fcmp contract ogt <16 x float> %11, splat (float 0x4056333340000000)
  %13 = fcmp contract olt <16 x float> %11, splat (float -1.045000e+02)
  %14 = select contract <16 x i1> %13, <16 x float> splat (float -1.045000e+02), <16 x float> %11
  %15 = select contract <16 x i1> %12, <16 x float> splat (float 0x4056333340000000), <16 x float> %14
  %16 = fmul contract <16 x float> %15, splat (float 0x3FF7154760000000)
  %17 = fadd contract <16 x float> %16, splat (float 0x4168000000000000)
  %18 = fadd contract <16 x float> %17, splat (float 0xC168000000000000)
  %19 = fmul contract <16 x float> %18, splat (float 0x3FE62E4000000000)
  %20 = fsub contract <16 x float> %15, %19
  %21 = fmul contract <16 x float> %18, splat (float 0x3EB7F7D1C0000000)
  %22 = fsub contract <16 x float> %20, %21
  %23 = fmul contract <16 x float> %22, splat (float 0x3F56D117C0000000)
  %24 = fadd contract <16 x float> %23, splat (float 0x3F8120BE20000000)
  %25 = fmul contract <16 x float> %24, %22
  %26 = fadd contract <16 x float> %25, splat (float 0x3FA5555180000000)
  %27 = fmul contract <16 x float> %26, %22
  %28 = fadd contract <16 x float> %27, splat (float 0x3FC5554DC0000000)
  %29 = fmul contract <16 x float> %28, %22
  %30 = fadd contract <16 x float> %29, splat (float 5.000000e-01)
  %31 = fmul contract <16 x float> %30, %22
  %32 = fadd contract <16 x float> %31, splat (float 1.000000e+00)
  %33 = fmul contract <16 x float> %32, %22
  %34 = fadd contract <16 x float> %33, splat (float 1.000000e+00)
  %35 = call contract <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %34, <16 x float> %18, <16 x float> %34, i16 -1, i32 4)
  %36 = getelementptr i8, ptr %10, i64 64
  %37 = load <16 x float>, ptr %36, align 4
  %38 = fcmp contract ogt <16 x float> %37, splat (float 0x4056333340000000)
  %39 = fcmp contract olt <16 x float> %37, splat (float -1.045000e+02)
  %40 = select contract <16 x i1> %39, <16 x float> splat (float -1.045000e+02), <16 x float> %37
  %41 = select contract <16 x i1> %38, <16 x float> splat (float 0x4056333340000000), <16 x float> %40
  %42 = fmul contract <16 x float> %41, splat (float 0x3FF7154760000000)
  %43 = fadd contract <16 x float> %42, splat (float 0x4168000000000000)
  %44 = fadd contract <16 x float> %43, splat (float 0xC168000000000000)
  %45 = fmul contract <16 x float> %44, splat (float 0x3FE62E4000000000)
  %46 = fsub contract <16 x float> %41, %45
  %47 = fmul contract <16 x float> %44, splat (float 0x3EB7F7D1C0000000)
  %48 = fsub contract <16 x float> %46, %47
  %49 = fmul contract <16 x float> %48, splat (float 0x3F56D117C0000000)
  %50 = fadd contract <16 x float> %49, splat (float 0x3F8120BE20000000)
  %51 = fmul contract <16 x float> %50, %48
  %52 = fadd contract <16 x float> %51, splat (float 0x3FA5555180000000)
  %53 = fmul contract <16 x float> %52, %48
  %54 = fadd contract <16 x float> %53, splat (float 0x3FC5554DC0000000)
  %55 = fmul contract <16 x float> %54, %48
  %56 = fadd contract <16 x float> %55, splat (float 5.000000e-01)
  %57 = fmul contract <16 x float> %56, %48
  %58 = fadd contract <16 x float> %57, splat (float 1.000000e+00)
  %59 = fmul contract <16 x float> %58, %48
  %60 = fadd contract <16 x float> %59, splat (float 1.000000e+00)
  %61 = call contract <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %60, <16 x float> %44, <16 x float> %60, i16 -1, i32 4)
  %62 = getelementptr float, ptr %6, i64 %9
  store <16 x float> %35, ptr %62, align 4
  %63 = getelementptr i8, ptr %62, i64 64
  store <16 x float> %61, ptr %63, align 4
  %64 = add nuw nsw i64 %9, 32
  %65 = icmp samesign ult i64 %9, 257
  br i1 %65, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %66 = add nsw i64 %8, 1
  %.not3.not = icmp slt i64 %8, %7
  br i1 %.not3.not, label %loop, label %after.loopexit
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(none)
declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32 immarg) #7

; Function Attrs: nounwind
define dso_local i32 @add_div_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  %12 = load float, ptr %4, align 4
  %13 = load float, ptr %6, align 4
  %14 = fadd contract float %12, %13
  %15 = fdiv contract float 1.000000e+00, %14
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %16 = phi i64 [ %17, %loop ], [ %1, %loop.preheader ]
  store float %14, ptr %8, align 4
  store float %15, ptr %10, align 4
  %17 = add nsw i64 %16, 1
  %.not1.not = icmp slt i64 %16, %11
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @broadcast_to_where_negative_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  %10 = load float, ptr %4, align 4
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %.splatinsert = insertelement <16 x float> poison, float %10, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  %.splat.neg = fneg contract <16 x float> %.splat
  %11 = getelementptr i8, ptr %6, i64 16
  %.splat.neg7 = fneg contract <16 x float> %.splat
  %12 = getelementptr i8, ptr %8, i64 64
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %13 = phi i64 [ %18, %loop ], [ %1, %loop.preheader ]
  %14 = load <16 x i8>, ptr %6, align 1
  %.not5 = icmp eq <16 x i8> %14, zeroinitializer
  %15 = select contract <16 x i1> %.not5, <16 x float> splat (float -0.000000e+00), <16 x float> %.splat.neg
  %16 = load <16 x i8>, ptr %11, align 1
  %.not6 = icmp eq <16 x i8> %16, zeroinitializer
  %17 = select contract <16 x i1> %.not6, <16 x float> splat (float -0.000000e+00), <16 x float> %.splat.neg7
  store <16 x float> %15, ptr %8, align 4
  store <16 x float> %17, ptr %12, align 4
  %18 = add nsw i64 %13, 1
  %.not8.not = icmp slt i64 %13, %9
  br i1 %.not8.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @sum_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %8 = phi i64 [ %27, %loop ], [ %1, %loop.preheader ]
  %.idx = mul i64 %8, 40
  %9 = getelementptr i8, ptr %4, i64 %.idx
  %10 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %9, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> poison)
  %11 = fadd contract <16 x float> %10, <float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float poison, float poison, float poison, float poison, float poison, float poison>
  %12 = shufflevector <16 x float> %11, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>, <16 x i32> <i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 8, i32 9, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %13 = shufflevector <16 x float> %11, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %14 = shufflevector <16 x float> %12, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %15 = fadd contract <8 x float> %13, %14
  %16 = shufflevector <8 x float> %15, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %17 = shufflevector <8 x float> %15, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %18 = fadd contract <4 x float> %16, %17
  %19 = shufflevector <4 x float> %18, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %20 = shufflevector <4 x float> %18, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %21 = fadd contract <2 x float> %19, %20
  %22 = shufflevector <2 x float> %21, <2 x float> poison, <1 x i32> zeroinitializer
  %23 = shufflevector <2 x float> %21, <2 x float> poison, <1 x i32> <i32 1>
  %24 = fadd contract <1 x float> %22, %23
  %25 = extractelement <1 x float> %24, i64 0
  %26 = getelementptr float, ptr %6, i64 %8
  store float %25, ptr %26, align 4
  %27 = add nsw i64 %8, 1
  %.not3.not = icmp slt i64 %8, %7
  br i1 %.not3.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @log_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %8 = getelementptr i8, ptr %4, i64 64
  %9 = getelementptr i8, ptr %6, i64 64
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %10 = phi i64 [ %95, %loop ], [ %1, %loop.preheader ]
  %11 = load <16 x float>, ptr %4, align 4
  %12 = fcmp contract olt <16 x float> %11, splat (float 0x3810000000000000)
  %13 = fmul contract <16 x float> %11, splat (float 0x4180000000000000)
  %14 = select contract <16 x i1> %12, <16 x float> %13, <16 x float> %11
  %15 = bitcast <16 x float> %14 to <16 x i32>
  %16 = add <16 x i32> %15, splat (i32 -1060439283)
  %17 = ashr <16 x i32> %16, splat (i32 23)
  %18 = and <16 x i32> %16, splat (i32 -8388608)
  %19 = sub <16 x i32> %15, %18
  %20 = bitcast <16 x i32> %19 to <16 x float>
  %21 = fadd contract <16 x float> %20, splat (float -1.000000e+00)
  %22 = sitofp <16 x i32> %17 to <16 x float>
  %23 = fadd contract <16 x float> %22, splat (float -2.500000e+01)
  %24 = select contract <16 x i1> %12, <16 x float> %23, <16 x float> %22
  %25 = fadd contract <16 x float> %21, splat (float 2.000000e+00)
  %26 = fdiv contract <16 x float> %21, %25
  %27 = fmul contract <16 x float> %26, %26
  %28 = fmul contract <16 x float> %21, %21
  %29 = fmul contract <16 x float> %28, splat (float 5.000000e-01)
  %30 = fmul contract <16 x float> %27, splat (float 0x3FC745D180000000)
  %31 = fadd contract <16 x float> %30, splat (float 0x3FCC71C720000000)
  %32 = fmul contract <16 x float> %31, %27
  %33 = fadd contract <16 x float> %32, splat (float 0x3FD24924A0000000)
  %34 = fmul contract <16 x float> %33, %27
  %35 = fadd contract <16 x float> %34, splat (float 0x3FD99999A0000000)
  %36 = fmul contract <16 x float> %35, %27
  %37 = fadd contract <16 x float> %36, splat (float 0x3FE5555560000000)
  %38 = fmul contract <16 x float> %27, %37
  %39 = fmul contract <16 x float> %24, splat (float 0x3FE62E4000000000)
  %40 = fadd contract <16 x float> %29, %38
  %41 = fmul contract <16 x float> %26, %40
  %42 = fmul contract <16 x float> %24, splat (float 0x3EB7F7D1C0000000)
  %43 = fadd contract <16 x float> %41, %42
  %44 = fsub contract <16 x float> %29, %43
  %45 = fsub contract <16 x float> %44, %21
  %46 = fsub contract <16 x float> %39, %45
  %47 = fcmp contract oeq <16 x float> %11, splat (float 0x7FF0000000000000)
  %48 = select contract <16 x i1> %47, <16 x float> splat (float 0x7FF0000000000000), <16 x float> %46
  %49 = fcmp contract oeq <16 x float> %11, zeroinitializer
  %50 = select contract <16 x i1> %49, <16 x float> splat (float 0xFFF0000000000000), <16 x float> %48
  %51 = fcmp contract ult <16 x float> %11, zeroinitializer
  %52 = select contract <16 x i1> %51, <16 x float> splat (float 0x7FF8000000000000), <16 x float> %50
  %53 = load <16 x float>, ptr %8, align 4
  %54 = fcmp contract olt <16 x float> %53, splat (float 0x3810000000000000)
  %55 = fmul contract <16 x float> %53, splat (float 0x4180000000000000)
  %56 = select contract <16 x i1> %54, <16 x float> %55, <16 x float> %53
  %57 = bitcast <16 x float> %56 to <16 x i32>
  %58 = add <16 x i32> %57, splat (i32 -1060439283)
  %59 = ashr <16 x i32> %58, splat (i32 23)
  %60 = and <16 x i32> %58, splat (i32 -8388608)
  %61 = sub <16 x i32> %57, %60
  %62 = bitcast <16 x i32> %61 to <16 x float>
  %63 = fadd contract <16 x float> %62, splat (float -1.000000e+00)
  %64 = sitofp <16 x i32> %59 to <16 x float>
  %65 = fadd contract <16 x float> %64, splat (float -2.500000e+01)
  %66 = select contract <16 x i1> %54, <16 x float> %65, <16 x float> %64
  %67 = fadd contract <16 x float> %63, splat (float 2.000000e+00)
  %68 = fdiv contract <16 x float> %63, %67
  %69 = fmul contract <16 x float> %68, %68
  %70 = fmul contract <16 x float> %63, %63
  %71 = fmul contract <16 x float> %70, splat (float 5.000000e-01)
  %72 = fmul contract <16 x float> %69, splat (float 0x3FC745D180000000)
  %73 = fadd contract <16 x float> %72, splat (float 0x3FCC71C720000000)
  %74 = fmul contract <16 x float> %73, %69
  %75 = fadd contract <16 x float> %74, splat (float 0x3FD24924A0000000)
  %76 = fmul contract <16 x float> %75, %69
  %77 = fadd contract <16 x float> %76, splat (float 0x3FD99999A0000000)
  %78 = fmul contract <16 x float> %77, %69
  %79 = fadd contract <16 x float> %78, splat (float 0x3FE5555560000000)
  %80 = fmul contract <16 x float> %69, %79
  %81 = fmul contract <16 x float> %66, splat (float 0x3FE62E4000000000)
  %82 = fadd contract <16 x float> %71, %80
  %83 = fmul contract <16 x float> %68, %82
  %84 = fmul contract <16 x float> %66, splat (float 0x3EB7F7D1C0000000)
  %85 = fadd contract <16 x float> %83, %84
  %86 = fsub contract <16 x float> %71, %85
  %87 = fsub contract <16 x float> %86, %63
  %88 = fsub contract <16 x float> %81, %87
  %89 = fcmp contract oeq <16 x float> %53, splat (float 0x7FF0000000000000)
  %90 = select contract <16 x i1> %89, <16 x float> splat (float 0x7FF0000000000000), <16 x float> %88
  %91 = fcmp contract oeq <16 x float> %53, zeroinitializer
  %92 = select contract <16 x i1> %91, <16 x float> splat (float 0xFFF0000000000000), <16 x float> %90
  %93 = fcmp contract ult <16 x float> %53, zeroinitializer
  %94 = select contract <16 x i1> %93, <16 x float> splat (float 0x7FF8000000000000), <16 x float> %92
  store <16 x float> %52, ptr %6, align 4
  store <16 x float> %94, ptr %9, align 4
  %95 = add nsw i64 %10, 1
  %.not3.not = icmp slt i64 %10, %7
  br i1 %.not3.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @sub_equal_where_sum_negative_and_7_more_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr i8, ptr %3, i64 32
  %12 = load ptr, ptr %11, align 8
  %13 = getelementptr i8, ptr %3, i64 40
  %14 = load ptr, ptr %13, align 8
  %15 = getelementptr i8, ptr %3, i64 48
  %16 = load ptr, ptr %15, align 8
  %17 = getelementptr i8, ptr %3, i64 56
  %18 = load ptr, ptr %17, align 8
  %19 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %19
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %20 = phi i64 [ %36, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %after8, %loop
  %21 = phi i64 [ 0, %loop ], [ %166, %after8 ]
  %22 = getelementptr i64, ptr %8, i64 %21
  %23 = load <8 x i64>, ptr %22, align 8
  %24 = mul nuw nsw i64 %21, 10
  %25 = getelementptr float, ptr %4, i64 %24
  %26 = getelementptr float, ptr %6, i64 %21
  %27 = load <8 x float>, ptr %26, align 4
  %28 = getelementptr i8, ptr %22, i64 64
  %29 = load <8 x i64>, ptr %28, align 8
  %30 = getelementptr i8, ptr %26, i64 32
  %31 = load <8 x float>, ptr %30, align 4
  %32 = getelementptr float, ptr %14, i64 %21
  %33 = load <8 x float>, ptr %32, align 4
  %34 = getelementptr i8, ptr %32, i64 32
  %35 = load <8 x float>, ptr %34, align 4
  br label %loop3

after2:                                           ; preds = %after8
  %36 = add nsw i64 %20, 1
  %.not26.not = icmp slt i64 %20, %19
  br i1 %.not26.not, label %loop, label %after.loopexit

loop3:                                            ; preds = %loop3, %loop1
  %.023 = phi <8 x float> [ zeroinitializer, %loop1 ], [ %53, %loop3 ]
  %.022 = phi <8 x float> [ zeroinitializer, %loop1 ], [ %55, %loop3 ]
  %.021 = phi <8 x float> [ zeroinitializer, %loop1 ], [ %57, %loop3 ]
  %.0 = phi <8 x float> [ zeroinitializer, %loop1 ], [ %46, %loop3 ]
  %37 = phi i64 [ 0, %loop1 ], [ %58, %loop3 ]
  %38 = getelementptr i64, ptr %10, i64 %37
  %39 = load i64, ptr %38, align 8
  %.splatinsert = insertelement <8 x i64> poison, i64 %39, i64 0
  %.splat = shufflevector <8 x i64> %.splatinsert, <8 x i64> poison, <8 x i32> zeroinitializer
  %40 = icmp eq <8 x i64> %23, %.splat
  %41 = getelementptr float, ptr %25, i64 %37
  %42 = getelementptr float, ptr %41, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  %43 = call contract <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %42, <8 x i1> splat (i1 true), <8 x float> poison)
  %44 = fsub contract <8 x float> %43, %27
  %45 = select contract <8 x i1> %40, <8 x float> %44, <8 x float> zeroinitializer
  %46 = fadd contract <8 x float> %.0, %45
  %47 = icmp eq <8 x i64> %29, %.splat
  %48 = getelementptr i8, ptr %41, i64 320
  %49 = getelementptr float, ptr %48, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  %50 = call contract <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %49, <8 x i1> splat (i1 true), <8 x float> poison)
  %51 = fsub contract <8 x float> %50, %31
  %52 = select contract <8 x i1> %47, <8 x float> %51, <8 x float> zeroinitializer
  %53 = fadd contract <8 x float> %.023, %52
  %54 = select contract <8 x i1> %40, <8 x float> %33, <8 x float> zeroinitializer
  %55 = fadd contract <8 x float> %.022, %54
  %56 = select contract <8 x i1> %47, <8 x float> %35, <8 x float> zeroinitializer
  %57 = fadd contract <8 x float> %.021, %56
  %58 = add nuw nsw i64 %37, 1
  %59 = icmp samesign ult i64 %37, 9
  br i1 %59, label %loop3, label %after4

after4:                                           ; preds = %loop3
  %.lcssa29 = phi <8 x float> [ %46, %loop3 ]
  %.lcssa28 = phi <8 x float> [ %53, %loop3 ]
  %.lcssa27 = phi <8 x float> [ %55, %loop3 ]
  %.lcssa = phi <8 x float> [ %57, %loop3 ]
  %60 = getelementptr i8, ptr %12, i64 %21
  %61 = load <8 x i8>, ptr %60, align 1
  %.not24 = icmp eq <8 x i8> %61, zeroinitializer
  %62 = fneg contract <8 x float> %.lcssa29
  %63 = select contract <8 x i1> %.not24, <8 x float> zeroinitializer, <8 x float> %62
  %64 = getelementptr i8, ptr %60, i64 8
  %65 = load <8 x i8>, ptr %64, align 1
  %.not25 = icmp eq <8 x i8> %65, zeroinitializer
  %66 = fneg contract <8 x float> %.lcssa28
  %67 = select contract <8 x i1> %.not25, <8 x float> zeroinitializer, <8 x float> %66
  %68 = getelementptr float, ptr %16, i64 %21
  store <8 x float> %63, ptr %68, align 4
  %69 = getelementptr i8, ptr %68, i64 32
  store <8 x float> %67, ptr %69, align 4
  %70 = getelementptr float, ptr %18, i64 %24
  br label %loop7

loop7:                                            ; preds = %loop7, %after4
  %71 = phi i64 [ 0, %after4 ], [ %164, %loop7 ]
  %72 = getelementptr i64, ptr %10, i64 %71
  %73 = load i64, ptr %72, align 8
  %.splatinsert9 = insertelement <8 x i64> poison, i64 %73, i64 0
  %.splat10 = shufflevector <8 x i64> %.splatinsert9, <8 x i64> poison, <8 x i32> zeroinitializer
  %74 = icmp eq <8 x i64> %23, %.splat10
  %75 = select contract <8 x i1> %74, <8 x float> %33, <8 x float> zeroinitializer
  %76 = getelementptr float, ptr %25, i64 %71
  %77 = getelementptr float, ptr %76, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  %78 = call contract <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %77, <8 x i1> splat (i1 true), <8 x float> poison)
  %79 = fsub contract <8 x float> %78, %27
  %80 = fcmp contract ogt <8 x float> %79, splat (float 0x4056333340000000)
  %81 = fcmp contract olt <8 x float> %79, splat (float -1.045000e+02)
  %82 = select contract <8 x i1> %81, <8 x float> splat (float -1.045000e+02), <8 x float> %79
  %83 = select contract <8 x i1> %80, <8 x float> splat (float 0x4056333340000000), <8 x float> %82
  %84 = fmul contract <8 x float> %83, splat (float 0x3FF7154760000000)
  %85 = fadd contract <8 x float> %84, splat (float 0x4168000000000000)
  %86 = fadd contract <8 x float> %85, splat (float 0xC168000000000000)
  %87 = fmul contract <8 x float> %86, splat (float 0x3FE62E4000000000)
  %88 = fsub contract <8 x float> %83, %87
  %89 = fmul contract <8 x float> %86, splat (float 0x3EB7F7D1C0000000)
  %90 = fsub contract <8 x float> %88, %89
  %91 = bitcast <8 x float> %85 to <8 x i32>
  %92 = add <8 x i32> %91, splat (i32 -1262485504)
  %93 = fmul contract <8 x float> %90, splat (float 0x3F56D117C0000000)
  %94 = fadd contract <8 x float> %93, splat (float 0x3F8120BE20000000)
  %95 = fmul contract <8 x float> %94, %90
  %96 = fadd contract <8 x float> %95, splat (float 0x3FA5555180000000)
  %97 = fmul contract <8 x float> %96, %90
  %98 = fadd contract <8 x float> %97, splat (float 0x3FC5554DC0000000)
  %99 = fmul contract <8 x float> %98, %90
  %100 = fadd contract <8 x float> %99, splat (float 5.000000e-01)
  %101 = fmul contract <8 x float> %100, %90
  %102 = fadd contract <8 x float> %101, splat (float 1.000000e+00)
  %103 = fmul contract <8 x float> %102, %90
  %104 = fadd contract <8 x float> %103, splat (float 1.000000e+00)
  %105 = ashr <8 x i32> %92, splat (i32 1)
  %106 = shl <8 x i32> %105, splat (i32 23)
  %107 = add <8 x i32> %106, splat (i32 1065353216)
  %108 = bitcast <8 x i32> %107 to <8 x float>
  %109 = fmul contract <8 x float> %104, %108
  %110 = sub <8 x i32> %91, %105
  %111 = shl <8 x i32> %110, splat (i32 23)
  %112 = add <8 x i32> %111, splat (i32 1065353216)
  %113 = bitcast <8 x i32> %112 to <8 x float>
  %114 = fmul contract <8 x float> %109, %113
  %115 = fmul contract <8 x float> %114, %.lcssa27
  %116 = fsub contract <8 x float> %75, %115
  %117 = icmp eq <8 x i64> %29, %.splat10
  %118 = select contract <8 x i1> %117, <8 x float> %35, <8 x float> zeroinitializer
  %119 = getelementptr i8, ptr %76, i64 320
  %120 = getelementptr float, ptr %119, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  %121 = call contract <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %120, <8 x i1> splat (i1 true), <8 x float> poison)
  %122 = fsub contract <8 x float> %121, %31
  %123 = fcmp contract ogt <8 x float> %122, splat (float 0x4056333340000000)
  %124 = fcmp contract olt <8 x float> %122, splat (float -1.045000e+02)
  %125 = select contract <8 x i1> %124, <8 x float> splat (float -1.045000e+02), <8 x float> %122
  %126 = select contract <8 x i1> %123, <8 x float> splat (float 0x4056333340000000), <8 x float> %125
  %127 = fmul contract <8 x float> %126, splat (float 0x3FF7154760000000)
  %128 = fadd contract <8 x float> %127, splat (float 0x4168000000000000)
  %129 = fadd contract <8 x float> %128, splat (float 0xC168000000000000)
  %130 = fmul contract <8 x float> %129, splat (float 0x3FE62E4000000000)
  %131 = fsub contract <8 x float> %126, %130
  %132 = fmul contract <8 x float> %129, splat (float 0x3EB7F7D1C0000000)
  %133 = fsub contract <8 x float> %131, %132
  %134 = bitcast <8 x float> %128 to <8 x i32>
  %135 = add <8 x i32> %134, splat (i32 -1262485504)
  %136 = fmul contract <8 x float> %133, splat (float 0x3F56D117C0000000)
  %137 = fadd contract <8 x float> %136, splat (float 0x3F8120BE20000000)
  %138 = fmul contract <8 x float> %137, %133
  %139 = fadd contract <8 x float> %138, splat (float 0x3FA5555180000000)
  %140 = fmul contract <8 x float> %139, %133
  %141 = fadd contract <8 x float> %140, splat (float 0x3FC5554DC0000000)
  %142 = fmul contract <8 x float> %141, %133
  %143 = fadd contract <8 x float> %142, splat (float 5.000000e-01)
  %144 = fmul contract <8 x float> %143, %133
  %145 = fadd contract <8 x float> %144, splat (float 1.000000e+00)
  %146 = fmul contract <8 x float> %145, %133
  %147 = fadd contract <8 x float> %146, splat (float 1.000000e+00)
  %148 = ashr <8 x i32> %135, splat (i32 1)
  %149 = shl <8 x i32> %148, splat (i32 23)
  %150 = add <8 x i32> %149, splat (i32 1065353216)
  %151 = bitcast <8 x i32> %150 to <8 x float>
  %152 = fmul contract <8 x float> %147, %151
  %153 = sub <8 x i32> %134, %148
  %154 = shl <8 x i32> %153, splat (i32 23)
  %155 = add <8 x i32> %154, splat (i32 1065353216)
  %156 = bitcast <8 x i32> %155 to <8 x float>
  %157 = fmul contract <8 x float> %152, %156
  %158 = fmul contract <8 x float> %157, %.lcssa
  %159 = fsub contract <8 x float> %118, %158
  %160 = getelementptr float, ptr %70, i64 %71
  %161 = getelementptr float, ptr %160, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  call void @llvm.masked.scatter.v8f32.v8p0(<8 x float> %116, <8 x ptr> align 4 %161, <8 x i1> splat (i1 true))
  %162 = getelementptr i8, ptr %160, i64 320
  %163 = getelementptr float, ptr %162, <8 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70>
  call void @llvm.masked.scatter.v8f32.v8p0(<8 x float> %159, <8 x ptr> align 4 %163, <8 x i1> splat (i1 true))
  %164 = add nuw nsw i64 %71, 1
  %165 = icmp samesign ult i64 %71, 9
  br i1 %165, label %loop7, label %after8

after8:                                           ; preds = %loop7
  %166 = add nuw nsw i64 %21, 16
  %167 = icmp eq i64 %21, 0
  br i1 %167, label %loop1, label %after2
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, <8 x i1>, <8 x float>) #6

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(write)
declare void @llvm.masked.scatter.v8f32.v8p0(<8 x float>, <8 x ptr>, <8 x i1>) #8

; Function Attrs: nounwind
define dso_local i32 @sum_1(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %8 = getelementptr i8, ptr %4, i64 64
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %9 = phi i64 [ %28, %loop ], [ %1, %loop.preheader ]
  %10 = load <16 x float>, ptr %8, align 4
  %11 = fadd contract <16 x float> %10, zeroinitializer
  %12 = load <16 x float>, ptr %4, align 4
  %13 = fadd contract <16 x float> %12, zeroinitializer
  %14 = fadd contract <16 x float> %13, %11
  %15 = shufflevector <16 x float> %14, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %16 = shufflevector <16 x float> %14, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %17 = fadd contract <8 x float> %15, %16
  %18 = shufflevector <8 x float> %17, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %19 = shufflevector <8 x float> %17, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %20 = fadd contract <4 x float> %18, %19
  %21 = shufflevector <4 x float> %20, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %22 = shufflevector <4 x float> %20, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %23 = fadd contract <2 x float> %21, %22
  %24 = shufflevector <2 x float> %23, <2 x float> poison, <1 x i32> zeroinitializer
  %25 = shufflevector <2 x float> %23, <2 x float> poison, <1 x i32> <i32 1>
  %26 = fadd contract <1 x float> %24, %25
  %27 = extractelement <1 x float> %26, i64 0
  store float %27, ptr %6, align 4
  %28 = add nsw i64 %9, 1
  %.not8.not = icmp slt i64 %9, %7
  br i1 %.not8.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @add_div_1(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  %12 = load float, ptr %4, align 4
  %13 = load float, ptr %6, align 4
  %14 = fadd contract float %12, %13
  %15 = load float, ptr %8, align 4
  %16 = fdiv contract float %14, %15
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  store float %16, ptr %10, align 4
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %17 = phi i64 [ %18, %loop ], [ %1, %loop.preheader ]
  %18 = add nsw i64 %17, 1
  %.not1.not = icmp slt i64 %17, %11
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @sum_2(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %8 = phi i64 [ %50, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %.034 = phi <16 x float> [ zeroinitializer, %loop ], [ %16, %loop1 ]
  %.033 = phi <16 x float> [ zeroinitializer, %loop ], [ %20, %loop1 ]
  %.032 = phi <16 x float> [ zeroinitializer, %loop ], [ %24, %loop1 ]
  %.031 = phi <16 x float> [ zeroinitializer, %loop ], [ %28, %loop1 ]
  %.030 = phi <16 x float> [ zeroinitializer, %loop ], [ %32, %loop1 ]
  %.029 = phi <16 x float> [ zeroinitializer, %loop ], [ %36, %loop1 ]
  %.028 = phi <16 x float> [ zeroinitializer, %loop ], [ %40, %loop1 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop ], [ %12, %loop1 ]
  %9 = phi i64 [ 0, %loop ], [ %41, %loop1 ]
  %.idx = mul i64 %9, 40
  %10 = getelementptr i8, ptr %4, i64 %.idx
  %11 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %10, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %12 = fadd contract <16 x float> %.0, %11
  %.idx35 = mul i64 %9, 40
  %13 = getelementptr i8, ptr %4, i64 %.idx35
  %14 = getelementptr i8, ptr %13, i64 40
  %15 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %14, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %16 = fadd contract <16 x float> %.034, %15
  %.idx36 = mul i64 %9, 40
  %17 = getelementptr i8, ptr %4, i64 %.idx36
  %18 = getelementptr i8, ptr %17, i64 80
  %19 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %18, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %20 = fadd contract <16 x float> %.033, %19
  %.idx37 = mul i64 %9, 40
  %21 = getelementptr i8, ptr %4, i64 %.idx37
  %22 = getelementptr i8, ptr %21, i64 120
  %23 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %22, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %24 = fadd contract <16 x float> %.032, %23
  %.idx38 = mul i64 %9, 40
  %25 = getelementptr i8, ptr %4, i64 %.idx38
  %26 = getelementptr i8, ptr %25, i64 160
  %27 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %26, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %28 = fadd contract <16 x float> %.031, %27
  %.idx39 = mul i64 %9, 40
  %29 = getelementptr i8, ptr %4, i64 %.idx39
  %30 = getelementptr i8, ptr %29, i64 200
  %31 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %30, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %32 = fadd contract <16 x float> %.030, %31
  %.idx40 = mul i64 %9, 40
  %33 = getelementptr i8, ptr %4, i64 %.idx40
  %34 = getelementptr i8, ptr %33, i64 240
  %35 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %34, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %36 = fadd contract <16 x float> %.029, %35
  %.idx41 = mul i64 %9, 40
  %37 = getelementptr i8, ptr %4, i64 %.idx41
  %38 = getelementptr i8, ptr %37, i64 280
  %39 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %38, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %40 = fadd contract <16 x float> %.028, %39
  %41 = add nuw nsw i64 %9, 8
  %42 = icmp samesign ult i64 %9, 17
  br i1 %42, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %.lcssa49 = phi <16 x float> [ %12, %loop1 ]
  %.lcssa48 = phi <16 x float> [ %16, %loop1 ]
  %.lcssa47 = phi <16 x float> [ %20, %loop1 ]
  %.lcssa46 = phi <16 x float> [ %24, %loop1 ]
  %.lcssa45 = phi <16 x float> [ %28, %loop1 ]
  %.lcssa44 = phi <16 x float> [ %32, %loop1 ]
  %.lcssa43 = phi <16 x float> [ %36, %loop1 ]
  %.lcssa = phi <16 x float> [ %40, %loop1 ]
  %43 = fadd contract <16 x float> %.lcssa49, %.lcssa45
  %44 = fadd contract <16 x float> %.lcssa48, %.lcssa44
  %45 = fadd contract <16 x float> %.lcssa47, %.lcssa43
  %46 = fadd contract <16 x float> %.lcssa46, %.lcssa
  %47 = fadd contract <16 x float> %43, %45
  %48 = fadd contract <16 x float> %44, %46
  %49 = fadd contract <16 x float> %47, %48
  call void @llvm.masked.store.v16f32.p0(<16 x float> %49, ptr align 4 %6, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %50 = add nsw i64 %8, 1
  %.not42.not = icmp slt i64 %8, %7
  br i1 %.not42.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @transpose_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %8 = phi i64 [ %34, %after2 ], [ %1, %loop.preheader ]
  %9 = getelementptr float, ptr %4, i64 %8
  %.idx = shl i64 %8, 12
  %10 = getelementptr i8, ptr %6, i64 %.idx
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %11 = phi i64 [ 0, %loop ], [ %32, %loop1 ]
  %.idx3 = mul i64 %11, 40
  %12 = getelementptr i8, ptr %9, i64 %.idx3
  %13 = getelementptr float, ptr %12, <16 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70, i64 80, i64 90, i64 100, i64 110, i64 120, i64 130, i64 140, i64 150>
  %14 = call contract <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %13, <16 x i1> splat (i1 true), <16 x float> poison)
  %15 = getelementptr i8, ptr %12, i64 640
  %16 = getelementptr float, ptr %15, <16 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70, i64 80, i64 90, i64 100, i64 110, i64 120, i64 130, i64 140, i64 150>
  %17 = call contract <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %16, <16 x i1> splat (i1 true), <16 x float> poison)
  %18 = getelementptr i8, ptr %12, i64 1280
  %19 = getelementptr float, ptr %18, <16 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70, i64 80, i64 90, i64 100, i64 110, i64 120, i64 130, i64 140, i64 150>
  %20 = call contract <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %19, <16 x i1> splat (i1 true), <16 x float> poison)
  %21 = getelementptr i8, ptr %12, i64 1920
  %22 = getelementptr float, ptr %21, <16 x i64> <i64 0, i64 10, i64 20, i64 30, i64 40, i64 50, i64 60, i64 70, i64 80, i64 90, i64 100, i64 110, i64 120, i64 130, i64 140, i64 150>
  %23 = call contract <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %22, <16 x i1> splat (i1 true), <16 x float> poison)
  %24 = getelementptr float, ptr %10, i64 %11
  %25 = getelementptr i8, ptr %24, i64 1024
  call void @llvm.prefetch.p0(ptr %25, i32 1, i32 3, i32 1)
  store <16 x float> %14, ptr %24, align 4
  %26 = getelementptr i8, ptr %24, i64 64
  %27 = getelementptr i8, ptr %24, i64 1088
  call void @llvm.prefetch.p0(ptr %27, i32 1, i32 3, i32 1)
  store <16 x float> %17, ptr %26, align 4
  %28 = getelementptr i8, ptr %24, i64 128
  %29 = getelementptr i8, ptr %24, i64 1152
  call void @llvm.prefetch.p0(ptr %29, i32 1, i32 3, i32 1)
  store <16 x float> %20, ptr %28, align 4
  %30 = getelementptr i8, ptr %24, i64 192
  %31 = getelementptr i8, ptr %24, i64 1216
  call void @llvm.prefetch.p0(ptr %31, i32 1, i32 3, i32 1)
  store <16 x float> %23, ptr %30, align 4
  %32 = add nuw nsw i64 %11, 64
  %33 = icmp samesign ult i64 %11, 897
  br i1 %33, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %34 = add nsw i64 %8, 1
  %.not4.not = icmp slt i64 %8, %7
  br i1 %.not4.not, label %loop, label %after.loopexit
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>) #6

; Function Attrs: nounwind
define dso_local i32 @add_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %10 = phi i64 [ %14, %loop ], [ %1, %loop.preheader ]
  %11 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> poison)
  %12 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %6, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> poison)
  %13 = fadd contract <16 x float> %11, %12
  call void @llvm.masked.store.v16f32.p0(<16 x float> %13, ptr align 4 %8, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %14 = add nsw i64 %10, 1
  %.not1.not = icmp slt i64 %10, %9
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @matmul_where_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after1
  %12 = phi i64 [ %28, %after1 ], [ %1, %loop.preheader ]
  %13 = lshr i64 %12, 2
  %14 = and i64 %12, 3
  %15 = mul nuw nsw i64 %14, 320
  %16 = call i64 @llvm.umin.i64(i64 %15, i64 704)
  %17 = icmp ult i64 %12, 20
  br i1 %17, label %then, label %else

after.loopexit:                                   ; preds = %after1
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

then:                                             ; preds = %loop
  %18 = add nuw nsw i64 %16, 256
  %.not178 = icmp samesign ugt i64 %15, %18
  %.idx179 = mul nuw nsw i64 %13, 240
  %19 = getelementptr i8, ptr %4, i64 %.idx179
  %20 = mul nuw nsw i64 %13, 6144
  %21 = getelementptr i8, ptr %8, i64 %20
  %22 = getelementptr float, ptr %10, i64 %20
  br i1 %.not178, label %after1, label %loop2.preheader

loop2.preheader:                                  ; preds = %then
  br label %loop2

else:                                             ; preds = %loop
  %23 = add nuw nsw i64 %16, 256
  %.not167 = icmp samesign ugt i64 %15, %23
  %.idx = mul i64 %13, 240
  %24 = getelementptr i8, ptr %4, i64 %.idx
  %25 = mul nuw nsw i64 %13, 6144
  %26 = getelementptr i8, ptr %8, i64 %25
  %27 = getelementptr float, ptr %10, i64 %25
  br i1 %.not167, label %after1, label %loop52.preheader

loop52.preheader:                                 ; preds = %else
  br label %loop52

after1.loopexit:                                  ; preds = %after5
  br label %after1

after1.loopexit207:                               ; preds = %after55
  br label %after1

after1:                                           ; preds = %after1.loopexit207, %after1.loopexit, %else, %then
  %28 = add nsw i64 %12, 1
  %.not206.not = icmp slt i64 %12, %11
  br i1 %.not206.not, label %loop, label %after.loopexit

loop2:                                            ; preds = %loop2.preheader, %after5
  %29 = phi i64 [ %222, %after5 ], [ %15, %loop2.preheader ]
  %30 = getelementptr float, ptr %6, i64 %29
  br label %loop4

loop4:                                            ; preds = %loop4, %loop2
  %.0166 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %41, %loop4 ]
  %.0165 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %45, %loop4 ]
  %.0164 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %49, %loop4 ]
  %.0163 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %53, %loop4 ]
  %.0162 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %55, %loop4 ]
  %.0161 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %57, %loop4 ]
  %.0160 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %59, %loop4 ]
  %.0159 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %63, %loop4 ]
  %.0158 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %65, %loop4 ]
  %.0157 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %67, %loop4 ]
  %.0156 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %69, %loop4 ]
  %.0155 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %73, %loop4 ]
  %.0154 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %75, %loop4 ]
  %.0153 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %77, %loop4 ]
  %.0152 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %79, %loop4 ]
  %.0151 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %83, %loop4 ]
  %.0150 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %85, %loop4 ]
  %.0149 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %87, %loop4 ]
  %.0148 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %89, %loop4 ]
  %.0147 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %93, %loop4 ]
  %.0146 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %95, %loop4 ]
  %.0145 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %97, %loop4 ]
  %.0144 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %99, %loop4 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %37, %loop4 ]
  %31 = phi i64 [ 0, %loop2 ], [ %100, %loop4 ]
  %32 = getelementptr float, ptr %19, i64 %31
  %33 = load float, ptr %32, align 4
  %.splatinsert = insertelement <16 x float> poison, float %33, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx180 = shl i64 %31, 12
  %34 = getelementptr i8, ptr %30, i64 %.idx180
  %35 = load <16 x float>, ptr %34, align 4
  %36 = fmul contract <16 x float> %.splat, %35
  %37 = fadd contract <16 x float> %.0, %36
  %38 = getelementptr i8, ptr %34, i64 64
  %39 = load <16 x float>, ptr %38, align 4
  %40 = fmul contract <16 x float> %.splat, %39
  %41 = fadd contract <16 x float> %.0166, %40
  %42 = getelementptr i8, ptr %34, i64 128
  %43 = load <16 x float>, ptr %42, align 4
  %44 = fmul contract <16 x float> %.splat, %43
  %45 = fadd contract <16 x float> %.0165, %44
  %46 = getelementptr i8, ptr %34, i64 192
  %47 = load <16 x float>, ptr %46, align 4
  %48 = fmul contract <16 x float> %.splat, %47
  %49 = fadd contract <16 x float> %.0164, %48
  %50 = getelementptr i8, ptr %32, i64 40
  %51 = load float, ptr %50, align 4
  %.splatinsert12 = insertelement <16 x float> poison, float %51, i64 0
  %.splat13 = shufflevector <16 x float> %.splatinsert12, <16 x float> poison, <16 x i32> zeroinitializer
  %52 = fmul contract <16 x float> %.splat13, %35
  %53 = fadd contract <16 x float> %.0163, %52
  %54 = fmul contract <16 x float> %.splat13, %39
  %55 = fadd contract <16 x float> %.0162, %54
  %56 = fmul contract <16 x float> %.splat13, %43
  %57 = fadd contract <16 x float> %.0161, %56
  %58 = fmul contract <16 x float> %.splat13, %47
  %59 = fadd contract <16 x float> %.0160, %58
  %60 = getelementptr i8, ptr %32, i64 80
  %61 = load float, ptr %60, align 4
  %.splatinsert20 = insertelement <16 x float> poison, float %61, i64 0
  %.splat21 = shufflevector <16 x float> %.splatinsert20, <16 x float> poison, <16 x i32> zeroinitializer
  %62 = fmul contract <16 x float> %.splat21, %35
  %63 = fadd contract <16 x float> %.0159, %62
  %64 = fmul contract <16 x float> %.splat21, %39
  %65 = fadd contract <16 x float> %.0158, %64
  %66 = fmul contract <16 x float> %.splat21, %43
  %67 = fadd contract <16 x float> %.0157, %66
  %68 = fmul contract <16 x float> %.splat21, %47
  %69 = fadd contract <16 x float> %.0156, %68
  %70 = getelementptr i8, ptr %32, i64 120
  %71 = load float, ptr %70, align 4
  %.splatinsert28 = insertelement <16 x float> poison, float %71, i64 0
  %.splat29 = shufflevector <16 x float> %.splatinsert28, <16 x float> poison, <16 x i32> zeroinitializer
  %72 = fmul contract <16 x float> %.splat29, %35
  %73 = fadd contract <16 x float> %.0155, %72
  %74 = fmul contract <16 x float> %.splat29, %39
  %75 = fadd contract <16 x float> %.0154, %74
  %76 = fmul contract <16 x float> %.splat29, %43
  %77 = fadd contract <16 x float> %.0153, %76
  %78 = fmul contract <16 x float> %.splat29, %47
  %79 = fadd contract <16 x float> %.0152, %78
  %80 = getelementptr i8, ptr %32, i64 160
  %81 = load float, ptr %80, align 4
  %.splatinsert36 = insertelement <16 x float> poison, float %81, i64 0
  %.splat37 = shufflevector <16 x float> %.splatinsert36, <16 x float> poison, <16 x i32> zeroinitializer
  %82 = fmul contract <16 x float> %.splat37, %35
  %83 = fadd contract <16 x float> %.0151, %82
  %84 = fmul contract <16 x float> %.splat37, %39
  %85 = fadd contract <16 x float> %.0150, %84
  %86 = fmul contract <16 x float> %.splat37, %43
  %87 = fadd contract <16 x float> %.0149, %86
  %88 = fmul contract <16 x float> %.splat37, %47
  %89 = fadd contract <16 x float> %.0148, %88
  %90 = getelementptr i8, ptr %32, i64 200
  %91 = load float, ptr %90, align 4
  %.splatinsert44 = insertelement <16 x float> poison, float %91, i64 0
  %.splat45 = shufflevector <16 x float> %.splatinsert44, <16 x float> poison, <16 x i32> zeroinitializer
  %92 = fmul contract <16 x float> %.splat45, %35
  %93 = fadd contract <16 x float> %.0147, %92
  %94 = fmul contract <16 x float> %.splat45, %39
  %95 = fadd contract <16 x float> %.0146, %94
  %96 = fmul contract <16 x float> %.splat45, %43
  %97 = fadd contract <16 x float> %.0145, %96
  %98 = fmul contract <16 x float> %.splat45, %47
  %99 = fadd contract <16 x float> %.0144, %98
  %100 = add nuw nsw i64 %31, 1
  %101 = icmp samesign ult i64 %31, 9
  br i1 %101, label %loop4, label %after5

after5:                                           ; preds = %loop4
  %.lcssa238 = phi <16 x float> [ %37, %loop4 ]
  %.lcssa237 = phi <16 x float> [ %41, %loop4 ]
  %.lcssa236 = phi <16 x float> [ %45, %loop4 ]
  %.lcssa235 = phi <16 x float> [ %49, %loop4 ]
  %.lcssa234 = phi <16 x float> [ %53, %loop4 ]
  %.lcssa233 = phi <16 x float> [ %55, %loop4 ]
  %.lcssa232 = phi <16 x float> [ %57, %loop4 ]
  %.lcssa231 = phi <16 x float> [ %59, %loop4 ]
  %.lcssa230 = phi <16 x float> [ %63, %loop4 ]
  %.lcssa229 = phi <16 x float> [ %65, %loop4 ]
  %.lcssa228 = phi <16 x float> [ %67, %loop4 ]
  %.lcssa227 = phi <16 x float> [ %69, %loop4 ]
  %.lcssa226 = phi <16 x float> [ %73, %loop4 ]
  %.lcssa225 = phi <16 x float> [ %75, %loop4 ]
  %.lcssa224 = phi <16 x float> [ %77, %loop4 ]
  %.lcssa223 = phi <16 x float> [ %79, %loop4 ]
  %.lcssa222 = phi <16 x float> [ %83, %loop4 ]
  %.lcssa221 = phi <16 x float> [ %85, %loop4 ]
  %.lcssa220 = phi <16 x float> [ %87, %loop4 ]
  %.lcssa219 = phi <16 x float> [ %89, %loop4 ]
  %.lcssa218 = phi <16 x float> [ %93, %loop4 ]
  %.lcssa217 = phi <16 x float> [ %95, %loop4 ]
  %.lcssa216 = phi <16 x float> [ %97, %loop4 ]
  %.lcssa215 = phi <16 x float> [ %99, %loop4 ]
  %102 = getelementptr i8, ptr %21, i64 %29
  %103 = load <16 x i8>, ptr %102, align 1
  %.not181 = icmp eq <16 x i8> %103, zeroinitializer
  %104 = select contract <16 x i1> %.not181, <16 x float> zeroinitializer, <16 x float> %.lcssa238
  %105 = getelementptr i8, ptr %102, i64 16
  %106 = load <16 x i8>, ptr %105, align 1
  %.not182 = icmp eq <16 x i8> %106, zeroinitializer
  %107 = select contract <16 x i1> %.not182, <16 x float> zeroinitializer, <16 x float> %.lcssa237
  %108 = getelementptr i8, ptr %102, i64 32
  %109 = load <16 x i8>, ptr %108, align 1
  %.not183 = icmp eq <16 x i8> %109, zeroinitializer
  %110 = select contract <16 x i1> %.not183, <16 x float> zeroinitializer, <16 x float> %.lcssa236
  %111 = getelementptr i8, ptr %102, i64 48
  %112 = load <16 x i8>, ptr %111, align 1
  %.not184 = icmp eq <16 x i8> %112, zeroinitializer
  %113 = select contract <16 x i1> %.not184, <16 x float> zeroinitializer, <16 x float> %.lcssa235
  %114 = getelementptr i8, ptr %102, i64 1024
  %115 = load <16 x i8>, ptr %114, align 1
  %.not185 = icmp eq <16 x i8> %115, zeroinitializer
  %116 = select contract <16 x i1> %.not185, <16 x float> zeroinitializer, <16 x float> %.lcssa234
  %117 = getelementptr i8, ptr %102, i64 1040
  %118 = load <16 x i8>, ptr %117, align 1
  %.not186 = icmp eq <16 x i8> %118, zeroinitializer
  %119 = select contract <16 x i1> %.not186, <16 x float> zeroinitializer, <16 x float> %.lcssa233
  %120 = getelementptr i8, ptr %102, i64 1056
  %121 = load <16 x i8>, ptr %120, align 1
  %.not187 = icmp eq <16 x i8> %121, zeroinitializer
  %122 = select contract <16 x i1> %.not187, <16 x float> zeroinitializer, <16 x float> %.lcssa232
  %123 = getelementptr i8, ptr %102, i64 1072
  %124 = load <16 x i8>, ptr %123, align 1
  %.not188 = icmp eq <16 x i8> %124, zeroinitializer
  %125 = select contract <16 x i1> %.not188, <16 x float> zeroinitializer, <16 x float> %.lcssa231
  %126 = getelementptr i8, ptr %102, i64 2048
  %127 = load <16 x i8>, ptr %126, align 1
  %.not189 = icmp eq <16 x i8> %127, zeroinitializer
  %128 = select contract <16 x i1> %.not189, <16 x float> zeroinitializer, <16 x float> %.lcssa230
  %129 = getelementptr i8, ptr %102, i64 2064
  %130 = load <16 x i8>, ptr %129, align 1
  %.not190 = icmp eq <16 x i8> %130, zeroinitializer
  %131 = select contract <16 x i1> %.not190, <16 x float> zeroinitializer, <16 x float> %.lcssa229
  %132 = getelementptr i8, ptr %102, i64 2080
  %133 = load <16 x i8>, ptr %132, align 1
  %.not191 = icmp eq <16 x i8> %133, zeroinitializer
  %134 = select contract <16 x i1> %.not191, <16 x float> zeroinitializer, <16 x float> %.lcssa228
  %135 = getelementptr i8, ptr %102, i64 2096
  %136 = load <16 x i8>, ptr %135, align 1
  %.not192 = icmp eq <16 x i8> %136, zeroinitializer
  %137 = select contract <16 x i1> %.not192, <16 x float> zeroinitializer, <16 x float> %.lcssa227
  %138 = getelementptr i8, ptr %102, i64 3072
  %139 = load <16 x i8>, ptr %138, align 1
  %.not193 = icmp eq <16 x i8> %139, zeroinitializer
  %140 = select contract <16 x i1> %.not193, <16 x float> zeroinitializer, <16 x float> %.lcssa226
  %141 = getelementptr i8, ptr %102, i64 3088
  %142 = load <16 x i8>, ptr %141, align 1
  %.not194 = icmp eq <16 x i8> %142, zeroinitializer
  %143 = select contract <16 x i1> %.not194, <16 x float> zeroinitializer, <16 x float> %.lcssa225
  %144 = getelementptr i8, ptr %102, i64 3104
  %145 = load <16 x i8>, ptr %144, align 1
  %.not195 = icmp eq <16 x i8> %145, zeroinitializer
  %146 = select contract <16 x i1> %.not195, <16 x float> zeroinitializer, <16 x float> %.lcssa224
  %147 = getelementptr i8, ptr %102, i64 3120
  %148 = load <16 x i8>, ptr %147, align 1
  %.not196 = icmp eq <16 x i8> %148, zeroinitializer
  %149 = select contract <16 x i1> %.not196, <16 x float> zeroinitializer, <16 x float> %.lcssa223
  %150 = getelementptr i8, ptr %102, i64 4096
  %151 = load <16 x i8>, ptr %150, align 1
  %.not197 = icmp eq <16 x i8> %151, zeroinitializer
  %152 = select contract <16 x i1> %.not197, <16 x float> zeroinitializer, <16 x float> %.lcssa222
  %153 = getelementptr i8, ptr %102, i64 4112
  %154 = load <16 x i8>, ptr %153, align 1
  %.not198 = icmp eq <16 x i8> %154, zeroinitializer
  %155 = select contract <16 x i1> %.not198, <16 x float> zeroinitializer, <16 x float> %.lcssa221
  %156 = getelementptr i8, ptr %102, i64 4128
  %157 = load <16 x i8>, ptr %156, align 1
  %.not199 = icmp eq <16 x i8> %157, zeroinitializer
  %158 = select contract <16 x i1> %.not199, <16 x float> zeroinitializer, <16 x float> %.lcssa220
  %159 = getelementptr i8, ptr %102, i64 4144
  %160 = load <16 x i8>, ptr %159, align 1
  %.not200 = icmp eq <16 x i8> %160, zeroinitializer
  %161 = select contract <16 x i1> %.not200, <16 x float> zeroinitializer, <16 x float> %.lcssa219
  %162 = getelementptr i8, ptr %102, i64 5120
  %163 = load <16 x i8>, ptr %162, align 1
  %.not201 = icmp eq <16 x i8> %163, zeroinitializer
  %164 = select contract <16 x i1> %.not201, <16 x float> zeroinitializer, <16 x float> %.lcssa218
  %165 = getelementptr i8, ptr %102, i64 5136
  %166 = load <16 x i8>, ptr %165, align 1
  %.not202 = icmp eq <16 x i8> %166, zeroinitializer
  %167 = select contract <16 x i1> %.not202, <16 x float> zeroinitializer, <16 x float> %.lcssa217
  %168 = getelementptr i8, ptr %102, i64 5152
  %169 = load <16 x i8>, ptr %168, align 1
  %.not203 = icmp eq <16 x i8> %169, zeroinitializer
  %170 = select contract <16 x i1> %.not203, <16 x float> zeroinitializer, <16 x float> %.lcssa216
  %171 = getelementptr i8, ptr %102, i64 5168
  %172 = load <16 x i8>, ptr %171, align 1
  %.not204 = icmp eq <16 x i8> %172, zeroinitializer
  %173 = select contract <16 x i1> %.not204, <16 x float> zeroinitializer, <16 x float> %.lcssa215
  %174 = getelementptr float, ptr %22, i64 %29
  %175 = getelementptr i8, ptr %174, i64 1024
  call void @llvm.prefetch.p0(ptr %175, i32 1, i32 3, i32 1)
  store <16 x float> %104, ptr %174, align 4
  %176 = getelementptr i8, ptr %174, i64 64
  %177 = getelementptr i8, ptr %174, i64 1088
  call void @llvm.prefetch.p0(ptr %177, i32 1, i32 3, i32 1)
  store <16 x float> %107, ptr %176, align 4
  %178 = getelementptr i8, ptr %174, i64 128
  %179 = getelementptr i8, ptr %174, i64 1152
  call void @llvm.prefetch.p0(ptr %179, i32 1, i32 3, i32 1)
  store <16 x float> %110, ptr %178, align 4
  %180 = getelementptr i8, ptr %174, i64 192
  %181 = getelementptr i8, ptr %174, i64 1216
  call void @llvm.prefetch.p0(ptr %181, i32 1, i32 3, i32 1)
  store <16 x float> %113, ptr %180, align 4
  %182 = getelementptr i8, ptr %174, i64 4096
  %183 = getelementptr i8, ptr %174, i64 5120
  call void @llvm.prefetch.p0(ptr %183, i32 1, i32 3, i32 1)
  store <16 x float> %116, ptr %182, align 4
  %184 = getelementptr i8, ptr %174, i64 4160
  %185 = getelementptr i8, ptr %174, i64 5184
  call void @llvm.prefetch.p0(ptr %185, i32 1, i32 3, i32 1)
  store <16 x float> %119, ptr %184, align 4
  %186 = getelementptr i8, ptr %174, i64 4224
  %187 = getelementptr i8, ptr %174, i64 5248
  call void @llvm.prefetch.p0(ptr %187, i32 1, i32 3, i32 1)
  store <16 x float> %122, ptr %186, align 4
  %188 = getelementptr i8, ptr %174, i64 4288
  %189 = getelementptr i8, ptr %174, i64 5312
  call void @llvm.prefetch.p0(ptr %189, i32 1, i32 3, i32 1)
  store <16 x float> %125, ptr %188, align 4
  %190 = getelementptr i8, ptr %174, i64 8192
  %191 = getelementptr i8, ptr %174, i64 9216
  call void @llvm.prefetch.p0(ptr %191, i32 1, i32 3, i32 1)
  store <16 x float> %128, ptr %190, align 4
  %192 = getelementptr i8, ptr %174, i64 8256
  %193 = getelementptr i8, ptr %174, i64 9280
  call void @llvm.prefetch.p0(ptr %193, i32 1, i32 3, i32 1)
  store <16 x float> %131, ptr %192, align 4
  %194 = getelementptr i8, ptr %174, i64 8320
  %195 = getelementptr i8, ptr %174, i64 9344
  call void @llvm.prefetch.p0(ptr %195, i32 1, i32 3, i32 1)
  store <16 x float> %134, ptr %194, align 4
  %196 = getelementptr i8, ptr %174, i64 8384
  %197 = getelementptr i8, ptr %174, i64 9408
  call void @llvm.prefetch.p0(ptr %197, i32 1, i32 3, i32 1)
  store <16 x float> %137, ptr %196, align 4
  %198 = getelementptr i8, ptr %174, i64 12288
  %199 = getelementptr i8, ptr %174, i64 13312
  call void @llvm.prefetch.p0(ptr %199, i32 1, i32 3, i32 1)
  store <16 x float> %140, ptr %198, align 4
  %200 = getelementptr i8, ptr %174, i64 12352
  %201 = getelementptr i8, ptr %174, i64 13376
  call void @llvm.prefetch.p0(ptr %201, i32 1, i32 3, i32 1)
  store <16 x float> %143, ptr %200, align 4
  %202 = getelementptr i8, ptr %174, i64 12416
  %203 = getelementptr i8, ptr %174, i64 13440
  call void @llvm.prefetch.p0(ptr %203, i32 1, i32 3, i32 1)
  store <16 x float> %146, ptr %202, align 4
  %204 = getelementptr i8, ptr %174, i64 12480
  %205 = getelementptr i8, ptr %174, i64 13504
  call void @llvm.prefetch.p0(ptr %205, i32 1, i32 3, i32 1)
  store <16 x float> %149, ptr %204, align 4
  %206 = getelementptr i8, ptr %174, i64 16384
  %207 = getelementptr i8, ptr %174, i64 17408
  call void @llvm.prefetch.p0(ptr %207, i32 1, i32 3, i32 1)
  store <16 x float> %152, ptr %206, align 4
  %208 = getelementptr i8, ptr %174, i64 16448
  %209 = getelementptr i8, ptr %174, i64 17472
  call void @llvm.prefetch.p0(ptr %209, i32 1, i32 3, i32 1)
  store <16 x float> %155, ptr %208, align 4
  %210 = getelementptr i8, ptr %174, i64 16512
  %211 = getelementptr i8, ptr %174, i64 17536
  call void @llvm.prefetch.p0(ptr %211, i32 1, i32 3, i32 1)
  store <16 x float> %158, ptr %210, align 4
  %212 = getelementptr i8, ptr %174, i64 16576
  %213 = getelementptr i8, ptr %174, i64 17600
  call void @llvm.prefetch.p0(ptr %213, i32 1, i32 3, i32 1)
  store <16 x float> %161, ptr %212, align 4
  %214 = getelementptr i8, ptr %174, i64 20480
  %215 = getelementptr i8, ptr %174, i64 21504
  call void @llvm.prefetch.p0(ptr %215, i32 1, i32 3, i32 1)
  store <16 x float> %164, ptr %214, align 4
  %216 = getelementptr i8, ptr %174, i64 20544
  %217 = getelementptr i8, ptr %174, i64 21568
  call void @llvm.prefetch.p0(ptr %217, i32 1, i32 3, i32 1)
  store <16 x float> %167, ptr %216, align 4
  %218 = getelementptr i8, ptr %174, i64 20608
  %219 = getelementptr i8, ptr %174, i64 21632
  call void @llvm.prefetch.p0(ptr %219, i32 1, i32 3, i32 1)
  store <16 x float> %170, ptr %218, align 4
  %220 = getelementptr i8, ptr %174, i64 20672
  %221 = getelementptr i8, ptr %174, i64 21696
  call void @llvm.prefetch.p0(ptr %221, i32 1, i32 3, i32 1)
  store <16 x float> %173, ptr %220, align 4
  %222 = add nuw nsw i64 %29, 64
  %.not205.not = icmp samesign ult i64 %29, %18
  br i1 %.not205.not, label %loop2, label %after1.loopexit

loop52:                                           ; preds = %loop52.preheader, %after55
  %223 = phi i64 [ %296, %after55 ], [ %15, %loop52.preheader ]
  %224 = getelementptr float, ptr %6, i64 %223
  br label %loop54

loop54:                                           ; preds = %loop54, %loop52
  %.0143 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %231, %loop54 ]
  %.0142 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %235, %loop54 ]
  %.0141 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %239, %loop54 ]
  %.0140 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %243, %loop54 ]
  %.0139 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %247, %loop54 ]
  %.0138 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %249, %loop54 ]
  %.0137 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %251, %loop54 ]
  %.0136 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %253, %loop54 ]
  %225 = phi i64 [ 0, %loop52 ], [ %254, %loop54 ]
  %226 = getelementptr float, ptr %24, i64 %225
  %227 = load float, ptr %226, align 4
  %.splatinsert56 = insertelement <16 x float> poison, float %227, i64 0
  %.splat57 = shufflevector <16 x float> %.splatinsert56, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx168 = shl i64 %225, 12
  %228 = getelementptr i8, ptr %224, i64 %.idx168
  %229 = load <16 x float>, ptr %228, align 4
  %230 = fmul contract <16 x float> %.splat57, %229
  %231 = fadd contract <16 x float> %.0143, %230
  %232 = getelementptr i8, ptr %228, i64 64
  %233 = load <16 x float>, ptr %232, align 4
  %234 = fmul contract <16 x float> %.splat57, %233
  %235 = fadd contract <16 x float> %.0142, %234
  %236 = getelementptr i8, ptr %228, i64 128
  %237 = load <16 x float>, ptr %236, align 4
  %238 = fmul contract <16 x float> %.splat57, %237
  %239 = fadd contract <16 x float> %.0141, %238
  %240 = getelementptr i8, ptr %228, i64 192
  %241 = load <16 x float>, ptr %240, align 4
  %242 = fmul contract <16 x float> %.splat57, %241
  %243 = fadd contract <16 x float> %.0140, %242
  %244 = getelementptr i8, ptr %226, i64 40
  %245 = load float, ptr %244, align 4
  %.splatinsert64 = insertelement <16 x float> poison, float %245, i64 0
  %.splat65 = shufflevector <16 x float> %.splatinsert64, <16 x float> poison, <16 x i32> zeroinitializer
  %246 = fmul contract <16 x float> %.splat65, %229
  %247 = fadd contract <16 x float> %.0139, %246
  %248 = fmul contract <16 x float> %.splat65, %233
  %249 = fadd contract <16 x float> %.0138, %248
  %250 = fmul contract <16 x float> %.splat65, %237
  %251 = fadd contract <16 x float> %.0137, %250
  %252 = fmul contract <16 x float> %.splat65, %241
  %253 = fadd contract <16 x float> %.0136, %252
  %254 = add nuw nsw i64 %225, 1
  %255 = icmp samesign ult i64 %225, 9
  br i1 %255, label %loop54, label %after55

after55:                                          ; preds = %loop54
  %.lcssa214 = phi <16 x float> [ %231, %loop54 ]
  %.lcssa213 = phi <16 x float> [ %235, %loop54 ]
  %.lcssa212 = phi <16 x float> [ %239, %loop54 ]
  %.lcssa211 = phi <16 x float> [ %243, %loop54 ]
  %.lcssa210 = phi <16 x float> [ %247, %loop54 ]
  %.lcssa209 = phi <16 x float> [ %249, %loop54 ]
  %.lcssa208 = phi <16 x float> [ %251, %loop54 ]
  %.lcssa = phi <16 x float> [ %253, %loop54 ]
  %256 = getelementptr i8, ptr %26, i64 %223
  %257 = load <16 x i8>, ptr %256, align 1
  %.not169 = icmp eq <16 x i8> %257, zeroinitializer
  %258 = select contract <16 x i1> %.not169, <16 x float> zeroinitializer, <16 x float> %.lcssa214
  %259 = getelementptr i8, ptr %256, i64 16
  %260 = load <16 x i8>, ptr %259, align 1
  %.not170 = icmp eq <16 x i8> %260, zeroinitializer
  %261 = select contract <16 x i1> %.not170, <16 x float> zeroinitializer, <16 x float> %.lcssa213
  %262 = getelementptr i8, ptr %256, i64 32
  %263 = load <16 x i8>, ptr %262, align 1
  %.not171 = icmp eq <16 x i8> %263, zeroinitializer
  %264 = select contract <16 x i1> %.not171, <16 x float> zeroinitializer, <16 x float> %.lcssa212
  %265 = getelementptr i8, ptr %256, i64 48
  %266 = load <16 x i8>, ptr %265, align 1
  %.not172 = icmp eq <16 x i8> %266, zeroinitializer
  %267 = select contract <16 x i1> %.not172, <16 x float> zeroinitializer, <16 x float> %.lcssa211
  %268 = getelementptr i8, ptr %256, i64 1024
  %269 = load <16 x i8>, ptr %268, align 1
  %.not173 = icmp eq <16 x i8> %269, zeroinitializer
  %270 = select contract <16 x i1> %.not173, <16 x float> zeroinitializer, <16 x float> %.lcssa210
  %271 = getelementptr i8, ptr %256, i64 1040
  %272 = load <16 x i8>, ptr %271, align 1
  %.not174 = icmp eq <16 x i8> %272, zeroinitializer
  %273 = select contract <16 x i1> %.not174, <16 x float> zeroinitializer, <16 x float> %.lcssa209
  %274 = getelementptr i8, ptr %256, i64 1056
  %275 = load <16 x i8>, ptr %274, align 1
  %.not175 = icmp eq <16 x i8> %275, zeroinitializer
  %276 = select contract <16 x i1> %.not175, <16 x float> zeroinitializer, <16 x float> %.lcssa208
  %277 = getelementptr i8, ptr %256, i64 1072
  %278 = load <16 x i8>, ptr %277, align 1
  %.not176 = icmp eq <16 x i8> %278, zeroinitializer
  %279 = select contract <16 x i1> %.not176, <16 x float> zeroinitializer, <16 x float> %.lcssa
  %280 = getelementptr float, ptr %27, i64 %223
  %281 = getelementptr i8, ptr %280, i64 1024
  call void @llvm.prefetch.p0(ptr %281, i32 1, i32 3, i32 1)
  store <16 x float> %258, ptr %280, align 4
  %282 = getelementptr i8, ptr %280, i64 64
  %283 = getelementptr i8, ptr %280, i64 1088
  call void @llvm.prefetch.p0(ptr %283, i32 1, i32 3, i32 1)
  store <16 x float> %261, ptr %282, align 4
  %284 = getelementptr i8, ptr %280, i64 128
  %285 = getelementptr i8, ptr %280, i64 1152
  call void @llvm.prefetch.p0(ptr %285, i32 1, i32 3, i32 1)
  store <16 x float> %264, ptr %284, align 4
  %286 = getelementptr i8, ptr %280, i64 192
  %287 = getelementptr i8, ptr %280, i64 1216
  call void @llvm.prefetch.p0(ptr %287, i32 1, i32 3, i32 1)
  store <16 x float> %267, ptr %286, align 4
  %288 = getelementptr i8, ptr %280, i64 4096
  %289 = getelementptr i8, ptr %280, i64 5120
  call void @llvm.prefetch.p0(ptr %289, i32 1, i32 3, i32 1)
  store <16 x float> %270, ptr %288, align 4
  %290 = getelementptr i8, ptr %280, i64 4160
  %291 = getelementptr i8, ptr %280, i64 5184
  call void @llvm.prefetch.p0(ptr %291, i32 1, i32 3, i32 1)
  store <16 x float> %273, ptr %290, align 4
  %292 = getelementptr i8, ptr %280, i64 4224
  %293 = getelementptr i8, ptr %280, i64 5248
  call void @llvm.prefetch.p0(ptr %293, i32 1, i32 3, i32 1)
  store <16 x float> %276, ptr %292, align 4
  %294 = getelementptr i8, ptr %280, i64 4288
  %295 = getelementptr i8, ptr %280, i64 5312
  call void @llvm.prefetch.p0(ptr %295, i32 1, i32 3, i32 1)
  store <16 x float> %279, ptr %294, align 4
  %296 = add nuw nsw i64 %223, 64
  %.not177.not = icmp samesign ult i64 %223, %23
  br i1 %.not177.not, label %loop52, label %after1.loopexit207
}

; Function Attrs: nounwind
define dso_local i32 @matmul_1(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %10 = phi i64 [ %57, %after2 ], [ %1, %loop.preheader ]
  %.idx = shl i64 %10, 10
  %11 = getelementptr i8, ptr %4, i64 %.idx
  %.idx40 = mul i64 %10, 320
  %12 = getelementptr i8, ptr %8, i64 %.idx40
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %.039 = phi <16 x float> [ zeroinitializer, %loop ], [ %23, %loop1 ]
  %.038 = phi <16 x float> [ zeroinitializer, %loop ], [ %27, %loop1 ]
  %.037 = phi <16 x float> [ zeroinitializer, %loop ], [ %31, %loop1 ]
  %.036 = phi <16 x float> [ zeroinitializer, %loop ], [ %35, %loop1 ]
  %.035 = phi <16 x float> [ zeroinitializer, %loop ], [ %39, %loop1 ]
  %.034 = phi <16 x float> [ zeroinitializer, %loop ], [ %43, %loop1 ]
  %.033 = phi <16 x float> [ zeroinitializer, %loop ], [ %47, %loop1 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop ], [ %19, %loop1 ]
  %13 = phi i64 [ 0, %loop ], [ %48, %loop1 ]
  %14 = getelementptr float, ptr %11, i64 %13
  %15 = load float, ptr %14, align 4
  %.splatinsert = insertelement <16 x float> poison, float %15, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx41 = mul i64 %13, 40
  %16 = getelementptr i8, ptr %6, i64 %.idx41
  %17 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %16, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> <float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float poison, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00>)
  %18 = fmul contract <16 x float> %.splat, %17
  %19 = fadd contract <16 x float> %.0, %18
  %20 = getelementptr i8, ptr %14, i64 128
  %21 = load float, ptr %20, align 4
  %.splatinsert3 = insertelement <16 x float> poison, float %21, i64 0
  %.splat4 = shufflevector <16 x float> %.splatinsert3, <16 x float> poison, <16 x i32> zeroinitializer
  %22 = fmul contract <16 x float> %.splat4, %17
  %23 = fadd contract <16 x float> %.039, %22
  %24 = getelementptr i8, ptr %14, i64 256
  %25 = load float, ptr %24, align 4
  %.splatinsert5 = insertelement <16 x float> poison, float %25, i64 0
  %.splat6 = shufflevector <16 x float> %.splatinsert5, <16 x float> poison, <16 x i32> zeroinitializer
  %26 = fmul contract <16 x float> %.splat6, %17
  %27 = fadd contract <16 x float> %.038, %26
  %28 = getelementptr i8, ptr %14, i64 384
  %29 = load float, ptr %28, align 4
  %.splatinsert7 = insertelement <16 x float> poison, float %29, i64 0
  %.splat8 = shufflevector <16 x float> %.splatinsert7, <16 x float> poison, <16 x i32> zeroinitializer
  %30 = fmul contract <16 x float> %.splat8, %17
  %31 = fadd contract <16 x float> %.037, %30
  %32 = getelementptr i8, ptr %14, i64 512
  %33 = load float, ptr %32, align 4
  %.splatinsert9 = insertelement <16 x float> poison, float %33, i64 0
  %.splat10 = shufflevector <16 x float> %.splatinsert9, <16 x float> poison, <16 x i32> zeroinitializer
  %34 = fmul contract <16 x float> %.splat10, %17
  %35 = fadd contract <16 x float> %.036, %34
  %36 = getelementptr i8, ptr %14, i64 640
  %37 = load float, ptr %36, align 4
  %.splatinsert11 = insertelement <16 x float> poison, float %37, i64 0
  %.splat12 = shufflevector <16 x float> %.splatinsert11, <16 x float> poison, <16 x i32> zeroinitializer
  %38 = fmul contract <16 x float> %.splat12, %17
  %39 = fadd contract <16 x float> %.035, %38
  %40 = getelementptr i8, ptr %14, i64 768
  %41 = load float, ptr %40, align 4
  %.splatinsert13 = insertelement <16 x float> poison, float %41, i64 0
  %.splat14 = shufflevector <16 x float> %.splatinsert13, <16 x float> poison, <16 x i32> zeroinitializer
  %42 = fmul contract <16 x float> %.splat14, %17
  %43 = fadd contract <16 x float> %.034, %42
  %44 = getelementptr i8, ptr %14, i64 896
  %45 = load float, ptr %44, align 4
  %.splatinsert15 = insertelement <16 x float> poison, float %45, i64 0
  %.splat16 = shufflevector <16 x float> %.splatinsert15, <16 x float> poison, <16 x i32> zeroinitializer
  %46 = fmul contract <16 x float> %.splat16, %17
  %47 = fadd contract <16 x float> %.033, %46
  %48 = add nuw nsw i64 %13, 1
  %49 = icmp samesign ult i64 %13, 31
  br i1 %49, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %.lcssa49 = phi <16 x float> [ %19, %loop1 ]
  %.lcssa48 = phi <16 x float> [ %23, %loop1 ]
  %.lcssa47 = phi <16 x float> [ %27, %loop1 ]
  %.lcssa46 = phi <16 x float> [ %31, %loop1 ]
  %.lcssa45 = phi <16 x float> [ %35, %loop1 ]
  %.lcssa44 = phi <16 x float> [ %39, %loop1 ]
  %.lcssa43 = phi <16 x float> [ %43, %loop1 ]
  %.lcssa = phi <16 x float> [ %47, %loop1 ]
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa49, ptr align 4 %12, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %50 = getelementptr i8, ptr %12, i64 40
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa48, ptr align 4 %50, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %51 = getelementptr i8, ptr %12, i64 80
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa47, ptr align 4 %51, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %52 = getelementptr i8, ptr %12, i64 120
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa46, ptr align 4 %52, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %53 = getelementptr i8, ptr %12, i64 160
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa45, ptr align 4 %53, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %54 = getelementptr i8, ptr %12, i64 200
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa44, ptr align 4 %54, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %55 = getelementptr i8, ptr %12, i64 240
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa43, ptr align 4 %55, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %56 = getelementptr i8, ptr %12, i64 280
  call void @llvm.masked.store.v16f32.p0(<16 x float> %.lcssa, ptr align 4 %56, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %57 = add nsw i64 %10, 1
  %.not42.not = icmp slt i64 %10, %9
  br i1 %.not42.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @sum_3(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %8 = phi i64 [ %14, %after2 ], [ %1, %loop.preheader ]
  %9 = shl nsw i64 %8, 9
  %10 = call i64 @llvm.smin.i64(i64 %9, i64 512)
  %11 = or disjoint i64 %10, 384
  %.not28 = icmp sgt i64 %9, %11
  br i1 %.not28, label %after2, label %loop1.preheader

loop1.preheader:                                  ; preds = %loop
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1.preheader, %after4
  %12 = phi i64 [ %50, %after4 ], [ %9, %loop1.preheader ]
  %13 = getelementptr float, ptr %4, i64 %12
  br label %loop3

after2.loopexit:                                  ; preds = %after4
  br label %after2

after2:                                           ; preds = %after2.loopexit, %loop
  %14 = add nsw i64 %8, 1
  %.not30.not = icmp slt i64 %8, %7
  br i1 %.not30.not, label %loop, label %after.loopexit

loop3:                                            ; preds = %loop3, %loop1
  %.027 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %21, %loop3 ]
  %.026 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %24, %loop3 ]
  %.025 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %27, %loop3 ]
  %.024 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %30, %loop3 ]
  %.023 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %33, %loop3 ]
  %.022 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %36, %loop3 ]
  %.021 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %39, %loop3 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop1 ], [ %18, %loop3 ]
  %15 = phi i64 [ 0, %loop1 ], [ %40, %loop3 ]
  %.idx = shl i64 %15, 12
  %16 = getelementptr i8, ptr %13, i64 %.idx
  %17 = load <16 x float>, ptr %16, align 4
  %18 = fadd contract <16 x float> %.0, %17
  %19 = getelementptr i8, ptr %16, i64 64
  %20 = load <16 x float>, ptr %19, align 4
  %21 = fadd contract <16 x float> %.027, %20
  %22 = getelementptr i8, ptr %16, i64 128
  %23 = load <16 x float>, ptr %22, align 4
  %24 = fadd contract <16 x float> %.026, %23
  %25 = getelementptr i8, ptr %16, i64 192
  %26 = load <16 x float>, ptr %25, align 4
  %27 = fadd contract <16 x float> %.025, %26
  %28 = getelementptr i8, ptr %16, i64 256
  %29 = load <16 x float>, ptr %28, align 4
  %30 = fadd contract <16 x float> %.024, %29
  %31 = getelementptr i8, ptr %16, i64 320
  %32 = load <16 x float>, ptr %31, align 4
  %33 = fadd contract <16 x float> %.023, %32
  %34 = getelementptr i8, ptr %16, i64 384
  %35 = load <16 x float>, ptr %34, align 4
  %36 = fadd contract <16 x float> %.022, %35
  %37 = getelementptr i8, ptr %16, i64 448
  %38 = load <16 x float>, ptr %37, align 4
  %39 = fadd contract <16 x float> %.021, %38
  %40 = add nuw nsw i64 %15, 1
  %41 = icmp samesign ult i64 %15, 31
  br i1 %41, label %loop3, label %after4

after4:                                           ; preds = %loop3
  %.lcssa37 = phi <16 x float> [ %18, %loop3 ]
  %.lcssa36 = phi <16 x float> [ %21, %loop3 ]
  %.lcssa35 = phi <16 x float> [ %24, %loop3 ]
  %.lcssa34 = phi <16 x float> [ %27, %loop3 ]
  %.lcssa33 = phi <16 x float> [ %30, %loop3 ]
  %.lcssa32 = phi <16 x float> [ %33, %loop3 ]
  %.lcssa31 = phi <16 x float> [ %36, %loop3 ]
  %.lcssa = phi <16 x float> [ %39, %loop3 ]
  %42 = getelementptr float, ptr %6, i64 %12
  store <16 x float> %.lcssa37, ptr %42, align 4
  %43 = getelementptr i8, ptr %42, i64 64
  store <16 x float> %.lcssa36, ptr %43, align 4
  %44 = getelementptr i8, ptr %42, i64 128
  store <16 x float> %.lcssa35, ptr %44, align 4
  %45 = getelementptr i8, ptr %42, i64 192
  store <16 x float> %.lcssa34, ptr %45, align 4
  %46 = getelementptr i8, ptr %42, i64 256
  store <16 x float> %.lcssa33, ptr %46, align 4
  %47 = getelementptr i8, ptr %42, i64 320
  store <16 x float> %.lcssa32, ptr %47, align 4
  %48 = getelementptr i8, ptr %42, i64 384
  store <16 x float> %.lcssa31, ptr %48, align 4
  %49 = getelementptr i8, ptr %42, i64 448
  store <16 x float> %.lcssa, ptr %49, align 4
  %50 = add nsw i64 %12, 128
  %.not29.not = icmp slt i64 %12, %11
  br i1 %.not29.not, label %loop1, label %after2.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @add_1(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %10 = phi i64 [ %38, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %11 = phi i64 [ 0, %loop ], [ %36, %loop1 ]
  %12 = getelementptr float, ptr %4, i64 %11
  %13 = load <16 x float>, ptr %12, align 4
  %14 = getelementptr float, ptr %6, i64 %11
  %15 = load <16 x float>, ptr %14, align 4
  %16 = fadd contract <16 x float> %13, %15
  %17 = getelementptr i8, ptr %12, i64 64
  %18 = load <16 x float>, ptr %17, align 4
  %19 = getelementptr i8, ptr %14, i64 64
  %20 = load <16 x float>, ptr %19, align 4
  %21 = fadd contract <16 x float> %18, %20
  %22 = getelementptr i8, ptr %12, i64 128
  %23 = load <16 x float>, ptr %22, align 4
  %24 = getelementptr i8, ptr %14, i64 128
  %25 = load <16 x float>, ptr %24, align 4
  %26 = fadd contract <16 x float> %23, %25
  %27 = getelementptr i8, ptr %12, i64 192
  %28 = load <16 x float>, ptr %27, align 4
  %29 = getelementptr i8, ptr %14, i64 192
  %30 = load <16 x float>, ptr %29, align 4
  %31 = fadd contract <16 x float> %28, %30
  %32 = getelementptr float, ptr %8, i64 %11
  store <16 x float> %16, ptr %32, align 4
  %33 = getelementptr i8, ptr %32, i64 64
  store <16 x float> %21, ptr %33, align 4
  %34 = getelementptr i8, ptr %32, i64 128
  store <16 x float> %26, ptr %34, align 4
  %35 = getelementptr i8, ptr %32, i64 192
  store <16 x float> %31, ptr %35, align 4
  %36 = add nuw nsw i64 %11, 64
  %37 = icmp samesign ult i64 %11, 897
  br i1 %37, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %38 = add nsw i64 %10, 1
  %.not3.not = icmp slt i64 %10, %9
  br i1 %.not3.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @transpose_matmul_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after1
  %10 = phi i64 [ %20, %after1 ], [ %1, %loop.preheader ]
  %11 = lshr i64 %10, 3
  %12 = shl i64 %10, 7
  %13 = and i64 %12, 896
  %14 = mul nuw nsw i64 %11, 6
  %15 = icmp ult i64 %10, 1040
  br i1 %15, label %then, label %else

after.loopexit:                                   ; preds = %after1
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

then:                                             ; preds = %loop
  %16 = getelementptr float, ptr %4, i64 %14
  %.idx210 = mul nuw nsw i64 %11, 24576
  %17 = getelementptr i8, ptr %8, i64 %.idx210
  br label %loop2

else:                                             ; preds = %loop
  %18 = getelementptr float, ptr %4, i64 %14
  %.idx = mul i64 %11, 24576
  %19 = getelementptr i8, ptr %8, i64 %.idx
  br label %loop52

after1.loopexit:                                  ; preds = %after5
  br label %after1

after1.loopexit215:                               ; preds = %after55
  br label %after1

after1:                                           ; preds = %after1.loopexit215, %after1.loopexit
  %20 = add nsw i64 %10, 1
  %.not214.not = icmp slt i64 %10, %9
  br i1 %.not214.not, label %loop, label %after.loopexit

loop2:                                            ; preds = %then, %after5
  %21 = phi i64 [ %13, %then ], [ %142, %after5 ]
  %22 = getelementptr float, ptr %6, i64 %21
  br label %loop4

loop4:                                            ; preds = %loop4, %loop2
  %.0206 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %33, %loop4 ]
  %.0205 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %37, %loop4 ]
  %.0204 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %41, %loop4 ]
  %.0203 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %45, %loop4 ]
  %.0202 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %47, %loop4 ]
  %.0201 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %49, %loop4 ]
  %.0200 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %51, %loop4 ]
  %.0199 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %55, %loop4 ]
  %.0198 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %57, %loop4 ]
  %.0197 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %59, %loop4 ]
  %.0196 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %61, %loop4 ]
  %.0195 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %65, %loop4 ]
  %.0194 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %67, %loop4 ]
  %.0193 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %69, %loop4 ]
  %.0192 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %71, %loop4 ]
  %.0191 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %75, %loop4 ]
  %.0190 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %77, %loop4 ]
  %.0189 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %79, %loop4 ]
  %.0188 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %81, %loop4 ]
  %.0187 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %85, %loop4 ]
  %.0186 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %87, %loop4 ]
  %.0185 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %89, %loop4 ]
  %.0184 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %91, %loop4 ]
  %.0 = phi <16 x float> [ zeroinitializer, %loop2 ], [ %29, %loop4 ]
  %23 = phi i64 [ 0, %loop2 ], [ %92, %loop4 ]
  %.idx211 = mul i64 %23, 3136
  %24 = getelementptr i8, ptr %16, i64 %.idx211
  %25 = load float, ptr %24, align 4
  %.splatinsert = insertelement <16 x float> poison, float %25, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx212 = shl i64 %23, 12
  %26 = getelementptr i8, ptr %22, i64 %.idx212
  %27 = load <16 x float>, ptr %26, align 4
  %28 = fmul contract <16 x float> %.splat, %27
  %29 = fadd contract <16 x float> %.0, %28
  %30 = getelementptr i8, ptr %26, i64 64
  %31 = load <16 x float>, ptr %30, align 4
  %32 = fmul contract <16 x float> %.splat, %31
  %33 = fadd contract <16 x float> %.0206, %32
  %34 = getelementptr i8, ptr %26, i64 128
  %35 = load <16 x float>, ptr %34, align 4
  %36 = fmul contract <16 x float> %.splat, %35
  %37 = fadd contract <16 x float> %.0205, %36
  %38 = getelementptr i8, ptr %26, i64 192
  %39 = load <16 x float>, ptr %38, align 4
  %40 = fmul contract <16 x float> %.splat, %39
  %41 = fadd contract <16 x float> %.0204, %40
  %42 = getelementptr i8, ptr %24, i64 4
  %43 = load float, ptr %42, align 4
  %.splatinsert12 = insertelement <16 x float> poison, float %43, i64 0
  %.splat13 = shufflevector <16 x float> %.splatinsert12, <16 x float> poison, <16 x i32> zeroinitializer
  %44 = fmul contract <16 x float> %.splat13, %27
  %45 = fadd contract <16 x float> %.0203, %44
  %46 = fmul contract <16 x float> %.splat13, %31
  %47 = fadd contract <16 x float> %.0202, %46
  %48 = fmul contract <16 x float> %.splat13, %35
  %49 = fadd contract <16 x float> %.0201, %48
  %50 = fmul contract <16 x float> %.splat13, %39
  %51 = fadd contract <16 x float> %.0200, %50
  %52 = getelementptr i8, ptr %24, i64 8
  %53 = load float, ptr %52, align 4
  %.splatinsert20 = insertelement <16 x float> poison, float %53, i64 0
  %.splat21 = shufflevector <16 x float> %.splatinsert20, <16 x float> poison, <16 x i32> zeroinitializer
  %54 = fmul contract <16 x float> %.splat21, %27
  %55 = fadd contract <16 x float> %.0199, %54
  %56 = fmul contract <16 x float> %.splat21, %31
  %57 = fadd contract <16 x float> %.0198, %56
  %58 = fmul contract <16 x float> %.splat21, %35
  %59 = fadd contract <16 x float> %.0197, %58
  %60 = fmul contract <16 x float> %.splat21, %39
  %61 = fadd contract <16 x float> %.0196, %60
  %62 = getelementptr i8, ptr %24, i64 12
  %63 = load float, ptr %62, align 4
  %.splatinsert28 = insertelement <16 x float> poison, float %63, i64 0
  %.splat29 = shufflevector <16 x float> %.splatinsert28, <16 x float> poison, <16 x i32> zeroinitializer
  %64 = fmul contract <16 x float> %.splat29, %27
  %65 = fadd contract <16 x float> %.0195, %64
  %66 = fmul contract <16 x float> %.splat29, %31
  %67 = fadd contract <16 x float> %.0194, %66
  %68 = fmul contract <16 x float> %.splat29, %35
  %69 = fadd contract <16 x float> %.0193, %68
  %70 = fmul contract <16 x float> %.splat29, %39
  %71 = fadd contract <16 x float> %.0192, %70
  %72 = getelementptr i8, ptr %24, i64 16
  %73 = load float, ptr %72, align 4
  %.splatinsert36 = insertelement <16 x float> poison, float %73, i64 0
  %.splat37 = shufflevector <16 x float> %.splatinsert36, <16 x float> poison, <16 x i32> zeroinitializer
  %74 = fmul contract <16 x float> %.splat37, %27
  %75 = fadd contract <16 x float> %.0191, %74
  %76 = fmul contract <16 x float> %.splat37, %31
  %77 = fadd contract <16 x float> %.0190, %76
  %78 = fmul contract <16 x float> %.splat37, %35
  %79 = fadd contract <16 x float> %.0189, %78
  %80 = fmul contract <16 x float> %.splat37, %39
  %81 = fadd contract <16 x float> %.0188, %80
  %82 = getelementptr i8, ptr %24, i64 20
  %83 = load float, ptr %82, align 4
  %.splatinsert44 = insertelement <16 x float> poison, float %83, i64 0
  %.splat45 = shufflevector <16 x float> %.splatinsert44, <16 x float> poison, <16 x i32> zeroinitializer
  %84 = fmul contract <16 x float> %.splat45, %27
  %85 = fadd contract <16 x float> %.0187, %84
  %86 = fmul contract <16 x float> %.splat45, %31
  %87 = fadd contract <16 x float> %.0186, %86
  %88 = fmul contract <16 x float> %.splat45, %35
  %89 = fadd contract <16 x float> %.0185, %88
  %90 = fmul contract <16 x float> %.splat45, %39
  %91 = fadd contract <16 x float> %.0184, %90
  %92 = add nuw nsw i64 %23, 1
  %93 = icmp samesign ult i64 %23, 31
  br i1 %93, label %loop4, label %after5

after5:                                           ; preds = %loop4
  %.lcssa254 = phi <16 x float> [ %29, %loop4 ]
  %.lcssa253 = phi <16 x float> [ %33, %loop4 ]
  %.lcssa252 = phi <16 x float> [ %37, %loop4 ]
  %.lcssa251 = phi <16 x float> [ %41, %loop4 ]
  %.lcssa250 = phi <16 x float> [ %45, %loop4 ]
  %.lcssa249 = phi <16 x float> [ %47, %loop4 ]
  %.lcssa248 = phi <16 x float> [ %49, %loop4 ]
  %.lcssa247 = phi <16 x float> [ %51, %loop4 ]
  %.lcssa246 = phi <16 x float> [ %55, %loop4 ]
  %.lcssa245 = phi <16 x float> [ %57, %loop4 ]
  %.lcssa244 = phi <16 x float> [ %59, %loop4 ]
  %.lcssa243 = phi <16 x float> [ %61, %loop4 ]
  %.lcssa242 = phi <16 x float> [ %65, %loop4 ]
  %.lcssa241 = phi <16 x float> [ %67, %loop4 ]
  %.lcssa240 = phi <16 x float> [ %69, %loop4 ]
  %.lcssa239 = phi <16 x float> [ %71, %loop4 ]
  %.lcssa238 = phi <16 x float> [ %75, %loop4 ]
  %.lcssa237 = phi <16 x float> [ %77, %loop4 ]
  %.lcssa236 = phi <16 x float> [ %79, %loop4 ]
  %.lcssa235 = phi <16 x float> [ %81, %loop4 ]
  %.lcssa234 = phi <16 x float> [ %85, %loop4 ]
  %.lcssa233 = phi <16 x float> [ %87, %loop4 ]
  %.lcssa232 = phi <16 x float> [ %89, %loop4 ]
  %.lcssa231 = phi <16 x float> [ %91, %loop4 ]
  %94 = getelementptr float, ptr %17, i64 %21
  %95 = getelementptr i8, ptr %94, i64 1024
  call void @llvm.prefetch.p0(ptr %95, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa254, ptr %94, align 4
  %96 = getelementptr i8, ptr %94, i64 64
  %97 = getelementptr i8, ptr %94, i64 1088
  call void @llvm.prefetch.p0(ptr %97, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa253, ptr %96, align 4
  %98 = getelementptr i8, ptr %94, i64 128
  %99 = getelementptr i8, ptr %94, i64 1152
  call void @llvm.prefetch.p0(ptr %99, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa252, ptr %98, align 4
  %100 = getelementptr i8, ptr %94, i64 192
  %101 = getelementptr i8, ptr %94, i64 1216
  call void @llvm.prefetch.p0(ptr %101, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa251, ptr %100, align 4
  %102 = getelementptr i8, ptr %94, i64 4096
  %103 = getelementptr i8, ptr %94, i64 5120
  call void @llvm.prefetch.p0(ptr %103, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa250, ptr %102, align 4
  %104 = getelementptr i8, ptr %94, i64 4160
  %105 = getelementptr i8, ptr %94, i64 5184
  call void @llvm.prefetch.p0(ptr %105, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa249, ptr %104, align 4
  %106 = getelementptr i8, ptr %94, i64 4224
  %107 = getelementptr i8, ptr %94, i64 5248
  call void @llvm.prefetch.p0(ptr %107, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa248, ptr %106, align 4
  %108 = getelementptr i8, ptr %94, i64 4288
  %109 = getelementptr i8, ptr %94, i64 5312
  call void @llvm.prefetch.p0(ptr %109, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa247, ptr %108, align 4
  %110 = getelementptr i8, ptr %94, i64 8192
  %111 = getelementptr i8, ptr %94, i64 9216
  call void @llvm.prefetch.p0(ptr %111, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa246, ptr %110, align 4
  %112 = getelementptr i8, ptr %94, i64 8256
  %113 = getelementptr i8, ptr %94, i64 9280
  call void @llvm.prefetch.p0(ptr %113, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa245, ptr %112, align 4
  %114 = getelementptr i8, ptr %94, i64 8320
  %115 = getelementptr i8, ptr %94, i64 9344
  call void @llvm.prefetch.p0(ptr %115, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa244, ptr %114, align 4
  %116 = getelementptr i8, ptr %94, i64 8384
  %117 = getelementptr i8, ptr %94, i64 9408
  call void @llvm.prefetch.p0(ptr %117, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa243, ptr %116, align 4
  %118 = getelementptr i8, ptr %94, i64 12288
  %119 = getelementptr i8, ptr %94, i64 13312
  call void @llvm.prefetch.p0(ptr %119, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa242, ptr %118, align 4
  %120 = getelementptr i8, ptr %94, i64 12352
  %121 = getelementptr i8, ptr %94, i64 13376
  call void @llvm.prefetch.p0(ptr %121, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa241, ptr %120, align 4
  %122 = getelementptr i8, ptr %94, i64 12416
  %123 = getelementptr i8, ptr %94, i64 13440
  call void @llvm.prefetch.p0(ptr %123, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa240, ptr %122, align 4
  %124 = getelementptr i8, ptr %94, i64 12480
  %125 = getelementptr i8, ptr %94, i64 13504
  call void @llvm.prefetch.p0(ptr %125, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa239, ptr %124, align 4
  %126 = getelementptr i8, ptr %94, i64 16384
  %127 = getelementptr i8, ptr %94, i64 17408
  call void @llvm.prefetch.p0(ptr %127, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa238, ptr %126, align 4
  %128 = getelementptr i8, ptr %94, i64 16448
  %129 = getelementptr i8, ptr %94, i64 17472
  call void @llvm.prefetch.p0(ptr %129, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa237, ptr %128, align 4
  %130 = getelementptr i8, ptr %94, i64 16512
  %131 = getelementptr i8, ptr %94, i64 17536
  call void @llvm.prefetch.p0(ptr %131, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa236, ptr %130, align 4
  %132 = getelementptr i8, ptr %94, i64 16576
  %133 = getelementptr i8, ptr %94, i64 17600
  call void @llvm.prefetch.p0(ptr %133, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa235, ptr %132, align 4
  %134 = getelementptr i8, ptr %94, i64 20480
  %135 = getelementptr i8, ptr %94, i64 21504
  call void @llvm.prefetch.p0(ptr %135, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa234, ptr %134, align 4
  %136 = getelementptr i8, ptr %94, i64 20544
  %137 = getelementptr i8, ptr %94, i64 21568
  call void @llvm.prefetch.p0(ptr %137, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa233, ptr %136, align 4
  %138 = getelementptr i8, ptr %94, i64 20608
  %139 = getelementptr i8, ptr %94, i64 21632
  call void @llvm.prefetch.p0(ptr %139, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa232, ptr %138, align 4
  %140 = getelementptr i8, ptr %94, i64 20672
  %141 = getelementptr i8, ptr %94, i64 21696
  call void @llvm.prefetch.p0(ptr %141, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa231, ptr %140, align 4
  %142 = add nuw nsw i64 %21, 64
  %.not213 = icmp samesign ugt i64 %21, %13
  br i1 %.not213, label %after1.loopexit, label %loop2

loop52:                                           ; preds = %else, %after55
  %143 = phi i64 [ %13, %else ], [ %228, %after55 ]
  %144 = getelementptr float, ptr %6, i64 %143
  br label %loop54

loop54:                                           ; preds = %loop54, %loop52
  %.0183 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %151, %loop54 ]
  %.0182 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %155, %loop54 ]
  %.0181 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %159, %loop54 ]
  %.0180 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %163, %loop54 ]
  %.0179 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %167, %loop54 ]
  %.0178 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %169, %loop54 ]
  %.0177 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %171, %loop54 ]
  %.0176 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %173, %loop54 ]
  %.0175 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %177, %loop54 ]
  %.0174 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %179, %loop54 ]
  %.0173 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %181, %loop54 ]
  %.0172 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %183, %loop54 ]
  %.0171 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %187, %loop54 ]
  %.0170 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %189, %loop54 ]
  %.0169 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %191, %loop54 ]
  %.0168 = phi <16 x float> [ zeroinitializer, %loop52 ], [ %193, %loop54 ]
  %145 = phi i64 [ 0, %loop52 ], [ %194, %loop54 ]
  %.idx207 = mul i64 %145, 3136
  %146 = getelementptr i8, ptr %18, i64 %.idx207
  %147 = load float, ptr %146, align 4
  %.splatinsert56 = insertelement <16 x float> poison, float %147, i64 0
  %.splat57 = shufflevector <16 x float> %.splatinsert56, <16 x float> poison, <16 x i32> zeroinitializer
  %.idx208 = shl i64 %145, 12
  %148 = getelementptr i8, ptr %144, i64 %.idx208
  %149 = load <16 x float>, ptr %148, align 4
  %150 = fmul contract <16 x float> %.splat57, %149
  %151 = fadd contract <16 x float> %.0183, %150
  %152 = getelementptr i8, ptr %148, i64 64
  %153 = load <16 x float>, ptr %152, align 4
  %154 = fmul contract <16 x float> %.splat57, %153
  %155 = fadd contract <16 x float> %.0182, %154
  %156 = getelementptr i8, ptr %148, i64 128
  %157 = load <16 x float>, ptr %156, align 4
  %158 = fmul contract <16 x float> %.splat57, %157
  %159 = fadd contract <16 x float> %.0181, %158
  %160 = getelementptr i8, ptr %148, i64 192
  %161 = load <16 x float>, ptr %160, align 4
  %162 = fmul contract <16 x float> %.splat57, %161
  %163 = fadd contract <16 x float> %.0180, %162
  %164 = getelementptr i8, ptr %146, i64 4
  %165 = load float, ptr %164, align 4
  %.splatinsert64 = insertelement <16 x float> poison, float %165, i64 0
  %.splat65 = shufflevector <16 x float> %.splatinsert64, <16 x float> poison, <16 x i32> zeroinitializer
  %166 = fmul contract <16 x float> %.splat65, %149
  %167 = fadd contract <16 x float> %.0179, %166
  %168 = fmul contract <16 x float> %.splat65, %153
  %169 = fadd contract <16 x float> %.0178, %168
  %170 = fmul contract <16 x float> %.splat65, %157
  %171 = fadd contract <16 x float> %.0177, %170
  %172 = fmul contract <16 x float> %.splat65, %161
  %173 = fadd contract <16 x float> %.0176, %172
  %174 = getelementptr i8, ptr %146, i64 8
  %175 = load float, ptr %174, align 4
  %.splatinsert72 = insertelement <16 x float> poison, float %175, i64 0
  %.splat73 = shufflevector <16 x float> %.splatinsert72, <16 x float> poison, <16 x i32> zeroinitializer
  %176 = fmul contract <16 x float> %.splat73, %149
  %177 = fadd contract <16 x float> %.0175, %176
  %178 = fmul contract <16 x float> %.splat73, %153
  %179 = fadd contract <16 x float> %.0174, %178
  %180 = fmul contract <16 x float> %.splat73, %157
  %181 = fadd contract <16 x float> %.0173, %180
  %182 = fmul contract <16 x float> %.splat73, %161
  %183 = fadd contract <16 x float> %.0172, %182
  %184 = getelementptr i8, ptr %146, i64 12
  %185 = load float, ptr %184, align 4
  %.splatinsert80 = insertelement <16 x float> poison, float %185, i64 0
  %.splat81 = shufflevector <16 x float> %.splatinsert80, <16 x float> poison, <16 x i32> zeroinitializer
  %186 = fmul contract <16 x float> %.splat81, %149
  %187 = fadd contract <16 x float> %.0171, %186
  %188 = fmul contract <16 x float> %.splat81, %153
  %189 = fadd contract <16 x float> %.0170, %188
  %190 = fmul contract <16 x float> %.splat81, %157
  %191 = fadd contract <16 x float> %.0169, %190
  %192 = fmul contract <16 x float> %.splat81, %161
  %193 = fadd contract <16 x float> %.0168, %192
  %194 = add nuw nsw i64 %145, 1
  %195 = icmp samesign ult i64 %145, 31
  br i1 %195, label %loop54, label %after55

after55:                                          ; preds = %loop54
  %.lcssa230 = phi <16 x float> [ %151, %loop54 ]
  %.lcssa229 = phi <16 x float> [ %155, %loop54 ]
  %.lcssa228 = phi <16 x float> [ %159, %loop54 ]
  %.lcssa227 = phi <16 x float> [ %163, %loop54 ]
  %.lcssa226 = phi <16 x float> [ %167, %loop54 ]
  %.lcssa225 = phi <16 x float> [ %169, %loop54 ]
  %.lcssa224 = phi <16 x float> [ %171, %loop54 ]
  %.lcssa223 = phi <16 x float> [ %173, %loop54 ]
  %.lcssa222 = phi <16 x float> [ %177, %loop54 ]
  %.lcssa221 = phi <16 x float> [ %179, %loop54 ]
  %.lcssa220 = phi <16 x float> [ %181, %loop54 ]
  %.lcssa219 = phi <16 x float> [ %183, %loop54 ]
  %.lcssa218 = phi <16 x float> [ %187, %loop54 ]
  %.lcssa217 = phi <16 x float> [ %189, %loop54 ]
  %.lcssa216 = phi <16 x float> [ %191, %loop54 ]
  %.lcssa = phi <16 x float> [ %193, %loop54 ]
  %196 = getelementptr float, ptr %19, i64 %143
  %197 = getelementptr i8, ptr %196, i64 1024
  call void @llvm.prefetch.p0(ptr %197, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa230, ptr %196, align 4
  %198 = getelementptr i8, ptr %196, i64 64
  %199 = getelementptr i8, ptr %196, i64 1088
  call void @llvm.prefetch.p0(ptr %199, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa229, ptr %198, align 4
  %200 = getelementptr i8, ptr %196, i64 128
  %201 = getelementptr i8, ptr %196, i64 1152
  call void @llvm.prefetch.p0(ptr %201, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa228, ptr %200, align 4
  %202 = getelementptr i8, ptr %196, i64 192
  %203 = getelementptr i8, ptr %196, i64 1216
  call void @llvm.prefetch.p0(ptr %203, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa227, ptr %202, align 4
  %204 = getelementptr i8, ptr %196, i64 4096
  %205 = getelementptr i8, ptr %196, i64 5120
  call void @llvm.prefetch.p0(ptr %205, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa226, ptr %204, align 4
  %206 = getelementptr i8, ptr %196, i64 4160
  %207 = getelementptr i8, ptr %196, i64 5184
  call void @llvm.prefetch.p0(ptr %207, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa225, ptr %206, align 4
  %208 = getelementptr i8, ptr %196, i64 4224
  %209 = getelementptr i8, ptr %196, i64 5248
  call void @llvm.prefetch.p0(ptr %209, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa224, ptr %208, align 4
  %210 = getelementptr i8, ptr %196, i64 4288
  %211 = getelementptr i8, ptr %196, i64 5312
  call void @llvm.prefetch.p0(ptr %211, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa223, ptr %210, align 4
  %212 = getelementptr i8, ptr %196, i64 8192
  %213 = getelementptr i8, ptr %196, i64 9216
  call void @llvm.prefetch.p0(ptr %213, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa222, ptr %212, align 4
  %214 = getelementptr i8, ptr %196, i64 8256
  %215 = getelementptr i8, ptr %196, i64 9280
  call void @llvm.prefetch.p0(ptr %215, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa221, ptr %214, align 4
  %216 = getelementptr i8, ptr %196, i64 8320
  %217 = getelementptr i8, ptr %196, i64 9344
  call void @llvm.prefetch.p0(ptr %217, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa220, ptr %216, align 4
  %218 = getelementptr i8, ptr %196, i64 8384
  %219 = getelementptr i8, ptr %196, i64 9408
  call void @llvm.prefetch.p0(ptr %219, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa219, ptr %218, align 4
  %220 = getelementptr i8, ptr %196, i64 12288
  %221 = getelementptr i8, ptr %196, i64 13312
  call void @llvm.prefetch.p0(ptr %221, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa218, ptr %220, align 4
  %222 = getelementptr i8, ptr %196, i64 12352
  %223 = getelementptr i8, ptr %196, i64 13376
  call void @llvm.prefetch.p0(ptr %223, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa217, ptr %222, align 4
  %224 = getelementptr i8, ptr %196, i64 12416
  %225 = getelementptr i8, ptr %196, i64 13440
  call void @llvm.prefetch.p0(ptr %225, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa216, ptr %224, align 4
  %226 = getelementptr i8, ptr %196, i64 12480
  %227 = getelementptr i8, ptr %196, i64 13504
  call void @llvm.prefetch.p0(ptr %227, i32 1, i32 3, i32 1)
  store <16 x float> %.lcssa, ptr %226, align 4
  %228 = add nuw nsw i64 %143, 64
  %.not209 = icmp samesign ugt i64 %143, %13
  br i1 %.not209, label %after1.loopexit215, label %loop52
}

; Function Attrs: nounwind
define dso_local i32 @isnan_where_mul_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  %10 = load double, ptr %4, align 8
  %11 = fcmp contract uno double %10, 0.000000e+00
  %12 = select contract i1 %11, double 1.000000e-01, double %10
  %13 = load double, ptr %6, align 8
  %14 = fmul contract double %12, %13
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  store double %14, ptr %8, align 8
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %15 = phi i64 [ %16, %loop ], [ %1, %loop.preheader ]
  %16 = add nsw i64 %15, 1
  %.not1.not = icmp slt i64 %15, %9
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @add_2(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  %8 = load i64, ptr %4, align 8
  %9 = add i64 %8, 1
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  store i64 %9, ptr %6, align 8
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %10 = phi i64 [ %11, %loop ], [ %1, %loop.preheader ]
  %11 = add nsw i64 %10, 1
  %.not1.not = icmp slt i64 %10, %7
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @cast_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %7
  %8 = load double, ptr %4, align 8
  %9 = fptrunc contract double %8 to float
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  store float %9, ptr %6, align 4
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %10 = phi i64 [ %11, %loop ], [ %1, %loop.preheader ]
  %11 = add nsw i64 %10, 1
  %.not1.not = icmp slt i64 %10, %7
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nounwind
define dso_local i32 @add_mul_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  %12 = load float, ptr %8, align 4
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %.splatinsert = insertelement <16 x float> poison, float %12, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %13 = phi i64 [ %51, %after2 ], [ %1, %loop.preheader ]
  %14 = shl nsw i64 %13, 14
  %15 = call i64 @llvm.smin.i64(i64 %14, i64 786432)
  %16 = or disjoint i64 %15, 16320
  %.not9 = icmp sgt i64 %14, %16
  br i1 %.not9, label %after2, label %loop1.preheader

loop1.preheader:                                  ; preds = %loop
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1.preheader, %loop1
  %17 = phi i64 [ %50, %loop1 ], [ %14, %loop1.preheader ]
  %18 = getelementptr float, ptr %4, i64 %17
  %19 = load <16 x float>, ptr %18, align 4
  %20 = getelementptr float, ptr %6, i64 %17
  %21 = load <16 x float>, ptr %20, align 4
  %22 = fadd contract <16 x float> %19, %21
  %23 = fmul contract <16 x float> %22, %.splat
  %24 = getelementptr i8, ptr %18, i64 64
  %25 = load <16 x float>, ptr %24, align 4
  %26 = getelementptr i8, ptr %20, i64 64
  %27 = load <16 x float>, ptr %26, align 4
  %28 = fadd contract <16 x float> %25, %27
  %29 = fmul contract <16 x float> %28, %.splat
  %30 = getelementptr i8, ptr %18, i64 128
  %31 = load <16 x float>, ptr %30, align 4
  %32 = getelementptr i8, ptr %20, i64 128
  %33 = load <16 x float>, ptr %32, align 4
  %34 = fadd contract <16 x float> %31, %33
  %35 = fmul contract <16 x float> %34, %.splat
  %36 = getelementptr i8, ptr %18, i64 192
  %37 = load <16 x float>, ptr %36, align 4
  %38 = getelementptr i8, ptr %20, i64 192
  %39 = load <16 x float>, ptr %38, align 4
  %40 = fadd contract <16 x float> %37, %39
  %41 = fmul contract <16 x float> %40, %.splat
  %42 = getelementptr float, ptr %10, i64 %17
  %43 = getelementptr i8, ptr %42, i64 1024
  call void @llvm.prefetch.p0(ptr %43, i32 1, i32 3, i32 1)
  store <16 x float> %23, ptr %42, align 4
  %44 = getelementptr i8, ptr %42, i64 64
  %45 = getelementptr i8, ptr %42, i64 1088
  call void @llvm.prefetch.p0(ptr %45, i32 1, i32 3, i32 1)
  store <16 x float> %29, ptr %44, align 4
  %46 = getelementptr i8, ptr %42, i64 128
  %47 = getelementptr i8, ptr %42, i64 1152
  call void @llvm.prefetch.p0(ptr %47, i32 1, i32 3, i32 1)
  store <16 x float> %35, ptr %46, align 4
  %48 = getelementptr i8, ptr %42, i64 192
  %49 = getelementptr i8, ptr %42, i64 1216
  call void @llvm.prefetch.p0(ptr %49, i32 1, i32 3, i32 1)
  store <16 x float> %41, ptr %48, align 4
  %50 = add nsw i64 %17, 64
  %.not10.not = icmp slt i64 %17, %16
  br i1 %.not10.not, label %loop1, label %after2.loopexit

after2.loopexit:                                  ; preds = %loop1
  br label %after2

after2:                                           ; preds = %after2.loopexit, %loop
  %51 = add nsw i64 %13, 1
  %.not11.not = icmp slt i64 %13, %11
  br i1 %.not11.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @sub_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %9
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %10 = phi i64 [ %44, %after2 ], [ %1, %loop.preheader ]
  %11 = shl nsw i64 %10, 14
  %12 = call i64 @llvm.smin.i64(i64 %11, i64 786432)
  %13 = or disjoint i64 %12, 16320
  %.not3 = icmp sgt i64 %11, %13
  br i1 %.not3, label %after2, label %loop1.preheader

loop1.preheader:                                  ; preds = %loop
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1.preheader, %loop1
  %14 = phi i64 [ %43, %loop1 ], [ %11, %loop1.preheader ]
  %15 = getelementptr float, ptr %4, i64 %14
  %16 = load <16 x float>, ptr %15, align 4
  %17 = getelementptr float, ptr %6, i64 %14
  %18 = load <16 x float>, ptr %17, align 4
  %19 = fsub contract <16 x float> %16, %18
  %20 = getelementptr i8, ptr %15, i64 64
  %21 = load <16 x float>, ptr %20, align 4
  %22 = getelementptr i8, ptr %17, i64 64
  %23 = load <16 x float>, ptr %22, align 4
  %24 = fsub contract <16 x float> %21, %23
  %25 = getelementptr i8, ptr %15, i64 128
  %26 = load <16 x float>, ptr %25, align 4
  %27 = getelementptr i8, ptr %17, i64 128
  %28 = load <16 x float>, ptr %27, align 4
  %29 = fsub contract <16 x float> %26, %28
  %30 = getelementptr i8, ptr %15, i64 192
  %31 = load <16 x float>, ptr %30, align 4
  %32 = getelementptr i8, ptr %17, i64 192
  %33 = load <16 x float>, ptr %32, align 4
  %34 = fsub contract <16 x float> %31, %33
  %35 = getelementptr float, ptr %8, i64 %14
  %36 = getelementptr i8, ptr %35, i64 1024
  call void @llvm.prefetch.p0(ptr %36, i32 1, i32 3, i32 1)
  store <16 x float> %19, ptr %35, align 4
  %37 = getelementptr i8, ptr %35, i64 64
  %38 = getelementptr i8, ptr %35, i64 1088
  call void @llvm.prefetch.p0(ptr %38, i32 1, i32 3, i32 1)
  store <16 x float> %24, ptr %37, align 4
  %39 = getelementptr i8, ptr %35, i64 128
  %40 = getelementptr i8, ptr %35, i64 1152
  call void @llvm.prefetch.p0(ptr %40, i32 1, i32 3, i32 1)
  store <16 x float> %29, ptr %39, align 4
  %41 = getelementptr i8, ptr %35, i64 192
  %42 = getelementptr i8, ptr %35, i64 1216
  call void @llvm.prefetch.p0(ptr %42, i32 1, i32 3, i32 1)
  store <16 x float> %34, ptr %41, align 4
  %43 = add nsw i64 %14, 64
  %.not4.not = icmp slt i64 %14, %13
  br i1 %.not4.not, label %loop1, label %after2.loopexit

after2.loopexit:                                  ; preds = %loop1
  br label %after2

after2:                                           ; preds = %after2.loopexit, %loop
  %44 = add nsw i64 %10, 1
  %.not5.not = icmp slt i64 %10, %9
  br i1 %.not5.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @mul_sub_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  %12 = load float, ptr %6, align 4
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %.splatinsert = insertelement <16 x float> poison, float %12, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %13 = phi i64 [ %45, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %14 = phi i64 [ 0, %loop ], [ %43, %loop1 ]
  %15 = getelementptr float, ptr %8, i64 %14
  %16 = load <16 x float>, ptr %15, align 4
  %17 = getelementptr float, ptr %4, i64 %14
  %18 = load <16 x float>, ptr %17, align 4
  %19 = fmul contract <16 x float> %18, %.splat
  %20 = fsub contract <16 x float> %16, %19
  %21 = getelementptr i8, ptr %15, i64 64
  %22 = load <16 x float>, ptr %21, align 4
  %23 = getelementptr i8, ptr %17, i64 64
  %24 = load <16 x float>, ptr %23, align 4
  %25 = fmul contract <16 x float> %24, %.splat
  %26 = fsub contract <16 x float> %22, %25
  %27 = getelementptr i8, ptr %15, i64 128
  %28 = load <16 x float>, ptr %27, align 4
  %29 = getelementptr i8, ptr %17, i64 128
  %30 = load <16 x float>, ptr %29, align 4
  %31 = fmul contract <16 x float> %30, %.splat
  %32 = fsub contract <16 x float> %28, %31
  %33 = getelementptr i8, ptr %15, i64 192
  %34 = load <16 x float>, ptr %33, align 4
  %35 = getelementptr i8, ptr %17, i64 192
  %36 = load <16 x float>, ptr %35, align 4
  %37 = fmul contract <16 x float> %36, %.splat
  %38 = fsub contract <16 x float> %34, %37
  %39 = getelementptr float, ptr %10, i64 %14
  store <16 x float> %20, ptr %39, align 4
  %40 = getelementptr i8, ptr %39, i64 64
  store <16 x float> %26, ptr %40, align 4
  %41 = getelementptr i8, ptr %39, i64 128
  store <16 x float> %32, ptr %41, align 4
  %42 = getelementptr i8, ptr %39, i64 192
  store <16 x float> %38, ptr %42, align 4
  %43 = add nuw nsw i64 %14, 64
  %44 = icmp samesign ult i64 %14, 897
  br i1 %44, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %45 = add nsw i64 %13, 1
  %.not9.not = icmp slt i64 %13, %11
  br i1 %.not9.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @add_mul_sub_0(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr i8, ptr %3, i64 32
  %12 = load ptr, ptr %11, align 8
  %13 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %13
  %14 = load float, ptr %8, align 4
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %.splatinsert = insertelement <16 x float> poison, float %14, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> zeroinitializer
  br label %loop

loop:                                             ; preds = %loop.preheader, %after2
  %15 = phi i64 [ %63, %after2 ], [ %1, %loop.preheader ]
  br label %loop1

after.loopexit:                                   ; preds = %after2
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0

loop1:                                            ; preds = %loop1, %loop
  %16 = phi i64 [ 0, %loop ], [ %61, %loop1 ]
  %17 = getelementptr float, ptr %10, i64 %16
  %18 = load <16 x float>, ptr %17, align 4
  %19 = getelementptr float, ptr %4, i64 %16
  %20 = load <16 x float>, ptr %19, align 4
  %21 = getelementptr float, ptr %6, i64 %16
  %22 = load <16 x float>, ptr %21, align 4
  %23 = fadd contract <16 x float> %20, %22
  %24 = fmul contract <16 x float> %23, %.splat
  %25 = fsub contract <16 x float> %18, %24
  %26 = getelementptr i8, ptr %17, i64 64
  %27 = load <16 x float>, ptr %26, align 4
  %28 = getelementptr i8, ptr %19, i64 64
  %29 = load <16 x float>, ptr %28, align 4
  %30 = getelementptr i8, ptr %21, i64 64
  %31 = load <16 x float>, ptr %30, align 4
  %32 = fadd contract <16 x float> %29, %31
  %33 = fmul contract <16 x float> %32, %.splat
  %34 = fsub contract <16 x float> %27, %33
  %35 = getelementptr i8, ptr %17, i64 128
  %36 = load <16 x float>, ptr %35, align 4
  %37 = getelementptr i8, ptr %19, i64 128
  %38 = load <16 x float>, ptr %37, align 4
  %39 = getelementptr i8, ptr %21, i64 128
  %40 = load <16 x float>, ptr %39, align 4
  %41 = fadd contract <16 x float> %38, %40
  %42 = fmul contract <16 x float> %41, %.splat
  %43 = fsub contract <16 x float> %36, %42
  %44 = getelementptr i8, ptr %17, i64 192
  %45 = load <16 x float>, ptr %44, align 4
  %46 = getelementptr i8, ptr %19, i64 192
  %47 = load <16 x float>, ptr %46, align 4
  %48 = getelementptr i8, ptr %21, i64 192
  %49 = load <16 x float>, ptr %48, align 4
  %50 = fadd contract <16 x float> %47, %49
  %51 = fmul contract <16 x float> %50, %.splat
  %52 = fsub contract <16 x float> %45, %51
  %53 = getelementptr float, ptr %12, i64 %16
  %54 = getelementptr i8, ptr %53, i64 1024
  call void @llvm.prefetch.p0(ptr %54, i32 1, i32 3, i32 1)
  store <16 x float> %25, ptr %53, align 4
  %55 = getelementptr i8, ptr %53, i64 64
  %56 = getelementptr i8, ptr %53, i64 1088
  call void @llvm.prefetch.p0(ptr %56, i32 1, i32 3, i32 1)
  store <16 x float> %34, ptr %55, align 4
  %57 = getelementptr i8, ptr %53, i64 128
  %58 = getelementptr i8, ptr %53, i64 1152
  call void @llvm.prefetch.p0(ptr %58, i32 1, i32 3, i32 1)
  store <16 x float> %43, ptr %57, align 4
  %59 = getelementptr i8, ptr %53, i64 192
  %60 = getelementptr i8, ptr %53, i64 1216
  call void @llvm.prefetch.p0(ptr %60, i32 1, i32 3, i32 1)
  store <16 x float> %52, ptr %59, align 4
  %61 = add nuw nsw i64 %16, 64
  %62 = icmp samesign ult i64 %16, 10113
  br i1 %62, label %loop1, label %after2

after2:                                           ; preds = %loop1
  %63 = add nsw i64 %15, 1
  %.not9.not = icmp slt i64 %15, %13
  br i1 %.not9.not, label %loop, label %after.loopexit
}

; Function Attrs: nounwind
define dso_local i32 @mul_sub_1(ptr %0, i64 %1, i64 %2) #0 {
entry:
  %3 = load ptr, ptr %0, align 8
  %4 = load ptr, ptr %3, align 8
  %5 = getelementptr i8, ptr %3, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr i8, ptr %3, i64 16
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr i8, ptr %3, i64 24
  %10 = load ptr, ptr %9, align 8
  %11 = add i64 %2, -1
  %.not = icmp sgt i64 %1, %11
  %12 = load float, ptr %6, align 4
  br i1 %.not, label %after, label %loop.preheader

loop.preheader:                                   ; preds = %entry
  %.splatinsert = insertelement <16 x float> poison, float %12, i64 0
  %.splat = shufflevector <16 x float> %.splatinsert, <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison>
  br label %loop

loop:                                             ; preds = %loop.preheader, %loop
  %13 = phi i64 [ %18, %loop ], [ %1, %loop.preheader ]
  %14 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %8, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> poison)
  %15 = call contract <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %4, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> poison)
  %16 = fmul contract <16 x float> %15, %.splat
  %17 = fsub contract <16 x float> %14, %16
  call void @llvm.masked.store.v16f32.p0(<16 x float> %17, ptr align 4 %10, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
  %18 = add nsw i64 %13, 1
  %.not1.not = icmp slt i64 %13, %11
  br i1 %.not1.not, label %loop, label %after.loopexit

after.loopexit:                                   ; preds = %loop
  br label %after

after:                                            ; preds = %after.loopexit, %entry
  ret i32 0
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #4

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #4

attributes #0 = { nounwind "denormal-fp-math"="dynamic,dynamic" "frame-pointer"="none" "no-builtins" "prefer-vector-width"="512" "target-cpu"="x86-64-v4" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite, inaccessiblemem: readwrite) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: write) }
attributes #4 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #5 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #6 = { nocallback nofree nosync nounwind willreturn memory(read) }
attributes #7 = { nocallback nofree nosync nounwind willreturn memory(none) }
attributes #8 = { nocallback nofree nosync nounwind willreturn memory(write) }

!llvm.module.flags = !{!0}

!0 = !{i32 8, !"PIC Level", i32 2}
