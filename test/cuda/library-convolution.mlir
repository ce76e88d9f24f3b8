// A convolution that a library computes: its call is described with the layout, and with what follows in it. Weights are [out, in / groups, window...] in both layouts.
// RUN: tressel compile %s --device cuda --gpu sm_90 --allow-library --disable-pass split-producers -o %t.tsl
// RUN: strings -n 200 %t.tsl | FileCheck %s

// CHECK: "library":{"alpha":1,"batch":4,"bias":2,"dilations":[1,1],"groups":1,"image":0,"in":[28,28],"in_channels":64,"layout":"nchw","name":"cudnn","out":[28,28],"out_channels":64,"pad":[1,1],"relu":true,"residual":3,"result":4,"strides":[1,1],"type":"bf16","weights":1,"window":[3,3]}
func.func @main(%x: tensor<4x64x28x28xbf16>, %w: tensor<64x64x3x3xbf16>, %b: tensor<64x1x1xbf16>, %r: tensor<4x64x28x28xbf16>) -> tensor<4x64x28x28xbf16> {
  %0 = tressel.conv %x, %w {pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>} : (tensor<4x64x28x28xbf16>, tensor<64x64x3x3xbf16>) -> tensor<4x64x28x28xbf16>
  %1 = tressel.add %0, %b : (tensor<4x64x28x28xbf16>, tensor<64x1x1xbf16>) -> tensor<4x64x28x28xbf16>
  %2 = tressel.add %1, %r : (tensor<4x64x28x28xbf16>, tensor<4x64x28x28xbf16>) -> tensor<4x64x28x28xbf16>
  %3 = tressel.relu %2 : (tensor<4x64x28x28xbf16>) -> tensor<4x64x28x28xbf16>
  return %3 : tensor<4x64x28x28xbf16>
}
