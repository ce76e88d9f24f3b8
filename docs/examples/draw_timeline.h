// --timeline FILE.svg (.html, .json for Perfetto, .dot) of the programs about asynchronous execution.
#pragma once

#include "timing.h"

#include <tressel/tressel.h>

#include <iostream>
#include <string>

namespace timing {

/// What follows --timeline among the arguments, both of which are taken out; empty if it is not there.
inline std::string timeline_option(int &argc, char **argv) { return option("--timeline", argc, argv); }

/// Draws what one call of `f` does, after one that is not drawn; nothing without a file. Prints what it waited for.
template <typename F> void draw_timeline(const std::string &file, F &&f) {
  if (file.empty())
    return;
  f();
  tressel::wait_all();
  tressel::profile_start();
  f();
  tressel::wait_all();
  std::cout << "\ndrawn in " << file << ": " << tressel::profile_stop(file);
}

} // namespace timing
