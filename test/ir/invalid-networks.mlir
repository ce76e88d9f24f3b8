// RUN: tressel-opt %s -verify-diagnostics -split-input-file

// Einsum, transposed convolution, resizing, adaptive pooling, norms, losses, attention and cells: each rule of docs/ops.md broken once.

func.func @einsum_c1(%a0: tensor<2x2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C1) wants numbers, not bools (cast them): bool[2, 2]}}
  %0 = tressel.einsum %a0 {equation = "ij->ji"} : (tensor<2x2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c2(%a0: tensor<2x2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C2) 'i' does not name the 2 dimensions of its operand: f32[2, 2]}}
  %0 = tressel.einsum %a0 {equation = "i->i"} : (tensor<2x2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c2(%a0: tensor<2x2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C2) the equation has more terms than there are operands}}
  %0 = tressel.einsum %a0 {equation = "ij,jk->ik"} : (tensor<2x2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c2(%a0: tensor<2x2xf32>, %a1: tensor<2x2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C2) the equation has fewer terms than there are operands}}
  %0 = tressel.einsum %a0, %a1 {equation = "ij->ji"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c2(%a0: tensor<2x2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C2) the result's label 'k' stands twice, or in no operand}}
  %0 = tressel.einsum %a0 {equation = "ij->ik"} : (tensor<2x2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c2(%a0: tensor<2x2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C2) 'i1' is no list of labels}}
  %0 = tressel.einsum %a0 {equation = "i1->i"} : (tensor<2x2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @einsum_c3(%a0: tensor<2x3xf32>, %a1: tensor<4x5xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{einsum: (C3) sizes of equal labels differ}}
  %0 = tressel.einsum %a0, %a1 {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c1(%a0: tensor<1x3x8xf32>, %a1: tensor<3x3x3x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C1) x and w must have the same rank, 3 to 5}}
  %0 = tressel.conv_transpose %a0, %a1 : (tensor<1x3x8xf32>, tensor<3x3x3x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c1(%a0: tensor<1x3x8xf32>, %a1: tensor<3x2x3xf64>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C1) x and w must have one float type}}
  %0 = tressel.conv_transpose %a0, %a1 : (tensor<1x3x8xf32>, tensor<3x2x3xf64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c2(%a0: tensor<1x3x8xf32>, %a1: tensor<3x2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C2) strides, pads, output_padding and dilations need one valid entry}}
  %0 = tressel.conv_transpose %a0, %a1 {strides = array<i64: 1, 1>} : (tensor<1x3x8xf32>, tensor<3x2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c2(%a0: tensor<1x3x8xf32>, %a1: tensor<3x2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C2) strides, pads, output_padding and dilations need one valid entry}}
  %0 = tressel.conv_transpose %a0, %a1 {output_padding = array<i64: -1>} : (tensor<1x3x8xf32>, tensor<3x2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c3(%a0: tensor<1x3x8xf32>, %a1: tensor<3x2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C3) channels do not divide into 2 groups}}
  %0 = tressel.conv_transpose %a0, %a1 {groups = 2 : i64} : (tensor<1x3x8xf32>, tensor<3x2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_transpose_c4(%a0: tensor<1x3x2xf32>, %a1: tensor<3x2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_transpose: (C4) the result would be empty}}
  %0 = tressel.conv_transpose %a0, %a1 {pad_low = array<i64: 2>, pad_high = array<i64: 2>} : (tensor<1x3x2xf32>, tensor<3x2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @resize_c1(%a0: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{resize: (C1) sizes must have one entry per dimension}}
  %0 = tressel.resize %a0 {sizes = array<i64: 1, 3>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @resize_c2(%a0: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{resize: (C2) there is no resizing of mode 'quadratic'}}
  %0 = tressel.resize %a0 {sizes = array<i64: 1, 3, 4>, mode = "quadratic"} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @resize_c3(%a0: tensor<1x3x8xi32>) -> tensor<1xf32> {
  // expected-error@+1 {{resize: (C3) wants floats (cast them)}}
  %0 = tressel.resize %a0 {sizes = array<i64: 1, 3, 4>} : (tensor<1x3x8xi32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @rms_norm_c1(%a0: tensor<2x3xi32>, %a1: tensor<3xi32>) -> tensor<1xf32> {
  // expected-error@+1 {{rms_norm: (C1) operands must have one float type}}
  %0 = tressel.rms_norm %a0, %a1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @rms_norm_c2(%a0: tensor<2x3xf32>, %a1: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{rms_norm: (C2) scale must have the shape of x's last dimensions}}
  %0 = tressel.rms_norm %a0, %a1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @group_norm_c1(%a0: tensor<2x4xf32>, %a1: tensor<4xf64>, %a2: tensor<4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{group_norm: (C1) operands must have one float type, and x rank at least 2}}
  %0 = tressel.group_norm %a0, %a1, %a2 {groups = 2 : i64} : (tensor<2x4xf32>, tensor<4xf64>, tensor<4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @group_norm_c2(%a0: tensor<2x4xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{group_norm: (C2) scale and bias must have shape [channels]}}
  %0 = tressel.group_norm %a0, %a1, %a2 {groups = 2 : i64} : (tensor<2x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @group_norm_c3(%a0: tensor<2x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{group_norm: (C3) channels do not divide into 3 groups}}
  %0 = tressel.group_norm %a0, %a1, %a2 {groups = 3 : i64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @instance_norm_c1(%a0: tensor<2x4xf32>, %a1: tensor<4xf32>, %a2: tensor<4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{instance_norm: (C1) operands must have one float type, and x rank at least 3 and elements}}
  %0 = tressel.instance_norm %a0, %a1, %a2 : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @instance_norm_c2(%a0: tensor<2x4x2xf32>, %a1: tensor<3xf32>, %a2: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{instance_norm: (C2) scale and bias must have shape [channels]}}
  %0 = tressel.instance_norm %a0, %a1, %a2 : (tensor<2x4x2xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @mse_loss_c1(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{mse_loss: (C1) wants numbers, not bools (cast them)}}
  %0 = tressel.mse_loss %a0, %a1 : (tensor<2xi1>, tensor<2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @mse_loss_c2(%a0: tensor<2xf32>, %a1: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{mse_loss: (C2) shapes do not broadcast}}
  %0 = tressel.mse_loss %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @huber_loss_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{huber_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.huber_loss %a0, %a1 {reduction = "average"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @smooth_l1_loss_c1(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{smooth_l1_loss: (C1) wants numbers, not bools (cast them)}}
  %0 = tressel.smooth_l1_loss %a0, %a1 : (tensor<2xi1>, tensor<2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @smooth_l1_loss_c2(%a0: tensor<2xf32>, %a1: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{smooth_l1_loss: (C2) shapes do not broadcast}}
  %0 = tressel.smooth_l1_loss %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @smooth_l1_loss_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{smooth_l1_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.smooth_l1_loss %a0, %a1 {reduction = "average"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @smooth_l1_loss_c4(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{smooth_l1_loss: (C4) beta is finite and not negative}}
  %0 = tressel.smooth_l1_loss %a0, %a1 {beta = -1.0 : f64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @gaussian_nll_loss_c1(%a0: tensor<2xi1>, %a1: tensor<2xi1>, %a2: tensor<2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{gaussian_nll_loss: (C1) wants numbers, not bools (cast them)}}
  %0 = tressel.gaussian_nll_loss %a0, %a1, %a2 : (tensor<2xi1>, tensor<2xi1>, tensor<2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @margin_ranking_loss_c2(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{margin_ranking_loss: (C2) shapes do not broadcast}}
  %0 = tressel.margin_ranking_loss %a0, %a1, %a2 : (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @gaussian_nll_loss_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{gaussian_nll_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.gaussian_nll_loss %a0, %a1, %a2 {reduction = "all"} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @triplet_margin_loss_c1(%a0: tensor<2xf32>, %a1: tensor<2xi64>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{triplet_margin_loss: (C1) wants floats}}
  %0 = tressel.triplet_margin_loss %a0, %a1, %a2 : (tensor<2xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @triplet_margin_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>, %a2: tensor<2x4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{triplet_margin_loss: (C2) vectors do not broadcast}}
  %0 = tressel.triplet_margin_loss %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @triplet_margin_loss_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{triplet_margin_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.triplet_margin_loss %a0, %a1, %a2 {reduction = "all"} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @triplet_margin_loss_c4(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{triplet_margin_loss: (C4) p is at least 1}}
  %0 = tressel.triplet_margin_loss %a0, %a1, %a2 {p = 0.5 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @cosine_embedding_loss_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>, %a2: tensor<2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{cosine_embedding_loss: (C1) wants floats, and numbers as targets}}
  %0 = tressel.cosine_embedding_loss %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @cosine_embedding_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>, %a2: tensor<3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{cosine_embedding_loss: (C2) vectors do not broadcast, or there is not one target for each pair}}
  %0 = tressel.cosine_embedding_loss %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @cosine_embedding_loss_c3(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>, %a2: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{cosine_embedding_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.cosine_embedding_loss %a0, %a1, %a2 {reduction = "all"} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multi_margin_loss_c1(%a0: tensor<3xf32>, %a1: tensor<3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multi_margin_loss: (C1) x must be floats [batch, classes]}}
  %0 = tressel.multi_margin_loss %a0, %a1 : (tensor<3xf32>, tensor<3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multi_margin_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multi_margin_loss: (C2) labels must be integers of shape [2]}}
  %0 = tressel.multi_margin_loss %a0, %a1 : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multi_margin_loss_c3(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multi_margin_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.multi_margin_loss %a0, %a1 {reduction = "all"} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multi_margin_loss_c4(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multi_margin_loss: (C4) p is 1 or 2}}
  %0 = tressel.multi_margin_loss %a0, %a1 {p = 3 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multilabel_margin_loss_c1(%a0: tensor<2x2x3xf32>, %a1: tensor<2x2x3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multilabel_margin_loss: (C1) x must be floats [classes] or [batch, classes]}}
  %0 = tressel.multilabel_margin_loss %a0, %a1 : (tensor<2x2x3xf32>, tensor<2x2x3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multilabel_margin_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multilabel_margin_loss: (C2) labels must be integers of shape [2, 3]}}
  %0 = tressel.multilabel_margin_loss %a0, %a1 : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multilabel_margin_loss_c3(%a0: tensor<2x3xf32>, %a1: tensor<2x3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multilabel_margin_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.multilabel_margin_loss %a0, %a1 {reduction = "all"} : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multilabel_soft_margin_loss_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{multilabel_soft_margin_loss: (C1) x and target must be floats of one shape [..., classes]}}
  %0 = tressel.multilabel_soft_margin_loss %a0, %a1 : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @multilabel_soft_margin_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{multilabel_soft_margin_loss: (C2) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.multilabel_soft_margin_loss %a0, %a1 {reduction = "all"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @nll_loss_c1(%a0: tensor<2xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{nll_loss: (C1) log_probs must be floats [batch, classes, ...]}}
  %0 = tressel.nll_loss %a0, %a1 : (tensor<2xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @nll_loss_c2(%a0: tensor<2x3xf32>, %a1: tensor<3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{nll_loss: (C2) labels must be integers of shape [2]}}
  %0 = tressel.nll_loss %a0, %a1 : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @nll_loss_c3(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{nll_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.nll_loss %a0, %a1 {reduction = ""} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_cross_entropy_c1(%a0: tensor<2x0xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax_cross_entropy: (C1) logits must be floats [batch, classes, ...]}}
  %0 = tressel.softmax_cross_entropy %a0, %a1 : (tensor<2x0xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_cross_entropy_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x3xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax_cross_entropy: (C2) target must be integers of shape [2] or floats of shape [2, 3]}}
  %0 = tressel.softmax_cross_entropy %a0, %a1 : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_cross_entropy_c3(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax_cross_entropy: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.softmax_cross_entropy %a0, %a1 {reduction = "all"} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_cross_entropy_c4(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax_cross_entropy: (C4) label_smoothing is outside [0, 1]}}
  %0 = tressel.softmax_cross_entropy %a0, %a1 {label_smoothing = 2.0 : f64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @scaled_dot_product_attention_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x3xf32>, %a2: tensor<2x3xf64>) -> tensor<1xf32> {
  // expected-error@+1 {{scaled_dot_product_attention: (C1) q, k and v must have one float type and one rank, at least 2}}
  %0 = tressel.scaled_dot_product_attention %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @scaled_dot_product_attention_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x4xf32>, %a2: tensor<2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{scaled_dot_product_attention: (C2) sizes do not agree}}
  %0 = tressel.scaled_dot_product_attention %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @scaled_dot_product_attention_c2_empty(%a0: tensor<2x3xf32>, %a1: tensor<0x3xf32>, %a2: tensor<0x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{scaled_dot_product_attention: (C2) there is no key}}
  %0 = tressel.scaled_dot_product_attention %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @scaled_dot_product_attention_c3(%a0: tensor<2x3xf32>, %a1: tensor<4x3xf32>, %a2: tensor<4x3xf32>, %a3: tensor<3x4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{scaled_dot_product_attention: (C3) the mask must be of bools or of q's type, and broadcast to [2, 4]}}
  %0 = tressel.scaled_dot_product_attention %a0, %a1, %a2, %a3 : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @lstm_cell_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x4xf32>, %a2: tensor<2x4xf32>, %a3: tensor<3x16xf32>, %a4: tensor<4x16xf64>) -> tensor<1xf32> {
  // expected-error@+1 {{lstm_cell: (C1) operands must have one float type, and rank 2 but for the biases}}
  %0:2 = tressel.lstm_cell %a0, %a1, %a2, %a3, %a4 : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<3x16xf32>, tensor<4x16xf64>) -> (tensor<1xf32>, tensor<1xf32>)
  return %0#0 : tensor<1xf32>
}

// -----
func.func @lstm_cell_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x4xf32>, %a2: tensor<2x4xf32>, %a3: tensor<3x16xf32>, %a4: tensor<4x12xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{lstm_cell: (C2) sizes do not agree}}
  %0:2 = tressel.lstm_cell %a0, %a1, %a2, %a3, %a4 : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<3x16xf32>, tensor<4x12xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  return %0#0 : tensor<1xf32>
}

// -----
func.func @gru_cell_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x4xf32>, %a2: tensor<3x12xf32>, %a3: tensor<12xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{gru_cell: (C1) operands must have one float type, and rank 2 but for the biases}}
  %0 = tressel.gru_cell %a0, %a1, %a2, %a3 : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<3x12xf32>, tensor<12xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @gru_cell_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x4xf32>, %a2: tensor<3x12xf32>, %a3: tensor<4x12xf32>, %a4: tensor<8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{gru_cell: (C2) sizes do not agree}}
  %0 = tressel.gru_cell %a0, %a1, %a2, %a3, %a4 : (tensor<2x3xf32>, tensor<2x4xf32>, tensor<3x12xf32>, tensor<4x12xf32>, tensor<8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @batch_norm_train_c1(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{batch_norm_train: (C1) operands must have one float type, and x rank at least 2 and elements}}
  %0:3 = tressel.batch_norm_train %a0, %a1, %a2 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
  return %0#0 : tensor<1xf32>
}

// -----
func.func @batch_norm_train_c2(%a0: tensor<2x3xf32>, %a1: tensor<2xf32>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{batch_norm_train: (C2) scale and bias must have shape [channels]}}
  %0:3 = tressel.batch_norm_train %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>)
  return %0#0 : tensor<1xf32>
}

// -----
func.func @adaptive_avg_pool_c1(%a0: tensor<2x3x4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{adaptive_avg_pool: (C1) x must have rank 3 to 5 and elements, and sizes one entry per spatial dimension, at least 1}}
  %0 = tressel.adaptive_avg_pool %a0 {sizes = array<i64: 0>} : (tensor<2x3x4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @adaptive_max_pool_c2(%a0: tensor<2x3x4xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{adaptive_max_pool: (C2) wants numbers, not bools (cast them)}}
  %0 = tressel.adaptive_max_pool %a0 {sizes = array<i64: 2>} : (tensor<2x3x4xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @bce_with_logits_loss_c1(%a0: tensor<2xi1>, %a1: tensor<2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{bce_with_logits_loss: (C1) wants numbers, not bools (cast them)}}
  %0 = tressel.bce_with_logits_loss %a0, %a1 : (tensor<2xi1>, tensor<2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @bce_with_logits_loss_c2(%a0: tensor<2xf32>, %a1: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{bce_with_logits_loss: (C2) shapes do not broadcast}}
  %0 = tressel.bce_with_logits_loss %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @bce_with_logits_loss_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{bce_with_logits_loss: (C3) reduction is 'mean', 'sum' or 'none'}}
  %0 = tressel.bce_with_logits_loss %a0, %a1 {reduction = "all"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @bce_with_logits_loss_c4(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{bce_with_logits_loss: (C4) pos_weight must be floats that broadcast to [2]}}
  %0 = tressel.bce_with_logits_loss %a0, %a1, %a2 : (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @nll_loss_c4(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{nll_loss: (C4) weight must be floats of shape [3]}}
  %0 = tressel.nll_loss %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_cross_entropy_c5(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>, %a2: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax_cross_entropy: (C5) weight must be floats of shape [3]}}
  %0 = tressel.softmax_cross_entropy %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
