// Everything a program needs. What a compiled package needs alone is in tressel/runtime/.
#pragma once

#include <tressel/arg.h>
#include <tressel/array_names.h>
#include <tressel/autograd.h>
#include <tressel/checkpoint.h>
#include <tressel/control.h>
#include <tressel/custom_op.h>
#include <tressel/data.h>
#include <tressel/debug.h>
#include <tressel/eager.h>
#include <tressel/interchange.h>
#include <tressel/io.h>
#include <tressel/jit.h>
#include <tressel/layers.h>
#include <tressel/machine.h>
#include <tressel/metrics.h>
#include <tressel/module.h>
#include <tressel/ops.h>
#include <tressel/optim.h>
#include <tressel/profile.h>
#include <tressel/progress.h>
#include <tressel/random.h>
#include <tressel/scope.h>
#include <tressel/tensor.h>
#include <tressel/variable.h>
