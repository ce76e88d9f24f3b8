// What `tressel --completion SHELL` prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tressel::tool {

/// A script for bash, zsh or fish that completes commands, options, the values that an option chooses from, and files. Made
/// from the options that `app` has, so it is never behind them.
std::string completionScript(const CLI::App &app, const std::string &shell);

} // namespace tressel::tool
