#include "tools/tressel/Completion.h"

#include <vector>

namespace tressel::tool {
namespace {

struct Choice {
  std::vector<std::string> names; ///< "-o", "--output"
  std::vector<std::string> values;
  std::string help;
  bool takesValue = false, isFolder = false;
};

/// The values of an option that chooses from a set: CLI11 keeps them in the name of its type, "TEXT:{a,b}".
std::vector<std::string> valuesOf(const CLI::Option &option) {
  std::vector<std::string> values;
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos)
    return values;
  for (size_t at = open + 1; at <= close;) {
    const size_t end = std::min(type.find(',', at), close);
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

std::vector<Choice> choicesOf(const CLI::App &app) {
  std::vector<Choice> choices;
  for (const CLI::Option *option : app.get_options()) {
    Choice choice;
    for (const std::string &name : option->get_snames())
      choice.names.push_back("-" + name);
    for (const std::string &name : option->get_lnames())
      choice.names.push_back("--" + name);
    if (choice.names.empty() || option->get_group().empty()) // a positional, or hidden
      continue;
    choice.takesValue = option->get_items_expected_max() > 0;
    if (choice.takesValue)
      choice.values = valuesOf(*option);
    choice.help = option->get_description();
    choice.isFolder = choice.help.find("folder") != std::string::npos || option->get_single_name() == "output-dir";
    choices.push_back(std::move(choice));
  }
  return choices;
}

std::string joined(const std::vector<std::string> &words, const char *between) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

std::string allNames(const std::vector<Choice> &choices) {
  std::string text;
  for (const Choice &choice : choices)
    text += (text.empty() ? "" : " ") + joined(choice.names, " ");
  return text;
}

/// Cases of "COMMAND:OPTION" that say what follows the option.
std::string bashCases(const std::string &command, const std::vector<Choice> &choices) {
  std::string text;
  for (const Choice &choice : choices) {
    if (!choice.takesValue || (choice.values.empty() && !choice.isFolder))
      continue;
    std::vector<std::string> patterns;
    for (const std::string &name : choice.names)
      patterns.push_back(command + ":" + name);
    text += "    " + joined(patterns, "|") + ") ";
    text += choice.isFolder ? "COMPREPLY=($(compgen -d -- \"$current\"))"
                            : "COMPREPLY=($(compgen -W '" + joined(choice.values, " ") + "' -- \"$current\"))";
    text += "; return ;;\n";
  }
  return text;
}

std::string bash(const CLI::App &app) {
  std::vector<std::string> commands;
  std::string values = bashCases("", choicesOf(app)), options = "    :) words='" + allNames(choicesOf(app)) + "' ;;\n";
  for (const CLI::App *command : app.get_subcommands(nullptr)) {
    const std::string &name = command->get_name();
    commands.push_back(name);
    values += bashCases(name, choicesOf(*command));
    options += "    " + name + ":) words='" + allNames(choicesOf(*command)) + "' ;;\n";
  }
  return R"(_tressel() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
    )" + joined(commands, "|") +
         R"() command=${COMP_WORDS[i]}; break ;;
    esac
  done
  case "$command:$previous" in
)" + values +
         R"(  esac
  case "$command:" in
)" + options +
         R"(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ -z $command ]]; then
    COMPREPLY=($(compgen -W ')" +
         joined(commands, " ") + R"(' -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _tressel tressel)";
}

/// In single quotes for fish.
std::string quoted(const std::string &text) {
  std::string out = "'";
  for (char c : text)
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c == '\n' ? ' ' : c);
  return out + "'";
}

std::string fish(const CLI::App &app) {
  std::string text = "complete -c tressel -n __fish_use_subcommand -f\n";
  auto add = [&](const std::string &when, const std::vector<Choice> &choices) {
    for (const Choice &choice : choices) {
      text += "complete -c tressel -n " + quoted(when);
      for (const std::string &name : choice.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (choice.takesValue)
        text += choice.values.empty() ? " -r" : " -x -a " + quoted(joined(choice.values, " "));
      text += " -d " + quoted(choice.help.substr(0, choice.help.find_first_of(":;("))) + "\n";
    }
  };
  add("__fish_use_subcommand", choicesOf(app));
  for (const CLI::App *command : app.get_subcommands(nullptr)) {
    text += "complete -c tressel -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            quoted(command->get_description()) + "\n";
    add("__fish_seen_subcommand_from " + command->get_name(), choicesOf(*command));
  }
  text.pop_back(); // the caller adds the last line break
  return text;
}

} // namespace

std::string completionScript(const CLI::App &app, const std::string &shell) {
  if (shell == "fish")
    return fish(app);
  return (shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") + bash(app);
}

} // namespace tressel::tool
