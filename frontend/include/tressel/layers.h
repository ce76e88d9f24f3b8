// All layers, and the losses that are no ops.
#pragma once

#include <tressel/nn/attention.h>
#include <tressel/nn/basic.h>
#include <tressel/nn/conv.h>
#include <tressel/nn/loss.h>
#include <tressel/nn/norm.h>
#include <tressel/nn/recurrent.h>
