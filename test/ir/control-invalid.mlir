// RUN: tressel-opt %s -split-input-file -verify-diagnostics
// Rules of the ops with bodies, by number (ir/graph/Control.td).

func.func @cond_1(%p: tensor<2xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 1) the condition must be one bool, not 'tensor<2xi1>'}}
  %0 = tressel.cond %p : tensor<2xi1> with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cond_2(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 2) the arguments of its bodies must have the types}}
  %0 = tressel.cond %p : tensor<i1> with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xi32>):
    %1 = tressel.cast %a {dtype = f32} : (tensor<4xi32>) -> tensor<4xf32>
    tressel.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cond_3(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tressel.cond %p : tensor<i1> with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{(rule 3) must yield the types}}
    tressel.yield
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cond_isolated(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = tressel.cond %p : tensor<i1> -> tensor<4xf32> {
    // expected-error @+1 {{using value defined outside the region}}
    tressel.yield %x : tensor<4xf32>
  } else {
    tressel.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @while_1(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{(rule 1) the arguments of its bodies must have the types}}
  %0 = tressel.while carries(%x : tensor<f32>) -> tensor<f32> {
    %1 = tressel.constant dense<false> : tensor<i1>
    tressel.yield %1 : tensor<i1>
  } do {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @while_2(%x: tensor<f32>) -> tensor<f32> {
  %0 = tressel.while carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    // expected-error @+1 {{(rule 2) the condition must yield one bool, not}}
    tressel.yield %a : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @while_3(%x: tensor<2xi1>, %y: tensor<i1>) -> tensor<i1> {
  %0 = tressel.while carries(%y : tensor<i1>) with(%x : tensor<2xi1>) -> tensor<i1> {
  ^bb0(%a: tensor<i1>, %b: tensor<2xi1>):
    tressel.yield %a : tensor<i1>
  } do {
  ^bb0(%a: tensor<i1>, %b: tensor<2xi1>):
    // expected-error @+1 {{(rule 3) must yield the types}}
    tressel.yield %b : tensor<2xi1>
  }
  return %0 : tensor<i1>
}

// -----

func.func @while_3_results(%x: tensor<i1>) -> tensor<2xi1> {
  // expected-error @+1 {{(rule 3) its results are the carried values}}
  %0 = tressel.while carries(%x : tensor<i1>) -> tensor<2xi1> {
  ^bb0(%a: tensor<i1>):
    tressel.yield %a : tensor<i1>
  } do {
  ^bb0(%a: tensor<i1>):
    tressel.yield %a : tensor<i1>
  }
  return %0 : tensor<2xi1>
}

// -----

func.func @scan_1(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{(rule 1) cannot run -1 times}}
  %0 = tressel.scan -1 carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @scan_2(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{(rule 2) runs 5 times, but a slice is taken from each of 'tensor<4x2xf32>'}}
  tressel.scan 5 slices(%x : tensor<4x2xf32>) {
  ^bb0(%i: tensor<i64>, %a: tensor<2xf32>):
    tressel.yield
  }
  return
}

// -----

func.func @scan_3(%x: tensor<5x2xf32>) {
  // expected-error @+1 {{(rule 3) the arguments of its bodies must have the types}}
  tressel.scan 5 slices(%x : tensor<5x2xf32>) {
  ^bb0(%i: tensor<i64>, %a: tensor<5x2xf32>):
    tressel.yield
  }
  return
}

// -----

func.func @scan_4(%x: tensor<f32>) -> tensor<f32> {
  %0 = tressel.scan 5 carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>):
    // expected-error @+1 {{(rule 4) must yield the carried types}}
    tressel.yield %i : tensor<i64>
  }
  return %0 : tensor<f32>
}

// -----

func.func @scan_4_stacked(%x: tensor<f32>) -> tensor<4xf32> {
  %0 = tressel.scan 5 with(%x : tensor<f32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<f32>):
    // expected-error @+1 {{(rule 4) makes results of the types}}
    tressel.yield %a : tensor<f32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @while_rule4(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{(rule 4) cannot run at most -1 times}}
  %0 = tressel.while at most -1 carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %1 = tressel.less %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tressel.yield %1 : tensor<i1>
  } do {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}
