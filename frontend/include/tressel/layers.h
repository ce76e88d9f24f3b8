// All layers.
#pragma once

#include <tressel/nn/attention.h>
#include <tressel/nn/basic.h>
#include <tressel/nn/conv.h>
#include <tressel/nn/norm.h>
#include <tressel/nn/recurrent.h>
